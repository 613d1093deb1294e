"""`python -m exercises hint` gives the hint of `check`, and the page for tutors has no line of a solution."""

import os
import sys

import matplotlib.pyplot as plt
import pytest
from IPython.core.interactiveshell import InteractiveShell

from exercises import __main__
from exercises.hints import hint
from tests.exercises.answers import SOLUTIONS, own_source, plain, solution_cells, solution_lines
from tests.helpers import ROOT

pytestmark = pytest.mark.long
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


def test_the_page_for_tutors_has_no_line_of_a_solution():
    page = plain((ROOT / "notebooks" / "AGENTS.md").read_text("utf-8"))
    numbers = {cell.number for path in SOLUTIONS for cell in solution_cells(path.name[:2]) if cell.number}
    assert [line for number in numbers for line in solution_lines(number) if line in page] == []


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
    assert code is None
    assert printed.startswith("Exercise 4.5: correct.")


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
