"""Right and wrong answers to each exercise: the solutions, edits of them, and expressions.

The cases of a notebook are in `cases/notebook_NN.py`. Its WRONG has lines `3.2 | old => new | words of the hint`, where
`old` occurs once in the solution of that exercise or in a cell that it uses; `;;` separates several edits. A line
without `=>` is an expression, with the names of the solutions, of the case file, and `right`. RIGHT has no words.
"""

import contextlib
import importlib
import io
import linecache
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import count
from typing import NamedTuple

from exercises import find_check
from exercises.grading.cells import Cell, read_cells
from exercises.hints import find_original
from exercises.mistakes import MISTAKES
from tests.helpers import ROOT

SOLUTIONS = sorted((ROOT / "notebooks" / "solutions").glob("[0-9]*.ipynb"))
FILES = count()


class Answer(NamedTuple):
    """An answer to an exercise: its source, words of its hint ("" if it is right), and what makes it."""

    number: str
    source: str
    words: str
    make: Callable[[], object]


@cache
def solution_cells(chapter: str) -> list[Cell]:
    """Return the code cells of a notebook's solutions, without the first, which sets the series up."""
    (path,) = (path for path in SOLUTIONS if path.name.startswith(chapter))
    return read_cells(path)[1:]


def needed_cells(number: str) -> str:
    """Return the imports of the solutions, an exercise's own cell, and those of others that it uses, as one text."""
    _, *cells = solution_cells(chapter_of(number))
    place = next(place for place, cell in enumerate(cells) if cell.number == number)
    found, wanted = [cells[place]], set(cells[place].used)
    for cell in cells[:place][::-1]:
        if cell.changed & wanted:
            found.insert(0, cell)
            wanted |= cell.used
    return "\n\n".join([imports_of(number), *(cell.source for cell in found)])


def imports_of(number: str) -> str:
    """Return the second cell of the solutions, without what turns saving off."""
    return solution_cells(chapter_of(number))[0].source.replace('environ["MINE"] = "off"', "pass")


def own_source(number: str) -> str:
    """Return the source of the published answer's cell."""
    return next(cell.source for cell in solution_cells(chapter_of(number)) if cell.number == number)


@cache
def solution_lines(number: str) -> set[str]:
    """Return the lines that answer an exercise, without spaces and comments; lines of the notebook's stub are given."""
    stub = next(cell for cell in read_cells(find_original(number)) if cell.number == number).source
    found = {plain(line.partition("#")[0]) for line in own_source(number).splitlines()}
    return {line for line in found - {plain(line) for line in stub.splitlines()} if len(line) >= 10}


def plain(text: str) -> str:
    """Return a text without spaces."""
    return re.sub(r"\s", "", text)


def chapter_of(number: str) -> str:
    """Return the two digits of the exercise's notebook."""
    return f"{number.split('.')[0]:0>2}"


def run(source: str, number: str, names: dict) -> object:
    """Return the answer that a source checks, run as a notebook's cell."""
    file, found = f"<ipython-input-{next(FILES)}>", {}
    source = source.replace('check("', 'keep_answer("')
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    names |= {"__name__": "__main__", "keep_answer": found.__setitem__}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(source, file, "exec"), names)
    return found[number]


def edited(number: str, edits: str) -> object:
    """Return what the solution becomes by edits, `old => new` with `;;` between."""
    text = needed_cells(number)
    for old, new in (re.split(" => ?", edit.replace("\\n", "\n")) for edit in edits.split(" ;; ")):
        if text.count(old) != 1:
            raise ValueError(f"{number}: {old!r} occurs {text.count(old)} times in the solution")
        text = text.replace(old, new)
    return run(text, number, dict(names_of_cases(number)))


def names_of_cases(number: str) -> dict:
    """Return the names of the case file."""
    return vars(importlib.import_module(f"tests.exercises.cases.notebook_{chapter_of(number)}"))


def solution(number: str) -> object:
    """Return the published answer."""
    return run(needed_cells(number), number, dict(names_of_cases(number)))


def expression(number: str, source: str) -> object:
    """Return the value of an expression in which `right` is the published answer."""
    names = {}
    if re.search(r"\bright\b", source):
        names["right"] = run(needed_cells(number), number, names)
    else:
        run(f'{imports_of(number)}\ncheck("{number}", None)', number, names)
    names |= names_of_cases(number)
    file = f"<ipython-input-{next(FILES)}>"
    linecache.cache[file] = len(source), None, [source], file
    return eval(compile(source, file, "eval"), names)


def answer_of(number: str, source: str, words: str = "") -> Answer:
    """Return an answer of a case file."""
    make = edited if " =>" in source else expression
    return Answer(number, source, words, partial(make, number, source))


def cases(chapter: str, table: str) -> list[tuple[str, str]]:
    """Return the numbers and lines of a table of a notebook's case file, RIGHT or WRONG."""
    module = importlib.import_module(f"tests.exercises.cases.notebook_{chapter}")
    return [tuple(line.split(" | ", 1)) for line in lines_of(getattr(module, table))]


def lines_of(text: str) -> list[str]:
    """Return the lines of a table that are not empty."""
    return [line.strip() for line in text.splitlines() if line.strip()]


def right_answers() -> Iterator[Answer]:
    """Yield the published answer to each exercise, first, and other right ones."""
    for path in SOLUTIONS:
        right = cases(path.name[:2], "RIGHT")
        for number in dict.fromkeys(cell.number for cell in solution_cells(path.name[:2]) if cell.number):
            yield Answer(number, "the solution", "", partial(solution, number))
            yield from (answer_of(number, line) for its_number, line in right if its_number == number)


def wrong_answers() -> Iterator[Answer]:
    """Yield the wrong answers that the checks declare, and those of the case files."""
    for path in SOLUTIONS:
        chapter = path.name[:2]
        find_check(f"{int(chapter)}.1")  # imports the checks, and with them what they declare
        for number, mistakes in MISTAKES.items():
            if chapter_of(number) == chapter:
                yield from (Answer(number, each.source, each.hint, each.make) for each in mistakes)
        for number, line in cases(chapter, "WRONG"):
            yield answer_of(number, *line.rsplit(" | ", 1))
