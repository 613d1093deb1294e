"""Official solutions get all points, here and in nbgrader; the copy for students gives what is saved."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from exercises.framework import POINTS
from exercises.grading import grade
from exercises.grading.report import report
from publish.student import write_copy
from tests.exercises.hand_ins import HONEST, NOTEBOOK, RIGHT, code, hand_in, honest, number_of
from tests.helpers import ROOT, unix_only

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


def for_nbgrader(cells: list[dict]) -> list[dict]:
    """Set-up, imports and two exercises, each with a cell below it that nbgrader runs as its test."""
    kept = [cell for cell in cells if cell["cell_type"] == "code" and "check(" not in "".join(cell["source"])][:2]
    for cell in cells:
        if (number := number_of(cell)) in ("3.1", "3.4"):
            answer = "".join(cell["source"]).rpartition(f'check("{number}", ')[2].strip()[:-1]
            test = code(f'from exercises import solved\n\nassert solved("{number}", {answer})')
            note = {"grade": True, "solution": False, "locked": True, "points": 2, "schema_version": 3, "task": False}
            note |= {"grade_id": f"exercise-{number.replace('.', '-')}", "cell_type": "code"}
            kept += [cell, test | {"id": f"test-{number[-1]}", "metadata": {"nbgrader": note}}]
    return kept


@unix_only
def test_nbgrader_grades_as_documented(tmp_path):
    """Runs the commands of GRADING.md, installation included."""
    block = (ROOT / "docs/GRADING.md").read_text("utf-8").partition("**With nbgrader")[2].partition("```sh\n")[2]
    commands = block.partition("```")[0].replace(".venv/bin/python", sys.executable)
    assert commands.count("nbgrader==") == 1
    install, _, run = commands.partition("nbgrader generate_assignment")
    options = {"cwd": tmp_path, "capture_output": True, "text": True, "check": False}
    options["env"] = os.environ | {"MINE": "off"}
    done = subprocess.run(["bash", "-ec", install], **options)
    if done.returncode:
        pytest.skip(f"nbgrader cannot be installed: {done.stderr[-300:]}")
    hand_ins = {"source/03": {}, "submitted/ada/03": RIGHT, "submitted/bob/03": {"3.1": RIGHT["3.1"]}}
    for folder, answers in (hand_ins | {"submitted/cy/03": {}}).items():
        (tmp_path / folder).mkdir(parents=True)
        hand_in(tmp_path / folder / "03.ipynb", answers, for_nbgrader)
    grading = f". .venv-nbgrader/bin/activate\nnbgrader generate_assignment{run}"
    done = subprocess.run(["bash", "-c", grading], **options)
    table = re.search(r"--to (\S+)", run)[1]
    with (tmp_path / table).open(encoding="utf-8", newline="") as file:
        scores = {row["student_id"]: float(row["score"]) for row in csv.DictReader(file)}
    assert scores == {"ada": 4, "bob": 2, "cy": 0}, done.stderr[-3000:]


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    return write_copy(tmp_path_factory.mktemp("for") / "students")


@pytest.mark.parametrize(
    "command",
    [
        ["-m", "ruff", "check", "."],
        ["-m", "ruff", "format", "--check", "."],
        ["-m", "pytest", "-q", "--nbval", "notebooks/03_self_attention.ipynb"],
    ],
    ids=["style", "format", "a notebook"],
)
def test_student_copy_is_clean_and_gives_saved_outputs(copy, command):
    variables = os.environ | {"PYTHONPATH": str(copy)}
    options = {"cwd": copy, "env": variables, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, *command], **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
