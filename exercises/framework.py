"""Write checks: `exercise` registers one, `Hint` explains a wrong answer, and helpers read an answer in many spellings.

The checks of notebook NN are in `notebook_NN.py`, each a function decorated with `@exercise`. A stub has `...` where
the answer belongs, which distinguishes an untouched stub from a wrong answer.
"""

import ast
import contextlib
import random
import re
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from exercises.errors import remedy

CHECKS: dict[str, Callable] = {}
POINTS: dict[str, int] = {}
# the exercises whose answers are parts of the reader's BERT, each with that part's name
PART_NAMES: dict[str, str] = {}
SIZES: dict[str, tuple[Callable, dict[str, tuple]]] = {}  # checks that try several sizes, with the sizes by name
CORRECT, WRONG, NOT_ATTEMPTED = "correct.", "not yet.", "not attempted yet."  # the beginnings of verdicts
HERE = Path(__file__).parent
PYTHON = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
LIBRARY_FOLDERS = PYTHON | {HERE, HERE.parent / "utils", HERE.parent / "views"}
THOUSANDS = re.compile(r"(?<=\d)(?<!\b0)[,_'’ \u00a0\u202f](?=\d{3}(?!\d))")  # 0,125 has a decimal comma
DOTS = re.compile(r"-?[1-9]\d{0,2}(\.\d{3}){2,}")  # 23.837.184; one dot is a decimal point
UNIT = re.compile(r"(?i)\s*(bits?|nats|numbers|parameters|weights|scores|pairs|heads)$")
PERCENT = re.compile(r"(?i)\s*(%|per ?cent)$")
BETWEEN = re.compile(r"(?<=[\d.])\s*[xX×;\s]\s*(?=-?\d)")  # two numbers of 2 × 9, or of an array as NumPy prints it
CUT_OFF = (
    "The values are right, but gradients do not flow back through all of your code, so it could not be trained. "
    "Remove any detach, .data or torch.no_grad()."
)


CHANGES_INPUT = "Your function changes its input in place. Make new tensors instead (x + …, not x += …)."


class Hint(Exception):  # noqa: N818 - not an error but help for the reader
    """Explain a wrong answer; after a first hint, `later` explains it in more detail."""

    def __init__(self, hint: str, later: str = ""):
        super().__init__(hint)
        self.later = later or hint


class NotAttempted(Exception):  # noqa: N818
    """The stub's `...` is still there."""


def exercise(number: str, points: int = 1, sizes: dict[str, tuple] | None = None, part: str | None = None) -> Callable:
    """Register a check, a function that takes the answer, raises `Hint` if it is wrong, and may return a remark.

    `points` are the minutes that the notebook states, divided by 7 and rounded.
    `sizes` are further arguments by a name such as "H = 18 and 3 heads": the function runs with each in turn.
    `part` is a name in `exercises.parts.PARTS`: a right answer must also work wherever BERT calls it, and is saved.
    """

    def register(function: Callable) -> Callable:
        CHECKS[number] = at_every_size(function, sizes) if sizes else function
        POINTS[number] = points
        if part:
            PART_NAMES[number] = part
        if sizes:
            SIZES[number] = function, sizes
        return function

    return register


def at_every_size(function: Callable, sizes: dict[str, tuple]) -> Callable:
    """Return a check that runs `function` at each of the sizes, and names the first at which the answer is wrong."""
    (first, its_size), *others = sizes.items()

    def check_answer(answer):
        remark = function(answer, *its_size)
        for name, size in others:
            try:
                function(answer, *size)
            except NotAttempted:
                raise
            except Exception as error:
                found = str(error) if isinstance(error, Hint) else describe_error(error).replace("your", "Your", 1)
                where, later = f"It works for {first}, but not for {name}. ", getattr(error, "later", found)
                raise Hint(where + found, where + later) from error
        return remark

    return check_answer


def verdict(check_answer: Callable, answer, seed: int = 0, tries: int = 0) -> str:
    """Return the verdict on an answer: correct, not attempted, a hint, or the error of the reader's code.

    `tries` counts earlier wrong answers: after the first, a hint may say more.
    """
    try:
        with seeded(seed):
            remark = check_answer(wrap_answer(answer))
    except NotAttempted:
        return f"{NOT_ATTEMPTED} Replace the ... and run the cell again."
    except Hint as hint:
        return f"{WRONG} {hint.later if tries else hint}"
    except Exception as error:
        line, known = describe_error(error), find_remedy(error)
        return f"{WRONG} {line.replace('your', 'Your', 1)}" if known and known in line else line
    return f"{CORRECT} {remark or ''}".rstrip()


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch, NumPy and Python inside, with torch's usual settings, and restore their generators afterwards."""
    of_numpy, of_python = np.random.get_state(), random.getstate()  # noqa: NPY002 - a reader's code may draw from it
    with torch.random.fork_rng(devices=[]), usual_settings():
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(of_numpy)  # noqa: NPY002
            random.setstate(of_python)


@contextlib.contextmanager
def usual_settings() -> Iterator[None]:
    """Compute inside with gradients, outside inference mode, in float32; restore what a reader has set afterwards."""
    dtype = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)


def describe_error(error: Exception) -> str:
    """Describe an error by the last line of the reader's own code in its traceback, or as a failure of the check.

    A common error is followed by a remedy.
    """
    frames = traceback.extract_tb(error.__traceback__)
    known = find_remedy(error)
    raised = raised_words(error, brief=bool(known))
    own = [frame for frame in frames if is_readers_code(frame.filename)]
    if own:
        last = own[-1]
        in_cell = re.search("ipykernel_|ipython-input", last.filename)
        where = "the cell" if in_cell else Path(last.filename).name
        return f"your code raised {raised} (line {last.lineno} of {where}, in {last.name}). {known}".rstrip()
    if any(frame.name == call.__name__ for frame in frames if Path(frame.filename).parent == HERE):
        # it was raised by the call: the function takes other arguments, or is written in C
        return f"your code raised {raised}. {known}".rstrip()
    return (
        f"the check itself failed on this answer, with {raised}. Your code raised no error, but it may return "
        "something unusual: compare it with the exercise's description, or with the solution."
    )


def raised_words(error: BaseException, brief: bool) -> str:
    """Return an error's type and message; `brief` leaves out all lines of the message but the first."""
    message = str(error)
    if brief:
        message = message.partition("\n")[0].removesuffix(", but expected one of:")
    return f"{type(error).__name__}: {message}"


def find_remedy(error: BaseException) -> str:
    """Return what to do about a common error of the reader's code, or an empty string."""
    own = readers_frames(error)
    if not own and "positional argument" in str(error):
        return "Keep the arguments of the original cell, including self."
    with contextlib.suppress(Exception):  # the reader's objects may refuse to be inspected
        return remedy(error, *(own[-1] if own else (None,)))
    return ""


def readers_frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Return the frames of the reader's own code that an error left, each with its line number."""
    frames = traceback.walk_tb(error.__traceback__)
    return [(frame, line) for frame, line in frames if is_readers_code(frame.f_code.co_filename)]


def is_readers_code(filename: str) -> bool:
    """Return whether a file of a traceback is a cell, or is outside Python, its packages and this project."""
    if filename.startswith("<"):  # <frozen …>, <string>; old IPython names cells <ipython-input-…>
        return "ipython-input" in filename
    folders = Path(filename).parents
    return not LIBRARY_FOLDERS & set(folders) and not {"site-packages", "dist-packages"} & {f.name for f in folders}


def wrap_answer(answer):
    """Return the answer, or raise NotAttempted for a stub; a function is wrapped so that its results are checked."""
    if is_stub(answer):
        raise NotAttempted
    if not callable(answer):
        return answer
    name = reference_name(answer)
    expect(not name, f"This is the series' own {name}, or inherits from it. Write your own version.")
    if isinstance(answer, type):
        return answer

    def wrapped(*arguments, **options):
        return call(answer, *arguments, **options)

    wrapped.itself = answer  # for checks of functions that may return None
    return wrapped


def reference_name(answer: Callable) -> str:
    """Return the name of the definition in `utils` that an answer is, belongs to or inherits from; "" if none."""
    answer = getattr(answer, "func", answer)  # of a functools.partial
    kinds = answer.__mro__ if isinstance(answer, type) else (answer, *type(answer).__mro__)
    for kind in kinds:
        if str(getattr(kind, "__module__", "")).split(".")[0] == "utils":
            return getattr(kind, "__qualname__", type(kind).__qualname__)
    return ""


def call(function: Callable, *arguments, **options):
    """Call the reader's function or module; NotAttempted if it still returns `...`, `Hint` if it returns None."""
    result = function(*arguments, **options)
    if is_stub(result):
        raise NotAttempted
    if result is None:
        raise Hint("Your function returns None. Does it end with `return`?")
    return result


def is_stub(answer) -> bool:
    """Return whether the answer is `...`, or a tuple, list or dict that contains `...`."""
    if isinstance(answer, dict):
        answer = list(answer.values())
    if isinstance(answer, (tuple, list)):
        return any(item is ... for item in answer)
    return answer is ...


def two_things(answer, named: str) -> tuple:
    """Return an answer's function and what is with it; `Hint` unless it is a pair, `NotAttempted` for a stub."""
    pair = isinstance(answer, (tuple, list)) and len(answer) == 2
    expect(pair, f"Give two things: {named}.")
    function, other = answer
    if is_stub(function) or is_stub(other):
        raise NotAttempted
    expect_function(function)
    return function, other


def as_letter(value, letters: str) -> str:
    """Return one of some letters from "b", "B" or "(b)"; `Hint` for anything else."""
    letter = str(value).strip(" ().").lower()
    expect(len(letter) == 1 and letter in letters, f"Give the title's letter, one of {', '.join(letters)}.")
    return letter


def expect_tensor(value, shape: tuple[int, ...], name: str = "Your result", dtype=None) -> Tensor:
    """Return the value, a tensor or NumPy array, as a tensor; `Hint` if it is something else or has another shape.

    `dtype` is the dtype of the inputs: a tensor must have it, while an array may have its own.
    """
    wanted = dtype if isinstance(value, Tensor) else None
    if isinstance(value, np.ndarray):
        with contextlib.suppress(TypeError):  # an array of strings or objects
            value = torch.from_numpy(value)
    if not isinstance(value, Tensor):
        pair = type(value).__module__ == "torch.return_types"  # of max, min, sort and others with a dim
        found = "the pair (values, indices). Add .values" if pair else f"a {type(value).__name__}"
        raise Hint(f"{name} should be a torch tensor, but it is {found}.")
    if tuple(value.shape) != tuple(shape):
        raise Hint(f"{name} should have the shape {tuple(shape)}, but it has {tuple(value.shape)}.")
    same = wanted in (None, value.dtype)
    expect(same, f"{name} should have the dtype {dtype} of the inputs, but it has {value.dtype}.")
    return value


def expect(condition, hint: str, later: str = "") -> None:
    """Raise `Hint(hint, later)` unless the condition is true; an error while it is evaluated counts as false."""
    with contextlib.suppress(Exception):
        if bool(condition):
            return
    raise Hint(hint, later)


def expect_function(answer) -> None:
    """Raise `Hint` unless the answer is callable and is not a class."""
    kind = type(answer).__name__
    expect(callable(answer), f"Pass check the function itself, not a value of type {kind}.")
    name = getattr(answer, "__name__", "")
    expect(not isinstance(answer, type), f"{name} is a class. Pass check a function, or an instance, {name}(…).")


def as_number(answer, question: str = "The answer") -> float:
    """Return the answer as a number, from a tensor of one element or text such as "7,087,872" or "1.75 bits", too."""
    try:
        if isinstance(answer, str):
            plain = THOUSANDS.sub("", UNIT.sub("", answer.strip())).replace(",", ".").replace("−", "-")
            plain = plain.replace(".", "") if DOTS.fullmatch(plain) else plain
            top, slash, bottom = plain.partition("/")
            return float(top) / (float(bottom) if slash else 1)
        if not isinstance(answer, bool):
            return float(answer.item() if hasattr(answer, "item") else answer)
    except (TypeError, ValueError, RuntimeError, ArithmeticError):
        pass
    shape = getattr(answer, "shape", ())
    found = f"has the shape {tuple(shape)}" if shape else f"is of type {type(answer).__name__}"
    found = f"is the text “{answer}”" if isinstance(answer, str) else found
    raise Hint(f"{question} should be a number, but it {found}.")


def as_share(answer, name: str) -> float:
    """Return the answer as a number; of a text in per cent, such as "37.5 %" or "50 percent", the share."""
    number, percents = PERCENT.subn("", answer.strip()) if isinstance(answer, str) else (answer, 0)
    return as_number(number, name) / 100**percents


def as_shape(answer, question: str = "The answer") -> tuple[int | float, ...]:
    """Return a tuple, list, torch.Size, text or tensor of sizes as a tuple; a matrix counts as its own shape."""
    answer = from_text(answer)
    if isinstance(answer, (Tensor, np.ndarray)) and answer.ndim > 1:
        return tuple(answer.shape)
    try:
        sizes = None if isinstance(answer, str) else list(answer)
    except TypeError:
        sizes = None
    kind = type(answer).__name__
    expect(sizes is not None, f"{question} should be a shape, a tuple such as (2, 3), but it is of type {kind}.")
    numbers = [as_number(size, f"{question}: each size") for size in sizes]
    return tuple(int(number) if number.is_integer() else number for number in numbers)


def from_text(answer):
    """Return the numbers in a text such as "(2, 3)", "2, 3" or "2 × 3"; return anything else unchanged."""
    if isinstance(answer, str):
        plain = BETWEEN.sub(", ", answer.strip().removeprefix("torch.Size").replace("−", "-"))
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(plain)
    return answer


def as_positions(answer, count: int) -> list[int]:
    """Return sorted positions from a list, set, range, tensor, number, "all" or `count` booleans."""
    answer = from_text(answer)
    if isinstance(answer, str) and answer.strip().lower() == "all":
        return list(range(count))
    example = f"Give the positions as a list of numbers such as [0, 1], not {answer!r:.60}."
    expect(not isinstance(answer, str), example)
    try:
        listed = answer.tolist() if hasattr(answer, "tolist") else answer
        listed = [listed] if isinstance(listed, (int, float)) else list(listed)
        numbers = [float(number) for number in listed]
    except (TypeError, ValueError, RuntimeError):
        raise Hint(example) from None
    if listed and all(isinstance(item, bool) for item in listed):
        expect(len(listed) == count, f"Give {count} booleans, one for each token, or a list of positions.")
        return [position for position, chosen in enumerate(listed) if chosen]
    expect(all(number.is_integer() for number in numbers), "Positions are whole numbers, counted from 0.")
    expect(len(set(numbers)) == len(numbers), "A position appears twice. List each position once.")
    return sorted(int(number) for number in numbers)


def as_tensor(value):
    """Return a list or tuple of numbers, lists or tensors as one tensor; return anything else unchanged."""
    if isinstance(value, (list, tuple)):
        with contextlib.suppress(Exception):
            return torch.stack([torch.as_tensor(as_tensor(item)) for item in value])
    return value


def close(value, wanted, tolerance: float = 1e-5) -> bool:
    """Return whether two tensors or numbers agree in shape and to within `tolerance`; False if not comparable."""
    try:
        value, wanted = (torch.as_tensor(item).detach().double() for item in (value, wanted))
        return value.shape == wanted.shape and torch.allclose(value, wanted, rtol=tolerance, atol=tolerance)
    except Exception:
        return False


def expect_gradients(result, wanted: Tensor, sources: Sequence[Tensor], hint: str) -> None:
    """Raise `Hint(hint)` unless the result has the same gradients for the sources as `wanted`."""
    direction = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(0))
    expect(isinstance(result, Tensor) and result.requires_grad, hint)
    found, right = (
        torch.autograd.grad((values * direction).sum(), sources, allow_unused=True, retain_graph=True)
        for values in (result, wanted)
    )
    for ours, official in zip(found, right, strict=True):
        if official is not None:
            near = 1e-3 * official.norm() + 1e-5  # the gradient of a key's bias is 0 up to rounding
            expect(ours is not None and (ours - official).norm() <= near, hint)


class Without(TorchDispatchMode):
    """Raise `Hint` inside for every torch operator whose name contains one of the words, however it is called."""

    def __init__(self, hint: str, *words: str):
        super().__init__()
        self.hint, self.words = hint, words

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Return False, so that torch does not import its compiler, which takes half a second."""
        return False

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        """Run the operator, unless the reader has to write it."""
        expect(not any(word in operator._schema.name for word in self.words), self.hint)
        return operator(*arguments, **(options or {}))


def compare_stages(stages: Iterable[tuple[str, Tensor, Tensor]], hints: Mapping[str, str]) -> None:
    """Compare stages (name, the reader's tensor, the official one) in turn; a `Hint` names the first that differs.

    `hints` has a remedy for each stage. With a generator, later stages run only once the earlier ones agree.
    """
    passed = []
    for name, ours, official in stages:
        ours = expect_tensor(
            ours, official.shape, f"Everything is right up to “{name}”, but there your result", official.dtype
        )
        if not close(ours, official, 1e-4):
            difference = (ours.detach().double() - official.double()).abs().max().item()
            start = f"Right so far: {', '.join(passed)}. " if passed else ""
            if ours.isnan().any():
                raise Hint(f"{start}“{name}” contains nan, which 0 × ∞ and ∞ − ∞ give. {hints.get(name, '')}")
            raise Hint(f"{start}“{name}” differs from the official model by {difference:.2g}. {hints.get(name, '')}")
        passed.append(name)
