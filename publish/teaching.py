"""Update what README and the pages for teachers state from the notebooks: hours, minutes and points.

`make rehearse` runs it, and reports whether each unit of the course fits its time. Everything else is written by hand.
"""

import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate

import nbformat

from exercises import find_check
from exercises.framework import PART_NAMES, POINTS
from publish.notebooks import NOTEBOOKS, ROOT, exercise_minutes, minutes, notebook_paths, reading_time

README = ROOT / "README.md"
COURSE_PAGE, SYLLABUS_PAGE, GRADING_PAGE, SEMINAR_PAGE = (
    ROOT / "docs" / f"{name}.md" for name in ("COURSE", "SYLLABUS", "GRADING", "TEACHING")
)
TITLE = re.compile(r"^### Unit \d+ · (.*)$")
LINK = re.compile(r"\]\(\.\./notebooks/(\d\d)_\w+\.ipynb")
ROW = re.compile(r"^- (◇ )?\*\*(.+)\*\* \((\d+)\): (.*)$")
TIME = re.compile(r"^\*\d+ min the notebooks?(?:, ◇ \d+ more)? · \d+ (exercises? .*?) in pairs · .*\*$")
TALK = re.compile(r"^\*\*(Ask|Expect|Answer)\.\*\* .*$")
WEEK = re.compile(r"^\| (◇ )?(\d+) \| (.*) \| (\d+) \| .* \| \d+ \| \d+ \|$")  # a unit in the syllabus
LOAD = re.compile(r"^\| (exercises at home|readings|in all) \| [\d.]+ \|$")
HOURS = re.compile(r"^\| [^|]+ \| ([\d.]+) \|$", re.MULTILINE)
CHECKED = re.compile(r'check\("([\d.]+)"')
README_ROW = re.compile(r"^\| \[.*\]\(notebooks/(\d\d_\w+\.ipynb)\) .*\| \d+ / \d+ \|$", re.MULTILINE)
START, END = "<!-- hours: written by make rehearse -->", "<!-- end of hours -->"
EXERCISE = re.compile(r"\b\d{1,2}\.\d\b")
MARKING = re.compile(r"^(\| [^|]+ \| (\d+) \| (answer|student|group|week)) \| .*$", re.MULTILINE)
SEMINAR = re.compile(r"^\| \d+ (?=\| \[(\d\d)\]\(\.\./notebooks/\w+\.ipynb\): ([^|]+) \|)", re.MULTILINE)
PAIRS, WEEKS = 42, 12  # students who work in pairs, and weeks with exercises
STARTS_A_SLIDE = ("slide", "subslide")
UNIT, SPARE = 90, 5
FIRST, OTHERS = 5, 10 + 8  # minutes of the first unit besides notebook and exercise, and of the others


@dataclass
class Row:
    """A row of a unit: a section of a notebook."""

    notebook: str  # such as 03
    heading: str
    text: str
    if_there_is_time: bool


@dataclass
class Unit:
    """A unit of the course."""

    title: str
    rows: list[Row] = field(default_factory=list)
    in_class: str = ""  # the exercises to be solved in class
    talk: list[str] = field(default_factory=list)  # a question, wrong answers and the right one

    @property
    def notebooks(self) -> list[str]:
        """The notebooks of its rows, such as 03."""
        return list(dict.fromkeys(row.notebook for row in self.rows))

    @property
    def exercises(self) -> list[str]:
        """The numbers of the exercises to be solved in class."""
        return EXERCISE.findall(self.in_class)


def units(text: str = "") -> list[Unit]:
    """Return the units of a page, by default of COURSE.md."""
    found, notebook = [], ""
    for line in (text or COURSE_PAGE.read_text("utf-8")).splitlines():
        if match := TITLE.match(line):
            found.append(Unit(plain_heading(match[1])))
            notebook = named[1] if (named := LINK.search(line)) else ""
        elif found and (match := TIME.match(line)):
            found[-1].in_class = match[1]
        elif found and TALK.match(line):
            found[-1].talk.append(line)
        elif found and (match := ROW.match(line)):
            late, heading, _, rest = match.groups()
            notebook = named[1] if (named := LINK.search(heading)) else notebook
            found[-1].rows.append(Row(notebook, plain_heading(heading), rest, bool(late)))
    return found


def plain_heading(heading: str) -> str:
    """Return a heading without Markdown markup and links."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip("*# ")


@cache
def read(number: str):
    """Read a notebook by its number."""
    return nbformat.read(notebook_paths([f"{number}_"])[0], as_version=4)


def starts(cells: list, heading: str) -> int:
    """Return where a section starts; ValueError unless one text cell has its heading."""
    fenced = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
    wanted = re.compile(rf"^#{{1,3}} {re.escape(heading)}\s*$", re.MULTILINE)
    texts = ((index, cell.source) for index, cell in enumerate(cells) if cell.cell_type == "markdown")
    found = [index for index, text in texts if wanted.search(fenced.sub("", text))]
    if len(found) != 1:
        raise ValueError(f"{heading!r} is the heading of {len(found)} sections: copy one that occurs once")
    return found[0]


def sections(unit: Unit) -> list[list]:
    """Return the cells of each row of a unit, up to the next row of its notebook."""
    found = []
    for number in unit.notebooks:
        cells = read(number).cells
        first = [starts(cells, row.heading) for row in unit.rows if row.notebook == number]
        found += [cells[start:end] for start, end in zip(first, [*first[1:], len(cells)], strict=True)]
    return found


def rehearse(unit: Unit) -> list[tuple[Row, float]]:
    """Return the rows of a unit, each with the minutes that it takes."""
    return [(row, reading_time(cells)) for row, cells in zip(unit.rows, sections(unit), strict=True)]


def stated_minutes(unit: Unit) -> dict[str, int]:
    """Return the minutes that the notebooks of a unit state for their numbered exercises."""
    stated = {}
    for notebook in unit.notebooks:
        for heading, there in exercise_minutes(read(notebook).cells).items():
            stated |= dict.fromkeys(EXERCISE.findall(heading), there)
    return stated


def to_spare(unit: Unit) -> int:
    """Return the minutes of a unit that are left without the rows marked ◇."""
    stated = stated_minutes(unit)
    rows = sum(minutes for row, minutes in rehearse(unit) if not row.if_there_is_time)
    around = FIRST if unit.notebooks[0] == "00" else OTHERS
    return UNIT - round(rows + around + sum(stated[number] for number in unit.exercises))


def time_line(unit: Unit) -> str:
    """Return the line under the heading of a unit that divides its 90 minutes, and the minutes of its ◇ rows."""
    taken, stated = Counter(), stated_minutes(unit)
    for row, spent in rehearse(unit):
        taken[row.if_there_is_time] += spent
    notebook = f"{round(taken[False])} min the notebook{'s' * (len(unit.notebooks) > 1)}"
    more = f", ◇ {round(taken[True])} more" * (True in taken)
    done = sum(stated[number] for number in unit.exercises)
    return f"*{notebook}{more} · {done} {unit.in_class} in pairs · {to_spare(unit)} to spare*"


def update_course(text: str) -> str:
    """Return the course with the minutes of its units updated from the notebooks."""
    found, lines, unit, rows = iter(units(text)), [], None, iter(())
    for line in text.splitlines():
        if TITLE.match(line):
            unit = next(found)
            rows = iter(rehearse(unit))
        elif unit and TIME.match(line):
            line = time_line(unit)
        elif unit and ROW.match(line):
            line = re.sub(r"(?<=\*\* \()\d+(?=\): )", str(max(1, round(next(rows)[1]))), line, count=1)
        lines.append(line)
    return "\n".join(lines) + "\n"


def update_syllabus(text: str) -> str:
    """Return the syllabus with each unit's exercises, minutes at home and points, and the hours of all but ◇ units."""
    course, lines, sums = units(), [], Counter()
    for line in text.splitlines():
        if match := WEEK.match(line):
            late, number, by_hand, reading = match.groups()
            unit = course[int(number) - 1]
            stated = stated_minutes(unit)
            listed = ", ".join(f"*{name}*" if name in unit.exercises else name for name in stated)
            points = sum(map(points_of, stated))
            work = sum(minutes for name, minutes in stated.items() if name not in unit.exercises)
            line = f"| {late or ''}{number} | {by_hand} | {reading} | {listed} | {work} | {points} |"
            if not late:
                sums += Counter({"readings": int(reading), "exercises at home": work, "points": points})
        elif (match := LOAD.match(line)) and match[1] in sums:
            line = f"| {match[1]} | {round(sums[match[1]] / 30) / 2:g} |"
        elif match:
            line = f"| {match[1]} | {sum(map(float, HOURS.findall(chr(10).join(lines)))):g} |"
        lines.append(re.sub(r"^\d+(?= points in all)", str(sums["points"]), line))
    return "\n".join(lines) + "\n"


def update_grading(text: str) -> str:
    """Return the page on grading with the points that it names, the cheapest way to full marks, and marking hours."""
    share = round(100 * cheapest_share())  # which loads all exercises, and so fills PART_NAMES
    text = re.sub(
        rf"({EXERCISE.pattern}) is worth \d+", lambda named: f"{named[1]} is worth {points_of(named[1])}", text
    )
    text = re.sub(r"(?<=together )\d+(?= points)", str(sum(map(points_of, PART_NAMES))), text)
    text = re.sub(r"(?<=way there takes )\d+(?= %)", str(share), text)
    return MARKING.sub(lambda row: " | ".join([row[1], *marking_hours(int(row[2]), row[3])]) + " |", text)


def update_seminar(text: str) -> str:
    """Return the page on the seminar with the minute at which each section of session 2 begins.

    A section takes the time that it takes to read and an equal share of what is left, for votes and talk.
    """
    cells = [(read(number).cells, heading) for number, heading in SEMINAR.findall(text)]
    times = [reading_time(found[starts(found, heading) : ends(found, heading)]) for found, heading in cells]
    share = (UNIT - SPARE - sum(times)) / len(times)
    begun = iter(accumulate((time + share for time in times), initial=SPARE))
    text = SEMINAR.sub(lambda row: f"| {next(begun):.0f} ", text)
    task = re.search(r"^\| (\d+) \| \[08\]", text, re.MULTILINE)[1]
    return re.sub(r"(?<=Or from minute )\d+", task, text)


def ends(cells: list, heading: str) -> int:
    """Return where a section ends: before the next heading of its level or above."""
    first = starts(cells, heading)
    level = re.search(rf"^(#+) {re.escape(heading)}", cells[first].source, re.MULTILINE)[1]
    above = re.compile(rf"^#{{1,{len(level)}}} ", re.MULTILINE)
    later = (number for number in range(first + 1, len(cells)) if cells[number].cell_type == "markdown")
    return next((number for number in later if above.search(cells[number].source)), len(cells))


def marking_hours(minutes: int, each: str) -> list[str]:
    """Return the hours that marking takes for 20, 40 and 60 students."""
    groups = {students: students / (2 if students <= PAIRS else 3) for students in (20, 40, 60)}
    times = {"answer": lambda students: 5 * students, "student": int, "group": groups.get, "week": lambda _: WEEKS}
    return [f"{minutes * times[each](students) / 60:.0f}" for students in groups]


def cheapest_share() -> float:
    """Return the least share of a term's minutes with which the parts of BERT and 60 % of the points are reached."""
    late = [match[1] for match in map(WEEK.match, SYLLABUS_PAGE.read_text("utf-8").splitlines()) if match]
    course = [unit for unit, is_late in zip(units(), late, strict=True) if not is_late]
    stated = {name: minutes for unit in course for name, minutes in stated_minutes(unit).items()}
    needed = math.ceil(0.6 * sum(map(points_of, stated)) - 1e-9)
    least = {sum(map(points_of, PART_NAMES)): sum(stated[name] for name in PART_NAMES)}
    for name in stated.keys() - PART_NAMES:
        for points, time in [*least.items()]:
            more = min(needed, points + points_of(name))
            least[more] = min(least.get(more, math.inf), time + stated[name])
    return least[needed] / sum(stated.values())


def points_of(number: str) -> int:
    """Return the points of an exercise."""
    find_check(number)  # loads them
    return POINTS[number]


def notes(number: str) -> dict[str, str]:
    """Return the lecturer's notes to a notebook, by the id of the cell with each section's first slide.

    They are the rows of COURSE.md, and the first begins with the question of the unit.
    """
    found = {}
    for unit in units():
        for (row, taken), cells in zip(rehearse(unit), sections(unit), strict=True):
            kinds = {cell.id: cell.metadata.get("slideshow", {}).get("slide_type") for cell in cells}
            slides = [name for name, kind in kinds.items() if kind in STARTS_A_SLIDE]
            if row.notebook == number and slides:
                begun = f"{'◇ ' * row.if_there_is_time}{max(1, round(taken))} min"
                found[slides[0]] = " · ".join([begun, *(unit.talk if row is unit.rows[0] else []), row.text])
    return found


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
        text = re.sub(rf"(?m)^(\| .*/{re.escape(name)}\).*\| )\d+ / \d+ \|$", rf"\g<1>{read} / {whole} |", text)
    hours = [
        [f"{round(sum(row[column] for row in part) / 30) / 2:g}" for column in (0, 1)]
        for part in ([*numbered.values()], [*numbered.values()][:10])
    ]
    exercises = len(set().union(*(numbers for *_, numbers in numbered.values())))
    sentences = (
        f"All {len(numbered)} notebooks take {hours[0][0]} hours to read, {hours[0][1]} with their {exercises} "
        f"exercises. The core, 00 to 09, takes {hours[1][0]} hours to read, {hours[1][1]} with exercises."
    )
    text, times = re.subn(f"{START}.*?{END}", f"{START}\n{sentences}\n{END}", text, flags=re.DOTALL)
    if times != 1:
        raise ValueError(f"README needs {START} and {END} once, around the sentences on hours")
    return text


UPDATES = {
    COURSE_PAGE: update_course,
    SYLLABUS_PAGE: update_syllabus,
    GRADING_PAGE: update_grading,
    SEMINAR_PAGE: update_seminar,
}


def main() -> None:
    """Update README and the pages for teachers, and print the minutes that each unit leaves."""
    README.write_text(update_readme(README.read_text("utf-8"), main_notebooks()), "utf-8")
    for page, update in UPDATES.items():
        page.write_text(update(page.read_text("utf-8")), "utf-8")
    for number, unit in enumerate(units(), 1):
        spare = to_spare(unit)
        print(f"Unit {number}: {spare} minutes to spare{'' if spare >= SPARE else f', LESS THAN {SPARE}'}")


if __name__ == "__main__":
    main()
