"""Each exercise's check accepts right answers, names the mistake in wrong ones, and never crashes."""

import contextlib
import json
import os
import random
import re
from copy import deepcopy
from functools import cache
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import torch

from exercises import attention, check, find_check, notebook_06
from exercises.framework import CORRECT, PART_NAMES, SIZES, WRONG, Hint, verdict
from exercises.prediction import PREDICTIONS
from tests.exercises.answers import Answer, chapter_of, plain, right_answers, solution_lines, wrong_answers
from tests.exercises.faults import made_by_machine
from tests.helpers import ROOT
from utils.support import datasets

NOTEBOOKS = ROOT / "notebooks"
RIGHT = list(right_answers())
FIRST = {each.number: each for each in RIGHT[::-1]}  # the published answer
NUMBERS = sorted(FIRST)
# Their checks run models: up to seconds for each answer, which `make quick` leaves to `make test`.
LONG = {"3.2", "3.3", "4.5", "5.5", "6.1", "6.4", "6.5", "7.4", "8.1", "10.2"}
MEASURED = re.compile(r"(?<= by )\d\S*(?=\.( |$))|\b\d+\.\d+(?=%)")  # how far a result is off: the machine's digits
SEEDS = (1, 2) if "STATES" in os.environ else ()  # besides 0, with which `check` judges; weekly, in `make test-all`
WRONG_ANSWERS = [*wrong_answers(), *made_by_machine(FIRST)]


@pytest.fixture(scope="module", autouse=True)
def read_once(reference):
    """Give each check a copy of the official model, and the reviews, without reading them again."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (attention, notebook_06):
            patch.setattr(module, "load_reference_model", lambda: deepcopy(reference))
        patch.setattr(datasets, "imdb_reviews", cache(datasets.imdb_reviews))
        yield


def other_forms(value) -> list:
    """The same value as other types that readers use."""
    if isinstance(value, bool | str):
        return []
    if isinstance(value, int | float):
        return [float(value), np.float64(value), torch.tensor(value), f"{value:,}" if value > 999 else str(value)]
    with contextlib.suppress(TypeError, ValueError, RuntimeError):
        if all(isinstance(each, int | float) for each in value):
            forms = [tuple(value), list(value), torch.tensor(value), np.array(value)]
            return [*forms, str(value)] if isinstance(value, tuple) else forms
    forms = [other_forms(each) for each in value]
    return [tuple(each[at] for each in forms) for at in range(min(map(len, forms)))]


def marked(cases: list[Answer]) -> list:
    """Return the answers as parameters of a test, the long ones marked."""
    ids = dict.fromkeys((each.number for each in cases), 0)
    found = []
    for each in cases:
        ids[each.number] += 1
        marks = [pytest.mark.long] if each.number in LONG else []
        found.append(pytest.param(each, marks=marks, id=f"{each.number}-{ids[each.number]}"))
    return found


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
    _, keys, position, *_ = np.random.get_state()  # noqa: NPY002
    return torch.get_rng_state().numpy().tobytes(), keys.tobytes(), position, random.getstate()


def verdicts(number: str, answer) -> tuple[set[str], str]:
    """Return the verdict on an answer, if any random number was drawn for it also with other seeds, and its hints."""
    used, hints = [], []

    def check_answer(wrapped):
        before = generator_states()
        try:
            return find_check(number)(wrapped)
        except Hint as hint:
            hints.extend([str(hint), hint.later])
            raise
        finally:
            used.append(generator_states() != before)

    found = {verdict(check_answer, answer)}
    if used[-1:] == [True]:
        found |= {verdict(check_answer, answer, seed) for seed in SEEDS}
    return {MEASURED.sub("…", each) for each in found}, "\n".join(hints)


@pytest.mark.parametrize("each", marked(RIGHT))
def test_right_answer_is_accepted_at_every_seed_and_size(each):
    """The published one is told what is saved in the notebook of solutions, which runs every week."""
    (line,), _ = verdicts(each.number, each.make())
    assert line.startswith(CORRECT)
    if each == FIRST[each.number]:
        saved = exercise_cells(NOTEBOOKS / "solutions" / f"{chapter_of(each.number)}_solutions.ipynb")
        assert line in MEASURED.sub("…", saved[each.number][1])
    function, sizes = SIZES.get(each.number, (None, {}))
    for size in filter(None, sizes.values()):  # without one, the check above
        line = verdict(lambda wrapped, size=size: function(wrapped, *size), each.make())
        assert line.startswith(CORRECT)


COUNTED = {"7.4", "7.5", "9.5", "10.2"}  # numbers that models and 25,000 reviews give in seconds


@pytest.mark.parametrize("each", marked([each for each in FIRST.values() if each.number not in COUNTED]))
def test_check_does_not_depend_on_settings_of_torch(each):
    torch.set_default_dtype(torch.float64)
    try:
        with torch.inference_mode():
            found = verdict(find_check(each.number), each.make())
            assert not torch.is_grad_enabled()
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert found.startswith(CORRECT)


@pytest.mark.parametrize("each", marked(WRONG_ANSWERS))
def test_wrong_answer_gets_its_hint_at_every_seed_and_is_refused_at_two_sizes(each):
    answer = each.make()
    (line,), hints = verdicts(each.number, answer)
    assert line.startswith(WRONG)
    assert [given for given in solution_lines(each.number) if given in plain(hints)] == []
    assert MEASURED.sub("…", each.words) in re.sub(r"\s+", " ", line)
    if each.number in SIZES:
        function, sizes = SIZES[each.number]
        checks = (lambda wrapped, size=size: function(wrapped, *size) for size in [*sizes.values()][::-1])
        refused = (not verdict(at_size, answer).startswith(CORRECT) for at_size in checks)
        # required of parts only, whatever the size
        of_a_part = each.number in PART_NAMES and each.words.endswith(("is never called", "Remove any detach"))
        assert of_a_part or len([*islice(filter(None, refused), 2)]) == 2


@pytest.mark.parametrize("number", PREDICTIONS)
def test_value_is_accepted_in_other_types(number):
    values = PREDICTIONS[number]()
    for value in other_forms(values if len(values) > 1 else values[0]):
        assert verdict(find_check(number), value).startswith(CORRECT), value


@pytest.mark.long
def test_answers_do_not_leak_state():
    for number in ("5.5", "6.1"):  # an answer may change their parts, which are made once
        for each in (each for each in WRONG_ANSWERS if each.number == number):
            assert verdict(find_check(number), each.make()).startswith(WRONG)
        assert verdict(find_check(number), FIRST[number].make()).startswith(CORRECT)


@pytest.mark.parametrize("number", NUMBERS)
def test_stub_is_not_attempted(capsys, number):
    assert "not attempted yet" in printed(capsys, number, ...)


@pytest.mark.parametrize("number", NUMBERS)
def test_check_never_crashes(capsys, number):
    def raises(*arguments, **options):
        raise ZeroDivisionError("oh")

    class Hostile:
        def __eq__(self, other):
            raise RuntimeError("no comparison")

        __hash__ = None

    for answer in (raises, lambda: None, Hostile(), None, "", 7, object(), [], {}):
        assert "correct" not in printed(capsys, number, answer)


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("[0-9e]*.ipynb")), ids=lambda path: path.stem)
def test_notebook_outputs_of_stubs_and_solutions(path):
    """Check the saved outputs, which nbval reproduces: stubs are not attempted, solutions are correct."""
    stubs = exercise_cells(path)
    solutions = exercise_cells(NOTEBOOKS / "solutions" / f"{path.stem.partition('_')[0]}_solutions.ipynb")
    assert len(stubs) >= 2
    assert set(stubs) == set(solutions)
    own = {number for number in NUMBERS if chapter_of(number) == path.name[:2]}
    assert set(stubs) == (own or {"3.2", "5.3"})  # of the evening
    for number in stubs:
        assert f"Exercise {number}: not attempted yet" in stubs[number][1]
        assert f"Exercise {number}: correct." in solutions[number][1]
