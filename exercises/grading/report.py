"""Report the grades of a class as a table, CSV files for a spreadsheet, Moodle and Canvas, and a letter per row."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from exercises.framework import CORRECT, POINTS
from utils.support.files import explain_errors, write_file

MAX_NAMES = 5  # names listed for the same answer
KINDS = {CORRECT: "correct", "not attempted": "not attempted", "stopped": "stopped"}  # by the start of the verdict
SIGNS = {"not yet": "0", "not attempted": "·", "stopped": "!", "not graded": "?"}
LEGEND = "0 not yet correct   · not attempted   ! stopped   ? not graded   * with ours in place of an earlier answer"
# the folders and files of submissions that Moodle (Participant 1234) and Canvas write: (…/)Ada Berg_1234_assign…, and
# bergada_LATE_1234_5678_03.ipynb with the student's id and the file's. Both begin with the name, without underscores,
# and end with what the student has named: the first folder or file that fits is the platform's.
LMS_NAMES = r"(?:^|/)(?:([^/_]*)_(\d+)_assignsubmission_|(?!\d+_)([^/_]+)_(?i:LATE_)?(\d+)_\d+_[^/]*$)"
MAX_WORDS, MAX_REMARKS = 2000, 10  # characters of a text, and texts of a row: a hand-in may write its own
# at the beginning of a cell, or of what a spreadsheet may take for one: it may run what begins so, also in full width
FORMULA = re.compile(r"(^|[;\t\r\n])((?:[^\S\t\r\n]|['\"\u200b\ufeff])*[=+\-@＝＋－＠])")


def printable(text: str) -> str:
    """Return a text on one line, without control characters and unpaired surrogates."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text[:MAX_WORDS]).split())


def letter_name(name: str) -> str:
    """Return the file name of a row's letter, valid on every system, in lower case because some ignore case."""
    return re.sub(r'[/\\:*?"<>|]', "_", name).casefold() + ".txt"


def row_names(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the hand-ins by the students' names, if Moodle or Canvas wrote them, else by the names of their files.

    Where files share a name, their folders are part of it. No two rows share a name or a letter: the second of two gets
    a number.
    """
    found = [re.search(LMS_NAMES, path.resolve().as_posix()) for path in paths]
    names = [printable(next(filter(None, each.groups()), "")) for each in found] if all(found) else []
    names = names or [printable(path.stem) for path in paths]
    if len(set(names)) < len(names) and not all(found):
        common = os.path.commonpath([path.resolve().parent for path in paths])
        names = [printable(path.resolve().relative_to(common).with_suffix("").as_posix()) for path in paths]
    rows, letters = {}, set()
    for name, path in zip(names, paths, strict=True):
        name = name.encode()[:200].decode(errors="ignore") or "no name"  # a file's name has at most 255 bytes
        row, number = name, 1
        while letter_name(row) in letters:
            number += 1
            row = f"{name} ({number})"
        letters.add(letter_name(row))
        rows[row] = path
    return rows


def find_id(path: Path, pattern: str) -> str:
    """Return a student's id or address, the last group that a pattern finds in a path, or "" if it finds none."""
    found = re.search(pattern, path.resolve().as_posix())
    return printable(next((group for group in found.groups()[::-1] if group), "")) if found else ""


def note_shared_ids(rows: Sequence["Row"]) -> None:
    """Add a remark to each row whose id another row has, too."""
    for row in rows:
        others = [other.name for other in rows if other is not row and other.id == row.id != ""]
        if others:
            row.remark(f"the id {row.id} is also that of {', '.join(others)}: in no file to import")


def importable(rows: Sequence["Row"]) -> list["Row"]:
    """Return the rows that are graded and whose id no other row has."""
    ids = [row.id for row in rows]
    return [row for row in rows if row.is_graded and row.id and ids.count(row.id) == 1]


@dataclass
class Row:
    """A hand-in: its name, the kind and text of each verdict, and general remarks.

    The kinds are correct, not yet, not attempted, stopped and not graded. `id` is the student's number or address in a
    learning management system. `public` lists where the series shows the same answer, `same` who else has it though
    the series does not show it, and `follows` the earlier exercises for which ours were put in an answer's place.
    """

    name: str
    verdicts: dict[str, tuple[str, str]]
    id: str = ""
    remarks: list[str] = field(default_factory=list)
    fingerprints: dict[str, set[str]] = field(default_factory=dict)
    public: dict[str, list[str]] = field(default_factory=dict)
    same: dict[str, list[str]] = field(default_factory=dict)
    follows: dict[str, list[str]] = field(default_factory=dict)

    def remark(self, words: str) -> None:
        """Add a remark, once."""
        if (words := printable(words)) not in self.remarks and len(self.remarks) < MAX_REMARKS:
            self.remarks.append(words)

    def judge(self, number: str, words: str, fingerprints: Sequence[str] = (), reference: str = "") -> None:
        """Record a verdict, and the name of a reference implementation that is the answer."""
        words = printable(words)
        if self.is_open(number):
            self.verdicts[number] = next((KINDS[start] for start in KINDS if words.startswith(start)), "not yet"), words
            self.fingerprints[number] = set(fingerprints)
            if reference:
                self.remark(f"{number} answers with {reference} of utils")

    def is_open(self, number: str) -> bool:
        """Return whether an exercise is still to be graded."""
        return number in self.verdicts and self.verdicts[number][0] == "not graded"

    def stop(self, numbers: Sequence[str], reason: str) -> None:
        """Note why these exercises cannot be graded."""
        for number in numbers:
            self.judge(number, f"stopped: {reason}.")

    def follow(self, number: str, earlier: Sequence[str]) -> None:
        """Give an exercise its points, because it is right with our answers to these earlier ones."""
        earlier = [each for each in earlier if each in self.verdicts]
        if self.verdicts[number][0] in ("not yet", "not attempted"):
            ours = " and ".join(earlier)
            self.follows[number] = earlier
            words = f"with our answer to {ours} in place of yours. Alone: {self.verdicts[number][1]}"
            self.verdicts[number] = "correct", f"{CORRECT.removesuffix('.')} {words}"

    def accept(self, number: str) -> None:
        """Give an exercise its points by hand."""
        kind, words = self.verdicts[number]
        self.verdicts[number] = "correct", words if kind == "correct" else f"{CORRECT} Accepted by hand ({words})"

    def points(self, number: str) -> int:
        """Return the points of an exercise: all if it is correct, else none."""
        return POINTS[number] if self.verdicts[number][0] == "correct" else 0

    @property
    def total(self) -> int:
        """Return the points of all exercises."""
        return sum(map(self.points, self.verdicts))

    @property
    def is_graded(self) -> bool:
        """Return whether all exercises have a verdict."""
        return all(kind != "not graded" for kind, _ in self.verdicts.values())

    @property
    def same_as(self) -> str:
        """Return who else has its answers, such as "3.2: Ada, Bob"; of many the first five."""
        return by_exercise(self.same)


def by_exercise(found: dict[str, list[str]]) -> str:
    """Return lists of names by exercise as a text, of long lists the first names."""
    more = {number: f", {len(names) - MAX_NAMES} more" * (len(names) > MAX_NAMES) for number, names in found.items()}
    texts = {number: f"{', '.join(names[:MAX_NAMES])}{more[number]}" for number, names in found.items() if names}
    return "; ".join(f"{number}: {text}" for number, text in texts.items())


def compare_rows(rows: Sequence[Row], published: dict[str, str]) -> None:
    """Record for each correct answer where the series shows the same; if it does not, which other hand-ins have it."""
    for row in rows:
        for number in (number for number in row.fingerprints if row.points(number)):
            looks, shown = row.fingerprints[number], row.fingerprints[number] & published.keys()
            own = looks - shown
            row.public[number] = sorted({published[look] for look in shown})
            row.same[number] = [
                other.name for other in rows if other is not row and own & other.fingerprints.get(number, set())
            ]


def as_table(rows: Sequence[Row]) -> pd.DataFrame:
    """Return a line for each row: points, then the verdicts."""
    return pd.DataFrame(
        {
            "name": row.name,
            **{number: "" if row.is_open(number) else row.points(number) for number in row.verdicts},
            **{"points": row.total, "of": sum(POINTS[number] for number in row.verdicts)},
            "look at": " ".join(number for number, (kind, _) in row.verdicts.items() if kind == "stopped"),
            "id": row.id,
            "published": by_exercise(row.public),
            "same as": row.same_as,
            "with ours": by_exercise(row.follows),
            **{f"{number} comment": words for number, (_, words) in row.verdicts.items()},
            "remarks": "; ".join(row.remarks),
        }
        for row in rows
    )


def write_csv(path: Path, rows: Sequence[Row]) -> None:
    """Write the table with formulas escaped for spreadsheets; OSError if it cannot be written.

    Rows of an earlier table stay, unless their hand-ins were graded again. ValueError for a file with other columns.
    """
    table = escape_formulas(as_table(rows))
    if path.is_file():
        earlier = read_earlier(path, [*table.columns])
        table = table[pd.Series([row.is_graded for row in rows]) | ~table["name"].isin(earlier["name"])]
        table = pd.concat([earlier[~earlier["name"].isin(table["name"])], table])
    write_file(path, "\N{BYTE ORDER MARK}" + table.to_csv(index=False))  # by which Excel recognises UTF-8


def escape_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table in which no text is a formula to a spreadsheet: students choose the names of their files."""
    return table.map(lambda cell: FORMULA.sub(r"\1'\2", cell) if isinstance(cell, str) else cell)


def read_earlier(path: Path, columns: list[str]) -> pd.DataFrame:
    """Return the table of an earlier grading; ValueError if the file holds anything else."""
    try:
        earlier = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig")
    except ValueError:  # also pandas' own errors
        earlier = pd.DataFrame()
    if [*earlier.columns] != columns:
        raise ValueError(f"{path} does not hold grades of these exercises: choose another file")
    return earlier


def write_moodle(path: Path, rows: Sequence[Row]) -> None:
    """Write a grading worksheet for Moodle's assignment, whose import needs these columns by these names.

    Source: mod/assign/feedback/offline/importgradeslib.php of Moodle. An empty date leaves newer grades there alone.
    """
    lines = [(f"Participant {row.id}", row.total, "", letter(row)) for row in importable(rows)]
    columns = ["Identifier", "Grade", "Last modified (grade)", "Feedback comments"]
    write_file(path, escape_formulas(pd.DataFrame(lines, columns=columns)).to_csv(index=False))


def write_canvas(path: Path, rows: Sequence[Row], title: str) -> None:
    """Write a table for Canvas' gradebook, whose import finds students by ID and assignments by title.

    Source: lib/gradebook_importer.rb of Canvas: the header begins with Student and ID, and Section ends what describes
    a student; a row "Points Possible" may follow it.
    """
    points = sum(POINTS[number] for number in rows[0].verdicts)
    lines = [("Points Possible", "", "", points)]
    lines += [(row.name, row.id, "", row.total) for row in importable(rows)]
    table = escape_formulas(pd.DataFrame(lines, columns=["Student", "ID", "Section", title]))
    write_file(path, table.to_csv(index=False))


def report(rows: Sequence[Row]) -> str:
    """Return the table of points, followed by the verdicts that are not correct."""
    top = {"": "of", **{number: POINTS[number] for number in rows[0].verdicts}}
    table = [top | {"points": sum(list(top.values())[1:])}]
    for row in rows:
        signs = {number: SIGNS.get(kind) or POINTS[number] for number, (kind, _) in row.verdicts.items()}
        signs |= {number: f"{POINTS[number]}*" for number in row.follows}
        table.append({"": row.name, **signs, "points": row.total})
    lines = [pd.DataFrame(table).to_string(index=False), "", LEGEND]
    for row in rows:
        comments = {}
        for number, (kind, words) in row.verdicts.items():
            if kind not in ("correct", "not graded"):
                comments.setdefault(words, []).append(number)
        below = [f"  {', '.join(numbers)}: {words}" for words, numbers in comments.items()]
        texts = {"published": by_exercise(row.public), "same as": row.same_as, "with ours": by_exercise(row.follows)}
        below += [f"  {name}: {text}" for name, text in texts.items() if text] + [f"  {each}" for each in row.remarks]
        lines += ["", row.name, *below] if below else []
    return "\n".join(lines)


def write_letters(folder: Path, rows: Sequence[Row]) -> None:
    """Write a letter for each student to a folder: points, verdicts and remarks; earlier letters stay until graded."""
    with explain_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        if not row.is_graded and (folder / letter_name(row.name)).exists():
            continue
        write_file(folder / letter_name(row.name), letter(row))


def letter(row: Row) -> str:
    """Return what a student reads: points, verdicts and remarks."""
    lines = [f"{row.name}: {row.total} of {sum(POINTS[number] for number in row.verdicts)} points", ""]
    for number, (_, words) in row.verdicts.items():
        lines.append(f"{number} ({row.points(number)} of {POINTS[number]}): {words}")
    return "\n".join([*lines, "", *row.remarks]).strip() + "\n"
