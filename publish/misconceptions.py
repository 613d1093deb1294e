"""The site's page of common misconceptions: the wrong answers that exercises declare, with their hints."""

import importlib
import re

from exercises.diagnosis.bugs import BUGS
from exercises.mistakes import MISTAKES, Wrong, read_table
from publish.notebooks import NOTEBOOKS, number_of
from publish.type_bert.gaps import MISTAKES as TYPED

HEAD = """# Common misconceptions

{answers} wrong answers to {exercises} exercises, and more to the gaps of the typed page, each with the hint that a
student reads. They were imagined or met while the exercises were written, and each is a test. Use this page to
anticipate questions, to write further exercises, or to see what an exercise tests. Many right answers can be inferred
from it, as from the solutions, so hand out neither.

*The last column shows one of the answers that get a hint; its names are from `exercises`.*
"""


def section(name: str, answers: list[Wrong]) -> list[str]:
    """Return a folded table: how many of the answers get a hint, the hint, and one of the answers on a short line."""
    by_hint = {}
    for each in answers:
        by_hint.setdefault(each.hint, []).append(re.sub(r"\s+", " ", each.source).replace(" => ", " → "))
    lines = ["<details>", f"<summary>{name}: {len(answers)} wrong answers</summary>", ""]
    lines += ["| answers | what the student reads | example |", "|---:|---|---|"]
    for hint, (source, *others) in by_hint.items():
        source = source if len(source) <= 90 else f"{source[:88]} …"
        lines.append(f"| {1 + len(others)} | {cell(hint)} | `` {cell(source)} `` |")
    return [*lines, "", "</details>", ""]


def cell(text: str) -> str:
    """Escape a text for a table cell."""
    return text.replace("|", r"\|")


def page() -> str:
    """Return the page, in Markdown."""
    lines = []
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        number = number_of(path)
        importlib.import_module(f"exercises.notebook_{number}")
        lines += [f"## [{number}](notebooks/{path.name})", ""]
        for name, answers in sorted(MISTAKES.items()):
            if int(name.split(".")[0]) == int(number):
                lines += section(f"Exercise {name}", answers)
    lines += ["## The page in which one types BERT", ""]
    for gap, text in TYPED.items():
        rows = read_table(text)
        lines += section(gap, [Wrong(source, each.hint, None) for each in rows for source in each.answers[::-1]])
    lines += ["## Bugs of a whole model", "", "`python -m exercises diagnose` names them from numbers.", ""]
    lines += ["| bug | what it does | exercise |", "|---|---|---:|"]
    lines += [f"| {cell(name)} | {cell(bug.sentence)} | {bug.exercise} |" for name, bug in BUGS.items()]
    answers = sum(map(len, MISTAKES.values()))
    return HEAD.format(answers=answers, exercises=len(MISTAKES)) + "\n" + "\n".join(lines).rstrip() + "\n"
