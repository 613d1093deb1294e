"""Each exercise's check accepts right answers, names the mistake in wrong ones, and never crashes."""

import importlib
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from exercises import CHECKS, CORRECT, PART_NAMES, SIZES, WRONG, check, find_check, verdict
from tests.exercises.faults import made_by_machine
from tests.exercises.misconceptions import MEASURED, hint_of
from tests.helpers import ROOT

NOTEBOOKS = ROOT / "notebooks"
CASES = {
    path.stem: importlib.import_module(f"tests.exercises.cases.{path.stem}")
    for path in sorted((Path(__file__).parent / "cases").glob("notebook_*.py"))
}
RIGHT = [(number, answer) for cases in CASES.values() for number, answers in cases.RIGHT.items() for answer in answers]
WRONG_ANSWERS = [
    (number, answer, words)
    for cases in CASES.values()
    for number, answers in cases.WRONG.items()
    for answer, words in answers
]
NUMBERS = sorted({number for number, *_ in RIGHT})
# Their checks run models: up to seconds for each answer, which `make quick` leaves to `make test`.
LONG = {"3.2", "3.3", "4.5", "5.5", "6.1", "6.4", "6.5", "7.4", "8.1", "9.4"}
for number in NUMBERS:
    find_check(number)  # imports its notebook's checks, so that SIZES and MISTAKES are all there
WRONG_ANSWERS += made_by_machine(
    {number: answers for cases in CASES.values() for number, answers in cases.RIGHT.items()}
)


def marked(cases):
    """Return the cases as parameters of a test, the long ones marked."""
    return [pytest.param(*case, marks=[pytest.mark.long] if case[0] in LONG else []) for case in cases]


def printed(capsys, number: str, answer) -> str:
    """Return the line that a check prints."""
    check(number, answer)
    output = capsys.readouterr().out
    assert output.startswith(f"Exercise {number}: ")
    return output


def exercise_cells(path: Path) -> dict[str, tuple[str, str]]:
    """Return the source and printed text of each exercise cell of a notebook, by exercise number."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    printed = [
        ("".join(cell["source"]), "".join("".join(output.get("text", "")) for output in cell["outputs"]))
        for cell in cells
        if "exercise" in cell["metadata"].get("tags", ())
    ]
    return {source.split('check("')[1].split('"')[0]: (source, text) for source, text in printed}


def generator_states() -> tuple:
    """Return the states of the generators from which checks and answers draw."""
    return torch.get_rng_state().numpy().tobytes(), repr(np.random.get_state()), random.getstate()  # noqa: NPY002


def verdicts(number: str, answer) -> set[str]:
    """Return the verdict on an answer, and if any random number was drawn for it, the verdicts with other seeds."""
    used = []

    def check_answer(wrapped):
        before = generator_states()
        try:
            return find_check(number)(wrapped)
        finally:
            used.append(generator_states() != before)

    found = {verdict(check_answer, answer)}
    if used[-1:] == [True]:
        found |= {verdict(check_answer, answer, seed) for seed in (1, 2)}
    return {MEASURED.sub("…", each) for each in found}


@pytest.mark.parametrize(("number", "answer"), marked(RIGHT))
def test_right_answer_is_accepted_at_every_seed(number, answer):
    (line,) = verdicts(number, answer)
    assert line.startswith(CORRECT)


@pytest.mark.parametrize(("number", "answer", "words"), marked(WRONG_ANSWERS))
def test_wrong_answer_gets_its_hint_at_every_seed(number, answer, words):
    (line,) = verdicts(number, answer)
    assert line.startswith(WRONG)
    assert words in re.sub(r"\s+", " ", line)


@pytest.mark.long
def test_answers_do_not_leak_state():
    for number in ("5.5", "6.1", "6.4"):  # an answer may change their parts, which are made once
        for answer in [answer for other, answer, _ in WRONG_ANSWERS if other == number]:
            hint_of(number, answer)
        right = next(answer for other, answer in RIGHT if other == number)
        assert verdict(find_check(number), right).startswith(CORRECT)


@pytest.mark.parametrize(("number", "answer", "words"), marked(case for case in WRONG_ANSWERS if case[0] in SIZES))
def test_wrong_answer_is_refused_at_two_sizes(number, answer, words):
    function, sizes = SIZES[number]

    def is_refused(size):
        return not verdict(lambda wrapped: function(wrapped, *size), answer).startswith(CORRECT)

    is_part = number in PART_NAMES and words.endswith(
        ("is never called", "Remove any detach")
    )  # required of parts only, whatever the size
    assert is_part or sum(map(is_refused, sizes.values())) >= 2


@pytest.mark.parametrize(("number", "answer"), marked(case for case in RIGHT if case[0] in SIZES))
def test_right_answer_is_accepted_at_every_size(number, answer):
    function, sizes = SIZES[number]
    for size in sizes.values():
        line = verdict(lambda wrapped, size=size: function(wrapped, *size), answer)
        assert line.startswith(CORRECT)


@pytest.mark.parametrize("number", NUMBERS)
def test_stub_is_not_attempted(capsys, number):
    assert "not attempted yet" in printed(capsys, number, ...)


@pytest.mark.parametrize("number", marked(zip(NUMBERS)))
def test_check_never_crashes(capsys, number):
    def raises(*arguments, **options):
        raise ZeroDivisionError("oh")

    class Hostile:
        def __eq__(self, other):
            raise RuntimeError("no comparison")

        __hash__ = None

    for answer in (raises, lambda: None, Hostile(), None, "", 7, object(), [], {}):
        assert "correct" not in printed(capsys, number, answer)


def test_unknown_error_is_shown_unchanged(capsys):
    output = printed(capsys, "2.2", lambda words, table: {}[7])
    assert "your code raised KeyError: 7 (line" in output


@pytest.mark.parametrize("number", NUMBERS)
def test_exercise_has_three_wrong_answers(number):
    assert sum(case[0] == number for case in WRONG_ANSWERS) >= 3
    assert any(case[0] == number for case in RIGHT)


def test_every_check_has_cases():
    assert set(CHECKS) == set(NUMBERS)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9]*.ipynb")), ids=lambda path: path.stem)
def test_notebook_outputs_of_stubs_and_solutions(path):
    """Check the saved outputs, which nbval reproduces: stubs are not attempted, solutions are correct."""
    stubs = exercise_cells(path)
    solutions = exercise_cells(NOTEBOOKS / "solutions" / f"{path.name[:2]}_solutions.ipynb")
    assert len(stubs) >= 2
    assert (
        set(stubs)
        == set(solutions)
        == {number for number in NUMBERS if int(number.split(".")[0]) == int(path.name[:2])}
    )
    for number in stubs:
        assert f"Exercise {number}: not attempted yet" in stubs[number][1]
        assert f"Exercise {number}: correct." in solutions[number][1]
