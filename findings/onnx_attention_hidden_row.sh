#!/usr/bin/env bash
# ONNX Attention: a query that may look at no key gives zeros or a mean, depending on who computes it.
#
# Guess (65 %): onnxruntime and the reference implementation of ONNX return the same for one file and one mask: NaN.
#   The operator Attention gives what the separate operators give that it replaces (MatMul, Add, Softmax, MatMul).
# What happens: with the mask that transformers adds to the scores, 0 or the smallest float32, onnxruntime's Attention
#   returns zeros for a row that hides every key; the reference, and onnxruntime with separate operators,
#   return the mean of the values. With a boolean mask, both implementations return zeros.
# Seen with: onnxruntime 1.31.1 and 1.32.0, onnx 1.23.2. In onnxruntime 1.24.4 and onnx 1.20.1, the mean is returned for
#   the float mask by both; for the boolean mask it is the mean in onnxruntime and NaN in the reference.
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
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

SHAPE = [1, 1, 2, 4]  # batch, heads, tokens, coordinates: the scale is 1 / sqrt(4)


def build(nodes, mask_type):
    """Return a checked model of these nodes, from q, k, v and mask to y."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "qkv"]
    inputs.append(helper.make_tensor_value_info("mask", mask_type, [2, 2]))
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, SHAPE)]
    graph = helper.make_graph(nodes, "attention", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    onnx.checker.check_model(model, full_check=True)
    return model


def run(model, mask):
    """Return the second row, which sees no key, from onnxruntime and from the reference implementation."""
    feed = {"q": values, "k": values, "v": values, "mask": mask}
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    results = session.run(None, feed)[0], ReferenceEvaluator(model).run(None, feed)[0]
    return [result[0, 0, 1].round(4).tolist() for result in results]


values = np.arange(8, dtype=np.float32).reshape(SHAPE)
visible = np.array([[True, False], [False, False]])
added = np.where(visible, 0, np.finfo(np.float32).min).astype(np.float32)
half = helper.make_node("Constant", [], ["half"], value_float=0.5)
separate = [
    half,
    helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2]),
    helper.make_node("MatMul", ["q", "kt"], ["products"]),
    helper.make_node("Mul", ["products", "half"], ["scores"]),
    helper.make_node("Add", ["scores", "mask"], ["masked"]),
    helper.make_node("Softmax", ["masked"], ["weights"], axis=-1),
    helper.make_node("MatMul", ["weights", "v"], ["y"]),
]
attention = [helper.make_node("Attention", ["q", "k", "v", "mask"], ["y"])]
boolean = run(build(attention, TensorProto.BOOL), visible)
smallest = run(build(attention, TensorProto.FLOAT), added)
plain = run(build(separate, TensorProto.FLOAT), added)

print(f"onnxruntime {onnxruntime.__version__}, onnx {onnx.__version__}")
print("A row of the mask hides every key. Its result is zero or the mean of the values, depending on the program.")
print(f"{'':<36} {'onnxruntime':<22} reference")
for name, (row, reference) in {
    "Attention, boolean mask": boolean,
    "Attention, smallest float32 added": smallest,
    "separate operators, the same added": plain,
}.items():
    print(f"{name:<36} {row!s:<22} {reference}")
zeros, mean = [0.0] * 4, values[0, 0].mean(0).tolist()
expected = boolean == [zeros, zeros] and smallest == [zeros, mean] and plain == [mean, mean]
print("as expected" if expected else "DIFFERS from what is expected")
sys.exit(not expected)
PY
