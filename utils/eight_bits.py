"""Store the large matrices of an ONNX file in 8 bits, in a third of the size. Built in notebook 13."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

from utils.support.files import write_file
from utils.support.onnx import read_onnx

BLOCK = 16  # numbers that share a scale in 8 bits
LARGE = 10_000  # numbers in the smallest matrix that is worth quantizing


def to_eight_bits(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Quantize numbers in blocks: return codes 0 … 255 (blocks, BLOCK), and each block's scale and minimum (blocks, 1).

    A number is approximately code · scale + minimum; scale and minimum are float16.
    """
    blocks = values.reshape(-1, BLOCK)
    lowest = blocks.min(axis=1, keepdims=True).astype(np.float16)
    above = blocks - lowest.astype(np.float32)
    scale = (above.max(axis=1, keepdims=True) / 255).astype(np.float16)
    codes = np.rint(above / np.where(scale > 0, scale, 1).astype(np.float32))
    return codes.clip(0, 255).astype(np.uint8), scale, lowest


def in_eight_bits(name: str, values: np.ndarray) -> tuple[list, list] | None:
    """Return the tensors that store a matrix in 8 bits, and the nodes that restore it under its name.

    None if the error of some number would exceed a 255th of the range of all numbers.
    """
    from onnx import TensorProto, helper, numpy_helper

    if values.size % BLOCK:
        return None
    with np.errstate(all="ignore"):  # float16 ends at 65,504
        codes, scale, lowest = to_eight_bits(values)
        restored = codes * scale.astype(np.float32) + lowest
        off = np.abs(restored - values.reshape(-1, BLOCK)).max()
        if np.isnan(off) or off > np.ptp(values) / 255:
            return None
    parts = {"codes": codes, "scale": scale, "lowest": lowest, "shape": np.array(values.shape)}
    tensors = [numpy_helper.from_array(part, f"{name}.{kind}") for kind, part in parts.items()]
    nodes = [
        helper.make_node("Cast", [f"{name}.{kind}"], [f"{name}.{kind}.float"], to=TensorProto.FLOAT)
        for kind in ("codes", "scale", "lowest")
    ]
    nodes += [
        helper.make_node("Mul", [f"{name}.codes.float", f"{name}.scale.float"], [f"{name}.scaled"]),
        helper.make_node("Add", [f"{name}.scaled", f"{name}.lowest.float"], [f"{name}.blocks"]),
        helper.make_node("Reshape", [f"{name}.blocks", f"{name}.shape"], [name]),
    ]
    return tensors, nodes


def replace_matrices(graph, replace: Callable[[str, np.ndarray], tuple[list, list] | None]) -> None:
    """Replace the large float32 matrices of an ONNX graph by the tensors and nodes that `replace` returns.

    `replace` is called with a matrix's name and values; if it returns None, the matrix stays as it is.
    """
    from onnx import numpy_helper

    restoring = []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.ndim != 2 or values.size < LARGE:
            continue
        replacement = replace(tensor.name, values)
        if replacement is not None:
            tensors, nodes = replacement
            graph.initializer.remove(tensor)
            graph.initializer.extend(tensors)
            restoring += nodes
    nodes = [*restoring, *graph.node]  # restored before the nodes that use them
    del graph.node[:]
    graph.node.extend(nodes)


def quantize_onnx(path: str | os.PathLike, target: str | os.PathLike) -> Path:
    """Write a copy of an ONNX file with its large matrices in 8 bits, a third of the size; return the copy's path.

    Standard ONNX nodes convert them back to float32 when the file is loaded: it needs no special runtime, and saves
    neither time nor memory while it runs. A matrix that 8 bits cannot represent, such as one with numbers above
    65,504, stays as it is. FileNotFoundError and ValueError as in `OnnxModel`, OSError as in `export_onnx`.
    """
    model = read_onnx(path, Path(path).read_bytes())
    replace_matrices(model.graph, in_eight_bits)
    return write_file(target, model.SerializeToString())
