"""Instant checks for the exercises: `check("3.1", answer)` prints whether the answer is right, or a hint.

`solved("3.1", answer)` tells a program the same as True or False; `python -m exercises grade` marks what a class has
handed in. The checks of notebook NN live in `notebook_NN.py`, each a function decorated with `@exercise`. A stub
leaves `...` where the answer belongs, so an untouched stub is told from a wrong answer.
"""

import ast
import contextlib
import importlib
import io
import pkgutil
import random
import re
import sysconfig
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

CHECKS: dict[str, Callable] = {}
POINTS: dict[str, int] = {}
# the exercises whose answers are parts of the reader's BERT, each with that part's name
PART_NAMES: dict[str, str] = {}
SIZES: dict[str, tuple[Callable, dict[str, tuple]]] = {}  # a check that tries several sizes, and these, by name
TRIES: Counter[str] = Counter()  # how often `check` has found an exercise wrong in this session
CORRECT, WRONG, NOT_ATTEMPTED = "correct.", "not yet.", "not attempted yet."  # how a verdict begins
HERE = Path(__file__).parent
PYTHON = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
NOT_THE_READERS = PYTHON | {HERE, HERE.parent / "utils", HERE.parent / "views"}
THOUSANDS = re.compile(r"(?<=\d)(?<!\b0)[,_'’ \u00a0\u202f](?=\d{3}(?!\d))")  # 0,125 has a decimal comma
UNIT = re.compile(r"\s*(bits?|numbers|parameters|weights)$")
CUT_OFF = (
    "The values are right, but gradients do not get back through all of it, so that nothing could be trained: no "
    "detach, no .data, no torch.no_grad()."
)


class Hint(Exception):  # noqa: N818 - not an error: what helps a reader on
    """A wrong answer, in words that help; `later` are those for whoever has had a hint before, and tell more."""

    def __init__(self, hint: str, later: str = ""):
        super().__init__(hint)
        self.later = later or hint


class NotAttempted(Exception):  # noqa: N818
    """The stub's `...` is still there."""


def exercise(number: str, points: int = 1, sizes: dict[str, tuple] | None = None, part: str | None = None) -> Callable:
    """Register a check function: it takes the answer, raises `Hint` if it is wrong, may return a closing remark.

    Points say how hard the exercise is: 1 for a prediction, 2 for a few lines, 3 for a module or a longer function.
    With `sizes`, further arguments by a name such as "H = 18 and 3 heads", the function is run with each in turn.
    With `part`, a name of `exercises.parts.PARTS`, a right answer has to hold wherever BERT calls it, and is kept.
    """

    def register(function: Callable) -> Callable:
        CHECKS[number] = at_every_size(function, sizes) if sizes else function
        POINTS[number] = points
        if part:
            PART_NAMES[number] = part
            CHECKS[number] = as_part(CHECKS[number], part)
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
                raise Hint(f"It works for {first}, but not for {name}. {found}") from error
        return remark

    return check_answer


def as_part(check_answer: Callable, name: str) -> Callable:
    """A check whose right answers hold wherever BERT calls them, too."""

    def check_part(answer):
        from exercises.part_checks import try_part  # which stands on this module

        remark = check_answer(answer)
        try_part(name, answer)
        return remark

    return check_part


def part_remark(number: str, answer, is_right: bool) -> str:
    """Keep a right answer that is a part of BERT; return what to add to the verdict, "" if it is not such a part."""
    if number not in PART_NAMES:
        return ""
    from exercises.parts import kept
    from exercises.saving_parts import keep  # which depends on this module

    name = PART_NAMES[number]
    if not is_right:
        return "The version that check kept before still runs in your BERT." if name in kept() else ""
    with settled_chance(0):
        return keep(name, answer)


def check(number: str, answer) -> None:
    """Print one line on the answer to exercise `number`, such as "3.1"; nothing the reader's code does raises here.

    A right answer that is a part of BERT is kept, and runs in `exercises.parts.my_encoder()` from then on.
    """
    try:
        check_answer = find_check(number)
    except ValueError as error:
        print(error)
    else:
        said = verdict(check_answer, answer, tries=TRIES[str(number)])
        TRIES[str(number)] += said.startswith(WRONG)
        if not said.startswith(NOT_ATTEMPTED):
            said = f"{said} {part_remark(str(number), answer, said.startswith(CORRECT))}".rstrip()
        print(f"Exercise {number}: {said}")


def solved(number: str, answer) -> bool:
    """Whether `check` would call the answer correct; prints nothing. ValueError for a number that no exercise has."""
    check_answer = find_check(number)
    with contextlib.redirect_stdout(io.StringIO()):
        return verdict(check_answer, answer).startswith(CORRECT)


def find_check(number: str) -> Callable:
    """The check of the exercise of this number, such as "3.1"; ValueError names those that there are."""
    number = str(number)
    chapter = number.split(".")[0]
    if f"notebook_{chapter:0>2}" in {module.name for module in pkgutil.iter_modules(__path__)}:
        importlib.import_module(f"exercises.notebook_{chapter:0>2}")
    if number not in CHECKS:
        known = ", ".join(name for name in CHECKS if name.split(".")[0] == chapter)
        remedy = f"There are {known}." if known else "Write it as “3.1”."
        raise ValueError(f"There is no exercise {number}. {remedy}")
    return CHECKS[number]


def verdict(check_answer: Callable, answer, seed: int = 0, tries: int = 0) -> str:
    """The words for an answer: correct, not attempted, a hint, or what the reader's code raised.

    `tries` says how many wrong answers there were before: after the first, a hint may tell more.
    """
    try:
        with settled_chance(seed):
            remark = check_answer(wrap_answer(answer))
    except NotAttempted:
        return f"{NOT_ATTEMPTED} Replace the ... and run the cell again."
    except Hint as hint:
        return f"{WRONG} {hint.later if tries else hint}"
    except Exception as error:
        return describe_error(error)
    return f"{CORRECT} {remark or ''}".rstrip()


@contextlib.contextmanager
def settled_chance(seed: int) -> Iterator[None]:
    """Let torch, NumPy and Python draw from this seed on inside, and afterwards as if nothing had been drawn."""
    of_numpy, of_python = np.random.get_state(), random.getstate()  # noqa: NPY002 - what a reader's code draws from
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(of_numpy)  # noqa: NPY002
            random.setstate(of_python)


def describe_error(error: Exception) -> str:
    """The words for an error: the last line of the reader's own code on its way, or that the check itself failed."""
    frames = traceback.extract_tb(error.__traceback__)
    raised = f"{type(error).__name__}: {error}"
    places = [frame for frame in frames if is_readers(frame.filename)]
    if places:
        place = places[-1]
        in_cell = re.search("ipykernel_|ipython-input", place.filename)
        where = "the cell" if in_cell else Path(place.filename).name
        return f"your code raised {raised} (line {place.lineno} of {where}, in {place.name})."
    if any(frame.name == call.__name__ for frame in frames if Path(frame.filename).parent == HERE):
        # on its first line: it takes other arguments, or is written in C
        remedy = " Keep the arguments that the cell had, self included." if "positional argument" in raised else ""
        return f"your code raised {raised}.{remedy}"
    return (
        f"this answer is of a kind that the check cannot judge: it failed itself, with {raised}. Your code raised "
        "nothing. Return exactly what the exercise asks for, or compare with the solution."
    )


def is_readers(filename: str) -> bool:
    """Whether a file of a traceback is the reader's: a cell or a file outside Python, its packages and this project."""
    if filename.startswith("<"):  # <frozen …>, <string>; old IPython names cells <ipython-input-…>
        return "ipython-input" in filename
    folders = Path(filename).parents
    return not NOT_THE_READERS & set(folders) and not {"site-packages", "dist-packages"} & {f.name for f in folders}


def wrap_answer(answer):
    """The answer, once it is no stub; a function or module is wrapped so that what it returns is wrapped too."""
    if holds_stub(answer):
        raise NotAttempted
    if not callable(answer):
        return answer
    name = finished(answer)
    expect(not name, f"This is the series' own {name}, or inherits from it: write one of your own.")
    if isinstance(answer, type):
        return answer

    def wrapped(*arguments, **options):
        return call(answer, *arguments, **options)

    wrapped.itself = answer  # for what may return None
    return wrapped


def finished(answer: Callable) -> str:
    """The name of what in `utils` an answer is, a copy, part or method of it included, or inherits from; or ""."""
    answer = getattr(answer, "func", answer)  # of a functools.partial
    kinds = answer.__mro__ if isinstance(answer, type) else (answer, *type(answer).__mro__)
    for kind in kinds:
        if str(getattr(kind, "__module__", "")).split(".")[0] == "utils":
            return getattr(kind, "__qualname__", type(kind).__qualname__)
    return ""


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


def expect_tensor(value, shape: tuple[int, ...], name: str = "Your result", dtype=None) -> Tensor:
    """The value as a tensor of this shape, from a NumPy array too, else a `Hint` that says what it is.

    With `dtype`, that of what was given, a tensor must have it, too; an array may have its own.
    """
    wanted = dtype if isinstance(value, Tensor) else None
    if isinstance(value, np.ndarray):
        with contextlib.suppress(TypeError):  # an array of texts or objects
            value = torch.from_numpy(value)
    if not isinstance(value, Tensor):
        raise Hint(f"{name} should be a torch tensor, but it is a {type(value).__name__}.")
    if tuple(value.shape) != tuple(shape):
        raise Hint(f"{name} should have the shape {tuple(shape)}, but it has {tuple(value.shape)}.")
    kept = wanted in (None, value.dtype)
    expect(kept, f"{name} is {value.dtype}, but what was given is {dtype}: the next layer would refuse it.")
    return value


def expect(condition, hint: str, later: str = "") -> None:
    """Raise `Hint(hint, later)` unless the condition is true; one that cannot be evaluated counts as false."""
    with contextlib.suppress(Exception):
        if bool(condition):
            return
    raise Hint(hint, later)


def expect_function(answer) -> None:
    """Raise `Hint` for what cannot be called, and for a class."""
    kind = type(answer).__name__
    expect(callable(answer), f"Give check the function itself, not something of type {kind}.")
    name = getattr(answer, "__name__", "")
    expect(not isinstance(answer, type), f"{name} is a class: give check a function, or {name}(…), made from it.")


def as_number(answer, question: str = "The answer") -> float:
    """The answer as a number, a tensor of one or a text such as "7,087,872" or "1.75 bits" included, else a `Hint`."""
    try:
        if isinstance(answer, str):
            plain = THOUSANDS.sub("", UNIT.sub("", answer.strip())).replace(",", ".")
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


def as_shape(answer, question: str = "The answer") -> tuple[int | float, ...]:
    """A tuple, list, torch.Size, text or tensor of sizes as a tuple; of a tensor with more dimensions its own shape."""
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
    """The numbers that a text such as "(2, 3)" holds, in brackets or not; what is no such text as it is."""
    if isinstance(answer, str):
        with contextlib.suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return ast.literal_eval(answer.strip().removeprefix("torch.Size"))
    return answer


def as_positions(answer, count: int) -> list[int]:
    """The positions of an answer in order; it may be a list, set, range, tensor, number, "all" or `count` booleans."""
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
        return [place for place, chosen in enumerate(listed) if chosen]
    expect(all(number.is_integer() for number in numbers), "Positions are whole numbers, counted from 0.")
    expect(len(set(numbers)) == len(numbers), "A position stands there twice: each changes once, or not at all.")
    return sorted(int(number) for number in numbers)


def as_tensor(value):
    """A list or tuple of numbers, lists or tensors as one tensor; what makes none, and anything else, as it is."""
    if isinstance(value, (list, tuple)):
        with contextlib.suppress(Exception):
            return torch.stack([torch.as_tensor(as_tensor(item)) for item in value])
    return value


def close(value, wanted, tolerance: float = 1e-5) -> bool:
    """Whether two tensors (or numbers) agree in shape and to `tolerance`; False where they cannot be compared."""
    try:
        value, wanted = (torch.as_tensor(item).detach().double() for item in (value, wanted))
        return value.shape == wanted.shape and torch.allclose(value, wanted, rtol=tolerance, atol=tolerance)
    except Exception:
        return False


def expect_gradients(result, wanted: Tensor, sources: Sequence[Tensor], hint: str) -> None:
    """Raise `Hint(hint)` unless gradients flow from the result to the sources as they do from `wanted`."""
    direction = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(0))
    expect(isinstance(result, Tensor) and result.requires_grad, hint)
    found, right = (
        torch.autograd.grad((values * direction).sum(), sources, allow_unused=True, retain_graph=True)
        for values in (result, wanted)
    )
    for ours, official in zip(found, right, strict=True):
        if official is not None:
            near = 1e-3 * official.norm() + 1e-5  # the gradient of a key's bias is 0, and rounding
            expect(ours is not None and (ours - official).norm() <= near, hint)


class Without(TorchDispatchMode):
    """Inside, an operator of torch whose name holds one of these words gives a `Hint`, however it is called."""

    def __init__(self, hint: str, *words: str):
        super().__init__()
        self.hint, self.words = hint, words

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Keep torch from importing its compiler, half a second, to keep that away from these operators."""
        return False

    def __torch_dispatch__(self, operator, types, arguments=(), options=None):
        """Run the operator, unless it is what the reader is to write."""
        expect(not any(word in operator._schema.name for word in self.words), self.hint)
        return operator(*arguments, **(options or {}))


def climb(rungs: Iterable[tuple[str, Tensor, Tensor]], hints: Mapping[str, str], tolerance=1e-4) -> None:
    """Compare on each rung (name, the reader's tensor, the official one) in turn; a `Hint` names the first that fails.

    `hints` says for a rung what to look at. A generator makes later rungs only once the earlier ones hold.
    """
    passed = []
    for name, ours, official in rungs:
        ours = expect_tensor(ours, official.shape, f"Up to “{name}” all is well, but there your result")
        if not close(ours, official, tolerance):
            difference = (ours.detach().double() - official.double()).abs().max().item()
            climbed = f"Equal so far: {', '.join(passed)}. " if passed else ""
            if ours.isnan().any():
                raise Hint(f"{climbed}“{name}” holds nan, as 0 × ∞ and ∞ − ∞ give. {hints.get(name, '')}")
            raise Hint(f"{climbed}“{name}” differs from the official model by {difference:.2g}. {hints.get(name, '')}")
        passed.append(name)
