"""Instant checks for the exercises: `check("3.1", answer)` prints whether the answer is right, or a hint.

The checks of notebook NN live in `notebook_NN.py`, each a function decorated with `@exercise`. A stub leaves `...`
where the answer belongs, so an untouched stub is told from a wrong answer.
"""

import contextlib
import importlib
import pkgutil
import traceback
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import torch

CHECKS: dict[str, Callable] = {}


class Hint(Exception):  # noqa: N818 - not an error: what helps a reader on
    """A wrong answer, in words that help."""


class NotAttempted(Exception):  # noqa: N818
    """The stub's `...` is still there."""


def exercise(number: str) -> Callable:
    """Register a check function: it takes the answer, raises `Hint` if it is wrong, may return a closing remark."""

    def register(function: Callable) -> Callable:
        CHECKS[number] = function
        return function

    return register


def check(number: str, answer) -> None:
    """Print one line on the answer to exercise `number`, such as "3.1"; nothing the reader's code does raises here."""
    number = str(number)
    chapter = number.split(".")[0]
    if f"notebook_{chapter:0>2}" in {module.name for module in pkgutil.iter_modules(__path__)}:
        importlib.import_module(f"exercises.notebook_{chapter:0>2}")
    if number in CHECKS:
        print(f"Exercise {number}: {verdict(CHECKS[number], answer)}")
    else:
        known = ", ".join(name for name in CHECKS if name.split(".")[0] == chapter)
        print(f"There is no exercise {number}. " + (f"There are {known}." if known else "Write it as “3.1”."))


def verdict(check_answer: Callable, answer) -> str:
    """The words for an answer: correct, not attempted, a hint, or what the reader's code raised."""
    try:
        with torch.random.fork_rng(devices=[]):
            remark = check_answer(guard(answer))
    except NotAttempted:
        return "not attempted yet. Replace the ... and run the cell again."
    except Hint as hint:
        return f"not yet. {hint}"
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"your code raised {type(error).__name__}: {error} (line {place.lineno}, in {place.name})."
    return f"correct. {remark or ''}".rstrip()


def guard(answer):
    """The answer, once it is no stub; a function is wrapped so that what it returns is guarded too."""
    if holds_stub(answer):
        raise NotAttempted
    if not callable(answer) or isinstance(answer, (type, torch.nn.Module, torch.Tensor)):
        return answer

    return lambda *arguments, **options: call(answer, *arguments, **options)


def call(function: Callable, *arguments, **options):
    """What the reader's function or module returns; NotAttempted if it still returns `...`, Hint if it returns None."""
    result = function(*arguments, **options)
    if holds_stub(result):
        raise NotAttempted
    if result is None:
        raise Hint("It returns None: does it end with `return`?")
    return result


def holds_stub(answer) -> bool:
    """Whether the answer is `...`, or a tuple, list or dict with `...` in it."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, (tuple, list)):
        return any(item is ... for item in answer)
    return answer is ...


def expect_tensor(value, shape: tuple[int, ...], name: str = "Your result") -> torch.Tensor:
    """The value as a tensor of this shape, from a NumPy array too, else a `Hint` that says what it is."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if not isinstance(value, torch.Tensor):
        raise Hint(f"{name} should be a torch tensor, but it is a {type(value).__name__}.")
    if tuple(value.shape) != tuple(shape):
        raise Hint(f"{name} should have the shape {tuple(shape)}, but it has {tuple(value.shape)}.")
    return value


def expect(condition, hint: str) -> None:
    """Raise `Hint(hint)` unless the condition is true; a condition that cannot be evaluated counts as false."""
    with contextlib.suppress(Exception):
        if bool(condition):
            return
    raise Hint(hint)


def expect_function(answer) -> None:
    """Raise `Hint` for what cannot be called."""
    expect(
        callable(answer), f"Give check the function itself, not something of type {type(answer).__name__}."
    )


def as_number(answer, question: str) -> float:
    """The answer as a number, else a `Hint` that says what was asked for."""
    try:
        return float(answer)
    except (TypeError, ValueError, RuntimeError):
        raise Hint(f"{question} should be a number, but it is of type {type(answer).__name__}.") from None


def as_shape(answer, question: str) -> tuple[int, ...]:
    """A tuple, list, torch.Size or tensor of sizes as a tuple; of a tensor with more dimensions its own shape."""
    if isinstance(answer, torch.Tensor) and answer.dim() > 1:
        return tuple(answer.shape)
    try:
        return tuple(int(size) for size in answer)
    except (TypeError, ValueError):
        raise Hint(
            f"{question} should be a tuple such as (2, 3), but it is of type {type(answer).__name__}."
        ) from None


def close(value, wanted, tolerance: float = 1e-5) -> bool:
    """Whether two tensors (or numbers) agree in shape and to `tolerance`; False where they cannot be compared."""
    try:
        value, wanted = (torch.as_tensor(item).detach().double() for item in (value, wanted))
        return value.shape == wanted.shape and torch.allclose(value, wanted, rtol=tolerance, atol=tolerance)
    except Exception:
        return False


def climb(
    rungs: Iterable[tuple[str, torch.Tensor, torch.Tensor]], hints: Mapping[str, str], tolerance=1e-4
) -> None:
    """Compare on each rung (name, the reader's tensor, the official one) in turn; a `Hint` names the first that fails.

    `hints` says for a rung what to look at. A generator makes later rungs only once the earlier ones hold.
    """
    passed = []
    for name, ours, official in rungs:
        ours = expect_tensor(ours, official.shape, f"Up to “{name}” all is well, but there your result")
        if not close(ours, official, tolerance):
            difference = (ours.detach().double() - official.double()).abs().max().item()
            climbed = f"Equal so far: {', '.join(passed)}. " if passed else ""
            raise Hint(
                f"{climbed}“{name}” differs from the official model by {difference:.2g}. {hints.get(name, '')}"
            )
        passed.append(name)
