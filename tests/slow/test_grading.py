"""The official solutions, handed in, get all points; the copy for students passes its own tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from exercises import POINTS
from exercises.grading import Limits, grade, report
from publish.student import write_copy
from tests.helpers import ROOT

SERIES = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_solutions_get_all_points(tmp_path, path):
    """Cells of their own go along where an answer needs them; ids of the original would make them edited ones."""
    solutions = ROOT / "notebooks" / "solutions" / f"{path.name[:2]}_solutions.ipynb"
    notebook = json.loads(solutions.read_text("utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"own-{number}"
    (tmp_path / "solved.ipynb").write_text(json.dumps(notebook), "utf-8")
    [row] = grade(path, [tmp_path / "solved.ipynb"], None, 1, Limits(seconds=300))
    assert row.total == sum(POINTS[number] for number in row.verdicts), report([row])
    assert not row.remarks


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return write_copy(tmp_path_factory.mktemp("for") / "students")


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "publish.notebooks", "sync", "--check"],
        [
            *("-m", "pytest", "-q", "-p", "no:nbval", "-p", "no:nbmake", "-m"),
            "not long",
            "tests/reference",
            "tests/exercises",
        ],
        ["-m", "pytest", "-q", "--nbval", "notebooks/03_self_attention.ipynb"],
    ],
    ids=["style", "format", "sync", "tests", "a notebook"],
)
def test_the_copy_for_students_passes_its_own_tests(copy, command):
    variables = os.environ | {"PYTHONPATH": str(copy)}
    options = {"cwd": copy, "env": variables, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, *command], **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
