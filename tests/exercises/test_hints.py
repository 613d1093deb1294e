"""`python -m exercises hint` gives the hint of `check`, and nothing that it prints is a line of a solution."""

import os
import re
import sys
from functools import cache
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell

from exercises import __main__, hints
from exercises.hints import hint
from tests.exercises.answers import own_source
from tests.helpers import ROOT

pytestmark = pytest.mark.long
CASES = [
    line.split(" | ", 2)
    for line in Path(__file__).with_name("begging.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
TUTOR = (ROOT / "notebooks" / "AGENTS.md").read_text("utf-8")
WRONG = "def my_attention_weights(query, key, attention_mask=None):\n    return query @ key.transpose(-2, -1)\n"
NOTEBOOK = ROOT / "notebooks" / "03_self_attention.ipynb"


@pytest.fixture(autouse=True)
def as_in_a_program_of_its_own(monkeypatch):
    """Take back what the command leaves in its process: variables, the style of figures, and IPython's shell."""
    for name in ("MINE", "MPLBACKEND"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
    with plt.rc_context():
        yield
    if InteractiveShell.initialized():
        InteractiveShell.instance().restore_sys_module_state()
        InteractiveShell.clear_instance()


@cache
def solution_lines(number: str) -> set[str]:
    """Return the lines that answer an exercise, without spaces and comments; lines of the notebook's stub are given."""
    stub = next(cell for cell in hints.cells.read_cells(hints.find_original(number)) if cell.number == number).source
    found = {plain(line.partition("#")[0]) for line in own_source(number).splitlines()}
    return {line for line in found - {plain(line) for line in stub.splitlines()} if len(line) >= 10}


def plain(line: str) -> str:
    return re.sub(r"\s", "", line)


@pytest.mark.parametrize("number", sorted({number for number, *_ in CASES}))
@pytest.mark.parametrize("again", [False, True])
def test_begging_reveals_no_line_of_a_solution(tmp_path, number, again):
    lines = solution_lines(number)
    for chosen, attempt, words in CASES:
        if chosen == number:
            file = tmp_path / "attempt.py"
            file.write_text(f"# {words}\n{attempt}\n", "utf-8")
            shown = hint(number, file, again)
            assert re.match(rf"Exercise {number}: (not yet|not attempted yet)\. \S", shown), shown
            assert not [line for line in lines if line in plain(shown)], shown
    assert lines or number in ("1.2", "2.1", "2.5", "3.1", "5.4", "8.5"), "a number has no lines"
    assert not [line for line in lines if line in plain(TUTOR)]


@pytest.mark.parametrize(("name", "content", "shown"), [
    ("a.py", WRONG, "not yet. "),
    ("a.py", WRONG.replace("query @ key.transpose(-2, -1)", "..."), "not attempted yet. "),
    ("a.py", WRONG + 'check("3.2", my_attention_weights)', "not yet. "),
    ("a.py", own_source("3.2"), "correct."),
    ("a.py", "def my_attention_weights(:", "the cell does not parse: "),
    ("a.py", "x = 1", "NameError: name 'my_attention_weights' is not defined"),
])  # fmt: skip
def test_a_python_file_gets_the_verdict_of_check(tmp_path, name, content, shown):
    (tmp_path / name).write_text(content, "utf-8")
    assert shown in hint("3.2", tmp_path / name)


def run(monkeypatch, capsys, *words: str) -> tuple[object, str]:
    """Return what the program returns, and what it prints."""
    monkeypatch.setattr(sys, "argv", ["exercises", "hint", *words])
    return __main__.main(), capsys.readouterr().out


def test_a_notebook_gets_the_verdict_of_check(monkeypatch, capsys):
    stub = "Exercise 3.2: not attempted yet. Replace the ... and run the cell again.\n"
    assert run(monkeypatch, capsys, "3.2", str(NOTEBOOK)) == (None, stub)
    solved = ROOT / "notebooks" / "solutions" / "04_solutions.ipynb"
    code, printed = run(monkeypatch, capsys, "4.5", str(solved))
    assert (code, printed.startswith("Exercise 4.5: correct.")) == (None, True)


@pytest.mark.parametrize(("words", "remedy"), [
    (["5.9", str(NOTEBOOK)], "There is no exercise 5.9. There are 5.1"),
    (["5.3", str(NOTEBOOK)], 'has no answer to exercise 5.3: no cell calls check("5.3", …)'),
    (["3.2", "nowhere.py"], "there is no file nowhere.py"),
    (["3.2", str(ROOT / "notebooks" / "images" / "where_it_goes.gif")], ".gif cannot be read ('utf-8'"),
    (["3.2", str(ROOT / "README.md")], "the cell does not parse"),
    (["3.2", str(ROOT / "notebooks" / "missing.ipynb")], "missing.ipynb is not a notebook"),
])  # fmt: skip
def test_what_cannot_be_read_is_named(monkeypatch, capsys, words, remedy):
    assert remedy in "".join(map(str, run(monkeypatch, capsys, *words)))
