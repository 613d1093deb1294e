"""Tables of mistakes: wrong answers as a reader writes them, each with its hint.

A line of a table is `answer | hint`, the answer in Python; indented lines continue the hint. A line without `|` is a
further answer with the hint of the next line, or `if …`, which describes such answers by the name `answer`. The last
hint is for every other wrong answer.

Each answer is also a test (tests/exercises) and a row of the site's page of misconceptions.
"""

import textwrap
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass
class Mistake:
    """A hint, the answers that get it, as source texts, and a condition for further ones."""

    hint: str = ""
    answers: list[str] = field(default_factory=list)
    condition: str = "False"


class Wrong(NamedTuple):
    """A wrong answer: its source, its hint, and a function that makes it."""

    source: str
    hint: str
    make: Callable[[], object]


MISTAKES: defaultdict[str, list[Wrong]] = defaultdict(list)  # by exercise


def read_table(text: str) -> list[Mistake]:
    """Return the mistakes of a table, in order."""
    found, mistake = [], Mistake()
    for line in textwrap.dedent(text).strip().splitlines():
        if line.startswith(" "):
            found[-1].hint = f"{found[-1].hint} {line.strip()}".strip()
        elif line.startswith("if "):
            mistake.condition = line.removeprefix("if ")
        else:
            answer, separator, hint = f"{line} ".rpartition(" | ")
            mistake.answers.append((answer or hint).strip())
            if separator:
                mistake.hint = hint.strip()
                found.append(mistake)
                mistake = Mistake()
    return found


def functions(number: str, arguments: str, table: str, names: dict) -> list[tuple]:
    """Register a table whose answers are expressions of the arguments; return its rows as functions.

    A row is a hint and a function of the arguments, or a hint, a function of `answer` and the arguments, and True for a
    condition.
    """
    rows = []
    for each in read_table(table):
        for source in each.answers:
            function = eval(f"lambda {arguments}: {source}", names)
            MISTAKES[number].append(Wrong(source, each.hint, lambda function=function: function))
            rows.append((each.hint, function))
        if each.condition != "False":
            rows.append((each.hint, eval(f"lambda answer, {arguments}: {each.condition}", names), True))
    return rows
