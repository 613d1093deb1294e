"""The official solutions, handed in, get all points, and no cheat does; the copy for students gives what is saved."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

from exercises import POINTS, solved
from exercises.grading import grade
from exercises.grading.cells import given_by, read_original
from exercises.grading.process import QUIET, Allowance
from exercises.grading.report import report
from exercises.grading.watch import IS_THE_ANSWER
from publish.student import write_copy
from tests.exercises.hand_ins import CHEATS, HONEST, hand_in, mistakes, original
from tests.helpers import ROOT

SECONDS = 20  # to try what is given as an answer
SERIES = sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_solutions_get_all_points(tmp_path, path):
    """Cells of their own go along where an answer needs them; ids of the original would make them edited ones."""
    solutions = ROOT / "notebooks" / "solutions" / f"{path.name[:2]}_solutions.ipynb"
    notebook = json.loads(solutions.read_text("utf-8"))
    for number, cell in enumerate(notebook["cells"]):
        cell["id"] = f"own-{number}"
    (tmp_path / "solved.ipynb").write_text(json.dumps(notebook), "utf-8")
    [row] = grade(path, [tmp_path / "solved.ipynb"], allowance=Allowance(seconds=300))
    assert row.total == sum(POINTS[number] for number in row.verdicts), report([row])
    assert not row.remarks


def test_no_right_answer_is_accused_and_no_cheat_gets_points_without_a_mark(tmp_path):
    assert not mistakes(tmp_path, HONEST, CHEATS)


def test_what_is_given_but_is_the_answer_counts_as_borrowed(tmp_path):
    takes = {"9.4": "my_embed = embed", "9.5": "my_shares = shares_of_cosine", "9.6": "recall_at_k = recall"}
    calls = {
        "9.4": "def my_embed(*all_of_it):\n    return embed(*all_of_it)",
        "9.5": "def my_shares(*states):\n    return shares_of_cosine(*states)",
        "9.6": "from utils import search as s\nrecall_at_k = lambda f, e: recall(f, e)",
    }
    paths = [hand_in(tmp_path / f"{i}.ipynb", answers, "09") for i, answers in enumerate((takes, calls))]
    for row in grade(original("09"), paths, processes=2):
        assert row.total == 0, report([row])
        assert "embed" in row.verdicts["9.4"].words
        assert "shares_of_cosine" in row.verdicts["9.5"].words
        assert "recall" in row.verdicts["9.6"].words


def given_and_right(path: Path) -> dict[str, set[str]]:
    """By exercise, the functions and classes given above it on the page that its check accepts as they are."""
    shell, given, found = InteractiveShell.instance(), set(), {}
    signal.signal(signal.SIGALRM, too_long)
    for cell in read_original(path):
        if not cell.number:
            shell.run_cell(cell.source, silent=True)
            given |= given_by(cell.source)
            continue
        for name in sorted(given & shell.user_ns.keys()):
            signal.alarm(SECONDS)
            if solved(cell.number, shell.user_ns[name]):
                found.setdefault(cell.number, set()).add(name)
            signal.alarm(0)
    return found


def too_long(number, frame):
    raise TimeoutError


@pytest.mark.skipif(sys.platform == "win32", reason="no alarm")
@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_what_is_given_and_is_the_answer_is_listed(path, monkeypatch):
    """A process of its own, since the notebook's cells run in it."""
    for name, value in QUIET.items():
        monkeypatch.setenv(name, value)
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = pool.submit(given_and_right, path).result()
    assert all(names <= IS_THE_ANSWER.get(number, set()) for number, names in found.items()), found


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
def test_the_copy_for_students_is_in_order_and_gives_the_saved_outputs(copy, command):
    variables = os.environ | {"PYTHONPATH": str(copy)}
    options = {"cwd": copy, "env": variables, "capture_output": True, "text": True, "check": False}
    done = subprocess.run([sys.executable, *command], **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
