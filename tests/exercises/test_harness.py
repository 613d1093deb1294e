"""What `check` prints around any exercise: stubs, hints, and errors in the reader's code."""

import math
import random
import re
import statistics
import sys
from collections import Counter
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch
from transformers import BertConfig

import exercises
from exercises import check, framework, notebook_13, solved
from utils.attention import AttentionHead, scaled_dot_product_attention
from utils.encoder_layer import TransformerEncoderLayer


def double(answer):
    """Exercise: double a number."""
    framework.expect(answer(3) == 6, "Twice three is six.")
    return "Well done."


def test_verdict_of_answers_and_stubs():
    assert framework.verdict(double, lambda x: 2 * x) == "correct. Well done."
    assert framework.verdict(double, lambda x: x) == "not yet. Twice three is six."
    assert framework.verdict(double, ...).startswith("not attempted")
    assert framework.verdict(double, lambda x: ...).startswith("not attempted")
    assert framework.verdict(double, lambda x: (x, ...)).startswith("not attempted")
    assert (
        framework.verdict(double, lambda x: print(end=""))
        == "not yet. Your function returns None. Does it end with `return`?"
    )


def test_solved_agrees_with_check_and_prints_nothing(capsys):
    def loud(right):
        print("Exercise 3.1: correct.")
        print("a warning", file=sys.stderr)
        return right

    assert solved("3.1", ((2, 7, 5), (2, 7, 32)))
    assert not solved("3.1", ((2, 7, 5), (2, 7, 64)))
    assert not solved("3.1", ...)
    assert not solved("13.5", loud)
    assert not solved("13.5", lambda ours, theirs: loud(1 / 0))
    assert solved("2.2", lambda words, table: loud(words + table[: words.size(1)]))
    assert capsys.readouterr() == ("", "")
    with pytest.raises(ValueError, match=r"There is no exercise 3\.9\. There are 3\.1, 3\.2"):
        solved("3.9", 1)
    with pytest.raises(ValueError, match=r"Write it as “3\.1”"):
        solved("one", 1)


def test_error_in_a_cell_is_reported_with_its_line():
    cell = {}
    exec(compile("\n\ndef broken(x):\n    return x / 0\n", "/tmp/ipykernel_7/8.py", "exec"), cell)
    assert framework.verdict(double, cell["broken"]).endswith("by zero (line 4 of the cell, in broken).")


def test_error_names_the_readers_line_not_a_library():
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
        framework.call(answer)

    def run(answer):
        framework.call(answer(), torch.zeros(1, 2))

    early, narrow = framework.verdict(make, Early), framework.verdict(run, Narrow)
    assert "AttributeError: cannot assign module" in early
    assert early.endswith(", in __init__).")
    assert f"(line {Early.__init__.__code__.co_firstlineno + 1} of" in early
    assert f"(line {Narrow.forward.__code__.co_firstlineno + 1} of test_harness.py, in forward)" in narrow
    assert "in given_a_pair)." in framework.verdict(double, given_a_pair)
    assert framework.verdict(double, by_the_standard_library).endswith("in by_the_standard_library).")


@pytest.mark.parametrize("answer", [lambda: 6, math.sqrt, torch.nn.Linear(2, 2)], ids=["lambda", "C", "module"])
def test_error_of_a_call_has_no_line(capsys, answer):
    check("13.5", answer)
    printed = capsys.readouterr().out
    assert "our code raised TypeError: " in printed
    assert "(line" not in printed
    assert ("Keep the arguments of the original cell" in printed) == ("positional argument" in printed)


def test_failing_check_does_not_blame_the_reader(capsys, monkeypatch):
    monkeypatch.setattr(notebook_13, "ROUNDS", (([1.0, "a"], [1.0, 2.0]),))
    check("13.5", lambda ours, theirs: 1.0)
    printed = capsys.readouterr().out
    assert "the check itself failed on this answer, with TypeError" in printed
    assert "Your code raised no error" in printed
    assert "not yet" not in printed
    assert "(line" not in printed


def test_stub_in_a_module_is_found():
    class Stub(torch.nn.Module):
        def forward(self, x):
            return ...

    def run(answer):
        framework.call(answer(), torch.zeros(1))

    assert framework.verdict(run, Stub).startswith("not attempted")


def draw(answer=None):
    """A number that torch, NumPy and Python each drew."""
    return torch.rand(1).item(), np.random.rand(), random.random()  # noqa: NPY002 - as a reader's code may draw


def test_check_restores_random_states():
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    wanted = draw()
    torch.set_rng_state(states[0]), np.random.set_state(states[1]), random.setstate(states[2])  # noqa: NPY002
    framework.verdict(draw, 1)
    assert draw() == wanted


def test_second_wrong_answer_gets_the_later_hint(capsys, monkeypatch):
    def one(answer):
        """Exercise: a number between 0 and 2."""
        framework.expect(answer == 1, "A whole number.", "It is 1.")

    monkeypatch.setitem(framework.CHECKS, "13.5", one)
    monkeypatch.setattr(exercises, "TRIES", Counter())
    for answer in (0, ..., 2, 1):
        check("13.5", answer)
    first, stub, second, right = capsys.readouterr().out.splitlines()
    assert first.endswith("not yet. A whole number.")
    assert "not attempted" in stub
    assert second.endswith("not yet. It is 1.")
    assert right.endswith("correct.")


def test_wrong_size_is_named():
    def ones(answer, size):
        framework.expect(len(answer(size)) == size, f"{size} ones are missing.")

    check_answer = framework.at_every_size(ones, {"two": (2,), "three": (3,)})
    assert framework.verdict(check_answer, lambda size: [1] * size) == "correct."
    assert framework.verdict(check_answer, lambda size: []) == "not yet. 2 ones are missing."
    fixed = "not yet. It works for two, but not for three. "
    assert framework.verdict(check_answer, lambda size: [1, 1]) == f"{fixed}3 ones are missing."
    raised = framework.verdict(check_answer, lambda size: [1, 1] if size == 2 else 1 / 0)
    assert raised.startswith(f"{fixed}Your code raised ZeroDivisionError")
    assert framework.verdict(check_answer, lambda size: [1, 1] if size == 2 else ...).startswith("not attempted")


class MyHead(AttentionHead):
    """Ours by another name."""


@pytest.mark.parametrize(("answer", "name"), [
    (AttentionHead, "AttentionHead"),
    (MyHead, "AttentionHead"),
    (MyHead(4, 2), "AttentionHead"),
    (MyHead(4, 2).forward, "AttentionHead.forward"),
    (AttentionHead.forward, "AttentionHead.forward"),
    (scaled_dot_product_attention, "scaled_dot_product_attention"),
    (partial(scaled_dot_product_attention, attention_mask=None), "scaled_dot_product_attention"),
])  # fmt: skip
def test_reference_answer_is_recognised(answer, name):
    said = framework.verdict(double, answer)
    assert said == f"not yet. This is the series' own {name}, or inherits from it. Write your own version."


def attend(query, key, value):
    return scaled_dot_product_attention(query, key, value)


@pytest.mark.parametrize("answer", [torch.relu, torch.nn.Linear(2, 2), attend])
def test_answer_that_calls_ours_is_no_reference(answer):
    assert framework.reference_name(answer) == ""


def test_as_positions_accepts_many_forms():
    for answer in ([1, 0], {0, 1}, range(2), torch.arange(2), (0.0, 1), [True, True, False]):
        assert framework.as_positions(answer, 3) == [0, 1]
    assert framework.as_positions(1, 3) == [1]
    assert framework.as_positions("all", 3) == framework.as_positions("0, 1, 2", 3) == [0, 1, 2]
    for answer, words in [("01", "a list of numbers"), ([0.5], "whole"), ([1, 1], "twice"), ([True], "3 booleans")]:
        with pytest.raises(framework.Hint, match=words):
            framework.as_positions(answer, 3)


def test_expect_tensor_names_type_shape_and_dtype():
    assert framework.close(torch.tensor([1.0, 2.0]), [1, 2])
    assert not framework.close("words", 1)
    assert not framework.close(torch.zeros(2), torch.zeros(3))
    for value, words in [
        (3, "torch tensor, but it is a int"),
        (torch.zeros(2), "(3,), but it has (2,)"),
        (torch.zeros(3).double(), "should have the dtype torch.float32 of the inputs, but it has torch.float64"),
    ]:
        with pytest.raises(framework.Hint, match=re.escape(words)):
            framework.expect_tensor(value, (3,), dtype=torch.float32)
    assert framework.expect_tensor(np.zeros(3), (3,), dtype=torch.float32).shape == (3,)


@pytest.mark.parametrize(("answer", "number"), [
    ("7/4", 1.75), (Fraction(7, 4), 1.75), ("7,087,872", 7087872), ("7 087 872", 7087872), ("7_087_872", 7087872),
    (np.array([2]), 2), ("1,75", 1.75), ("0,125", 0.125), ("1.75 bits", 1.75), ("7,087,872 parameters", 7087872),
    (torch.ones(1, 1, requires_grad=True), 1), ("23.837.184", 23837184), ("−1,5", -1.5), ("256 Scores", 256),
])  # fmt: skip
def test_as_number_accepts_written_numbers(answer, number):
    assert framework.as_number(answer) == number


@pytest.mark.parametrize(
    "answer",
    ["7/0", "7/", "1,2,3", "23 km", "many", "", True, 1j, None, [1], "1/2/3", "1.234.56", "0.125.000", torch.ones(2)],
)
def test_as_number_refuses_other_values(answer):
    with pytest.raises(framework.Hint, match=r"should be a number, but it (is of type|has the shape|is the text)"):
        framework.as_number(answer)


def test_as_shape_accepts_many_forms():
    for answer in ((2, 3), [2, 3.0], torch.Size((2, 3)), np.array([2, 3]), torch.tensor([2, 3]), torch.ones(2, 3)):
        assert framework.as_shape(answer) == (2, 3)
    for text in ("(2, 3)", "2, 3", " [2, 3]", "torch.Size([2, 3])", "2 × 3", "(2x3)", "[2 3]", "2; 3"):
        assert framework.as_shape(text) == (2, 3)
    for answer in (3, "23", "B, S", "__import__('os')", None, torch.tensor(3)):
        with pytest.raises(framework.Hint, match="a shape, a tuple such as"):
            framework.as_shape(answer)
    with pytest.raises(framework.Hint, match="each size should be a number"):
        framework.as_shape(("B", "S"))


def test_compare_stages_names_nan():
    with pytest.raises(framework.Hint, match="“weights” contains nan, which 0 × ∞"):
        framework.compare_stages([("weights", torch.tensor([torch.nan]), torch.ones(1))], {})
