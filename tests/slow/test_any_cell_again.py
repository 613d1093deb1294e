"""Any cell of the notebooks that build the encoder, run again after the whole notebook, prints what it printed.

From the last cell to the first, so that no cell before it has put things right. Cells that train are exempt.
"""

import copy

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT

BUILDING = [*sorted((ROOT / "notebooks").glob("0[0-6]_*.ipynb")), ROOT / "notebooks" / "evening.ipynb"]
TRAINS = ("optimizer.step()", "optimiser.step()", ".backward()")


def texts(cell) -> str:
    """What a cell printed and showed as text, but for the progress bars and figures of one that nbval exempts."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return ""
    shown = [output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return "".join(text for text in shown if "<Figure" not in text)  # where a stream breaks is chance


@pytest.mark.parametrize("path", BUILDING, ids=lambda path: path.stem)
def test_rerun_cell_prints_the_same(path):
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(notebook, timeout=600, resources={"metadata": {"path": path.parent}})
    with client.setup_kernel():
        for number, cell in enumerate(notebook.cells):
            client.execute_cell(cell, number)
        for number, cell in reversed(list(enumerate(notebook.cells))):
            if cell.cell_type == "code" and not any(word in cell.source for word in TRAINS):
                again = copy.deepcopy(cell)
                client.execute_cell(again, number)
                assert texts(again) == texts(cell), f"cell [{number}]:\n{cell.source}"
