"""Notebook 09 runs through on a reader's own companies, few or many, with no query written for them."""

import csv

import nbformat
import pytest

from publish import notebooks
from tests.helpers import ROOT


@pytest.mark.parametrize("count", [2, 3, 30])  # proof 9.14 has no interval over one query
def test_a_list_of_any_length(tmp_path, count):
    header = ("name", "ticker", "description") if count > 2 else ("", "companyName", "ticker")  # as textbooks have it
    rows = [(f"Shop {number}", f"S{number}", f"Sells {number} kinds of tea.") for number in range(count)]
    rows = rows if count > 2 else [(number, *row[:2]) for number, row in enumerate(rows)]
    with (tmp_path / "own.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    notebook = nbformat.read(ROOT / "notebooks" / "09_semantic_search.ipynb", as_version=4)
    reading = next(cell for cell in notebook.cells if "listed = companies()" in cell.source)
    reading.source = reading.source.replace("companies()", f"companies({str(tmp_path / 'own.csv')!r})", 1)
    notebooks.run(notebook, ROOT / "notebooks")  # raises the first error
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert f"right company first (hit@1): {count} of {count};" in printed
