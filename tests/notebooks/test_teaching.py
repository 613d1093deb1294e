"""TEACHING.md and COURSE.md: references exist, tables are up to date, and plans fit their time."""

import re

import pytest

import exercises
from exercises import framework
from publish import syllabus, teaching
from publish.notebooks import reading_time
from tests.helpers import ROOT

PAGES = [teaching.SEMINAR_PAGE, teaching.COURSE_PAGE]
TEXT, COURSE = (page.read_text("utf-8") for page in PAGES)
README = (ROOT / "README.md").read_text("utf-8")
GRADING = (ROOT / "docs" / "GRADING.md").read_text("utf-8")
SLOTS, UNITS = teaching.plans(TEXT), teaching.plans(COURSE)
PLANS = SLOTS + UNITS
NOTEBOOKS = {path.name[:2]: path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}
NUMBERS = [
    number
    for name in NOTEBOOKS
    for cell in teaching.read(name).cells
    if "exercise" in cell.metadata.get("tags", [])
    for number in re.findall(r'check\("([\d.]+)"', cell.source)
]
NAMED = re.compile(r"\b(\d{1,2}\.\d)\b")
every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: teaching.plain_heading(plan.title))


def part(plan) -> str:
    """Return the text of a plan below its heading."""
    heading = plan.title if plan.is_unit else f"{plan.start}–{plan.end} · {plan.title}"
    page = COURSE if plan.is_unit else TEXT
    return re.split(f"\n### (?:or )?{re.escape(heading)}\n", page)[1].split("\n##")[0]


def notebooks_of(plan) -> list[str]:
    return list(dict.fromkeys(row.notebook for row in plan.rows if row.notebook))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_plans_are_up_to_date(page):
    text = page.read_text("utf-8")
    assert teaching.update_plans(text) == text, "run make rehearse"


def test_hours_and_counts_in_readme_are_up_to_date():
    assert re.findall(r"^\| \[(\d\d) ", README, re.MULTILINE) == sorted(NOTEBOOKS), "the order is that of the numbers"
    assert teaching.update_readme(README, teaching.main_notebooks()) == README, "run make rehearse"


ROWS = {f"{number:02}_a.ipynb": (60, 90, {f"{number}.1", f"{number}.2"}) for number in range(12)}
TABLE = "\n".join(f"| [{name[:2]} A](notebooks/{name}) | do it | 1 / 2 |" for name in ROWS)
PAGE = f"before\n{teaching.START}\nAll 3 notebooks\n{teaching.END}\n\n{TABLE}\n"


def test_readme_is_generated_between_its_markers():
    page = teaching.update_readme(PAGE, ROWS)
    assert page.startswith(
        f"before\n{teaching.START}\nAll 12 notebooks take 12 hours to read, 18 with their 24 exercises. "
    )
    assert "The core, 00 to 09, takes 10 hours to read, 15 with exercises.\n" in page
    assert page.count("| do it | 60 / 90 |") == 12
    assert teaching.update_readme(page, ROWS) == page


@pytest.mark.parametrize(
    ("text", "series"),
    [
        (PAGE, ROWS | {"12_a.ipynb": (1, 2, set())}),  # a notebook more than rows
        (PAGE, dict(list(ROWS.items())[1:])),
        (PAGE.replace("| 1 / 2 |", "| - |", 1), ROWS),
        (PAGE + TABLE, ROWS),
        (PAGE.replace(teaching.START, ""), ROWS),
        (PAGE + teaching.END, ROWS),
        (PAGE + teaching.START, ROWS),
    ],
)
def test_readme_that_does_not_fit_the_series_is_refused(text, series):
    with pytest.raises(ValueError, match="README needs"):
        teaching.update_readme(text, series)


@every_plan
def test_plan_fits_its_time(plan):
    assert teaching.fits(plan)


SMALL = """### 5–{} · [07](../notebooks/07_attention_views.ipynb)
| heading | cells | min | do |
|---|---|---:|---|
| Two links to look for | In [9] | 9 | hover (1 min) |
| *Wait* | – | 1 | for the last (1 min) |
| ◇ *Talk* | – | 0 | about it (30 min) |
"""


def test_rehearse_and_update_a_plan():
    (plan,) = teaching.plans(SMALL.format(14))
    (shown, taken), (wait, waited), (talk, _) = teaching.rehearse(plan)
    assert shown.heading == "Two links to look for"
    assert (shown.is_section, shown.if_there_is_time) == (True, False)
    assert (wait.is_section, waited, talk.heading, talk.if_there_is_time) == (False, 1, "Talk", True)
    assert taken == pytest.approx(1 + reading_time(teaching.seminar_cells(shown)))
    total = teaching.total_minutes(plan)
    assert total == round(taken + 1)
    for spare in (4, 5):
        assert teaching.fits(teaching.plans(SMALL.format(5 + total + spare))[0]) == (spare == 5)
    fresh = teaching.update_plans(SMALL.format(14))
    assert f"| Two links to look for | In [3]–[4] | {round(taken)} | hover (1 min) |" in fresh
    assert "| ◇ *Talk* | – | 30 | about it (30 min) |" in fresh
    with pytest.raises(ValueError, match="'Whose' is the heading of 0 sections"):
        teaching.section(teaching.read("00").cells, "Whose")


@pytest.mark.parametrize("plan", SLOTS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_slots_cover_the_tagged_cells(plan):
    shown = [cell.id for row in plan.rows for cell in teaching.seminar_cells(row)]
    (number,) = notebooks_of(plan) or [None]
    wanted = teaching.with_seminar_tag(teaching.read(number).cells) if any(row.is_section for row in plan.rows) else []
    assert shown == [cell.id for cell in wanted]


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_units_cover_their_notebooks(plan):
    spans = teaching.unit_cells(plan)
    covered = [cell.id for span in spans.values() for cell in span]
    lines = [teaching.read(number).cells for number in notebooks_of(plan)]
    assert covered == [cell.id for line in lines for cell in line]


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_units_assign_all_exercises(plan):
    """Each is assigned once, in class or at home, including those among the proofs."""
    at_home = [line for line in part(plan).splitlines() if line.startswith("- **At home.**")]
    found = sorted(set(plan.exercises + NAMED.findall(" ".join(at_home))))
    assert found == sorted(number for number in NUMBERS if f"{int(number.split('.')[0]):02d}" in notebooks_of(plan))


def test_points_match_the_checks():
    for number in NUMBERS:
        exercises.find_check(number)  # loads the checks
    points = framework.POINTS
    rows = re.findall(r"^\| (\d) \| .* \| ([\d., ]+) \|$", GRADING, re.MULTILINE)
    assert [int(level) for level, _ in rows] == [1, 2, 3] == sorted(set(points.values()))
    for level, names in rows:
        assert {points[name] for name in NAMED.findall(names)} == {int(level)}


def test_the_syllabus_is_up_to_date():
    text = syllabus.PAGE.read_text("utf-8")
    assert syllabus.update_syllabus(text) == text, "run make rehearse"
