"""The teaching pages: what they name exists, what is computed is up to date, and units fit their time."""

import functools
import re

import nbformat
import pytest

from exercises.framework import PART_NAMES
from publish import slides, teaching
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
    stale = re.sub(r"\d+(?= min the| more ·| to spare| points in all| points. The| % of the work)", "0", text)
    stale = re.sub(r"(?<=is worth )\d+|(?<=Or from minute )\d+|(?<=answer \| )\d+", "0", stale)
    assert stale != text == update(stale)


def test_weights_of_the_course_and_points_of_the_exam_add_up():
    """40 of 100 per cent are earned in the room."""
    rule = r"questions of (\d) points, (\d+) minutes, with a calculator and no other machine; (\d+) points pass"
    each, minutes, passed = map(int, re.search(rule, TEXTS["rules"]["exam"]).groups())
    assert len(EXAM) * each == minutes == 2 * passed
    for text in TEXTS["questions"].values():
        assert sum(map(int, re.findall(r"\((\d)(?:\)|, at most)", text))) == each
    weights = re.findall(r"^\| (in the room)?.*? \| \[(\d+) %\]", SYLLABUS, re.MULTILINE)
    assert sum(int(weight) for _, weight in weights) == 100
    assert sum(int(weight) for in_room, weight in weights if in_room) == 40
    table = GRADING.split("**Your hours,**")[1].split("\n## ")[0]
    *hours, in_all = (map(int, row) for row in re.findall(r"(\d+) \| (\d+) \| (\d+) \|$", table, re.MULTILINE))
    assert list(map(sum, zip(*hours, strict=True))) == list(in_all)


def test_teaching_pages_are_short():
    """Count as `wc -w` does, tables included: nobody reads longer pages."""
    assert len(f"{TEXT} {COURSE} {SYLLABUS} {GRADING}".split()) <= 9000


def test_hours_and_counts_in_readme_are_up_to_date():
    assert re.findall(r"^\| \[(\d\d) ", README, re.MULTILINE) == sorted(NOTEBOOKS), "the order is that of the numbers"
    stale = re.sub(r"\d+ / \d+ \|$", "0 / 0 |", README, flags=re.MULTILINE)
    for text in (README, stale):
        assert teaching.update_readme(text, teaching.main_notebooks()) == README, "run make rehearse"


def test_the_numbered_series_is_what_readme_counts():
    series = teaching.main_notebooks()
    assert list(series) == [*NOTEBOOKS.values(), "evening.ipynb"]
    numbered = [numbers for name, (*_, numbers) in series.items() if name in NOTEBOOKS.values()]
    assert sorted(number for numbers in numbered for number in numbers) == sorted(NUMBERS)


@every_unit
def test_units_fit_their_time(unit):
    assert teaching.to_spare(unit) >= teaching.SPARE
    for row, cells in zip(unit.rows, teaching.sections(unit), strict=True):
        if row.if_there_is_time:  # then its exercises are homework that needs the section, which the row says
            asked = [number for cell in cells for number in re.findall(r"^### Exercise (\d+\.\d)", cell.source)]
            assert NAMED.findall(row.text) == asked
            assert set(asked).isdisjoint(unit.exercises)


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
