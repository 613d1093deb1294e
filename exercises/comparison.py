"""Declare an exercise as a table: the right function, its inputs, and the usual mistakes, each with its hint."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from exercises import (
    CUT_OFF,
    Hint,
    NotAttempted,
    Without,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
)

Mistakes = Sequence[tuple[str, Callable]]  # a hint, and a wrong function with the answer's signature
MISTAKES: dict[str, Mistakes] = {}  # by exercise number, for the tests and the page of misconceptions


def comparison(
    number: str,
    right: Callable,
    mistakes: Mistakes,
    *,
    inputs: Callable[..., tuple],
    sizes: dict[str, tuple],
    hint: str,
    later: str = "",
    what: str = "its input",
    forbidden: tuple[str, ...] = (),
    remark: str = "",
    points: int = 2,
    part: str | None = None,
) -> None:
    """Register an exercise whose answer is a function that gives what `right` gives for `inputs(*size)`."""

    def check_answer(answer, *size):
        arguments = inputs(*size)
        compare_answer(answer, right, arguments, mistakes, hint, later, what)
        if forbidden:
            with Without(*forbidden):
                answer(*copies(arguments))
        expect_differentiable(answer, right, arguments)
        return remark

    MISTAKES[number] = mistakes
    exercise(number, points=points, sizes=sizes, part=part)(check_answer)


def compare_answer(
    answer: Callable,
    right: Callable,
    arguments: tuple,
    mistakes: Mistakes,
    hint: str = "",
    later: str = "",
    what: str = "its input",
) -> None:
    """Raise the hint of the mistake that gives the same as the answer, or `hint` if the answer is not right."""
    expect_function(answer)
    given, error, result = copies(arguments), None, None
    try:
        result = answer(*given)
    except (Hint, NotAttempted):
        raise
    except Exception as raised:
        error = raised
    same = all(torch.equal(a, b) for a, b in zip(given, arguments, strict=True) if isinstance(a, Tensor))
    expect(same, f"Your function changes {what} in place. Make a new tensor instead (x + …, not x += …).")
    wanted = right(*copies(arguments))
    name_the_mistake(result, wanted, mistakes, arguments, error)
    if error:
        raise error
    result = expect_tensor(result, wanted.shape, dtype=wanted.dtype)
    expect(close(result, wanted) or not hint, hint, later)


def name_the_mistake(
    result, wanted: Tensor, mistakes: Mistakes, arguments: tuple, error: Exception | None = None
) -> None:
    """Raise the hint of the first mistake that gives the result, or raises the error, of the reader's function."""
    for words, mistake in mistakes:
        try:
            values = mistake(*copies(arguments))
        except Exception as raised:  # some mistakes fail at some sizes
            expect(repr(raised) != repr(error), words)
        else:
            expect(error or close(values, wanted) or not close(result, values), words)


def copies(arguments: tuple) -> tuple:
    """Return the arguments, with copies of the tensors among them."""
    return tuple(item.clone() if isinstance(item, Tensor) else item for item in arguments)


def expect_differentiable(answer: Callable, right: Callable, arguments: tuple) -> None:
    """Raise a hint unless gradients reach the same inputs and parameters; an answer in NumPy has none."""
    given = copies(arguments)
    tensors = [item.requires_grad_() for item in given if isinstance(item, Tensor) and item.is_floating_point()]
    parameters = [p for item in given if isinstance(item, nn.Module) for p in item.parameters()]
    try:
        result = answer(*given)
    except RuntimeError:  # NumPy refuses tensors that require gradients
        return
    if isinstance(result, Tensor):
        expect_gradients(result, right(*given), [*tensors, *parameters], CUT_OFF)
