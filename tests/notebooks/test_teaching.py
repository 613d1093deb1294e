"""The teaching pages: what they name exists, what is computed is up to date, and units fit their time."""

import functools
import re

import nbformat
import pytest

from exercises.framework import PART_NAMES
from publish import slides, teaching
from publish.notebooks import minutes
from publish.variants import EXAM, TEXTS
from tests.helpers import ROOT, STARTS, kind_of

DOCS = ("TEACHING", "COURSE", "SYLLABUS", "GRADING")
TEXT, COURSE, SYLLABUS, GRADING = ((ROOT / "docs" / f"{name}.md").read_text("utf-8") for name in DOCS)
README = (ROOT / "README.md").read_text("utf-8")
UNITS = teaching.units()
NOTEBOOKS = {path.name[:2]: path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}
NUMBERS = [
    number
    for name in NOTEBOOKS
    for cell in teaching.read(name).cells
    if "exercise" in cell.metadata.get("tags", [])
    for number in re.findall(r'check\("([\d.]+)"', cell.source)
]
NAMED = re.compile(r"\b(\d{1,2}\.\d)\b")
every_unit = pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.title)


def part(unit) -> str:
    """Return the text of a unit below its heading."""
    number = UNITS.index(unit) + 1
    return re.split(rf"\n### Unit {number} · .*\n", COURSE)[1].split("\n##")[0]


@functools.cache
def all_text(number: str) -> str:
    """Return the cells of a notebook and their printed output."""
    cells = teaching.read(number).cells
    printed = [output.get("text", "") for cell in cells for output in cell.get("outputs", [])]
    return "\n".join([cell.source for cell in cells] + printed)


@pytest.mark.parametrize("page", teaching.UPDATES, ids=lambda page: page.name)
def test_computed_numbers_are_up_to_date(page):
    text, update = page.read_text("utf-8"), teaching.UPDATES[page]
    assert update(text) == text, "run make rehearse"
    stale = re.sub(r"\d+(?= min the| to spare| points in all| points. The| % of the work)", "0", text)
    stale = re.sub(r"(?<=is worth )\d+|(?<=Or from minute )\d+", "0", stale)
    stale = re.sub(r"\d+(?= \| \d+ \| \d+ \|$)", "0", stale, flags=re.MULTILINE)
    assert stale != text == update(stale)


WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
TIMES = re.compile(
    rf"\b(?:[\d.]+½?|{'|'.join(WORDS[1:])}|twelve|twenty|half)(?: a| an| more)? "
    r"(?:minutes?|min|points|hours?|weeks?|talks?|defences|students|groups)\b",
    re.IGNORECASE,
)
# What the pages say of times, points and people, a line each, with the numbers that follow from others.
FACTS = """
{weeks} weeks, {unit} minutes a week
{talk_weeks} weeks of talks
{groups} groups in {unit} minutes
{question} minutes for an open question
ten minutes for last week's exercises, in which one student shows a wrong turn and its hint (in unit 1, {first} on
four students a week
hears six defences a week, {parallel} minutes, while
three minutes each: {defences} in {defence_weeks} weeks
so {triples} talks fit in {talk_weeks} weeks
three minutes about code
a talk of ten minutes
of {exam_minutes} minutes, with a calculator
about seven minutes of work
the exam's {exam_points} points, {passed} pass
each | 20 students
out of 4 points, three minutes each
| {project} points |
of {each} points, {exam_minutes} minutes
three minutes with one student
25 to 30 hours
2 × {unit} minutes
of {weeks} weeks, in
an hour and a half for the evening
about {session} hours to read
with a clock | 1½ hours
with the pre-test | 10 min
takes ten minutes and is not graded
five minutes on paper
five more minutes on paper
({torch} on pytorch, {mathematics} on mathematics)
43 slides for 46 minutes of class
3.2 gets 20 minutes in pairs, not {hard}, which leaves
in pairs, 20 minutes
"""
# What nobody can compute: how long a lecturer prepares, a machine takes, or a class plays.
DECIDED = """
takes half a minute or more
trains for a minute or more
(step 1) | 30 min
your plan | 45 min
15 minutes before
to its end | 5 min
five minutes of play
each for two minutes
two weeks before
three to five weeks
the answer to “three hours
"""


def facts() -> list[str]:
    """Return the lines of `FACTS` with their numbers."""
    series, weeks = teaching.main_notebooks(), teaching.WEEKS + 3
    rules = re.search(
        r"questions of (\d) points, (\d+) minutes, without a machine; (\d+) points pass", TEXTS["rules"]["exam"]
    )
    each, exam_minutes, passed = map(int, rules.groups())
    tests = [part.split("\n## ")[0] for part in TEXT.split("### A pre-test")[1:]]
    tests = [len(re.findall(r"^\| \d \|", part, re.MULTILINE)) for part in tests]
    reading = sum(series[NOTEBOOKS[f"0{number}"]][0] for number in range(4, 9))
    assert len(EXAM) * each == exam_minutes == 2 * passed
    assert series["evening.ipynb"][1] == 90
    parallel = 60 // (teaching.WEEKS - 2) * 3  # minutes of the assistant, while the class works in pairs or can wait
    for unit in UNITS[2:]:
        assert parallel <= teaching.to_spare(unit) + sum(map(teaching.stated_minutes(unit).get, unit.exercises))
    weights = re.findall(r"^\| (in the room)?.*? \| \[(\d+) %\]", SYLLABUS, re.MULTILINE)
    assert sum(int(weight) for _, weight in weights) == 100
    assert sum(int(weight) for in_room, weight in weights if in_room) == 40
    numbers = {
        "weeks": weeks,
        "unit": teaching.UNIT,
        "talk_weeks": WORDS[3],
        "groups": WORDS[teaching.PAIRS // 2 // 3],
        "question": WORDS[teaching.OTHERS - 10],
        "first": WORDS[teaching.FIRST],
        "defences": 4 * (teaching.WEEKS - 2),
        "defence_weeks": WORDS[teaching.WEEKS - 2],
        "triples": 60 // 3,
        "parallel": parallel,
        "exam_minutes": exam_minutes,
        "exam_points": len(EXAM) * each,
        "passed": passed,
        "project": sum(map(int, re.findall(r"^\| \*\*.*\*\* \((\d)\)", GRADING, re.MULTILINE))),
        "each": each,
        "session": WORDS[round(reading / 60)],
        "torch": WORDS[tests[0]],
        "mathematics": WORDS[tests[1]],
        "hard": next(unit for unit in map(teaching.stated_minutes, UNITS) if "3.2" in unit)["3.2"],
    }
    return FACTS.format(**numbers).strip().splitlines()


def test_numbers_of_times_points_and_people_are_computed_or_decided():
    known, unexplained = [*facts(), *DECIDED.strip().splitlines()], []
    unsaid = {*known}
    for page, update in teaching.UPDATES.items():
        text = " ".join(page.read_text("utf-8").lower().split())
        found = {fact: [match.span() for match in re.finditer(re.escape(fact), text)] for fact in known}
        unsaid -= {fact for fact, spans in found.items() if spans}
        spans = [span for each in found.values() for span in each]
        for number in TIMES.finditer(text):
            if not any(start <= number.start() < end for start, end in spans):
                unexplained.append((page, text[number.start() - 20 : number.end()]))
        stale = re.sub(TIMES, lambda number: re.sub(r"\d+", "987", number[0]), page.read_text("utf-8"))
        written = " ".join(update(stale).lower().split())
        unexplained = [row for row in unexplained if row[0] != page or row[1] not in written or "987" not in stale]
    assert unexplained == []
    assert unsaid == set(), "no page says so any more"


def test_teaching_pages_are_short():
    """Count as `wc -w` does, tables included: nobody reads longer pages."""
    assert len(f"{TEXT} {COURSE} {SYLLABUS} {GRADING}".split()) <= 9000


def test_hours_and_counts_in_readme_are_up_to_date():
    assert re.findall(r"^\| \[(\d\d) ", README, re.MULTILINE) == sorted(NOTEBOOKS), "the order is that of the numbers"
    assert teaching.update_readme(README, teaching.main_notebooks()) == README, "run make rehearse"


def test_the_numbered_series_is_what_readme_counts():
    series = teaching.main_notebooks()
    assert list(series) == [*NOTEBOOKS.values(), "evening.ipynb"]
    assert {name: row[:2] for name, row in series.items()} == {
        name: minutes(nbformat.read(ROOT / "notebooks" / name, as_version=4)) for name in series
    }
    numbered = [numbers for name, (*_, numbers) in series.items() if name in NOTEBOOKS.values()]
    assert sorted(number for numbers in numbered for number in numbers) == sorted(NUMBERS)


@every_unit
def test_units_fit_their_time(unit):
    assert teaching.to_spare(unit) >= teaching.SPARE


def test_units_are_in_order_and_cover_the_series():
    assert [name for unit in UNITS for name in unit.notebooks] == list(NOTEBOOKS)
    assert re.findall(r"^### Unit (\d+) ", COURSE, re.MULTILINE) == [str(number + 1) for number in range(len(UNITS))]
    covered = [cell.id for unit in UNITS for span in teaching.sections(unit) for cell in span]
    assert covered == [cell.id for number in NOTEBOOKS for cell in teaching.read(number).cells]


@every_unit
def test_what_units_name_exists(unit):
    for name in NAMED.findall(part(unit)):
        assert name in NUMBERS or any(name in all_text(number) for number in unit.notebooks), name  # or an accuracy
    for line in part(unit).splitlines():
        if line.startswith(("**Late?**", "**Start early.**")):
            for quoted in re.findall("“([^”]*)”", line):
                places = "\n".join(map(all_text, unit.notebooks))
                assert re.search(rf"^(#+|# @title) {re.escape(quoted)}$", places, re.MULTILINE), quoted


def test_points_follow_the_stated_minutes():
    stated = {number: minutes for unit in UNITS for number, minutes in teaching.stated_minutes(unit).items()}
    assert sorted(stated) == sorted(NUMBERS)
    wanted = {number: max(1, round(minutes / 7)) for number, minutes in stated.items()}
    assert {number: teaching.points_of(number) for number in stated} == wanted
    assert set(NAMED.findall(SYLLABUS.split("**Full marks")[1].split("Late work")[0])) == set(PART_NAMES)


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_plan_rows_start_the_notes_of_slides(number):
    notebook = nbformat.read(ROOT / "notebooks" / NOTEBOOKS[number], as_version=4)
    slides.add_notes(notebook, number)
    begun = [index for index, cell in enumerate(notebook.cells) if re.match(r"(◇ )?\d+ min · ", cell.source)]
    (unit,) = (unit for unit in UNITS if number in unit.notebooks)
    rows = [row for row in unit.rows if row.notebook == number]
    assert all(kind_of(notebook.cells[index - 1]) in STARTS for index in begun)
    assert len(begun) == len(rows)
    for index, row in zip(begun, rows, strict=True):
        assert notebook.cells[index].source.endswith(f" · {row.text}")
        assert ("**Ask.**" in notebook.cells[index].source) == (row is unit.rows[0] and bool(unit.talk))
