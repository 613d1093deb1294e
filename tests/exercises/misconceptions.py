"""Write the site's page of common misconceptions: all declared wrong answers, each with its hint.

`python -m tests.exercises.misconceptions` writes build/misconceptions.md, which `publish.website` adds to the site.
"""

import contextlib
import io
import re
from collections import defaultdict

from exercises import TRIES, check
from exercises.mistakes import read_table
from publish.type_bert.gaps import MISTAKES as TYPED
from tests.exercises.answers import chapter_of, wrong_answers
from tests.helpers import ROOT

NOTEBOOKS = ROOT / "notebooks"
MEASURED = re.compile(r"(?<= by )\d\S*(?=\.( |$))|\b\d+\.\d+(?=%)")  # how far a result is off: the machine's digits
PARTICULARS = re.compile(r"\([^)]*\)|\[[^]]*]|“[^”]*”|\d\S*")
COMMON = 4  # a hint that this many exercises give, up to numbers and names, is listed once
HEAD = """# Common misconceptions

{answers} wrong answers to {exercises} exercises, with the hint that a student sees for each. The answers were imagined
or met while the exercises were written; each is a test, and the hint is what `check` prints today. Use this page to
anticipate questions, to write further exercises, or to see at a glance what an exercise tests. Many right answers can
be inferred from it, as from the solutions, so hand out neither.

*The first column counts our wrong answers that get this hint, and the last shows one of them: an answer, or what was
changed in the published one, called `right` (before → after). Other names are from `exercises` or
`tests/exercises/cases`.*
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


def format_row(answer: str, hint: str, count: int) -> str:
    """Return a table row: how many wrong answers get a hint, the hint, and one of the answers on a short line."""
    answer = re.sub(r"\s+", " ", answer)
    answer = answer if len(answer) <= 90 else f"{answer[:88]} …"
    return f"| {count} | {cell(hint)} | `` {cell(answer)} `` |"


def cell(text: str) -> str:
    """Escape a text for a table cell."""
    return text.replace("|", r"\|")


def generalise(hint: str) -> str:
    """Replace the shapes, lists, names and numbers of a hint, so that similar hints become equal."""
    return PARTICULARS.sub("…", hint)


def table(rows: list[str], first: str = "answers") -> list[str]:
    """Return the rows under a table header."""
    return [f"| {first} | what the student reads | example |", "|---:|---|---|", *rows, ""]


def page(first: str = "", last: str = "99") -> str:
    """Return the page, for all notebooks or for those from number `first` to `last`."""
    paths = sorted(NOTEBOOKS.glob("[0-9]*.ipynb"))
    titles = {path.name[:2]: path.name for path in paths if first <= path.name[:2] <= last}
    found = {}  # exercise -> hint -> the wrong answers that get it
    for each in wrong_answers():
        if chapter_of(each.number) in titles:
            hint = hint_of(each.number, each.make())
            found.setdefault(each.number, defaultdict(list))[hint].append(each.source.replace(" => ", " → "))
    kinds = defaultdict(lambda: defaultdict(list))  # generalised hint -> exercise -> its hints
    for number, hints in found.items():
        for hint, sources in hints.items():
            kinds[generalise(hint)][number].append((hint, sources))
    common = {name: by for name, by in kinds.items() if len(by) >= COMMON}
    answers = sum(len(sources) for hints in found.values() for sources in hints.values())
    lines = [HEAD.format(answers=answers, exercises=len(found)), "## Common hints", ""]
    lines += [f"At least {COMMON} exercises give these, with other numbers and names. They are not repeated below.", ""]
    rows = []
    for by in sorted(common.values(), key=lambda by: -len(by)):
        (hint, sources), *_ = next(iter(by.values()))
        rows.append(format_row(sources[0], hint, len(by)))
    lines += table(rows, "exercises")
    for chapter, name in titles.items():
        lines += [f"## [{name[:2]}](notebooks/{name})", ""]
        for number, hints in sorted(found.items()):
            if int(number.split(".")[0]) == int(chapter):
                own = [(hint, sources) for hint, sources in hints.items() if generalise(hint) not in common]
                own.sort(key=lambda pair: -len(pair[1]))
                rows = [format_row(sources[0], hint, len(sources)) for hint, sources in own]
                summary = f"<summary>Exercise {number}: {sum(map(len, hints.values()))} wrong answers</summary>"
                lines += ["<details>", summary, "", *table(rows), "</details>", ""]
    if not first:
        lines += typed_section()
    return "\n".join(lines).rstrip() + "\n"


def typed_section() -> list[str]:
    """Return the section on type_bert.html, whose table has the hints themselves."""
    lines = ["## The page in which one types BERT", ""]
    for gap, text in TYPED.items():
        mistakes = read_table(text)
        rows = [format_row(each.answers[-1].replace(" => ", " → "), each.hint, len(each.answers)) for each in mistakes]
        count = sum(len(each.answers) for each in mistakes)
        lines += ["<details>", f"<summary>{gap}: {count} wrong answers</summary>", "", *table(rows), "</details>", ""]
    return lines


if __name__ == "__main__":
    from publish.website import MISCONCEPTIONS

    MISCONCEPTIONS.parent.mkdir(exist_ok=True)
    MISCONCEPTIONS.write_text(page(), "utf-8")
    print(f"{MISCONCEPTIONS.relative_to(ROOT)}: {MISCONCEPTIONS.stat().st_size / 1e3:.0f} kB")
