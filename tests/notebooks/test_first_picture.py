"""Notebooks start quickly: slow imports wait until a cell needs them."""

import json

import pytest

from tests.helpers import ROOT, run_python

NOTEBOOKS = sorted((ROOT / "notebooks").glob("0[0-5]_*.ipynb"))
# imports of transformers' models, and packages that only some cells need; 01 uses pandas
HEAVY = ("transformers.modeling_utils", "torch._dynamo", "torch._inductor", "accelerate", "sympy", "scipy")
HEAVY += ("sklearn", "onnxruntime", "faiss", "sentence_transformers")
# run the cells of some notebooks, and print which cell imported which heavy modules
RUN = r"""
import contextlib, io, json, re, sys
import matplotlib
matplotlib.use("agg")
notebooks, heavy = json.load(sys.stdin)
known, found = set(), {}
for notebook, cells in notebooks.items():
    names = {}
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(cell, notebook, "exec"), names)
        models = {name for name in sys.modules if re.match(r"transformers\.models\.(?!auto).*\.modeling_", name)}
        found.setdefault(notebook, []).append(sorted(({*heavy} & {*sys.modules} | models) - known))
        known.update(found[notebook][-1])
print(json.dumps(found))
"""


def cells_to_run(path) -> list[str]:
    """Return the code cells of 00, which loads no official model, and those that set up a later notebook."""
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    sources = ["".join(cell["source"]) for cell in cells]
    return sources if path.name.startswith("00") else sources[:2]


@pytest.fixture(scope="module")
def imported() -> dict[str, list[list[str]]]:
    """Return the heavy modules that each cell imported, by notebook."""
    cells = {path.name: cells_to_run(path) for path in NOTEBOOKS}
    run = run_python("-W", "ignore", "-c", RUN, folder=ROOT / "notebooks", typed=json.dumps([cells, HEAVY]))
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_heavy_imports_wait_for_the_comparison(path, imported):
    cells = cells_to_run(path)
    for cell, modules in zip(cells, imported[path.name], strict=True):
        assert modules == [], cell
