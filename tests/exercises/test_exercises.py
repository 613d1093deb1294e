"""Each exercise's check accepts right answers, names the mistake in wrong ones, and never crashes."""

import importlib
from pathlib import Path

import nbformat
import pytest

from exercises import CHECKS, CORRECT, PART_NAMES, SIZES, check, find_check, verdict
from tests.exercises.faults import made_by_machine
from tests.exercises.misconceptions import MEASURED, hint_of
from tests.helpers import ROOT

NOTEBOOKS = ROOT / "notebooks"
CASES = {
    path.stem: importlib.import_module(f"tests.exercises.cases.{path.stem}")
    for path in sorted((Path(__file__).parent / "cases").glob("notebook_*.py"))
}
RIGHT = [(number, answer) for cases in CASES.values() for number, answers in cases.RIGHT.items() for answer in answers]
WRONG = [
    (number, answer, words)
    for cases in CASES.values()
    for number, answers in cases.WRONG.items()
    for answer, words in answers
]
NUMBERS = sorted({number for number, *_ in RIGHT})
# Their checks climb to pretrained weights: seconds for each answer, which `make quick` leaves to `make test`.
LONG = {"3.5", "4.5", "9.4"}
for number in NUMBERS:
    find_check(number)  # imports its notebook's checks, so that SIZES and MISTAKES are all there
WRONG += made_by_machine({number: answers for cases in CASES.values() for number, answers in cases.RIGHT.items()})


def marked(cases):
    """The cases as a test's parameters, the long ones marked."""
    return [pytest.param(*case, marks=[pytest.mark.long] if case[0] in LONG else []) for case in cases]


def printed(capsys, number: str, answer) -> str:
    """The one line that a check prints."""
    check(number, answer)
    output = capsys.readouterr().out
    assert output.startswith(f"Exercise {number}: ")
    return output


def exercise_cells(path: Path) -> dict[str, tuple[str, str]]:
    """Source and printed text of each exercise cell of a notebook, by exercise number."""
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if "exercise" in cell.metadata.get("tags", ())]
    printed = [(cell.source, "".join(output.get("text", "") for output in cell.outputs)) for cell in cells]
    return {source.split('check("')[1].split('"')[0]: (source, text) for source, text in printed}


@pytest.mark.parametrize(("number", "answer"), marked(RIGHT))
def test_right_answers_are_accepted(capsys, number, answer):
    assert f"Exercise {number}: correct." in printed(capsys, number, answer)


@pytest.mark.parametrize(("number", "answer", "words"), marked(WRONG))
def test_wrong_answers_get_a_hint_that_names_the_mistake(number, answer, words):
    assert words in hint_of(number, answer)


@pytest.mark.long
@pytest.mark.parametrize(("number", "answer"), [*RIGHT, *((number, answer) for number, answer, _ in WRONG)])
def test_chance_does_not_decide(number, answer):
    def said(seed):
        return MEASURED.sub("…", verdict(find_check(number), answer, seed))

    assert said(0) == said(1) == said(2)


@pytest.mark.long
def test_an_answer_cannot_spoil_the_next_ones():
    for number in ("5.5", "6.1", "6.4"):  # whose parts, made once, an answer may alter
        for answer in [answer for other, answer, _ in WRONG if other == number]:
            hint_of(number, answer)
        right = next(answer for other, answer in RIGHT if other == number)
        assert verdict(find_check(number), right).startswith(CORRECT)


@pytest.mark.parametrize(("number", "answer", "words"), marked(case for case in WRONG if case[0] in SIZES))
def test_wrong_answers_are_refused_at_two_sizes_or_more(number, answer, words):
    function, sizes = SIZES[number]

    def is_refused(size):
        return not verdict(lambda wrapped: function(wrapped, *size), answer).startswith(CORRECT)

    is_part = number in PART_NAMES and words.endswith("is never called")  # what a part alone has to do, at any size
    assert is_part or sum(map(is_refused, sizes.values())) >= 2


@pytest.mark.parametrize(("number", "answer"), marked(case for case in RIGHT if case[0] in SIZES))
def test_right_answers_are_accepted_at_every_size(number, answer):
    function, sizes = SIZES[number]
    for size in sizes.values():
        said = verdict(lambda wrapped, size=size: function(wrapped, *size), answer)
        assert said.startswith(CORRECT)


@pytest.mark.parametrize("number", NUMBERS)
def test_the_stub_is_not_attempted(capsys, number):
    assert "not attempted yet" in printed(capsys, number, ...)


@pytest.mark.parametrize("number", marked(zip(NUMBERS)))
def test_nothing_crashes_a_check(capsys, number):
    def raises(*arguments, **options):
        raise ZeroDivisionError("oh")

    class Hostile:
        def __eq__(self, other):
            raise RuntimeError("no comparison")

        __hash__ = None

    for answer in (raises, lambda: None, Hostile(), None, "", 7, object(), [], {}):
        assert "correct" not in printed(capsys, number, answer)


def test_an_error_that_is_no_known_mistake_is_shown_as_it_is(capsys):
    output = printed(capsys, "2.2", lambda words, table: words @ table)
    assert "your code raised RuntimeError: mat1 and mat2" in output


@pytest.mark.parametrize("number", NUMBERS)
def test_every_exercise_has_three_wrong_answers(number):
    assert sum(case[0] == number for case in WRONG) >= 3
    assert any(case[0] == number for case in RIGHT)


def test_every_check_has_cases():
    assert set(CHECKS) == set(NUMBERS)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_stubs_and_solutions_in_the_notebooks(path):
    """Saved outputs, which nbval reproduces: every stub says "not attempted", every solution "correct"."""
    stubs = exercise_cells(path)
    solutions = exercise_cells(NOTEBOOKS / "solutions" / f"{path.name[:2]}_solutions.ipynb")
    assert len(stubs) >= 3
    assert (
        set(stubs)
        == set(solutions)
        == {number for number in NUMBERS if int(number.split(".")[0]) == int(path.name[:2])}
    )
    for number in stubs:
        assert f"Exercise {number}: not attempted yet" in stubs[number][1]
        assert f"Exercise {number}: correct." in solutions[number][1]
