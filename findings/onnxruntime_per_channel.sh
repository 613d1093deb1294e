#!/usr/bin/env bash
# onnxruntime: quantize_dynamic(per_channel=True) gives an embedding table a single scale.
#
# Guess (70 %): each row of the table, which is one token's vector, gets its own scale.
# What happens: the matrix of a MatMul gets one scale per column, but a table read by Gather gets one scale for all its
#   values. A token whose vector is small becomes a vector of zeros. No warning is given.
# Seen with: onnxruntime 1.20.1, 1.24.4 and 1.31.1.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet onnxruntime==1.31.1 onnx==1.23.2 numpy==2.4.6
cd "$folder"
venv/bin/python - <<'PY'
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

# 64 token vectors of 8 values, from small to large, and a matrix of 8 x 4
random = np.random.default_rng(0)
size = np.geomspace(0.01, 10, 64)[:, None]
table = (size * random.uniform(0.5, 1, (64, 8)) * random.choice([-1, 1], (64, 8))).astype(np.float32)
matrix = random.normal(size=(8, 4)).astype(np.float32)
graph = helper.make_graph(
    [
        helper.make_node("Gather", ["table", "ids"], ["vectors"]),
        helper.make_node("MatMul", ["vectors", "matrix"], ["y"]),
    ],
    "embedding",
    [helper.make_tensor_value_info("ids", TensorProto.INT64, ["S"])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["S", 4])],
    [numpy_helper.from_array(table, "table"), numpy_helper.from_array(matrix, "matrix")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "model.onnx")
quantize_dynamic("model.onnx", "small.onnx", per_channel=True, weight_type=QuantType.QInt8)

found = {tensor.name: numpy_helper.to_array(tensor) for tensor in onnx.load("small.onnx").graph.initializer}
zero = int((found["table_quantized"] == found["table_zero_point"]).all(1).sum())
print(f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}")
print("quantize_dynamic(per_channel=True) gives the matrix one scale per column, and the embedding table a single one.")
print(f"scales of the 8 x 4 matrix: {found['matrix_scale'].size}")
print(f"scales of the table of 64 vectors: {found['table_scale'].size}")
print(f"vectors of the table that became zeros: {zero} of 64 (none was zero before)")
expected = found["matrix_scale"].size == 4 and found["table_scale"].size == 1 and zero > 0
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
