"""Official solutions get all points; the copy for students gives what is saved."""

import json
from pathlib import Path

import pytest

from exercises.framework import POINTS
from exercises.grading import grade
from exercises.grading.report import report
from publish.student import write_copy
from tests.exercises.hand_ins import HONEST, NOTEBOOK, honest
from tests.helpers import ROOT, run_python

SERIES = sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))


@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_solutions_get_all_points(tmp_path, path):
    """Cells of their own go along where an answer needs them; ids of the original would make them edited ones."""
    solutions = ROOT / "notebooks" / "solutions" / f"{path.stem.partition('_')[0]}_solutions.ipynb"
    notebook = json.loads(solutions.read_text("utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"own-{number}"
    (tmp_path / "solved.ipynb").write_text(json.dumps(notebook), "utf-8")
    [row] = grade(path, [tmp_path / "solved.ipynb"], seconds=300)
    assert row.total == sum(POINTS[number] for number in row.verdicts), report([row])
    assert not row.remarks


def test_odd_answers_to_all_exercises_are_correct(tmp_path):
    rows = grade(NOTEBOOK, honest(tmp_path, list(HONEST), short=False), processes=2)
    verdicts = [verdict for row in rows for verdict in row.verdicts.values()]
    assert [words for kind, words in verdicts if kind not in ("correct", "not attempted")] == []
    assert sum(kind == "correct" for kind, _ in verdicts) == sum(map(len, HONEST.values()))


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return write_copy(tmp_path_factory.mktemp("for") / "students")


@pytest.mark.parametrize("command", [
    ["-m", "ruff", "check", "."],
    ["-m", "ruff", "format", "--check", "."],
    ["-m", "pytest", "-q", "--nbval", "notebooks/03_self_attention.ipynb"],
], ids=["style", "format", "a notebook"])  # fmt: skip
def test_student_copy_is_clean_and_gives_saved_outputs(copy, command):
    done = run_python(*command, folder=copy, PYTHONPATH=str(copy))
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
