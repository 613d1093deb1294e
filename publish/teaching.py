"""Check that the plans of TEACHING.md and COURSE.md fit their time, and update their numbers from the notebooks.

Updated from the notebooks' cells and tags are the cells and minutes of each row of a plan, and the line of minutes
under the heading of a unit. Everything else is written by hand.
"""

import re
from dataclasses import dataclass, field
from functools import cache

import nbformat

from publish.notebooks import NOTEBOOKS, ROOT, SEMINAR, exercise_minutes, minutes, notebook_paths, reading_time

README = ROOT / "README.md"
SEMINAR_PAGE, COURSE_PAGE = ROOT / "docs" / "TEACHING.md", ROOT / "docs" / "COURSE.md"
PLAN = re.compile(r"^### (?:(?:or )?(\d+)–(\d+)|Unit (\d+)) · (.*)$")
LINK = re.compile(r"\]\(\.\./notebooks/(\d\d)_\w+\.ipynb")
CLASS_MINUTES = re.compile(r"\((\d+) min\)")  # time that the class works: an exercise, a question, an experiment
CHECKED = re.compile(r'check\("([\d.]+)"')
README_ROW = re.compile(r"^\| \[.*\]\(notebooks/(\d\d_\w+\.ipynb)\) .*\| \d+ / \d+ \|$", re.MULTILINE)
START, END = "<!-- hours: written by make rehearse -->", "<!-- end of hours -->"
EXERCISE = re.compile(r"\b\d{1,2}\.\d\b")
VOTE = re.compile("^prediction = ", re.MULTILINE)
TALK = re.compile(r"^- \*\*(Ask|Expect|Answer)\.\*\* (.*)$")
IN_CLASS = re.compile(r"^\*\d+ min (.*) · \d+ the notebooks? · \d+ (exercises? .*?) in pairs · .*\*$")
IF_THERE_IS_TIME = "◇ "
STARTS_A_SLIDE = ("slide", "subslide")
UNIT, SPARE = 90, 5
FIRST_WEEK = "how the course works"  # this unit has no open question
BEFORE, ON_THE_COURSE, A_QUESTION = 10, 5, 8  # minutes of a unit besides its notebook


@dataclass
class Row:
    """A row of a plan: a section of a notebook or, in italics, another item that takes time."""

    notebook: str  # such as 03
    heading: str
    is_section: bool
    minutes: int
    text: str
    if_there_is_time: bool


@dataclass
class Plan:
    """A slot of the seminar or a unit of the course."""

    title: str
    start: int  # minute of the session
    end: int
    is_unit: bool
    rows: list[Row] = field(default_factory=list)
    before: str = ""  # the first item of a unit
    in_class: str = ""  # the exercises to be solved in class
    talk: list[str] = field(default_factory=list)  # the question of a slot, with wrong answers and the right one

    @property
    def notebooks(self) -> list[str]:
        """The notebooks of its rows, such as 03."""
        return list(dict.fromkeys(row.notebook for row in self.rows))

    @property
    def exercises(self) -> list[str]:
        """The numbers of the exercises to be solved in class."""
        return EXERCISE.findall(self.in_class)


def plans(text: str) -> list[Plan]:
    """Return the slots or units of a page in order."""
    found, notebook, inside = [], "", False
    for line in text.splitlines():
        if line.startswith("#"):
            inside = bool(match := PLAN.match(line))
            if match:
                start, end, unit, title = match.groups()
                bounds = (0, UNIT) if unit else (int(start), int(end))
                found.append(Plan(f"Unit {unit} · {title}" if unit else title, *bounds, bool(unit)))
                notebook = named[1] if (named := LINK.search(line)) else ""
        elif inside and (match := IN_CLASS.match(line)):
            found[-1].before, found[-1].in_class = match.groups()
        elif inside and (match := TALK.match(line)):
            found[-1].talk.append(f"**{match[1]}** {match[2]}")
        elif inside and is_row(line):
            heading, *_, minutes, rest = parts(line)
            notebook = named[1] if (named := LINK.search(heading)) else notebook
            late, bare = heading.startswith(IF_THERE_IS_TIME), heading.removeprefix(IF_THERE_IS_TIME)
            row = Row(notebook, plain_heading(bare), not bare.startswith("*"), int(minutes), rest, late)
            found[-1].rows.append(row)
    return found


def slots() -> list[Plan]:
    """Return the slots of the seminar's second session; the first is the notebook of the evening."""
    return plans(SEMINAR_PAGE.read_text("utf-8"))


def units() -> list[Plan]:
    """Return the units of the course."""
    return plans(COURSE_PAGE.read_text("utf-8"))


def is_row(line: str) -> bool:
    """Return whether a line of a page is a row of a plan."""
    return line.startswith("| ") and not line.startswith("| heading")


def parts(line: str) -> list[str]:
    """Return the columns of a row: heading, cells (in a slot only), minutes, and what to do."""
    return [part.strip() for part in line.strip("| \n").split(" | ")]


def plain_heading(heading: str) -> str:
    """Return a heading without Markdown markup and links."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip("*# ")


@cache
def read(number: str):
    """Read a notebook by its number."""
    return nbformat.read(notebook_paths([f"{number}_"])[0], as_version=4)


def headings(cell) -> list[str]:
    """Return the headings in a text cell; none for any other cell."""
    text = re.sub(r"^```.*?^```", "", cell.source, flags=re.MULTILINE | re.DOTALL)
    return [line.strip("# ") for line in text.splitlines() if re.match("#{1,3} ", line)] * (
        cell.cell_type == "markdown"
    )


def level(cell) -> int:
    """Return the heading level with which a text cell begins, or 0."""
    match = re.match("#{1,3} ", cell.source) if cell.cell_type == "markdown" else None
    return len(match[0]) - 1 if match else 0


def section(cells: list, heading: str) -> list:
    """Return the cells of a section; ValueError unless exactly one heading matches."""
    starts = [index for index, cell in enumerate(cells) if level(cell) and heading in headings(cell)]
    if len(starts) != 1:
        raise ValueError(f"{heading!r} is the heading of {len(starts)} sections: copy one that occurs once")
    (start,) = starts
    depth = max(2, level(cells[start]))  # the text under the title ends at the first section
    ends = [index for index, cell in enumerate(cells) if index > start and 0 < level(cell) <= depth]
    return cells[start : (ends or [len(cells)])[0]]


def with_seminar_tag(cells: list) -> list:
    """Return the cells that the seminar shows, explains or runs."""
    return [cell for cell in cells if SEMINAR in cell.metadata.get("tags", [])]


def execution_range(cells: list) -> str:
    """Return the range of execution counts as a plan writes it, or "text" without code; ValueError for a gap."""
    counts = [cell.execution_count for cell in cells if cell.cell_type == "code"]
    if counts != list(range(counts[0], counts[-1] + 1) if counts else []):
        raise ValueError(f"the tagged cells In {counts} have a gap: tag all cells that are run, or none")
    if len(counts) < 2:
        return f"In [{counts[0]}]" if counts else "text"
    return f"In [{counts[0]}]–[{counts[-1]}]"


def class_minutes(row: Row) -> int:
    """Return the minutes in which the class works, as in "exercise 3.2 (4 min)"."""
    return sum(int(number) for number in CLASS_MINUTES.findall(row.text))


def seminar_cells(row: Row) -> list:
    """Return the cells that the seminar shows, explains or runs in a row of a slot."""
    return with_seminar_tag(section(read(row.notebook).cells, row.heading)) if row.is_section else []


def has_question(row: Row) -> bool:
    """Return whether the question of a slot is asked in this row."""
    return "**ask**" in row.text


def count_votes(cells: list) -> int:
    """Count the predictions that the class makes."""
    return sum(cell.cell_type == "code" and VOTE.search(cell.source) is not None for cell in cells)


@dataclass
class Question:
    """A question that is put on slides, because the cells of its slot ask for no prediction."""

    text: str
    answer: str
    opens: bool  # whether it opens its section
    first: str  # id of the section's first cell
    last: str  # id of the cell before the answer

    @property
    def texts(self) -> tuple[str, str]:
        """The texts of the two slides."""
        return f"**Question.** {self.text}", f"**Answer.** {self.answer}"


def question(plan: Plan, row: Row) -> Question | None:
    """Return the question that is put on slides in a row of a slot, or None."""
    cells = seminar_cells(row)
    if not has_question(row) or count_votes(cells):
        return None
    own = [cell.id for cell in cells]
    last = next((i for i, cell in enumerate(cells) if cell.source.startswith("### Exercise")), len(own)) - 1
    talk = dict(line.removeprefix("**").split("** ", 1) for line in plan.talk)
    return Question(talk["Ask"], talk["Answer"], row.text.startswith("**ask**"), own[0], own[last])


def questions(number: str) -> list[Question]:
    """Return the questions on the seminar's slides of a notebook."""
    rows = [(plan, row) for plan in slots() for row in plan.rows]
    return [found for plan, row in rows if row.notebook == number and (found := question(plan, row))]


def notes(number: str) -> dict[str, str]:
    """Return the seminar's notes to a notebook's sections, by the id of the cell that starts each section's slides.

    The notes of a row that asks its slot's question begin with it. A row without a section is added to the one before.
    """
    found, start = {}, ""
    for plan in slots():
        for row in (row for row in plan.rows if row.notebook == number):
            late = IF_THERE_IS_TIME * row.if_there_is_time
            if row.is_section:
                kinds = {cell.id: cell.get("metadata", {}).get("slideshow", {}) for cell in seminar_cells(row)}
                starts = [key for key, kind in kinds.items() if kind.get("slide_type") in STARTS_A_SLIDE]
                start = (starts or list(kinds))[0]
                talk = plan.talk if has_question(row) else []
                found[start] = " · ".join([f"{late}{row.minutes} min", *talk, row.text])
            elif start:
                found[start] += f" · then, {late}{row.minutes} min, {row.heading}: {row.text}"
    return found


def unit_cells(plan: Plan) -> dict[int, list]:
    """Return the cells of each row of a unit that names a section, up to the next such row of its notebook."""
    found = {}
    for notebook in plan.notebooks:
        cells, starts = read(notebook).cells, {}
        for number, row in enumerate(plan.rows):
            if row.notebook == notebook and row.is_section:
                first = section(cells, row.heading)[0]
                starts[number] = next(index for index, cell in enumerate(cells) if cell is first)
        ends = [*list(starts.values())[1:], len(cells)]
        found |= {number: cells[start:end] for (number, start), end in zip(starts.items(), ends, strict=True)}
    return found


def rehearse(plan: Plan) -> list[tuple[Row, float]]:
    """Return the rows of a plan, each with the minutes that it takes."""
    if not plan.is_unit:
        return [(row, class_minutes(row) + reading_time(seminar_cells(row))) for row in plan.rows]
    own = unit_cells(plan)
    return [(row, class_minutes(row) + reading_time(own.get(number, []))) for number, row in enumerate(plan.rows)]


def stated_minutes(plan: Plan) -> dict[str, int]:
    """Return the minutes that the notebooks of a unit state for their numbered exercises."""
    stated = {}
    for notebook in plan.notebooks:
        for heading, stated_there in exercise_minutes(read(notebook).cells).items():
            stated |= dict.fromkeys(EXERCISE.findall(heading), stated_there)
    return stated


def fixed_items(plan: Plan) -> list[tuple[int, str]]:
    """Return the minutes and names of a unit's items besides its notebook; none for a slot of the seminar."""
    if not plan.is_unit:
        return []
    stated = stated_minutes(plan)
    done = (sum(stated[name] for name in plan.exercises), f"{plan.in_class} in pairs")
    if plan.before == FIRST_WEEK:
        return [(ON_THE_COURSE, plan.before), done]
    return [(BEFORE, plan.before), done, (A_QUESTION, "an open question")]


def total_minutes(plan: Plan) -> int:
    """Return the minutes that a plan takes without its optional rows."""
    required = sum(minutes for row, minutes in rehearse(plan) if not row.if_there_is_time)
    return round(required) + sum(minutes for minutes, _ in fixed_items(plan))


def fits(plan: Plan) -> bool:
    """Return whether a plan leaves `SPARE` minutes; one without a notebook, such as an opening, needs none."""
    spare = SPARE if any(row.is_section for row in plan.rows) else 0
    return total_minutes(plan) + spare <= plan.end - plan.start


def time_line(plan: Plan) -> str:
    """Return the line under the heading of a unit that divides its 90 minutes."""
    notebook = round(sum(minutes for _, minutes in rehearse(plan)))
    (first, before), *rest = fixed_items(plan)
    several = "s" * (len(plan.notebooks) > 1)
    all_parts = [(notebook, f"the notebook{several}"), *rest, (UNIT - total_minutes(plan), "to spare")]
    return f"*{first} min {before} · {' · '.join(f'{minutes} {what}' for minutes, what in all_parts)}*"


def update_plans(text: str) -> str:
    """Return a page with the numbers of its plans updated from the notebooks."""
    found, lines, plan, rows = iter(plans(text)), [], None, iter(())
    for line in text.splitlines():
        if line.startswith("#"):
            plan = next(found) if PLAN.match(line) else None
            rows = iter(rehearse(plan)) if plan else iter(())
        elif plan and IN_CLASS.match(line):
            line = time_line(plan)
        elif plan and is_row(line):
            heading, *_, what = parts(line)
            row, minutes = next(rows)
            cells = execution_range(seminar_cells(row)) if row.is_section else "–"
            between = [max(1, round(minutes))] if plan.is_unit else [cells, max(1, round(minutes))]
            line = f"| {' | '.join(map(str, [heading, *between, what]))} |"
        lines.append(line)
    return "\n".join(lines) + "\n"


def main_notebooks() -> dict[str, tuple[int, int, set[str]]]:
    """Return the notebooks by file name, in order: minutes to read, with exercises, and their exercises."""
    found = {}
    for path in (path for path in notebook_paths([]) if path.parent == NOTEBOOKS):
        notebook = nbformat.read(path, as_version=4)
        tagged = (cell.source for cell in notebook.cells if "exercise" in cell.metadata.get("tags", []))
        found[path.name] = *minutes(notebook), {number for source in tagged for number in CHECKED.findall(source)}
    return found


def update_readme(text: str, series: dict[str, tuple[int, int, set[str]]]) -> str:
    """Return README with the minutes of these notebooks, and between its markers the numbered ones' number and hours.

    ValueError unless each numbered notebook has a row, no other such file has one, and the markers occur once.
    """
    numbered = {name: row for name, row in series.items() if name[0].isdigit()}
    if sorted(README_ROW.findall(text)) != sorted(numbered):
        raise ValueError(f"README needs a row for each of {', '.join(numbered)} in its table, and no other")
    for name, (read, whole, _) in series.items():
        text = re.sub(rf"(?m)^(\| \[.*/{re.escape(name)}\) .*\| )\d+ / \d+ \|$", rf"\g<1>{read} / {whole} |", text)
    hours = [
        [f"{round(sum(row[column] for row in part) / 30) / 2:g}" for column in (0, 1)]
        for part in ([*numbered.values()], [*numbered.values()][:10])
    ]
    exercises = len(set().union(*(numbers for *_, numbers in numbered.values())))
    sentences = (
        f"All {len(numbered)} notebooks take {hours[0][0]} hours to read, {hours[0][1]} with their {exercises} "
        f"exercises. The core, 00 to 09, takes {hours[1][0]} hours to read, {hours[1][1]} with exercises."
    )
    before, *rest = text.split(START)
    if len(rest) != 1 or rest[0].count(END) != 1:
        raise ValueError(f"README needs {START} and {END} once, around the sentences on hours")
    return f"{before}{START}\n{sentences}\n{END}{rest[0].partition(END)[2]}"


def main() -> None:
    """Update the plans and README, and print the minutes of each plan and of its rows."""
    README.write_text(update_readme(README.read_text("utf-8"), main_notebooks()), "utf-8")
    for page in (SEMINAR_PAGE, COURSE_PAGE):
        page.write_text(update_plans(page.read_text("utf-8")), "utf-8")
        for plan in plans(page.read_text("utf-8")):
            there, needed = plan.end - plan.start, total_minutes(plan)
            verdict = "" if fits(plan) else f"  DOES NOT LEAVE {SPARE} minutes to spare"
            print(f"\n{plain_heading(plan.title)}: {needed} of {there} minutes{verdict}")
            for row, estimate in rehearse(plan):
                print(f"  {estimate:5.1f}  {IF_THERE_IS_TIME * row.if_there_is_time}{row.heading}")


if __name__ == "__main__":
    main()
