"""A notebook alone in an empty folder, as Colab opens it: its setup cell fetches the repository and goes on.

The two shortest run from top to bottom; COLAB=all runs every notebook so (`make colab`, in an environment of its own).
"""

import os
import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT
from tests.repository import address, publish
from tools import badges

SERIES = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
SHORTEST = [path for path in SERIES if path.name[:2] in ("00", "02")]
FULL = SERIES if os.environ.get("COLAB") == "all" else SHORTEST


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> dict[str, str]:
    return publish(tmp_path_factory.mktemp("repository") / "published")


@pytest.fixture
def colab(tmp_path, monkeypatch, published) -> Path:
    """An empty folder, a stub of google.colab, and a git that finds this repository at its public address."""
    stub = tmp_path / "stub" / "google" / "colab"
    stub.mkdir(parents=True)
    (stub / "__init__.py").touch()
    folder = tmp_path / "content"
    folder.mkdir()
    own = {"PYTHONPATH": str(tmp_path / "stub"), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    for name, value in (own | published).items():
        monkeypatch.setenv(name, value)
    return folder


def run(path: Path, folder: Path, cells: slice) -> None:
    """Execute these cells of a notebook in a folder that holds nothing else."""
    shutil.copy(path, folder)
    notebook = nbformat.read(folder / path.name, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"][cells]
    elsewhere = "import sys; sys.prefix = '/'"  # this Python belongs to a checkout, Colab's does not
    notebook.cells.insert(0, nbformat.v4.new_code_cell(elsewhere))
    NotebookClient(notebook, timeout=3600, resources={"metadata": {"path": folder}}).execute()


@pytest.mark.parametrize("path", [path for path in SERIES if path not in FULL], ids=lambda path: path.stem)
def test_setup_and_imports(path, colab):
    run(path, colab, slice(2))
    assert (colab / badges.current_slug().split("/")[1] / "utils").is_dir()


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_from_top_to_bottom(path, colab):
    run(path, colab, slice(None))


def test_a_second_run_uses_what_the_first_fetched(colab, monkeypatch):
    run(SERIES[0], colab, slice(1))
    for name, value in address("file:///nowhere").items():
        monkeypatch.setenv(name, value)
    run(SERIES[0], colab, slice(1))
