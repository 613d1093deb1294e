"""Rehearse the plans of TEACHING.md and COURSE.md against the clock, and write what notebooks say of them.

Written anew, from the notebooks' cells and tags, are the cells and minutes of each row of a plan, the line of minutes
under the heading of a unit, and the goals of COURSE.md. All else is written by hand.
"""

import re
from dataclasses import dataclass, field
from functools import cache

import nbformat

from publish.notebooks import ROOT, SEMINAR, main_line, notebook_paths, pictures, reading_time

SEMINAR_PAGE, COURSE_PAGE = ROOT / "docs" / "TEACHING.md", ROOT / "docs" / "COURSE.md"
PLAN = re.compile(r"^### (?:(?:or )?(\d+)–(\d+)|Unit (\d+)) · (.*)$")
LINK = re.compile(r"\]\(\.\./notebooks/(\d\d)_\w+\.ipynb")
BY_HAND = re.compile(r"\((\d+) min\)")  # what the class does meanwhile: an exercise, a question, a try
EXERCISE = re.compile(r"\b\d{1,2}\.\d\b")
SESSION = re.compile(r"^## The seminar: session \d+$", re.MULTILINE)
VOTE = re.compile("^prediction = ", re.MULTILINE)
TALK = re.compile(r"^- \*\*(Ask|Expect|Answer)\.\*\* (.*)$")
IN_CLASS = re.compile(r"^\*\d+ min (.*) · \d+ the notebooks? · \d+ (exercises? .*?) in pairs · .*\*$")
GOALS = "\n## Goals and the exercises that test them\n"
IF_THERE_IS_TIME = "◇ "
STARTS_A_SLIDE = ("slide", "subslide")
UNIT, SPARE = 90, 5
FIRST_WEEK = "how the course works"  # and no open question
BEFORE, ON_THE_COURSE, AN_EXERCISE, A_QUESTION = 10, 5, 12, 8  # minutes of a unit, beside its notebook
A_RUN, A_PREDICTION, A_VIEW, A_PICTURE = 0.25, 2, 2, 0.7


@dataclass
class Row:
    """One line of a plan: a section of a notebook, or, in italics, something else that takes time."""

    notebook: str  # its number
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
    before: str = ""  # what a unit begins with
    in_class: str = ""  # the exercises that it makes time for
    talk: list[str] = field(default_factory=list)  # what a slot asks, with wrong answers and the right one

    @property
    def exercises(self) -> list[str]:
        """The numbers of the exercises that are solved in class."""
        return EXERCISE.findall(self.in_class)


def plans(text: str) -> list[Plan]:
    """The slots or units of a page, in their order."""
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
            row = Row(notebook, plain(bare), not bare.startswith("*"), int(minutes), rest, late)
            found[-1].rows.append(row)
    return found


def sessions() -> list[list[Plan]]:
    """The slots of each session of the seminar."""
    return [plans(part) for part in SESSION.split(SEMINAR_PAGE.read_text("utf-8"))[1:]]


def is_row(line: str) -> bool:
    """Whether a line of a page is a row of a plan."""
    return line.startswith("| ") and not line.startswith("| heading")


def parts(line: str) -> list[str]:
    """The columns of a row: the heading, in a slot the cells, the minutes, and what to do."""
    return [part.strip() for part in line.strip("| \n").split(" | ")]


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
        raise ValueError(f"{heading!r} is the heading of {len(starts)} sections: write one as it stands there")
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


def asks(row: Row) -> bool:
    """Whether the question of a slot is asked in this row."""
    return "**ask**" in row.text


def votes(cells: list) -> int:
    """How often the class predicts something."""
    return sum(cell.cell_type == "code" and VOTE.search(cell.source) is not None for cell in cells)


@dataclass
class Question:
    """What a slot asks and answers on slides of its own, since its cells take no vote on it."""

    asked: str
    answer: str
    opens: bool  # its section; else something is shown first
    first: str  # the ids of the section's cells, from and to
    last: str

    @property
    def texts(self) -> tuple[str, str]:
        """What the two slides say."""
        return f"**Question.** {self.asked}", f"**Answer.** {self.answer}"


def question(plan: Plan, row: Row) -> Question | None:
    """The question that is put on slides in a row of a slot, if there is one."""
    cells = shown(row)
    if not asks(row) or votes(cells):
        return None
    own = [cell.id for cell in cells]
    last = next((at for at, cell in enumerate(cells) if cell.source.startswith("### Exercise")), len(own)) - 1
    talk = dict(line.removeprefix("**").split("** ", 1) for line in plan.talk)
    return Question(talk["Ask"], talk["Answer"], row.text.startswith("**ask**"), own[0], own[last])


def questions(number: str) -> list[Question]:
    """The questions that the seminar's slides of a notebook ask."""
    rows = [(plan, row) for session in sessions() for plan in session for row in plan.rows]
    return [found for plan, row in rows if row.notebook == number and (found := question(plan, row))]


def notes(number: str) -> dict[str, str]:
    """What the seminar's plan says of a notebook's sections, each by the id of the cell in which its slides begin.

    One of a slot begins with its question; what has no section is told with the one before it.
    """
    found, place = {}, ""
    for plan in (plan for session in sessions() for plan in session):
        for row in (row for row in plan.rows if row.notebook == number):
            late = IF_THERE_IS_TIME * row.if_there_is_time
            if row.is_section:
                kinds = {cell.id: cell.get("metadata", {}).get("slideshow", {}) for cell in shown(row)}
                starts = [key for key, kind in kinds.items() if kind.get("slide_type") in STARTS_A_SLIDE]
                place = (starts or list(kinds))[0]
                talk = plan.talk if asks(row) else []
                found[place] = " · ".join([f"{late}{row.minutes} min", *talk, row.text])
            elif place:
                found[place] += f" · then, {late}{row.minutes} min, {row.heading}: {row.text}"
    return found


def presented(row: Row) -> float:
    """Minutes of a row of a slot: 130 words a minute, what is run and looked at, and what the class does.

    A cell that is run takes 15 seconds, a prediction 2 minutes, a still picture 0.7, and a view or figure that lives 2,
    or what the row gives to the class.
    """
    code = [cell for cell in shown(row) if cell.cell_type == "code"]
    lives, still = (sum(counts) for counts in zip((0, 0), *map(pictures, code), strict=True))
    told = words(shown(row)) / 130 + A_RUN * len(code) + A_PREDICTION * votes(code) + A_PICTURE * still
    return told + max(by_hand(row), A_VIEW * lives)


def asking(plan: Plan, row: Row) -> float:
    """Minutes of what the slides ask and answer in a row of a slot, beside its cells."""
    found = question(plan, row)
    return sum(len(text.split()) for text in found.texts) / 130 if found else 0


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


def rehearse(plan: Plan) -> list[tuple[Row, float]]:
    """The rows of a plan, each with the minutes that it takes."""
    if not plan.is_unit:
        return [(row, presented(row) + asking(plan, row)) for row in plan.rows]
    own = spans(plan)
    return [(row, by_hand(row) + reading_time(own.get(number, []))) for number, row in enumerate(plan.rows)]


def beside(plan: Plan) -> list[tuple[int, str]]:
    """What a unit has time for beside its notebook, with its minutes: last week, exercises, an open question."""
    if not plan.is_unit:
        return []
    done = (AN_EXERCISE * len(plan.exercises), f"{plan.in_class} in pairs")
    if plan.before == FIRST_WEEK:
        return [(ON_THE_COURSE, plan.before), done]
    return [(BEFORE, plan.before), done, (A_QUESTION, "an open question")]


def taken(plan: Plan) -> int:
    """Minutes that a plan takes, without what is done only if there is time."""
    told = sum(minutes for row, minutes in rehearse(plan) if not row.if_there_is_time)
    return round(told) + sum(minutes for minutes, _ in beside(plan))


def fits(plan: Plan) -> bool:
    """Whether a plan leaves the minutes to spare; what has no notebook, such as an opening, needs none."""
    spare = SPARE if any(row.is_section for row in plan.rows) else 0
    return taken(plan) + spare <= plan.end - plan.start


def clock(plan: Plan) -> str:
    """The line under the heading of a unit: where its 90 minutes go."""
    told = round(sum(minutes for _, minutes in rehearse(plan)))
    (first, before), *rest = beside(plan)
    several = "s" * (len({row.notebook for row in plan.rows}) > 1)
    all_parts = [(told, f"the notebook{several}"), *rest, (UNIT - taken(plan), "to spare")]
    return f"*{first} min {before} · {' · '.join(f'{minutes} {what}' for minutes, what in all_parts)}*"


def goals(number: str) -> list[str]:
    """What a notebook's opening says that one will be able to do."""
    (opening,) = (cell.source for cell in read(number).cells if "will be able to" in cell.source)
    return [line[2:].rstrip(";.") for line in opening.splitlines() if line.startswith("- ")]


def with_goals(text: str) -> str:
    """A page with the goals of its last table as the notebooks state them now; what tests them stays."""
    before, there, table = text.partition(GOALS)
    lines, own = [], iter(())
    for line in table.splitlines(keepends=True):
        if line.startswith("| **["):
            own = iter(goals(LINK.search(line)[1]))
        elif is_row(line) and not line.startswith("| goal"):
            line = f"| {next(own, 'a goal that the notebook no longer states')} | {parts(line)[-1]} |\n"
        lines.append(line)
    return before + there + "".join(lines)


def fresh(text: str) -> str:
    """A page with what notebooks say of its plans as they say it now."""
    found, lines, plan, rows = iter(plans(text)), [], None, iter(())
    for line in text.splitlines():
        if line.startswith("#"):
            plan = next(found) if PLAN.match(line) else None
            rows = iter(rehearse(plan)) if plan else iter(())
        elif plan and IN_CLASS.match(line):
            line = clock(plan)
        elif plan and is_row(line):
            heading, *_, what = parts(line)
            row, minutes = next(rows)
            cells = ran(shown(row)) if row.is_section else "–"
            between = [max(1, round(minutes))] if plan.is_unit else [cells, max(1, round(minutes))]
            line = f"| {' | '.join(map(str, [heading, *between, what]))} |"
        lines.append(line)
    return with_goals("\n".join(lines) + "\n")


def main() -> None:
    """Write the plans anew, and print what each takes, and each of its rows."""
    for page in (SEMINAR_PAGE, COURSE_PAGE):
        page.write_text(fresh(page.read_text("utf-8")), "utf-8")
        for plan in plans(page.read_text("utf-8")):
            there, needed = plan.end - plan.start, taken(plan)
            verdict = "" if fits(plan) else f"  DOES NOT FIT with {SPARE} minutes to spare"
            print(f"\n{plain(plan.title)}: {needed} of {there} minutes{verdict}")
            for row, minutes in rehearse(plan):
                print(f"  {minutes:5.1f}  {IF_THERE_IS_TIME * row.if_there_is_time}{row.heading}")


if __name__ == "__main__":
    main()
