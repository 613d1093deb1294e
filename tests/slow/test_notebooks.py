"""A notebook's outputs are the same byte for byte, and its set-up comes before torch asks for memory."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

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


FAULTS = """
import resource, sys
from utils.support.notebook import start
start()
import torch
wide = torch.zeros(4096, 3072)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.nn.functional.gelu(wide)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_start_comes_early_enough_for_large_pages():
    """12,288 small pages hold the result: a setting that came after torch's first memory would do nothing."""
    known = Path("/sys/kernel/mm/transparent_hugepage/enabled")
    if not known.exists() or "[madvise]" not in known.read_text():
        pytest.skip("this system gives large pages to all or to none")
    found = {}
    for setting in ("0", "1"):
        settings = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
        settings |= {"THP_MEM_ALLOC_ENABLE": "0"} if setting == "0" else {}
        run = subprocess.run(
            [sys.executable, "-c", FAULTS], env=settings, cwd=ROOT, capture_output=True, text=True, check=True
        )
        found[setting] = int(run.stdout.splitlines()[-1])
    assert found["0"] > 12_000
    assert found["1"] < found["0"] / 5
