"""Write MISCONCEPTIONS.md: the wrong answers of tests/exercises/cases, each with the hint that a student reads."""

import ast
import contextlib
import importlib
import io
import re
from collections import defaultdict

from exercises import TRIES, check
from tests.helpers import ROOT

PAGE = ROOT / "MISCONCEPTIONS.md"
MEASURED = re.compile(
    r"(?<= by )\d\S*(?=\.( |$))|\b\d+\.\d+(?=%)"
)  # how far a result is off: the machine's digits
PARTICULARS = re.compile(r"\([^)]*\)|\[[^]]*]|“[^”]*”|\d\S*")
OFTEN = 4  # a hint that so many exercises give, its particulars aside, is told once
HEAD = """# Common misconceptions

{answers} wrong answers to {exercises} exercises, and what a student who gives them reads. Each was met or thought of
while the exercises were written, and is a test: the hint is what `check` prints today. Use the page to expect
questions, to write other exercises, or to see at a glance what an exercise tests. A reader can infer many right answers
from it, as from [notebooks/solutions](notebooks/solutions): hand out neither.

*Written by `python -m tests.exercises.misconceptions` from [tests/exercises/cases](tests/exercises/cases). The number
says how many of our wrong answers get this hint, and the last column shows one of them. A name stands for a function
or a value there.*
"""


def hint_of(number: str, answer) -> str:
    """What a student reads who gives this wrong answer, measured differences left out."""
    printed = io.StringIO()
    TRIES.clear()  # the first hint, not a later one
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        check(number, answer)
    start, said = f"Exercise {number}: not yet. ", printed.getvalue().strip()
    if not said.startswith(start):
        raise ValueError(f"not a wrong answer, or no hint for it: {said}")
    return MEASURED.sub("…", re.sub(r"\s+", " ", said.removeprefix(start)))


def written(chapter: str) -> dict[str, list[str]]:
    """How each wrong answer of a notebook is written in its cases, by exercise."""
    source = (ROOT / "tests" / "exercises" / "cases" / f"{chapter}.py").read_text("utf-8")
    (table,) = (
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "WRONG"
    )
    return {
        key.value: [
            ast.unparse(case.elts[0] if isinstance(case, ast.Tuple) else case) for case in answers.elts
        ]
        for key, answers in zip(table.keys, table.values, strict=True)
    }


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


def table(rows: list[str], first: str = "times") -> list[str]:
    """The rows under their head."""
    return [f"| {first} | what the student reads | for example |", "|---:|---|---|", *rows, ""]


def page() -> str:
    """The whole page."""
    titles = {path.name[:2]: path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}
    found = {}  # of each exercise, its hints, each with the wrong answers that get it
    for chapter in titles:
        module = importlib.import_module(f"tests.exercises.cases.notebook_{chapter}")
        sources = written(f"notebook_{chapter}")
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
    lines += [
        f"At least {OFTEN} exercises give these, with other numbers and names. Below they are left out.",
        "",
    ]
    rows = []
    for by in sorted(often.values(), key=lambda by: -len(by)):
        (hint, sources), *_ = next(iter(by.values()))
        rows.append(read(sources[0], hint, len(by)))
    lines += table(rows, "exercises")
    for chapter, name in titles.items():
        lines += [f"## [{name[:2]}](notebooks/{name})", ""]
        for number, hints in found.items():
            if int(number.split(".")[0]) == int(chapter):
                own = [(hint, sources) for hint, sources in hints.items() if kind(hint) not in often]
                own.sort(key=lambda pair: -len(pair[1]))
                rows = [read(sources[0], hint, len(sources)) for hint, sources in own]
                summary = (
                    f"<summary>Exercise {number}: {sum(map(len, hints.values()))} wrong answers</summary>"
                )
                lines += ["<details>", summary, "", *table(rows), "</details>", ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
