"""Rehearse TEACHING.md against the clock: what each row of its plans takes, beside the minutes that it states."""

import re
from dataclasses import dataclass, field
from functools import cache

import nbformat

from publish.notebooks import ROOT, SEMINAR, is_folded, main_line, notebook_paths

PAGE = ROOT / "docs" / "TEACHING.md"
PLAN = re.compile(r"^### (?:(?:or )?(\d+)–(\d+)|Unit (\d+)) · (.*)$")
LINK = re.compile(r"\]\(\.\./notebooks/(\d\d)_\w+\.ipynb")
BY_HAND = re.compile(r"\((\d+) min\)")  # what the class does meanwhile: an exercise, a question, a try
UNIT = 90
A_RUN, A_PREDICTION = 0.25, 2  # minutes


@dataclass
class Row:
    """One line of a plan: a section of a notebook, or, in italics, something else that takes time."""

    notebook: str  # its number
    heading: str
    is_section: bool
    cells: str  # such as "In [3]–[5]", or "text" where nothing is run
    minutes: int
    text: str


@dataclass
class Plan:
    """A slot of the seminar or a unit of the course."""

    title: str
    start: int  # minute of the session
    end: int
    is_unit: bool
    rows: list[Row] = field(default_factory=list)


def plans(text: str) -> list[Plan]:
    """The slots and units of TEACHING.md, in their order."""
    found, notebook, inside = [], "", False
    for line in text.splitlines():
        if line.startswith("#"):
            inside = bool(match := PLAN.match(line))
            if match:
                start, end, unit, title = match.groups()
                bounds = (0, UNIT) if unit else (int(start), int(end))
                found.append(Plan(f"Unit {unit} · {title}" if unit else title, *bounds, bool(unit)))
                notebook = named[1] if (named := LINK.search(line)) else ""
        elif inside and line.startswith("| ") and not line.startswith("| heading"):
            heading, cells, minutes, rest = (part.strip() for part in line.strip("| ").split(" | ", 3))
            notebook = named[1] if (named := LINK.search(heading)) else notebook
            named = plain(heading)
            row = Row(notebook, named, not heading.startswith("*"), cells, int(minutes), rest)
            found[-1].rows.append(row)
    return found


def plain(heading: str) -> str:
    """A heading without the marks and links of Markdown."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip("*# ")


@cache
def read(number: str):
    """A notebook by its number."""
    return nbformat.read(notebook_paths([f"{number}_"])[0], as_version=4)


def headings(cell) -> list[str]:
    """The headings in a cell."""
    text = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
    return [line.strip("# ") for line in text.splitlines() if re.match("#{1,3} ", line)] * (
        cell.cell_type == "markdown"
    )


def level(cell) -> int:
    """How many # a text cell begins with; 0 for any other cell."""
    match = re.match("#{1,3} ", cell.source) if cell.cell_type == "markdown" else None
    return len(match[0]) - 1 if match else 0


def section(cells: list, heading: str) -> list:
    """The cells under a heading, up to the next of its level; ValueError unless there is just one such heading."""
    starts = [place for place, cell in enumerate(cells) if level(cell) and heading in headings(cell)]
    if len(starts) != 1:
        raise ValueError(
            f"{heading!r} is the heading of {len(starts)} sections: write one as it stands there"
        )
    (start,) = starts
    depth = max(2, level(cells[start]))  # what stands under the title ends with the first section
    ends = [place for place, cell in enumerate(cells) if place > start and 0 < level(cell) <= depth]
    return cells[start : (ends or [len(cells)])[0]]


def words(cells: list) -> int:
    """The words of the text cells, tables left out."""
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    return sum(len(line.split()) for text in texts for line in text.splitlines() if not line.startswith("|"))


def tagged(cells: list) -> list:
    """The cells that the seminar shows, tells or runs."""
    return [cell for cell in cells if SEMINAR in cell.metadata.get("tags", [])]


def ran(cells: list) -> str:
    """The execution counts of the code cells, from and to, as a plan writes them; "text" if nothing is run."""
    counts = [cell.execution_count for cell in cells if cell.cell_type == "code"]
    if counts != list(range(counts[0], counts[-1] + 1) if counts else []):
        raise ValueError(f"cells are left out among In {counts}: tag all that are run, or none")
    if len(counts) < 2:
        return f"In [{counts[0]}]" if counts else "text"
    return f"In [{counts[0]}]–[{counts[-1]}]"


def by_hand(row: Row) -> int:
    """Minutes that a row gives to the class, such as "exercise 3.2 (4 min)"."""
    return sum(int(number) for number in BY_HAND.findall(row.text))


def shown(row: Row) -> list:
    """The cells that the seminar shows, tells or runs in a row of a slot."""
    return tagged(section(main_line(read(row.notebook)), row.heading)) if row.is_section else []


def presented(row: Row) -> float:
    """Minutes of a row of a slot: 130 words a minute, 15 seconds a run, 2 a prediction, and what the class does."""
    code = [cell for cell in shown(row) if cell.cell_type == "code"]
    predictions = sum(re.search("^prediction = ", cell.source, re.MULTILINE) is not None for cell in code)
    return by_hand(row) + words(shown(row)) / 130 + A_RUN * len(code) + A_PREDICTION * predictions


def spans(plan: Plan) -> dict[int, list]:
    """The cells of each row of a unit that names a section: from there to the next such row of its notebook."""
    found = {}
    for notebook in dict.fromkeys(row.notebook for row in plan.rows):
        cells, places = main_line(read(notebook)), {}
        for number, row in enumerate(plan.rows):
            if row.notebook == notebook and row.is_section:
                first = section(cells, row.heading)[0]
                places[number] = next(place for place, cell in enumerate(cells) if cell is first)
        ends = [*list(places.values())[1:], len(cells)]
        found |= {number: cells[start:end] for (number, start), end in zip(places.items(), ends, strict=True)}
    return found


def taught(row: Row, cells: list) -> float:
    """Minutes of a row of a unit: its text and open code by the notebooks' own formula, and what the class does."""
    lines = 0
    for cell in cells:
        if (
            cell.cell_type == "code"
            and not is_folded(cell)
            and "exercise" not in cell.metadata.get("tags", [])
        ):
            lines += sum(bool(line.strip()) for line in cell.source.splitlines())
    told = [cell for cell in cells if not cell.source.startswith(("### Exercise", "**Sources"))]
    return by_hand(row) + words(told) / 130 + lines / 12


def rehearse(plan: Plan) -> list[tuple[Row, float]]:
    """The rows of a plan, each with the minutes that it takes."""
    if not plan.is_unit:
        return [(row, presented(row)) for row in plan.rows]
    own = spans(plan)
    return [(row, taught(row, own.get(number, []))) for number, row in enumerate(plan.rows)]


def late(row: Row, minutes: float) -> bool:
    """Whether a row takes clearly longer than it states: minutes are rounded, and the plan as a whole has to fit."""
    return minutes > row.minutes + 0.5


def main() -> None:
    """Print, for each row of the plans, what it takes and what it states."""
    for plan in plans(PAGE.read_text("utf-8")):
        rows = rehearse(plan)
        taken, there = sum(minutes for _, minutes in rows), plan.end - plan.start
        verdict = "" if taken <= there else "  DOES NOT FIT"
        print(f"\n{plain(plan.title)}: {taken:.1f} of {there} minutes{verdict}")
        for row, minutes in rows:
            print(
                f"  {minutes:5.1f} of {row.minutes:2d}  {row.heading}{'  TOO SHORT' if late(row, minutes) else ''}"
            )


if __name__ == "__main__":
    main()
