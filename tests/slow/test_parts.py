"""Notebooks 03 to 09 as a reader runs them who has written parts of BERT: each prints what is saved.

With all nine parts, with none, and with every second one, the main line runs in one kernel, and no cell raises.
"""

import re

import nbformat
import pytest
from nbclient import NotebookClient
from traitlets.config import Config

from exercises.parts import PARTS
from exercises.saving_parts import save_part
from publish.notebooks import EXEMPT
from tests.exercises.answers import own_source
from tests.exercises.parts import RIGHT
from tests.helpers import ROOT

BUILT = [*sorted((ROOT / "notebooks").glob("0[3-9]_*.ipynb")), ROOT / "notebooks" / "evening.ipynb"]
TELLS = re.compile(r"^With your own code in it: .*\n", re.MULTILINE)
WHOSE = re.compile(r"\b(?:your|our)\b", re.IGNORECASE)  # code runs: the reader's, but ours in what is saved
CHOSEN = {"all": list(PARTS), "half": list(PARTS)[::2], "none": []}


def printed(cell) -> str:
    """What a cell has printed, all pieces joined, since where a stream breaks is chance."""
    streams = [output for output in cell.outputs if output.output_type == "stream"]
    return "".join(output.text for output in streams if output.name == "stdout")


def impersonal(text: str) -> str:
    """Return a text without what depends on whose code runs."""
    return " ".join(WHOSE.sub("", TELLS.sub("", text)).split())


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder of parts, as check keeps them; its kernels read it, too."""
    monkeypatch.setenv("MINE", str(tmp_path / "mine"))

    def keep_some(names: list[str]) -> None:
        for name in names:
            assert save_part(name, RIGHT[name]).startswith("It is a part")

    return keep_some


@pytest.mark.parametrize("chosen", CHOSEN)
@pytest.mark.parametrize("path", BUILT, ids=lambda path: path.stem)
def test_notebook_with_parts_prints_the_saved_output(path, chosen, mine):
    mine(CHOSEN[chosen])
    notebook = nbformat.read(path, as_version=4)
    saved = [printed(cell) if cell.cell_type == "code" else "" for cell in notebook.cells]
    encrypted = Config({"KernelManager": {"transport_encryption": "auto"}})  # else ipykernel warns
    options = {"timeout": 1800, "kernel_name": "python3", "config": encrypted}
    NotebookClient(notebook, resources={"metadata": {"path": path.parent}}, **options).execute()
    told = ""
    for cell, wanted in zip(notebook.cells, saved, strict=True):
        if cell.cell_type != "code":
            continue
        found = printed(cell)
        told += "".join(TELLS.findall(found))
        if EXEMPT not in cell.metadata.get("tags", []):
            assert impersonal(found) == impersonal(wanted), cell.source
    asks = any("my_encoder(" in cell.source or "my_classifier(" in cell.source for cell in notebook.cells)
    assert bool(told) == (asks and bool(CHOSEN[chosen]))


def test_a_solved_evening_warns_of_nothing(mine):
    """Its exercises are solved in their cells, so that the last one writes the page to show."""
    notebook = nbformat.read(BUILT[-1], as_version=4)
    for cell in notebook.cells:
        if "exercise" in cell.metadata.get("tags", []):
            cell.source = own_source(re.search(r'check\("(.*?)"', cell.source)[1])
    NotebookClient(notebook, timeout=1800, resources={"metadata": {"path": BUILT[-1].parent}}).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
    assert any("Your page: " in output.get("text", "") for output in outputs)
