"""Each common error of a reader's code gets its remedy, and an answer that raises it is wrong, not a failed check."""

import math
from collections import namedtuple

import pytest
import torch
from torch import nn

from exercises.framework import verdict

Output = namedtuple("Output", "states weights")
X = torch.ones(2, 3)


class Block(nn.Module):
    """A module with a part and a method."""

    def __init__(self):
        super().__init__()
        self.part = nn.Linear(3, 3)

    def twice(self, x):
        return 2 * x


def reads_a_mask(mask=None, other=None):
    return mask[:, None]


def reads_none(first=None, second=None):
    nothing = first or second
    return nothing + (first or second)


def halves(x=X):
    half = x.size(1) / 2
    return x.view(half, 2)


def slices(x=X, scale=2.5):
    end = x.size(1) / 3
    return x[:end]


def changes_a_tuple(inputs=(X,)):
    inputs[0] = X


def unpacks(x=X):
    B, S, H = x.shape
    return B, S, H


def without_self(self=Block()):  # noqa: B008
    return part(X)  # noqa: F821


CASES = (
    (lambda: X - X.max(dim=1), "max with a dim returns a pair, (values, indices). Add .values."),
    (lambda: X.sort(dim=1).exp(), "sort with a dim returns a pair"),
    (lambda: np.sqrt(2), "Write `import numpy as np` above your function."),  # noqa: F821
    (without_self, "It belongs to the module, so write self.part."),
    (lambda: sqrt(2), "Write torch.sqrt, or math.sqrt for a number."),  # noqa: F821
    (lambda: relu(2), "Do you mean the function of torch? Write torch.relu."),  # noqa: F821
    (lambda x=X: hidden + x, "Check its spelling, or give it a value first. The names here are x."),  # noqa: F821
    (reads_a_mask, "mask is None in this call, because there is no padding. Use it only `if mask is not None`."),
    (reads_none, "A value is None here. Use an optional argument only"),
    (lambda: Block().parts, "It has the parts part; __init__ creates them."),
    (lambda: nn.ReLU().size, "Create it in __init__."),
    (lambda: Output(1, 2).hidden, "It has states, weights."),
    (lambda: (X, X).clone(), "This is a tuple of 2, not a tensor."),
    (lambda: (X.max(dim=1) == X).sum(), "one side is not a tensor"),
    (lambda: torch.sofmax(X, -1), "Similar names: softmax"),
    (lambda: X.meen(), "Similar names: mean"),
    (lambda: [1, 2] - [1], "Lists have no minus."),
    (lambda: X.shift, "Tensor' object has no attribute 'shift'"),
    (halves, "Sizes and positions are integers, and / always gives a float."),
    (slices, "end is 1.0, a float. Sizes and positions are integers, and / always gives a float."),
    (lambda: range(6 / 2), "Divide with //."),
    (lambda: math.tanh(X), "math.tanh takes one number, and torch.tanh a whole tensor."),
    (lambda: torch.exp(2), "torch.exp takes only tensors. For a number, use math.exp."),
    (lambda block=Block(): block.twice(X, 2), "Call it as block.twice(x): self is counted, too."),  # noqa: B008
    (lambda: Block().twice(X, 2), "self is counted, too: write 1 between the parentheses, not 2."),
    (lambda: X.transpose(0, 1, 2), "permute orders all of them"),
    (lambda: torch.softmax(X), "dim=-1 is the last one"),
    (lambda: Output(X, X)[:, 0], "by its name or with [0]"),
    (changes_a_tuple, "A tuple cannot be changed. Make a new one"),
    (lambda: X if X == 1 else 0, "reduce a comparison of tensors with .all() or .any()"),
    (lambda: X.masked_fill(X.long(), 0.0), "Compare it first: mask == 0."),
    (lambda x=X, y=X.T: x + y, "keepdim=True. The shapes here: x (2, 3), y (3, 2)."),
    (lambda: X[(X > 0)[:1]], "In […], a mask needs the full shape."),
    (lambda: X + nn.ReLU(), "A ReLU is a module. Call it like a function, with the tensor in parentheses."),
    (lambda x=X: x @ x, "transpose(-2, -1) exchanges the last two. The shapes here: x (2, 3)."),
    (lambda: X.T.view(6), "use reshape in place of view"),
    (lambda: X.view(4, 2), "The sizes multiply to another number of elements."),
    (unpacks, "The names on the left are not as many as the values on the right. The shapes here: x (2, 3)."),
    (lambda: X.sum(2), "There is no such dimension."),
    (lambda: X[5], "Positions are counted from 0"),
    (lambda: X @ X.T.double(), "Convert one of them: a.to(b.dtype)."),
    (lambda: X.long().mean(), "Convert them first: .float()."),
)


@pytest.mark.parametrize(("answer", "words"), CASES)
def test_common_error_gets_its_remedy(answer, words):
    line = verdict(lambda wrapped: wrapped(), answer)
    assert words in line
    assert line.startswith("not yet. Your code raised ") or "'shift'" in words
    assert "\n" not in line
