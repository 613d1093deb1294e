"""TEACHING.md and COURSE.md: references exist, tables are up to date, and plans fit their time."""

import functools
import itertools
import math
import re

import nbformat
import pytest
import torch
from torch import nn

import exercises
from publish import slides, syllabus, teaching
from tests.helpers import ROOT
from tests.notebooks.on_slides import SHOWN, STARTS, headings, kind_of
from utils.support.checkpoint import load_tokenizer

PAGES = [teaching.SEMINAR_PAGE, teaching.COURSE_PAGE]
MATHEMATICS = '### A pre-test for "a little mathematics"'
TEXT, COURSE = (page.read_text("utf-8") for page in PAGES)
GRADING = (ROOT / "docs" / "GRADING.md").read_text("utf-8")
SLOTS, UNITS = teaching.plans(TEXT), teaching.plans(COURSE)
PLANS = SLOTS + UNITS
NOTEBOOKS = {path.name[:2]: path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}
SEMINAR = [number for number, name in NOTEBOOKS.items() if slides.has_seminar(ROOT / "notebooks" / name)]
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
    assert len(COURSE.split()) <= 5000


@every_plan
def test_plan_fits_its_time(plan):
    assert teaching.fits(plan)


SMALL = """### 5–14 · [00](../notebooks/00_overview.ipynb)
| heading | cells | min | do |
|---|---|---:|---|
| Whose answering machine? | In [9] | 9 | hover (1 min) |
| *Wait* | – | 1 | for the last (1 min) |
| ◇ *Talk* | – | 0 | about it (30 min) |
"""


def test_rehearse_and_update_a_plan():
    (plan,) = teaching.plans(SMALL)
    (shown, minutes), (wait, waited), (talk, _) = teaching.rehearse(plan)
    assert shown.heading == "Whose answering machine?"
    assert (shown.is_section, shown.if_there_is_time) == (True, False)
    assert (wait.is_section, waited, talk.heading, talk.if_there_is_time) == (False, 1, "Talk", True)
    words = teaching.words(teaching.seminar_cells(shown))
    a_view = 2  # an interactive view takes longer than the minute to hover
    assert minutes == pytest.approx(words / 130 + 0.25 + a_view)
    assert teaching.total_minutes(plan) == round(minutes + 1) == 6
    assert not teaching.fits(plan)  # 3 of 9 minutes are left
    assert teaching.fits(teaching.plans(SMALL.replace("5–14", "5–16"))[0])
    fresh = teaching.update_plans(SMALL)
    assert "| Whose answering machine? | In [4] | 5 | hover (1 min) |" in fresh
    assert "| ◇ *Talk* | – | 30 | about it (30 min) |" in fresh
    with pytest.raises(ValueError, match="'Whose' is the heading of 0 sections"):
        teaching.section(teaching.read("00").cells, "Whose")


def test_update_plans_rewrites_the_line_of_a_unit():
    line = "*0 min last · 0 the notebook · 0 exercise 2.1 in pairs · 0 else*"
    text = re.sub(r"^\*\d+ min .*\*$", line, COURSE, flags=re.M)
    unit = teaching.plans(teaching.update_plans(text))[1]
    assert (unit.before, unit.in_class) == ("last", "exercise 2.1")
    read = round(teaching.reading_time(teaching.main_line(teaching.read("02"))))
    line = f"*10 min last · {read} the notebook · 5 exercise 2.1 in pairs · 8 an open question · {67 - read} to spare*"
    assert line in part_of(teaching.update_plans(text), "Unit 2")


def part_of(text: str, title: str) -> str:
    """Return the section of a page whose heading starts with `title`."""
    return text.split(f"\n### {title} ")[1].split("\n### ")[0]


def test_two_sessions_and_fifteen_units():
    bounds = [(plan.start, plan.end) for plan in SLOTS]
    assert bounds.count((68, 90)) == 2  # 08, or 09
    bounds.remove((68, 90))
    sessions = [[], []]
    for bound in bounds:
        sessions[1 if sessions[0] and sessions[0][-1][1] == 90 else 0].append(bound)
    for session in sessions:
        ends = [0, *(end for _, end in session)]
        assert [start for start, _ in session] == ends[:-1]
        assert ends[-1] == 90
    assert [plan.title.split()[1] for plan in UNITS] == [str(number) for number in range(1, 16)]
    assert list(itertools.chain(*map(notebooks_of, UNITS))) == list(NOTEBOOKS)


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
    lines = [teaching.main_line(teaching.read(number)) for number in notebooks_of(plan)]
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


@every_plan
def test_numbers_in_answers_are_in_the_notebooks(plan):
    """Each number in the answer to a plan's question is in the text of its notebooks."""
    for line in part(plan).splitlines():
        if line.startswith(("- **Answer.**", "- **The answer.**", "- **Votes and exercises.**")):
            line = re.sub(r"\b\d\.\d: [^.]*", "", line)  # answers to exercises are checked below
            cells = [cell for name in notebooks_of(plan) for cell in teaching.main_line(teaching.read(name))]
            there = "\n".join(cell.source.replace("**", "") for cell in cells if cell.cell_type == "markdown")
            for number in re.findall(r"\([\d., ]+\)|\d[\d,.]*\d|\d", line):
                assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", there), f"{number} in {line}"


@pytest.mark.parametrize(
    ("number", "answer", "text"),
    [
        ("0.2", ([0, 1, 2, 3, 4, 5], [2, 3, 4, 5], [0, 1, 2]), "all six positions; 2 to 5; all three."),
        ("2.1", (4, 9, 384), "(4, 9, 384)."),
        ("3.1", ((2, 7, 5), (2, 7, 32)), "(2, 7, 5) and (2, 7, 32)."),
        ("7.2", ((3, 1), (0, 1)), "several heads count; 3-1 links “it” to “violin”, and 0-1 “played”."),
        ("8.6", 4900, "about 4,900 sentences."),
    ],
)
def test_answers_to_exercises_are_right(number, answer, text, capsys):
    assert f"{number}: {text}" in TEXT
    exercises.check(number, answer)
    assert "correct" in capsys.readouterr().out


def test_exercises_of_slots_have_answers():
    for plan in SLOTS:
        for row in plan.rows:
            for number in NAMED.findall(row.text.split("homework")[-1]):
                assert f"{number}: " in part(plan), number


def test_answer_for_the_long_word_is_right():
    tokens = load_tokenizer().tokenize("antidisestablishmentarianism")
    assert f"**Answer.** {len(tokens)}. The pieces" in TEXT


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_units_assign_all_exercises(plan):
    """Each is assigned once, in class or at home, including those among the proofs."""
    at_home = [line for line in part(plan).splitlines() if line.startswith("- **At home.**")]
    found = sorted(set(plan.exercises + NAMED.findall(" ".join(at_home))))
    assert found == sorted(number for number in NUMBERS if f"{int(number.split('.')[0]):02d}" in notebooks_of(plan))


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_open_questions_have_answers_in_the_solutions(plan):
    paths = [ROOT / "notebooks" / "solutions" / f"{number}_solutions.ipynb" for number in notebooks_of(plan)]
    cells = [cell.source for path in paths for cell in nbformat.read(path, as_version=4).cells]
    assert sum(source.count(" **A good answer:** ") for source in cells) == 2


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
    points = exercises.POINTS
    rows = re.findall(r"^\| (\d) \| .* \| ([\d., ]+) \|$", GRADING, re.MULTILINE)
    assert [int(level) for level, _ in rows] == [1, 2, 3] == sorted(set(points.values()))
    for level, names in rows:
        assert {points[name] for name in NAMED.findall(names)} == {int(level)}


def test_pre_test_answers_are_right():
    x, w, layer = torch.arange(6).reshape(2, 3), torch.tensor(3.0, requires_grad=True), nn.Linear(3, 5)
    given = re.search(r"Given: (.*)\.$", TEXT, re.MULTILINE)[1]
    assert given == (
        "`x = torch.arange(6).reshape(2, 3)`, `w = torch.tensor(3.0, requires_grad=True)`, `layer = nn.Linear(3, 5)`"
    )
    rows = re.findall(r"^\| \d \| `(.*)` \| `(.*)` \|$", TEXT, re.MULTILINE)
    assert len(rows) == 8
    for asked, answer in rows:
        there = {"x": x, "w": w, "layer": layer, "torch": torch}
        assert eval(asked, there) == eval(answer), asked


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


def test_evidence_for_discussions_is_in_the_notebooks():
    table = TEXT.split("\n## Pairs of wrong answers to discuss\n")[1].split("\n## ")[0]
    rows = [teaching.parts(line) for line in table.splitlines() if re.match(r"\| \d\d ", line)]
    assert len(rows) == 9
    for number, *_, decides in rows:
        for value in re.findall(r"0\.\d+|\d\d\d?(?= of|\.)", decides.replace("8 tokens", "")):
            there = all_text(number) + all_text("06") + all_text("01")
            assert value in there, (number, value)


@pytest.mark.parametrize("plan", SLOTS, ids=lambda plan: teaching.plain_heading(plan.title))
def test_slots_ask_their_question_once_in_a_required_row(plan):
    asking = [row for row in plan.rows if teaching.has_question(row)]
    assert len(asking) == bool(plan.talk)
    assert not any(row.if_there_is_time for row in asking)
    assert [line.split("**")[1] for line in plan.talk] == ["Ask", "Expect", "Answer"][: len(plan.talk)]


@pytest.mark.parametrize("number", SEMINAR)
def test_plan_rows_start_the_notes_of_slides(number):
    rows = [row for session in teaching.sessions() for slot in session for row in slot.rows]
    own = [row for row in rows if row.notebook == number and row.is_section]
    notebook = nbformat.read(ROOT / "notebooks" / NOTEBOOKS[number], as_version=4)
    slides.keep_seminar_cells(notebook)
    slides.add_notes(notebook, number)
    begun = [cell.source for cell in notebook.cells if re.match(r"(◇ )?\d+ min · ", cell.source)]
    assert len(begun) == len(own) > 2
    for note, row in zip(begun, own, strict=True):
        asks = teaching.has_question(row)
        assert [f" · **{word}** " in note for word in ("Ask", "Expect", "Answer")] == [asks] * 3
        assert note.startswith("◇ " * row.if_there_is_time + f"{row.minutes} min · **Ask** " * asks)
        assert f" · {row.text}" in note


@pytest.mark.parametrize("number", SEMINAR)
def test_seminar_deck_has_6_to_16_slides(number):
    """The deck starts with a slide, has 6 to 16 slides, and each follows its own heading."""
    path = ROOT / "notebooks" / NOTEBOOKS[number]
    notebook, current, shown = nbformat.read(path, as_version=4), None, None
    kept = {cell.id for cell in teaching.with_seminar_tag(notebook.cells)}
    titles = {}
    for cell in notebook.cells:
        current = headings(cell)[-1] if headings(cell) else current
        titles[cell.id] = current
    slides.keep_seminar_cells(notebook)
    assert {cell.id for cell in notebook.cells} == kept
    on_slides = [cell for cell in notebook.cells if kind_of(cell) in SHOWN]
    starts = [cell for cell in on_slides if kind_of(cell) in STARTS]
    assert on_slides[0] is starts[0]
    assert 6 <= len(starts) <= 16  # slides.js merges half-empty slides and splits full ones: 8 to 12 remain
    for cell in on_slides:
        shown = headings(cell)[-1] if headings(cell) else shown
        assert shown == titles[cell.id], f"{cell.id}: its heading {titles[cell.id]!r} is not part of the seminar"


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


def test_questions_on_slides_take_time():
    asked = SMALL.replace("hover (1 min) |\n", "hover, then **ask** (1 min) |\n") + "\n".join(
        ["", "- **Ask.** One two?", "- **Expect.** “No.”", "- **Answer.** Three four five."]
    )
    (plan,), (quiet,) = teaching.plans(asked), teaching.plans(SMALL)
    more = teaching.rehearse(plan)[0][1] - teaching.rehearse(quiet)[0][1]
    assert more == pytest.approx((3 + 4) / 130)
