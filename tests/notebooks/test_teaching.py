"""TEACHING.md and COURSE.md: references exist, tables are up to date, and plans fit their time."""

import functools
import itertools
import math
import re

import nbformat
import pytest
import torch

import exercises
from exercises import framework
from publish import slides, syllabus, teaching
from publish.notebooks import minutes, reading_time
from tests.helpers import ROOT
from tests.notebooks.on_slides import SHOWN, STARTS, headings, kind_of

PAGES = [teaching.SEMINAR_PAGE, teaching.COURSE_PAGE]
MATHEMATICS = '### A pre-test for "a little mathematics"'
TEXT, COURSE = (page.read_text("utf-8") for page in PAGES)
README = (ROOT / "README.md").read_text("utf-8")
GRADING = (ROOT / "docs" / "GRADING.md").read_text("utf-8")
SLOTS, UNITS = teaching.plans(TEXT), teaching.plans(COURSE)
PLANS = SLOTS + UNITS
NOTEBOOKS = {path.name[:2]: path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}
SEMINAR = [number for number in NOTEBOOKS if teaching.with_seminar_tag(teaching.read(number).cells)]
NUMBERS = [
    number
    for name in NOTEBOOKS
    for cell in teaching.read(name).cells
    if "exercise" in cell.metadata.get("tags", [])
    for number in re.findall(r'check\("([\d.]+)"', cell.source)
]
GOALS = "\n## Goals and the exercises that test them\n"
NAMED = re.compile(r"\b(\d{1,2}\.\d)\b")
every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: teaching.plain_heading(plan.title))


def part(plan) -> str:
    """Return the text of a plan below its heading."""
    heading = plan.title if plan.is_unit else f"{plan.start}–{plan.end} · {plan.title}"
    page = COURSE if plan.is_unit else TEXT
    return re.split(f"\n### (?:or )?{re.escape(heading)}\n", page)[1].split("\n##")[0]


def notebooks_of(plan) -> list[str]:
    return list(dict.fromkeys(row.notebook for row in plan.rows if row.notebook))


@functools.cache
def all_text(number: str) -> str:
    """Return the cells of a notebook and their printed output."""
    cells = teaching.read(number).cells
    printed = [output.get("text", "") for cell in cells for output in cell.get("outputs", [])]
    return "\n".join([cell.source for cell in cells] + printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_plans_are_up_to_date(page):
    text = page.read_text("utf-8")
    assert teaching.update_plans(text) == text, "run make rehearse"


def test_teaching_pages_are_short():
    """Count as `wc -w` does, tables included: nobody reads a longer page."""
    assert len(TEXT.split()) <= 4500
    assert len(COURSE.split()) <= 5100


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


@every_plan
def test_plan_references_exist(plan):
    numbers = notebooks_of(plan)
    for name in NAMED.findall(part(plan)):
        assert name in NUMBERS or any(name in all_text(number) for number in numbers), name  # or an accuracy
    for line in part(plan).splitlines():
        if line.startswith(("- **Late?**", "- **Start early.**")):
            for quoted in re.findall("“([^”]*)”", line):
                places = "\n".join(all_text(number) for number in [*numbers, "08"])
                assert re.search(rf"^(#+|# @title) {re.escape(quoted)}$", places, re.MULTILINE), quoted


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_units_assign_all_exercises(plan):
    """Each is assigned once, in class or at home, including those among the proofs."""
    at_home = [line for line in part(plan).splitlines() if line.startswith("- **At home.**")]
    found = sorted(set(plan.exercises + NAMED.findall(" ".join(at_home))))
    assert found == sorted(number for number in NUMBERS if f"{int(number.split('.')[0]):02d}" in notebooks_of(plan))


def test_goals_are_tested_by_exercises():
    rows = [line.strip("| ").split(" | ") for line in COURSE.split(GOALS)[1].splitlines() if line.startswith("| [")]
    tested = []
    for link, *columns in rows:
        number = teaching.LINK.search(link)[1]
        assert len(columns) == len(goals(number))
        for by in columns:
            exercises_named = NAMED.findall(by)
            assert exercises_named or by.startswith("*")
            assert {int(name.split(".")[0]) for name in exercises_named} <= {int(number)}
            tested += exercises_named
            for quoted in re.findall("“([^”]*)”", by):
                assert f"# {quoted}\n" in all_text(number), quoted
    assert [teaching.LINK.search(link)[1] for link, *_ in rows] == list(NOTEBOOKS)
    assert set(tested) == set(NUMBERS)


def goals(number: str) -> list[str]:
    """Return the learning goals in a notebook's opening."""
    (opening,) = (cell.source for cell in teaching.read(number).cells if "will be able to" in cell.source)
    return [line for line in opening.splitlines() if line.startswith("- ")]


def test_points_match_the_checks():
    for number in NUMBERS:
        exercises.find_check(number)  # loads the checks
    points = framework.POINTS
    rows = re.findall(r"^\| (\d) \| .* \| ([\d., ]+) \|$", GRADING, re.MULTILINE)
    assert [int(level) for level, _ in rows] == [1, 2, 3] == sorted(set(points.values()))
    for level, names in rows:
        assert {points[name] for name in NAMED.findall(names)} == {int(level)}


def test_answers_of_the_pre_test_in_mathematics_are_right():
    w = torch.tensor(3.0, requires_grad=True)
    ((3 * w - 6) ** 2).backward()
    numbers, a, b = torch.tensor([1.0, 1, 3, 3]), torch.tensor([3.0, 4]), torch.tensor([4.0, 3])
    rows, columns = (torch.ones(5, 3) @ torch.ones(3, 2)).shape
    answers = [
        f"{torch.dot(torch.tensor([1, 2, 3]), torch.tensor([4, 0, -1]))}",
        f"{rows} × {columns}",
        f"{math.log(math.exp(2) * math.exp(3)):.0f}",
        f"{torch.zeros(4).softmax(0)[0]}",
        f"{numbers.mean():.0f} and {numbers.var(correction=0):.0f}",
        f"{w.grad:.0f}",
        f"{torch.cosine_similarity(a, b, dim=0):.2f}",
    ]
    table = TEXT.split(MATHEMATICS)[1].split("\n## ")[0]
    assert re.findall(r"^\| \d \| .* \| (.*) \|$", table, re.MULTILINE) == answers


def test_the_syllabus_is_up_to_date():
    text = syllabus.PAGE.read_text("utf-8")
    assert syllabus.update_syllabus(text) == text, "run make rehearse"


@pytest.mark.parametrize("number", SEMINAR)
def test_plan_rows_start_the_notes_of_slides(number):
    rows = [row for slot in teaching.slots() for row in slot.rows]
    own = [row for row in rows if row.notebook == number and row.is_section]
    notebook = nbformat.read(ROOT / "notebooks" / NOTEBOOKS[number], as_version=4)
    slides.keep_seminar_cells(notebook)
    slides.add_notes(notebook, number)
    begun = [cell.source for cell in notebook.cells if re.match(r"(◇ )?\d+ min · ", cell.source)]
    assert len(begun) == len(own) > 0
    for note, row in zip(begun, own, strict=True):
        asks = teaching.has_question(row)
        assert [f" · **{word}** " in note for word in ("Ask", "Expect", "Answer")] == [asks] * 3
        assert note.startswith("◇ " * row.if_there_is_time + f"{row.minutes} min · **Ask** " * asks)
        assert f" · {row.text}" in note


def test_units_are_in_order_and_cover_the_series():
    assert [plan.title.split()[1] for plan in UNITS] == [str(number) for number in range(1, 16)]
    assert list(itertools.chain(*map(notebooks_of, UNITS))) == list(NOTEBOOKS)


@pytest.mark.parametrize("number", SEMINAR)
def test_questions_are_on_a_slide_before_their_answer(number):
    """Either the notebook asks for a prediction, or the plan's question and answer are on two slides."""
    plan, row = next(
        (plan, row) for plan in SLOTS for row in plan.rows if row.notebook == number and teaching.has_question(row)
    )
    notebook = nbformat.read(ROOT / "notebooks" / NOTEBOOKS[number], as_version=4)
    slides.keep_seminar_cells(notebook)
    before = [cell.source for cell in notebook.cells if kind_of(cell) in SHOWN]
    slides.add_questions(notebook, number)
    on_slides = [cell for cell in notebook.cells if kind_of(cell) in SHOWN]
    found = [
        (index, kind)
        for index, cell in enumerate(on_slides)
        for kind in ("Question", "Answer")
        if f"**{kind}.** " in cell.source
    ]
    if teaching.count_votes(teaching.seminar_cells(row)):
        assert found == []
        assert [cell.source for cell in on_slides] == before
        return
    (asked, question), (answered, answer) = found
    assert (question, answer) == ("Question", "Answer")
    assert plan.talk[0].endswith(on_slides[asked].source.split("**Question.** ")[1])
    assert plan.talk[2] == on_slides[answered].source.replace(".**", "**")
    assert {kind_of(on_slides[index]) for index in (asked, answered)} <= STARTS
    if row.text.startswith("**ask**"):
        assert headings(on_slides[asked]) == [f"## {row.heading}"]
        assert kind_of(on_slides[asked + 1]) in STARTS  # shown at the next key press
        assert answered > asked + 1
    else:
        assert answered == asked + 1
    text = " ".join(cell.source for cell in on_slides)
    assert all(line in text for source in before for line in source.splitlines())
