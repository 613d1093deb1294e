"""The set-up cell finds the installed series from any folder, and downloads nothing."""

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from publish.notebooks import run
from tests.helpers import ROOT
from tests.repository import write_notebook

WHERE = "import utils\nprint(utils.__file__)"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch) -> Path:
    """Return an empty working folder, with nothing to download."""
    monkeypatch.setenv("SERIES", "file:///nowhere.zip")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(path: Path) -> tuple[str, str]:
    """Return the output of the set-up cell in an executed notebook, and the path of its series."""
    cells = nbformat.read(path, as_version=4).cells
    return tuple(cell.outputs[0].text.strip() for cell in cells)


def execute(path: Path, folder: Path) -> tuple[str, str]:
    """Run a notebook in a folder, as JupyterLab and nbval do, and return the same."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook, folder)
    nbformat.write(notebook, path)
    return printed(path)


@pytest.mark.parametrize("folder", [ROOT / "notebooks", ROOT / "notebooks" / "solutions", None])
def test_in_its_folder_and_copied_out_of_the_checkout(elsewhere, folder):
    set_up, series = execute(write_notebook(elsewhere / "copy.ipynb", WHERE), folder or elsewhere)
    assert series == str(ROOT / "utils" / "__init__.py")
    assert "This notebook is in" not in set_up


def test_papermill_from_another_folder(elsewhere):
    path = write_notebook(elsewhere / "probe.ipynb", WHERE)
    (elsewhere / "another").mkdir()
    command = [sys.executable, "-m", "papermill", str(path), "out.ipynb", "-k", "python3"]
    done = subprocess.run(command, cwd=elsewhere / "another", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert printed(elsewhere / "another" / "out.ipynb")[1] == str(ROOT / "utils" / "__init__.py")
