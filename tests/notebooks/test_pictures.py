"""Stale figures are detected, and small differences between machines are ignored."""

import base64
import io
import os
import re
import subprocess
import sys

import matplotlib.pyplot as plt
import nbformat
import pytest
from PIL import Image

from publish.notebooks import execute
from tests.helpers import ROOT
from tests.notebooks.pictures import verdict

VALUES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
SHARES = [[((row * 7 + column * 5) % 11) / 11 for column in range(8)] for row in range(8)]
DRAW = """
import matplotlib.pyplot as plt
_, ax = plt.subplots()
ax.plot({values})
ax.set(title="A figure", xlabel="step")
plt.show()
"""


def drawn(values=VALUES, size=(6.4, 3.6), cmap="cividis", **settings) -> list[Image.Image]:
    """Draw a curve, bars and a heat map as a notebook saves them."""
    with plt.rc_context(settings):
        figure, (left, middle, right) = plt.subplots(1, 3, figsize=size, layout="constrained")
        left.plot(values, marker="o", label="loss")
        left.set(title="A curve", xlabel="step")
        left.legend()
        middle.barh([f"head {number}" for number in range(len(values))], values)
        right.imshow(SHARES, cmap=cmap)
        buffer = io.BytesIO()
        figure.savefig(buffer, dpi=180)
        plt.close(figure)
    return [Image.open(buffer).convert("RGB")]


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"values": [*VALUES[:-1], 7.0]}, "figure 1 differs from a fresh run: by "),
        ({"values": VALUES[::-1]}, "figure 1 differs from a fresh run: by "),
        ({"cmap": "Blues"}, "figure 1 differs from a fresh run: by "),
        ({"size": (6.4, 4.0)}, r"figure 1 is saved with \(1152, 648\) pixels, but was drawn with \(1152, 720\)"),
    ],
)
def test_other_figures_are_detected(other, words):
    with pytest.raises(AssertionError, match=words):
        raise AssertionError(verdict(drawn(), drawn(**other)))


def test_nbval_compares_figures(tmp_path):
    """Each cell is saved with a figure of VALUES; the second and the third now draw another one."""
    path, other = tmp_path / "a.ipynb", DRAW.format(values=VALUES[::-1])
    cells = [nbformat.v4.new_code_cell(DRAW.format(values=VALUES)) for _ in range(3)]
    cells[2].metadata["tags"] = ["nbval-ignore-output"]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    execute(path)
    notebook = nbformat.read(path, as_version=4)
    assert base64.b64decode(notebook.cells[0].outputs[0].data["image/png"])
    notebook.cells[1].source = notebook.cells[2].source = other
    nbformat.write(notebook, path)
    command = [sys.executable, "-m", "pytest", "--nbval", "-p", "tests.notebooks.pictures", "-q", path]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 failed, 2 passed" in done.stdout
    assert re.search(r"Cell 1[\s\S]*A saved figure is stale: figure 1 differs from a fresh run", done.stdout)
