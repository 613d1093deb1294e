"""The set-up cell finds the checkout that a notebook belongs to, whoever runs it from wherever, and fetches nothing."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT
from tests.repository import address, copy_project

WHERE = "import utils\nprint(root.resolve())\nassert utils.__file__.startswith(str(root.resolve()))"


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A checkout under another name, with a notebook that only sets up and says what it found."""
    folder = copy_project(tmp_path_factory.mktemp("seminar") / "week 3")
    write_notebook(folder / "notebooks" / "probe.ipynb")
    return folder


def write_notebook(path: Path) -> Path:
    first = next((ROOT / "notebooks").glob("00_*.ipynb"))
    cells = nbformat.read(first, as_version=4).cells
    sources = [next(cell.source for cell in cells if cell.cell_type == "code"), WHERE]
    new = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    nbformat.write(new, path)
    return path


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """An empty working directory, and no repository to clone."""
    for name, value in address("file:///nowhere").items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(path: Path) -> str:
    """What an executed copy of the notebook printed."""
    return nbformat.read(path, as_version=4).cells[-1].outputs[0].text.strip()


def run(*command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("relative", [False, True])
def test_papermill_from_another_folder(checkout, elsewhere, relative):
    path = checkout / "notebooks" / "probe.ipynb"
    run("papermill", os.path.relpath(path) if relative else str(path), "out.ipynb", "-k", "python3")
    assert found(elsewhere / "out.ipynb") == str(checkout)


def test_nbmake_from_another_folder(checkout, elsewhere):
    path = checkout / "notebooks" / "probe.ipynb"
    run("pytest", "-q", "-p", "no:cacheprovider", "--nbmake", "--overwrite", str(path))
    assert found(path) == str(checkout)


@pytest.mark.skipif(not Path(sys.prefix).is_relative_to(ROOT), reason="this Python belongs to no checkout")
def test_a_notebook_copied_out_of_the_checkout(elsewhere):
    path = write_notebook(elsewhere / "copy.ipynb")
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": elsewhere}}).execute()
    nbformat.write(notebook, path)
    assert found(path) == str(ROOT)
