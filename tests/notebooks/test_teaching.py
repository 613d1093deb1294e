"""TEACHING.md: what it names is there, its minutes add up, and its plans fit the clock."""

import functools
import itertools
import re

import nbformat
import pytest

import exercises
from publish import slides, teaching
from tests.helpers import ROOT
from tests.notebooks.on_slides import SHOWN, STARTS, headings, kind_of
from utils.checkpoint import load_tokenizer

TEXT = teaching.PAGE.read_text("utf-8")
PLANS = teaching.plans(TEXT)
SLOTS = [plan for plan in PLANS if not plan.is_unit]
UNITS = [plan for plan in PLANS if plan.is_unit]
NOTEBOOKS = {path.name[:2]: path.name for path in sorted((ROOT / "notebooks").glob("[0-9]*.ipynb"))}
SEMINAR = [number for number, name in NOTEBOOKS.items() if slides.has_seminar(ROOT / "notebooks" / name)]
NUMBERS = [
    number
    for name in NOTEBOOKS
    for cell in teaching.read(name).cells
    if "exercise" in cell.metadata.get("tags", [])
    for number in re.findall(r'check\("([\d.]+)"', cell.source)
]
NAMED = re.compile(r"\b(\d{1,2}\.\d)\b")
every_plan = pytest.mark.parametrize("plan", PLANS, ids=lambda plan: teaching.plain(plan.title))


def part(plan) -> str:
    """What the page says of a plan, below its heading."""
    heading = plan.title if plan.is_unit else f"{plan.start}–{plan.end} · {plan.title}"
    return re.split(f"\n### (?:or )?{re.escape(heading)}\n", TEXT)[1].split("\n##")[0]


def notebooks_of(plan) -> list[str]:
    return list(dict.fromkeys(row.notebook for row in plan.rows if row.notebook))


@functools.cache
def all_text(number: str) -> str:
    """The sources of a notebook, and what it prints."""
    cells = teaching.read(number).cells
    printed = [output.get("text", "") for cell in cells for output in cell.get("outputs", [])]
    return "\n".join([cell.source for cell in cells] + printed)


@every_plan
def test_a_plan_fits_its_clock(plan):
    rows = teaching.rehearse(plan)
    assert sum(row.minutes for row, _ in rows) == plan.end - plan.start
    assert sum(minutes for _, minutes in rows) <= plan.end - plan.start
    assert not [(row.heading, minutes) for row, minutes in rows if teaching.late(row, minutes)]


def test_a_plan_that_does_not_fit_is_told():
    (plan,) = teaching.plans(
        "### 5–9 · [00](../notebooks/00_overview.ipynb)\n| heading | cells | min | do |\n|---|---|---:|---|\n"
        "| Whose answering machine? | In [3] | 3 | hover (1 min) |\n| *Wait* | – | 1 | for the last (1 min) |\n"
    )
    (shown, minutes), (wait, waited) = teaching.rehearse(plan)
    assert (shown.cells, shown.minutes, wait.is_section, waited) == ("In [3]", 3, False, 1)
    words = teaching.words(teaching.shown(shown))
    assert minutes == pytest.approx(1 + words / 130 + 0.25)
    assert teaching.late(shown, minutes)
    with pytest.raises(ValueError, match="'Whose' is the heading of 0 sections"):
        teaching.section(teaching.read("00").cells, "Whose")


def test_two_sessions_and_fifteen_units():
    bounds = [(plan.start, plan.end) for plan in SLOTS]
    assert bounds.count((63, 84)) == 2  # 08, or 09
    bounds.remove((63, 84))
    sessions = [[], []]
    for bound in bounds:
        sessions[1 if sessions[0] and sessions[0][-1][1] == 90 else 0].append(bound)
    for session in sessions:
        ends = [0, *(end for _, end in session)]
        assert [start for start, _ in session] == ends[:-1]
        assert ends[-1] == 90
    assert [plan.title.split()[1] for plan in UNITS] == [str(number) for number in range(1, 16)]
    assert list(itertools.chain(*map(notebooks_of, UNITS))) == list(NOTEBOOKS)


@pytest.mark.parametrize("plan", SLOTS, ids=lambda plan: teaching.plain(plan.title))
def test_a_slot_has_the_cells_of_the_tag(plan):
    shown = []
    for row in plan.rows:
        assert row.cells == (teaching.ran(teaching.shown(row)) if row.is_section else "–"), row.heading
        shown += teaching.shown(row)
    (number,) = notebooks_of(plan) or [None]
    wanted = teaching.tagged(teaching.read(number).cells) if any(row.is_section for row in plan.rows) else []
    assert [cell.id for cell in shown] == [cell.id for cell in wanted]


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain(plan.title))
def test_a_unit_has_the_whole_main_line(plan):
    spans = teaching.spans(plan)
    for number, row in enumerate(plan.rows):
        assert row.cells == (teaching.ran(spans[number]) if row.is_section else "–"), row.heading
    told = [cell.id for span in spans.values() for cell in span]
    lines = [teaching.main_line(teaching.read(number)) for number in notebooks_of(plan)]
    assert told == [cell.id for line in lines for cell in line]


@every_plan
def test_a_plan_names_only_what_is_there(plan):
    numbers = notebooks_of(plan)
    for name in NAMED.findall(part(plan)):
        assert name in NUMBERS or any(name in all_text(number) for number in numbers), name  # or an accuracy
    for line in part(plan).splitlines():
        if line.startswith(("- **Late?**", "- **Start early.**")):
            for quoted in re.findall("“([^”]*)”", line):
                places = "\n".join(all_text(number) for number in [*numbers, "08"])
                assert re.search(rf"^(#+|# @title) {re.escape(quoted)}$", places, re.MULTILINE), quoted


@every_plan
def test_an_answer_is_the_notebooks(plan):
    """Each number of the answer to a plan's question stands in its notebook, or counts what stands there."""
    for line in part(plan).splitlines():
        if line.startswith(("- **Answer.**", "- **The answer.**", "- **Votes and exercises.**")):
            line = re.sub(r"\b\d\.\d: [^.]*", "", line)  # those of exercises are checked below
            told = [cell for name in notebooks_of(plan) for cell in teaching.main_line(teaching.read(name))]
            there = "\n".join(cell.source.replace("**", "") for cell in told if cell.cell_type == "markdown")
            for number in re.findall(r"\([\d., ]+\)|\d[\d,.]*\d|\d", line):
                assert re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", there), f"{number} in {line}"


@pytest.mark.parametrize(
    ("number", "answer", "told"),
    [
        ("0.2", ([0, 1, 2, 3, 4, 5], [2, 3, 4, 5], [0, 1, 2]), "all six positions; 2 to 5; all three."),
        ("2.1", (4, 9, 384), "(4, 9, 384)."),
        ("3.3", (8, 1), "8 and 1."),
        ("7.2", ((3, 1), (0, 1)), "several heads count; 3-1 links “it” to “violin”, and 0-1 “played”."),
        ("8.6", 4900, "about 4,900 sentences."),
    ],
)
def test_the_answer_to_an_exercise_is_right(number, answer, told, capsys):
    assert f"{number}: {told}" in TEXT
    exercises.check(number, answer)
    assert "correct" in capsys.readouterr().out


def test_every_exercise_of_a_slot_has_its_answer():
    for plan in SLOTS:
        for row in plan.rows:
            for number in NAMED.findall(row.text.split("homework")[-1]):
                assert f"{number}: " in part(plan), number


def test_the_tokens_of_a_long_word():
    tokens = load_tokenizer().tokenize("antidisestablishmentarianism")
    assert f"**Answer.** {len(tokens)}. The pieces" in TEXT


@pytest.mark.parametrize("plan", UNITS, ids=lambda plan: teaching.plain(plan.title))
def test_a_unit_gives_out_all_exercises_of_its_main_line(plan):
    """In class or at home, each once; those among the proofs are named, too."""
    in_class = [row.heading for row in plan.rows if row.heading.startswith("Exercise")]
    at_home = [line for line in part(plan).splitlines() if line.startswith("- **At home.**")]
    found = sorted(NAMED.findall(" ".join(in_class + at_home)))
    assert found == sorted(
        number for number in NUMBERS if f"{int(number.split('.')[0]):02d}" in notebooks_of(plan)
    )
    assert part(plan).count("*A good answer:*") == 2


def test_each_goal_has_what_tests_it():
    table = TEXT.split("\n## Goals and the exercises that test them\n")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    goals, tested = {}, []
    for goal, *by in rows:
        if goal.startswith("**["):
            number = teaching.LINK.search(goal)[1]
            goals[number] = []
        else:
            goals[number].append(goal)
            exercises_named = NAMED.findall(by[0])
            assert exercises_named or by[0].startswith("*")
            assert {int(name.split(".")[0]) for name in exercises_named} <= {int(number)}
            tested += exercises_named
            for quoted in re.findall("“([^”]*)”", by[0]):
                assert f"# {quoted}\n" in all_text(number), quoted
    for number, own in goals.items():
        (opening,) = (cell.source for cell in teaching.read(number).cells if "will be able to" in cell.source)
        assert own == [line[2:].rstrip(";.") for line in opening.splitlines() if line.startswith("- ")]
    assert list(goals) == list(NOTEBOOKS)
    assert set(tested) == set(NUMBERS)


def test_points_are_as_the_checks_say():
    for number in NUMBERS:
        exercises.find_check(number)  # which loads them
    points = exercises.POINTS
    rows = re.findall(r"^\| (\d) \| .* \| ([\d., ]+) \|$", TEXT, re.MULTILINE)
    assert [int(level) for level, _ in rows] == [1, 2, 3] == sorted(set(points.values()))
    for level, names in rows:
        assert {points[name] for name in NAMED.findall(names)} == {int(level)}


@pytest.mark.parametrize("number", SEMINAR)
def test_a_seminar_deck_is_a_story(number):
    """A few slides; the first begins one, and each stands under its own heading."""
    path = ROOT / "notebooks" / NOTEBOOKS[number]
    notebook, told, shown = nbformat.read(path, as_version=4), None, None
    kept = {cell.id for cell in teaching.tagged(notebook.cells)}
    titles = {}
    for cell in notebook.cells:
        told = headings(cell)[-1] if headings(cell) else told
        titles[cell.id] = told
    slides.for_the_seminar(notebook)
    assert {cell.id for cell in notebook.cells} == kept
    on_slides = [cell for cell in notebook.cells if kind_of(cell) in SHOWN]
    starts = [cell for cell in on_slides if kind_of(cell) in STARTS]
    assert on_slides[0] is starts[0]
    assert 6 <= len(starts) <= 16  # a browser joins half-empty ones, and parts full ones: 8 to 12 are seen
    for cell in on_slides:
        shown = headings(cell)[-1] if headings(cell) else shown
        assert shown == titles[cell.id], f"{cell.id}: {titles[cell.id]!r} is above it, and not of the seminar"
