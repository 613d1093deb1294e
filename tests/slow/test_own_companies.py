"""Notebook 09 runs through on a reader's own companies, few or many, with and without queries."""

import csv

import nbformat
import pytest

from publish import notebooks
from tests.helpers import ROOT

TABLES = {
    "two names": [("", "companyName", "ticker"), *((number, f"Shop {number}", "S") for number in range(2))],
    "thirty texts": [("Shop", "name", "What they do"), *((7, f"Shop {n}", f"Sells {n} teas.") for n in range(30))],
    "queries": [
        ("name", "about", "query"),
        ("Blossom", "Sells roses.", "flowers for my mother"),
        ("Crumb", "Bakes bread.", "rolls for breakfast"),
        ("Spoke", "Repairs bicycles.", ""),
    ],
}


@pytest.mark.parametrize("kind", TABLES)
def test_a_list_of_any_length(tmp_path, kind):
    with (tmp_path / "own.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(TABLES[kind])
    notebook = nbformat.read(ROOT / "notebooks" / "09_semantic_search.ipynb", as_version=4)
    reading = next(cell for cell in notebook.cells if "table = None" in cell.source)
    reading.source = reading.source.replace("table = None", f"table = {str(tmp_path / 'own.csv')!r}", 1)
    notebooks.run(notebook, ROOT / "notebooks")  # raises the first error
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert ("there is nothing to count" in printed) == (kind != "queries")
    assert ("95 % interval" in printed) == (kind == "queries")
    assert ("“flowers for my mother”" in printed) == (kind == "queries")
