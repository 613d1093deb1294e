"""A notebook's outputs are the same byte for byte, and its set-up comes before torch asks for memory."""

import nbformat

from publish import notebooks
from tests.helpers import ROOT


def test_executing_twice_changes_no_byte(tmp_path):
    path = tmp_path / "02_embeddings.ipynb"
    notebook = nbformat.read(ROOT / "notebooks" / path.name, as_version=4)
    pictures = ["image/png" in str(cell.get("outputs")) for cell in notebook.cells]
    notebook.cells = notebook.cells[: pictures.index(True) + 1]
    nbformat.write(notebook, path)
    contents = []
    for _ in range(2):
        notebooks.execute(path)
        contents.append(path.read_bytes())
    assert contents[0] == contents[1]
