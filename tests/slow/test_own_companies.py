"""Notebook 09 runs through on a reader's own companies, few or many, with no query written for them."""

import csv
import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell

from publish import notebooks
from tests.helpers import ROOT
from utils.datasets import DATA


@pytest.mark.parametrize("count", [2, 3, 30])  # proof 9.14 has no interval over one query
def test_a_list_of_any_length(tmp_path, count):
    with (tmp_path / "companies.csv").open("w", encoding="utf-8", newline="") as file:
        rows = [(f"Shop {number}", f"S{number}", f"Sells {number} kinds of tea.") for number in range(count)]
        csv.writer(file).writerows([("name", "ticker", "description"), *rows])
    shutil.copy(DATA / "company_queries.csv", tmp_path)
    notebook = nbformat.read(ROOT / "notebooks" / "09_semantic_search.ipynb", as_version=4)
    imports = next(cell for cell in notebook.cells if cell.source.startswith("# @title Imports"))
    own_data = f"from utils import datasets\n\ndatasets.DATA = Path({str(tmp_path)!r})"
    notebook.cells.insert(notebook.cells.index(imports) + 1, new_code_cell(own_data))
    notebooks.run(notebook, ROOT / "notebooks")  # raises the first error
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", []))
    assert f"right company first (hit@1): {count} of {count};" in printed
