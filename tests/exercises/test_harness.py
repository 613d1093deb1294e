"""What `check` prints around any exercise: stubs, hints, and errors in the reader's code."""

import re

import pytest
import torch

from exercises import Hint, call, close, expect, expect_tensor, verdict


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


def test_an_error_in_the_readers_code_is_reported_with_its_place():
    def broken(x):
        return x / 0

    assert "your code raised ZeroDivisionError: division by zero (line" in verdict(double, broken)
    assert "in broken)" in verdict(double, broken)


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
