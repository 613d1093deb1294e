"""`python -m exercises hint` gives the hint of `check`, and the page for tutors has no line of a solution."""

import sys
from dataclasses import replace

import pytest

from exercises import __main__, hints
from exercises.hints import hint
from tests.exercises.answers import SOLUTIONS, own_source, plain, solution_cells, solution_lines
from tests.helpers import ROOT

pytestmark = pytest.mark.long
WRONG = "def my_attention_weights(query, key, attention_mask=None):\n    return query @ key.transpose(-2, -1)\n"
NOTEBOOK = ROOT / "notebooks" / "03_self_attention.ipynb"


def test_the_page_for_tutors_has_no_line_of_a_solution():
    page = plain((ROOT / "notebooks" / "AGENTS.md").read_text("utf-8"))
    numbers = {cell.number for path in SOLUTIONS for cell in solution_cells(path.name[:2]) if cell.number}
    assert [line for number in numbers for line in solution_lines(number) if line in page] == []


CHECK = '\n\ncheck("3.2", my_attention_weights)'
LOOPS = "while True:\n    pass\n"
ANSWERS = {  # what a Python file with 3.2 has, and what its reader is told
    "its own check": (f'{WRONG}check("3.2", my_attention_weights)', "not yet. "),
    "a syntax error": ("def my_attention_weights(:", "the cell does not parse: "),
    "another name": ("x = 1", "NameError: name 'my_attention_weights' is not defined"),
    "an endless loop": (LOOPS, "stopped: it does not end within 5 seconds."),
    "an earlier loop": (f'{LOOPS}check("3.1", (1, 1))\n# %%\n{own_source("3.2")}', "correct."),
    "an exit": (f"import os\nos._exit(0)\n{WRONG}", "stopped: it ends its process."),
    "a question": (f"scale = input()\n{WRONG}", "input() gets no answer here. Write the value into your code."),
    "a red error": (f"{WRONG}raise ValueError('\\x1b[31mred')", "ValueError: [31mred"),
}


SECONDS = {"an endless loop": 5, "an earlier loop": 15}  # which also runs an answer, on a busy machine


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_gets_its_verdict_or_the_limit_that_it_meets(tmp_path, name):
    content, shown = ANSWERS[name]
    cells = [hints.cells.Cell(f"cell-{number}", source) for number, source in enumerate(content.split("# %%\n"))]
    file = tmp_path / "a.py"
    file.write_text(content, "utf-8")
    if len(cells) > 1:
        file = hints.write_notebook(tmp_path / "a.ipynb", [cells[0], replace(cells[1], source=cells[1].source + CHECK)])
    told = hint("3.2", file, seconds=SECONDS.get(name, 60))
    assert told.startswith("Exercise 3.2: ")
    assert shown in told
    assert told.isprintable()


def test_a_second_hint_says_more_or_that_there_is_none(tmp_path):
    (tmp_path / "a.py").write_text(WRONG, "utf-8")
    assert hint("3.2", tmp_path / "a.py", again=True).startswith("Exercise 3.2: not yet. Print each step for the query")
    (tmp_path / "b.py").write_text(own_source("3.2").replace("dim=-1", "dim=-2"), "utf-8")
    words = "Exercise 3.2: not yet. Softmax runs over the queries."
    told = hint("3.2", tmp_path / "b.py", again=True)
    assert told.startswith(words)
    assert told.endswith(" There is no second hint.")


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
    (["3.2", str(ROOT / "notebooks" / "missing.ipynb")], "there is no file"),
])  # fmt: skip
def test_what_cannot_be_read_is_named(monkeypatch, capsys, words, remedy):
    assert remedy in "".join(map(str, run(monkeypatch, capsys, *words)))
