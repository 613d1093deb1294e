"""The site's page of common misconceptions: the wrong answers of tests/exercises/cases, each with its hint."""

import ast
import importlib
import re
from collections import defaultdict

from exercises import find_check
from exercises.comparison import MISTAKES
from publish.notebooks import NOTEBOOKS, ROOT
from tests.exercises.misconceptions import hint_of

PARTICULARS = re.compile(r"\([^)]*\)|\[[^]]*]|“[^”]*”|\d\S*")
OFTEN = 4  # a hint that so many exercises give, its particulars aside, is told once
HEAD = """# Common misconceptions

{answers} wrong answers to {exercises} exercises, and what a student who gives them reads. They were thought of, or
met, while the exercises were written; each is a test, and the hint is what `check` prints today. Use the page to expect
questions, to write other exercises, or to see at a glance what an exercise tests. A reader can infer many right answers
from it, as from the solutions: hand out neither.

*The first column counts our wrong answers that get this hint, and the last shows one of them. A name stands for a
function or a value in `exercises` or in `tests/exercises/cases`.*
"""


def written(chapter: str) -> dict[str, list[str]]:
    """How each wrong answer of a notebook is written in its cases, by exercise."""
    source = (ROOT / "tests" / "exercises" / "cases" / f"{chapter}.py").read_text("utf-8")
    (table,) = (
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WRONG"
    )
    return {
        key.value: [ast.unparse(case.elts[0] if isinstance(case, ast.Tuple) else case) for case in answers.elts]
        for key, answers in zip(table.keys, table.values, strict=True)
    }


def declared(chapter: str) -> dict[str, dict[str, str]]:
    """Return how each mistake that a notebook's checks declare is written, by exercise and by hint."""
    source = (ROOT / "exercises" / f"{chapter}.py").read_text("utf-8")
    pairs = [node.elts for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Tuple) and len(node.elts) == 2]
    code = {hint.value: ast.unparse(mistake) for hint, mistake in pairs if isinstance(hint, ast.Constant)}
    numbers = [number for number in MISTAKES if f"notebook_{number.split('.')[0]:0>2}" == chapter]
    return {number: {hint: code[hint] for hint, _ in MISTAKES[number]} for number in numbers}


def read(answer: str, hint: str, count: int) -> str:
    """A row: how many of our wrong answers get a hint, the hint, and one of the answers on one short line."""
    answer = re.sub(r"\s+", " ", answer)
    answer = answer if len(answer) <= 90 else f"{answer[:88]} …"
    return f"| {count} | {cell(hint)} | `` {cell(answer)} `` |"


def cell(text: str) -> str:
    """A text as it may stand in a table."""
    return text.replace("|", r"\|")


def kind(hint: str) -> str:
    """The hint without its particulars: shapes, lists, names and numbers."""
    return PARTICULARS.sub("…", hint)


def table(rows: list[str], first: str = "answers") -> list[str]:
    """The rows under their head."""
    return [f"| {first} | what the student reads | for example |", "|---:|---|---|", *rows, ""]


def page(first: str = "", last: str = "99") -> str:
    """The whole page, or that of the notebooks from one number to another."""
    paths = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
    titles = {path.name[:2]: path.name for path in paths if first <= path.name[:2] <= last}
    found = {}  # of each exercise, its hints, each with the wrong answers that get it
    for chapter in titles:
        module = importlib.import_module(f"tests.exercises.cases.notebook_{chapter}")
        sources = written(f"notebook_{chapter}")
        find_check(f"{int(chapter)}.1")  # imports the notebook's checks, and with them what they declare
        for number, by_hint in declared(f"notebook_{chapter}").items():
            for hint, source in by_hint.items():
                found.setdefault(number, defaultdict(list))[hint].append(source)
        for number, answers in sorted(module.WRONG.items()):
            hints = found.setdefault(number, defaultdict(list))
            for (answer, _), source in zip(answers, sources[number], strict=True):
                hints[hint_of(number, answer)].append(source)
    kinds = defaultdict(lambda: defaultdict(list))  # of each kind of hint, the exercises that give it
    for number, hints in found.items():
        for hint, sources in hints.items():
            kinds[kind(hint)][number].append((hint, sources))
    often = {name: by for name, by in kinds.items() if len(by) >= OFTEN}
    answers = sum(len(sources) for hints in found.values() for sources in hints.values())
    lines = [HEAD.format(answers=answers, exercises=len(found)), "## Hints that stand often", ""]
    lines += [f"At least {OFTEN} exercises give these, with other numbers and names. Below they are left out.", ""]
    rows = []
    for by in sorted(often.values(), key=lambda by: -len(by)):
        (hint, sources), *_ = next(iter(by.values()))
        rows.append(read(sources[0], hint, len(by)))
    lines += table(rows, "exercises")
    for chapter, name in titles.items():
        lines += [f"## [{name[:2]}](notebooks/{name})", ""]
        for number, hints in sorted(found.items()):
            if int(number.split(".")[0]) == int(chapter):
                own = [(hint, sources) for hint, sources in hints.items() if kind(hint) not in often]
                own.sort(key=lambda pair: -len(pair[1]))
                rows = [read(sources[0], hint, len(sources)) for hint, sources in own]
                summary = f"<summary>Exercise {number}: {sum(map(len, hints.values()))} wrong answers</summary>"
                lines += ["<details>", summary, "", *table(rows), "</details>", ""]
    return "\n".join(lines).rstrip() + "\n"
