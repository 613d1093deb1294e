"""Tells what became of hand-ins: as a table, as a file for a spreadsheet, and as a letter to each student."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from exercises import CORRECT, POINTS
from utils.files import write_file

ALTERS = "alters"  # how a remark on an answer begins that has changed what others are judged by
NAMED = 5  # places where an answer is found, too; a class that has copied the solution is told in one line
SIGNS = {"not yet": "0", "not attempted": "·", "look": "!", "stopped": "!", "not graded": "?"}


def printable(text: str) -> str:
    """A text of a student's on one line, without what would steer a terminal or cannot be saved."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


@dataclass
class Verdict:
    """What became of one exercise: correct, not yet, not attempted, look, stopped or not graded; and why, in words."""

    kind: str
    words: str

    def __post_init__(self):
        self.words = printable(self.words)


@dataclass
class Graded:
    """One hand-in: its name, the verdict on each exercise by number, and remarks on the whole.

    Of each answer also what it looks like, where the series shows the same, and which other hand-ins have it.
    """

    name: str
    verdicts: dict[str, Verdict]
    remarks: list[str] = field(default_factory=list)
    shapes: dict[str, set[str]] = field(default_factory=dict)
    same: dict[str, set[str]] = field(default_factory=dict)
    alike: dict[str, list[str]] = field(default_factory=dict)

    def remark(self, words: str) -> None:
        """Add a remark, once."""
        if printable(words) not in self.remarks:
            self.remarks.append(printable(words))

    def points(self, number: str) -> int:
        """The points of an exercise: all if it is correct, else none."""
        return POINTS[number] if self.verdicts[number].kind == "correct" else 0

    @property
    def total(self) -> int:
        """The points of all exercises."""
        return sum(map(self.points, self.verdicts))

    @property
    def same_as(self) -> str:
        """Where else its answers are found, such as "3.3: the solution, Bob"; of many, the first and how many more."""
        found = {number: [*sorted(names), *self.alike.get(number, ())] for number, names in self.same.items()}
        told = {number: [*names[:NAMED], *more(names[NAMED:])] for number, names in found.items() if names}
        return "; ".join(f"{number}: {', '.join(names)}" for number, names in told.items())


def more(names: Sequence[str]) -> list[str]:
    """What stands for names that are not told: their number, if there are any."""
    return [f"{len(names)} more"] if names else []


def compare(rows: Sequence[Graded]) -> None:
    """Note of each answer that counts, or is doubted, which other hand-ins have the same."""
    for row in rows:
        others = [other for other in rows if other is not row]
        for number in row.same:
            alike = [other for other in others if row.shapes[number] & other.shapes.get(number, set())]
            row.alike[number] = [other.name for other in alike]


def accept(row: Graded, number: str) -> None:
    """Believe an answer that was doubted; one that is not correct, or not attempted, stays as it is."""
    verdict = row.verdicts[number]
    if SIGNS.get(verdict.kind) == "!":
        row.verdicts[number] = Verdict("correct", f"accepted by hand ({verdict.words})")
    elif verdict.kind != "correct":
        row.remark(f"{number} was to be accepted, but it is not doubted: {verdict.words}")


def write_csv(path: Path, rows: Sequence[Graded]) -> None:
    """A row per hand-in: points, then what was said of each exercise. OSError where that cannot be written."""
    numbers = list(rows[0].verdicts)
    text = io.StringIO(newline="")
    table = csv.writer(text)
    told = [f"{number} told" for number in numbers]
    table.writerow(["name", *numbers, "points", "of", "look at", "same as", *told, "remarks"])
    for row in rows:
        verdicts = row.verdicts.values()
        points = [
            "" if verdict.kind == "not graded" else row.points(number) for number, verdict in row.verdicts.items()
        ]
        doubtful = [number for number, verdict in row.verdicts.items() if SIGNS.get(verdict.kind) == "!"]
        cells = [row.name, *points, row.total, sum(POINTS[number] for number in numbers), " ".join(doubtful)]
        cells.append(row.same_as)
        cells += [verdict.words for verdict in verdicts]
        table.writerow([harmless(cell) for cell in (*cells, "; ".join(row.remarks))])
    write_file(path, "\N{BYTE ORDER MARK}" + text.getvalue())  # by which Excel knows that it is UTF-8


def harmless(cell: str | int) -> str | int:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def report(rows: Sequence[Graded]) -> str:
    """The table of names and exercises, and below it in words what is not correct."""
    numbers = list(rows[0].verdicts)
    width = max(len("exercise"), *(len(row.name) for row in rows))
    most = sum(POINTS[number] for number in numbers)
    lines = [f"{'exercise':<{width}}" + "".join(f"{number:>6}" for number in numbers) + "   points"]
    lines.append(f"{'points':<{width}}" + "".join(f"{POINTS[number]:>6}" for number in numbers) + f"   of {most}")
    for row in rows:
        signs = [SIGNS.get(verdict.kind) or str(row.points(number)) for number, verdict in row.verdicts.items()]
        lines.append(f"{row.name:<{width}}" + "".join(f"{sign:>6}" for sign in signs) + f"   {row.total:>6}")
    lines += ["", "0 not yet correct   · not attempted   ! stopped or not believed, see below   ? not graded"]
    for row in rows:
        told = {}
        for number, verdict in row.verdicts.items():
            if verdict.kind not in ("correct", "not graded"):
                told.setdefault(verdict.words, []).append(number)
        if told or row.remarks or row.same_as:
            lines += ["", row.name]
            lines += [f"  {', '.join(numbers)}: {words}" for words, numbers in told.items()]
            lines += [f"  same as: {row.same_as}"] * bool(row.same_as)
            lines += [f"  {remark}" for remark in row.remarks]
    return "\n".join(lines)


def write_feedback(folder: Path, rows: Sequence[Graded]) -> None:
    """A text for each student: points, hints and remarks, and of what is doubted only that somebody will look at it."""
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        most = sum(POINTS[number] for number in row.verdicts)
        lines = [f"{row.name}: {row.total} of {most} points", ""]
        for number, verdict in row.verdicts.items():
            words = "will be looked at by hand." if verdict.kind == "look" else verdict.words
            if verdict.words.startswith("accepted"):
                words = CORRECT
            lines.append(f"{number} ({row.points(number)} of {POINTS[number]}): {words}")
        lines += ["", *row.remarks] if row.remarks else []
        name = "".join("_" if letter in '/\\:*?"<>|' else letter for letter in row.name)
        write_file(folder / f"{name}.txt", "\n".join(lines) + "\n")
