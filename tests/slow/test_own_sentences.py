"""A reader's own sentences in notebook 07: a pair, one in a tuple, or a string, and every cell follows."""

import nbformat
import pytest

from publish import notebooks
from tests.helpers import ROOT

PATH = ROOT / "notebooks" / "07_attention_views.ipynb"
PAIR = '("I called Ian.", "I got his answering machine.")'


@pytest.mark.parametrize("own", ['"The dogs barked."', '("The dogs barked.",)', '("Dogs bark.", "Cats do not.")'])
def test_every_cell_follows(own):
    notebook = nbformat.read(PATH, as_version=4)
    [cell] = [cell for cell in notebook.cells if f"sentences = text_or_pair({PAIR})" in cell.source]
    [shown] = [cell for cell in notebook.cells if 'print(" ".join(tokens))' in cell.source]
    cell.source = cell.source.replace(PAIR, own, 1)
    notebooks.run(notebook, PATH.parent)  # a cell's error is raised here
    assert "dogs" in shown.outputs[0].text
    assert "ian" not in shown.outputs[0].text
