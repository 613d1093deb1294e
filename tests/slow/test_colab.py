"""A single notebook in an empty folder, as on Colab: its set-up cell installs the series, and changes no other package.

Without COLAB, two short notebooks run, and the series is a ZIP file that was uploaded. With it, in the environment that
`make colab COLAB=2026.07` makes of Colab's list, the series is a release's wheel, and the core runs, and notebook 13.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from publish.notebooks import number_of
from tests.helpers import ROOT
from tests.repository import ADDED, ADDED_BY_13, NAME, bare_python, build_wheel, canonical, pack_project, write_notebook

SERIES = sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))
LIST = os.environ.get("COLAB")
CHOSEN = [*(f"{number:02}" for number in range(10)), "13", "evening"] if LIST else ["00", "02", "evening"]
FULL = [path for path in SERIES if number_of(path) in CHOSEN]
# Build the project with the installed setuptools, without downloads.
OFFLINE = {} if LIST else {"PIP_NO_INDEX": "1", "PIP_NO_BUILD_ISOLATION": "0"}


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
    done = run(python, probe, folder / "content", str(build_wheel(folder) if LIST else pack_project(folder)))
    assert done.returncode == 0, done.stderr
    assert f"FOUND {folder / 'venv'}" in done.stderr
    assert "ERROR" not in done.stderr, done.stderr
    return python


def added(python: Path) -> set[str]:
    """Return the packages that pip has installed or exchanged; those of Colab lie elsewhere."""
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    found = Path(subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip())
    return {canonical(path.name.partition("-")[0]) for path in found.glob("*.dist-info")}


def test_pip_changes_no_installed_package(python):
    assert added(python) == (ADDED if LIST else {NAME})


def test_all_files_of_the_series_are_installed(python):
    where = "import pathlib, utils; print(pathlib.Path(utils.__file__).parents[1])"
    found = subprocess.run([python, "-P", "-c", where], check=True, capture_output=True, text=True).stdout
    for package in ("utils", "exercises", "views"):
        files = [path for path in (ROOT / package).rglob("*.*") if "__pycache__" not in path.parts]
        assert len(files) > 10
        for path in files:
            copy = Path(found.strip(), path.relative_to(ROOT))
            assert copy.is_file() == (path != ROOT / "views" / "README.md")
            assert not copy.is_file() or copy.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", FULL, ids=lambda path: path.stem)
def test_from_top_to_bottom(path, python, tmp_path):
    """An installed series is not downloaded again: there is nothing at this address."""
    done = run(python, path, tmp_path / "content", "file:///nowhere.zip")
    assert done.returncode == 0, done.stderr[-8000:]
    assert "ERROR: pip" not in done.stderr, done.stderr


def test_pip_has_changed_no_package_after_13_either(python):
    assert added(python) == (ADDED | ADDED_BY_13 if LIST else {NAME})


def test_missing_archive_ends_with_error(tmp_path):
    python = bare_python(tmp_path / "venv")
    probe = write_notebook(tmp_path / "probe.ipynb")
    done = run(python, probe, tmp_path / "content", (tmp_path / "nowhere.zip").as_uri())
    assert done.returncode
    assert "ERROR: Could not install" in done.stderr
    assert "AssertionError: Not installed: put the series" in done.stderr
