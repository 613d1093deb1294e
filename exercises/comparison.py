"""Declare an exercise as a table: the right function, its inputs, and the usual wrong ones, each with its hint."""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from torch import Tensor
from torch.overrides import TorchFunctionMode

from exercises.arrays import expect_trainable, run_on_copies
from exercises.framework import (
    Hint,
    NotAttempted,
    Without,
    as_tensor,
    close,
    exercise,
    expect,
    expect_function,
    expect_tensor,
)
from exercises.mistakes import functions

UTILS = Path(__file__).resolve().parents[1] / "utils"
Rows = Sequence[tuple]  # a hint, and a wrong function with the answer's arguments: see exercises.mistakes.functions


def comparison(
    number: str,
    arguments: str,
    right: str,
    table: str,
    *,
    inputs: Callable[..., tuple],
    sizes: dict[str, tuple],
    later: str = "",
    forbidden: tuple[str, ...] = (),
    errors: dict[str, str] | None = None,
    own: tuple[str, str] | None = None,
    lists: bool = False,
    remark: str = "",
    points: int = 2,
    part: str | None = None,
) -> None:
    """Register an exercise whose answer is a function that gives what `right` gives for `inputs(*size)`.

    `right` and the answers of the table (see `exercises.mistakes`) are expressions of the `arguments`, with the names
    of the module that defines `inputs`. `errors` are hints for errors by a part of their message; {error} is all of
    it. `own` are the arguments of `expect_own`. With `lists`, a list of numbers or another dtype is right, too, and
    gradients are not needed.
    """
    names = inputs.__globals__
    wanted = eval(f"lambda {arguments}: {right}", names)
    rows = functions(number, arguments, table, names)
    hint = rows[-1][0]
    mistakes = [row for row in rows if row[0] != hint]

    def check_answer(answer, *size):
        given = inputs(*size)
        expect_function(answer)
        if own:
            expect_own(answer, *own)
        compare_answer(answer, wanted, given, mistakes, hint, later, errors, lists)
        if forbidden:
            with Without(*forbidden):
                answer(*copies(given))
        if not lists:
            expect_trainable(answer, wanted, *given)
        return remark

    exercise(number, points=points, sizes=sizes, part=part)(check_answer)


def compare_answer(
    answer: Callable,
    right: Callable,
    arguments: tuple,
    mistakes: Rows,
    hint: str = "",
    later: str = "",
    errors: dict[str, str] | None = None,
    lists: bool = False,
) -> None:
    """Raise the hint of the mistake that gives the same as the answer, or `hint` if the answer is not right."""
    error, result = None, None
    try:
        result = run_on_copies(answer, *arguments)
    except (Hint, NotAttempted):
        raise
    except Exception as raised:
        error = raised
    wanted = right(*copies(arguments))
    result = as_tensor(result) if lists else result
    name_the_mistake(result, wanted, mistakes, arguments, error)
    if error:
        for words, known in (errors or {}).items():
            expect(words not in str(error), known.format(error=error))
        raise error
    result = expect_tensor(result, wanted.shape, dtype=None if lists else wanted.dtype)
    expect(close(result, wanted) or not hint, hint, later)


def name_the_mistake(
    result, wanted: Tensor, mistakes: Rows, arguments: tuple, error: Exception | None = None, tolerance: float = 1e-5
) -> None:
    """Raise the hint of the first mistake that gives the result, its shape if it is a wrong one, or the same error."""
    shape, shapes = shape_of(result), []
    for words, mistake, *conditional in mistakes:
        if conditional:
            expect(error or shape != shape_of(wanted) or not holds(mistake, result, arguments), words)
            continue
        try:
            values = mistake(*copies(arguments))
        except Exception as raised:  # some mistakes fail at some sizes
            expect(repr(raised) != repr(error), words)
        else:
            expect(error or close(values, wanted, tolerance) or not close(result, values, tolerance), words)
            shapes.append((words, shape_of(values)))
    for words, wrong in shapes:
        expect(error or shape in (None, shape_of(wanted)) or shape != wrong, words)


def holds(condition: Callable, result, arguments: tuple) -> bool:
    """Return whether a condition of a table holds for a result; False if it cannot be evaluated."""
    with contextlib.suppress(Exception):
        return bool(condition(result, *copies(arguments)))
    return False


def shape_of(value) -> tuple[int, ...] | None:
    """Return the shape of a tensor or array, else None."""
    with contextlib.suppress(Exception):
        return tuple(value.shape)
    return None


class WithoutAttention(TorchFunctionMode):
    """Raise `Hint` inside where PyTorch's own attention is called."""

    def __init__(self, hint: str):
        super().__init__()
        self.hint = hint

    def __torch_function__(self, function, types, arguments=(), options=None):
        """Run the function, unless it is attention."""
        name = getattr(function, "__name__", "")
        expect("scaled_dot_product" not in name and "multi_head_attention" not in name, self.hint)
        return function(*arguments, **(options or {}))


@contextlib.contextmanager
def without_ours(remedy: str) -> Iterator[None]:
    """Raise `Hint` inside where code of `utils` runs, under whatever name, or PyTorch's own attention."""
    before = sys.getprofile()

    def watch(frame, event, _) -> None:
        if event == "call" and Path(frame.f_code.co_filename).parent == UTILS:
            sys.setprofile(before)
            raise Hint(f"This calls the series' own `{frame.f_code.co_name}`. Instead, {remedy}")

    sys.setprofile(watch)
    try:
        with WithoutAttention(f"This calls PyTorch's own attention. Instead, {remedy}"):
            yield
    finally:
        sys.setprofile(before)


def expect_own(answer: Callable, name: str, remedy: str) -> None:
    """Raise `Hint` if the answer calls the series' function of this name; a reader's own may have the same name."""
    function = inspect.unwrap(getattr(answer, "itself", answer))
    try:
        used = inspect.getclosurevars(function)
    except TypeError:  # not a Python function
        return
    for value in (used.nonlocals | used.globals).values():
        module = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if str(module).split(".")[0] == "utils":
            named = function.__code__.co_names if inspect.ismodule(value) else [getattr(value, "__name__", "")]
            expect(name not in named, f"This calls the series' own `{name}`. Instead, {remedy}")


def copies(arguments: tuple) -> tuple:
    """Return the arguments, with copies of the tensors among them."""
    return tuple(item.clone() if isinstance(item, Tensor) else item for item in arguments)
