"""What `check` prints around any exercise: stubs, hints, and errors in the reader's code."""

import math
import re
import statistics
from fractions import Fraction

import numpy as np
import pytest
import torch
from transformers import BertConfig

from exercises import (
    Hint,
    as_number,
    as_shape,
    as_tensor,
    call,
    check,
    climb,
    close,
    expect,
    expect_gradients,
    expect_tensor,
    notebook_13,
    solved,
    verdict,
)
from utils.encoder_layer import TransformerEncoderLayer


def double(answer):
    """Exercise: double a number."""
    expect(answer(3) == 6, "Twice three is six.")
    return "Well done."


def test_verdicts():
    assert verdict(double, lambda x: 2 * x) == "correct. Well done."
    assert verdict(double, lambda x: x) == "not yet. Twice three is six."
    assert verdict(double, ...).startswith("not attempted")
    assert verdict(double, lambda x: ...).startswith("not attempted")
    assert verdict(double, lambda x: (x, ...)).startswith("not attempted")
    assert verdict(double, lambda x: print(end="")) == "not yet. It returns None: does it end with `return`?"


def test_solved_says_what_check_would_and_prints_nothing(capsys):
    def loud(right):
        print("Exercise 3.1: correct.")
        return right

    assert solved("3.1", ((2, 7, 5), (2, 7, 32)))
    assert not solved("3.1", ((2, 7, 5), (2, 7, 64)))
    assert not solved("3.1", ...)
    assert not solved("13.5", loud)
    assert not solved("13.5", lambda ours, theirs: loud(1 / 0))
    assert capsys.readouterr().out == ""
    with pytest.raises(ValueError, match=r"There is no exercise 3\.9\. There are 3\.1, 3\.2"):
        solved("3.9", 1)
    with pytest.raises(ValueError, match=r"Write it as “3\.1”"):
        solved("one", 1)


def test_an_error_in_the_readers_code_is_reported_with_its_place():
    def broken(x):
        return x / 0

    line = broken.__code__.co_firstlineno + 1
    raised = "your code raised ZeroDivisionError: division by zero"
    assert verdict(double, broken) == f"{raised} (line {line} of test_harness.py, in broken)."


def test_an_error_in_a_cell_is_reported_with_the_line_of_the_cell():
    cell = {}
    exec(compile("\n\ndef broken(x):\n    return x / 0\n", "/tmp/ipykernel_7/8.py", "exec"), cell)
    assert verdict(double, cell["broken"]).endswith("by zero (line 4 of the cell, in broken).")


def test_the_line_named_is_the_readers_and_not_that_of_a_library():
    class Early(torch.nn.Module):
        def __init__(self):
            self.part = torch.nn.Linear(2, 2)

    class Narrow(torch.nn.Module):
        def forward(self, states):
            return torch.nn.Linear(3, 3)(states)

    def given_a_pair(x):
        return TransformerEncoderLayer(BertConfig(hidden_size=12))((torch.zeros(1, 2, 12), None))

    def by_the_standard_library(x):
        return statistics.median([])

    def make(answer):
        call(answer)

    def run(answer):
        call(answer(), torch.zeros(1, 2))

    early, narrow = verdict(make, Early), verdict(run, Narrow)
    assert "AttributeError: cannot assign module" in early
    assert early.endswith(", in __init__).")
    assert f"(line {Early.__init__.__code__.co_firstlineno + 1} of" in early
    assert f"(line {Narrow.forward.__code__.co_firstlineno + 1} of test_harness.py, in forward)" in narrow
    assert verdict(double, given_a_pair).endswith("in given_a_pair).")
    assert verdict(double, by_the_standard_library).endswith("in by_the_standard_library).")


@pytest.mark.parametrize(
    "answer", [lambda: 6, math.sqrt, torch.nn.Linear(2, 2)], ids=["lambda", "C", "module"]
)
def test_a_function_that_takes_other_arguments_is_the_readers_and_has_no_place(capsys, answer):
    check("13.5", answer)
    printed = capsys.readouterr().out
    assert "your code raised TypeError: " in printed
    assert "(line" not in printed


def test_a_check_that_fails_itself_does_not_blame_the_reader(capsys, monkeypatch):
    monkeypatch.setattr(notebook_13, "ROUNDS", (([1.0, "a"], [1.0, 2.0]),))
    check("13.5", lambda ours, theirs: 1.0)
    printed = capsys.readouterr().out
    assert "the check cannot judge: it failed itself, with TypeError" in printed
    assert "Your code raised nothing" in printed
    assert "not yet" not in printed
    assert "(line" not in printed


def test_modules_are_called_and_stubs_in_them_found():
    class Stub(torch.nn.Module):
        def forward(self, x):
            return ...

    def run(answer):
        call(answer(), torch.zeros(1))

    assert verdict(run, Stub).startswith("not attempted")


def test_checks_leave_the_random_state_alone():
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)
    verdict(lambda answer: expect(torch.rand(5).sum() > 0, ""), 1)
    assert torch.equal(torch.rand(1), wanted)


def test_expectations():
    assert close(torch.tensor([1.0, 2.0]), [1, 2])
    assert not close("words", 1)
    assert not close(torch.zeros(2), torch.zeros(3))
    for value, words in [(3, "torch tensor, but it is a int"), (torch.zeros(2), "(3,), but it has (2,)")]:
        with pytest.raises(Hint, match=re.escape(words)):
            expect_tensor(value, (3,))


@pytest.mark.parametrize(
    ("answer", "number"),
    [
        ("7/4", 1.75),
        (Fraction(7, 4), 1.75),
        ("7,087,872", 7087872),
        ("7 087 872", 7087872),
        ("7_087_872", 7087872),
        (np.array([2]), 2),
        (torch.ones(1, 1, requires_grad=True), 1),
    ],
)
def test_numbers_as_people_write_them(answer, number):
    assert as_number(answer) == number


@pytest.mark.parametrize(
    "answer", ["7/0", "7/", "1,75", "many", "", True, 1j, None, [1], "1/2/3", torch.ones(2)]
)
def test_what_is_no_number(answer):
    with pytest.raises(Hint, match=r"The answer should be a number, but it (is of type|has the shape)"):
        as_number(answer)


def test_shapes():
    for answer in (
        (2, 3),
        [2, 3.0],
        torch.Size((2, 3)),
        np.array([2, 3]),
        torch.tensor([2, 3]),
        torch.ones(2, 3),
    ):
        assert as_shape(answer) == (2, 3)
    for answer in (3, "23", None, torch.tensor(3)):
        with pytest.raises(Hint, match="a shape, a tuple such as"):
            as_shape(answer)
    with pytest.raises(Hint, match="each size should be a number"):
        as_shape(("B", "S"))


def test_lists_as_tensors():
    assert as_tensor([[1, 2], [3, 4]]).equal(torch.tensor([[1, 2], [3, 4]]))
    assert as_tensor((torch.ones(2), torch.zeros(2))).equal(torch.tensor([[1.0, 1.0], [0.0, 0.0]]))
    for kept in ([[1, 2], [3]], ["a"], "text", 3, []):
        assert as_tensor(kept) is kept


def test_gradients():
    weight, other = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    wanted = weight.square() + other
    expect_gradients(weight * weight + other, wanted, [weight, other], "cut off")
    for cut in (wanted.detach(), weight * weight.detach() + other, weight.square() + other.detach(), 3.0):
        with pytest.raises(Hint, match="cut off"):
            expect_gradients(cut, wanted, [weight, other], "cut off")


def test_nan_on_the_ladder_is_named():
    with pytest.raises(Hint, match="“weights” holds nan, as 0 × ∞"):
        climb([("weights", torch.tensor([torch.nan]), torch.ones(1))], {})
