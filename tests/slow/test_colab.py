"""A single notebook in an empty folder, as on Colab: its set-up cell installs the series from a ZIP file.

The two shortest notebooks are run; COLAB=all runs every notebook (`make colab`, in an environment of its own).
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.repository import bare_python, pack_project, write_notebook

SERIES = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))
ALL = os.environ.get("COLAB") == "all"
FULL = SERIES if ALL else [path for path in SERIES if path.name[:2] in ("00", "02")]
# Build the project with the installed setuptools, without downloads.
OFFLINE = {} if ALL else {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}


def run(python: Path, path: Path, folder: Path, address: str) -> subprocess.CompletedProcess:
    """Execute a copy of a notebook in a folder."""
    folder.mkdir(exist_ok=True)
    shutil.copy(path, folder / path.name)
    command = [python, "-m", "papermill", path.name, "out.ipynb", "--kernel", "python3", "--log-output"]
    environment = os.environ | OFFLINE | {"SERIES": address}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def python(tmp_path_factory) -> Path:
    """A Python on which a notebook's set-up cell has installed the series."""
    folder = tmp_path_factory.mktemp("colab")
    python = bare_python(folder / "venv")
    probe = write_notebook(folder / "probe.ipynb", "import utils\nprint('FOUND', utils.__file__)")
    done = run(python, probe, folder / "content", str(pack_project(folder)))
    assert done.returncode == 0, done.stderr
    assert f"FOUND {folder / 'venv'}" in done.stderr
    return python


def test_all_files_of_the_series_are_installed(python):
    where = "import pathlib, utils; print(pathlib.Path(utils.__file__).parents[1])"
    found = subprocess.run([python, "-P", "-c", where], check=True, capture_output=True, text=True).stdout
    for package in ("utils", "exercises"):
        files = [path for path in (ROOT / package).rglob("*.*") if "__pycache__" not in path.parts]
        assert len(files) > 10
        for path in files:
            copy = Path(found.strip(), path.relative_to(ROOT))
            assert copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_from_top_to_bottom(path, python, tmp_path):
    """An installed series is not downloaded again: there is nothing at this address."""
    done = run(python, path, tmp_path / "content", "file:///nowhere.zip")
    assert done.returncode == 0, done.stderr[-8000:]


def test_missing_archive_ends_with_error(tmp_path):
    python = bare_python(tmp_path / "venv")
    probe = write_notebook(tmp_path / "probe.ipynb")
    done = run(python, probe, tmp_path / "content", (tmp_path / "nowhere.zip").as_uri())
    assert done.returncode
    assert "ERROR: Could not install" in done.stderr
    assert "AssertionError: Not installed: upload the series as a ZIP" in done.stderr
