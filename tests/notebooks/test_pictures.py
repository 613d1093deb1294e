"""Stale figures are detected, and small differences between machines are ignored."""

import base64
import re

import nbformat

from publish.notebooks import execute
from tests.helpers import run_python

VALUES = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0]
DRAW = """
import matplotlib.pyplot as plt
_, ax = plt.subplots()
ax.plot({values})
ax.set(title="A figure", xlabel="step")
plt.show()
"""


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
    done = run_python("-m", "pytest", "--nbval", "-p", "tests.notebooks.pictures", "-q", path, folder=tmp_path)
    assert "1 failed, 2 passed" in done.stdout
    assert re.search(r"Cell 1[\s\S]*A saved figure is stale: figure 1 differs from a fresh run", done.stdout)
