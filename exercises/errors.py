"""Turn common errors of Python and torch into hints: what is wrong, with which values, and what to write instead."""

import inspect
import linecache
import math
import re
from collections.abc import Callable
from difflib import get_close_matches
from types import FrameType
from typing import NamedTuple

import torch
from torch import Tensor, nn

IMPORTS = {
    "math": "import math",
    "torch": "import torch",
    "np": "import numpy as np",
    "nn": "from torch import nn",
    "F": "from torch.nn import functional as F",
}
MOST = 5  # as many names or shapes are listed


class Failure(NamedTuple):
    """An error, and where it left the reader's code: the local variables, the function's arguments and the line."""

    error: BaseException
    names: dict[str, object]
    arguments: list[str]
    line: str


def remedy(error: BaseException, frame: FrameType | None, number: int = 0) -> str:
    """Return what to do about an error, "" if it is not a common one; line `number` of `frame` is the reader's last."""
    failure = Failure(error, {}, [], "")
    if frame is not None:
        code = frame.f_code
        line = linecache.getline(code.co_filename, number, frame.f_globals)
        failure = Failure(error, dict(frame.f_locals), inspect.getargs(code).args, line)
    for kinds, pattern, advice in REMEDIES:
        if isinstance(error, kinds) and (found := re.search(pattern, str(error))):
            return advice(failure, found) if callable(advice) else found.expand(advice)
    return ""


def missing_name(failure: Failure, found: re.Match) -> str:
    """Advise on a name without a value: an import, an attribute of self, a function of torch, or a spelling."""
    name, known = found[1], failure.names
    if name in IMPORTS:
        power = " For a root, ** 0.5 needs no import." if name == "math" else ""
        return f"Write `{IMPORTS[name]}` above your function.{power}"
    first = failure.arguments[0] if failure.arguments else ""
    if isinstance(known.get(first), nn.Module) and hasattr(known[first], name):
        return f"It belongs to the module, so write {first}.{name}."
    if callable(getattr(torch, name, None)):
        number = f", or math.{name} for a number" * hasattr(math, name)
        return f"Do you mean the function of torch? Write torch.{name}{number}."
    listed = ", ".join([each for each in known if each.isidentifier() and each[0] != "_"][:MOST])
    return "Check its spelling, or give it a value first." + f" The names here are {listed}." * bool(listed)


def missing_attribute(failure: Failure, found: re.Match) -> str:
    """Advise on an attribute that an object does not have: list those of a module or of a named tuple."""
    kind, thing = found[1], getattr(failure.error, "obj", None)
    if isinstance(thing, nn.Module):
        parts = ", ".join(name for name, _ in thing.named_children())
        return f"It has the parts {parts}; __init__ creates them." if parts else "Create it in __init__."
    if fields := getattr(thing, "_fields", None) or getattr(type(thing), "__dataclass_fields__", None):
        return f"It has {', '.join(fields)}."
    if kind in ("tuple", "list"):
        size = f" of {len(thing)}" if isinstance(thing, tuple | list) else ""
        return f"This is a {kind}{size}, not a tensor. Take one of its elements first, such as the one at [0]."
    compared = "It comes from a comparison in which one side is not a tensor, such as the pair that max(dim=…) returns."
    similar = get_close_matches(found[2], dir(thing), cutoff=0.75)
    return compared if kind == "bool" else f"Similar names: {', '.join(similar)}." * bool(similar)


def no_value(failure: Failure, found: re.Match) -> str:
    """Advise on None: name the variable of this line that is None."""
    used = re.findall(r"\w+", failure.line) or failure.arguments
    names = [name for name, value in failure.names.items() if value is None and name in used]
    if len(names) != 1:
        return "A value is None here. Use an optional argument only `if … is not None`."
    why = ", because there is no padding" * ("mask" in names[0])
    return f"{names[0]} is None in this call{why}. Use it only `if {names[0]} is not None`."


def no_integer(failure: Failure, found: re.Match) -> str:
    """Advise on a float in the place of a size or a position."""
    floats = {name: value for name, value in failure.names.items() if isinstance(value, float) and value.is_integer()}
    start = "".join(f"{name} is {value}, a float. " for name, value in floats.items())
    return f"{start}Sizes and positions are integers, and / always gives a float. Divide with //."


def one_number(failure: Failure, found: re.Match) -> str:
    """Advise on a tensor in the place of one number."""
    names = [name for name in re.findall(r"\bmath\.(\w+)", failure.line) if hasattr(torch, name)] or ["exp"]
    return f"math.{names[0]} takes one number, and torch.{names[0]} a whole tensor."


def no_tensor(failure: Failure, found: re.Match) -> str:
    """Advise on a number in the place of a tensor."""
    name = found[1]
    if name == "sqrt":
        return "torch.sqrt takes only tensors. The root of a number is number ** 0.5."
    return f"torch.{name} takes only tensors. For a number, use math.{name}." * hasattr(math, name)


def too_many_arguments(failure: Failure, found: re.Match) -> str:
    """Advise on the arguments of a method, which Python counts with self."""
    owner, method, taken, given = found.groups()
    for name, value in failure.names.items():
        bound = getattr(value, method, None) if type(value).__name__ == owner else None
        if inspect.ismethod(bound):
            call = name if method == "forward" else f"{name}.{method}"
            return f"Call it as {call}({', '.join(inspect.signature(bound).parameters)}): self is counted, too."
    return f"self is counted, too: write {int(taken) - 1} between the parentheses, not {int(given) - 1}."


def with_shapes(advice: str) -> "Advice":
    """Return a function that gives the advice, and the shapes of the reader's tensors."""

    def advise(failure: Failure, found: re.Match) -> str:
        shapes = [f"{name} {tuple(x.shape)}" for name, x in failure.names.items() if isinstance(x, Tensor)]
        return advice + f" The shapes here: {', '.join(shapes[-MOST:])}." * bool(shapes)

    return advise


BROADCAST = with_shapes(
    "Sizes are compared from the last one, and have to be equal or 1. A dimension of size 1 comes from [:, None] or "
    "keepdim=True."
)
PRODUCT = with_shapes(
    "In a @ b, the last size of a has to be the last but one of b. transpose(-2, -1) exchanges the last two."
)
UNPACKED = with_shapes("The names on the left are not as many as the values on the right.")
Advice = str | Callable[[Failure, re.Match], str]
REMEDIES: tuple[tuple[type | tuple, str, Advice], ...] = (  # kinds of error, words of their message, what to do
    (
        (TypeError, AttributeError),
        r"torch\.return_types\.(max|min|median|sort|topk)",
        r"\1 with a dim returns a pair, (values, indices). Add .values.",
    ),
    (EOFError, r"reading a line", "input() gets no answer here. Write the value into your code."),
    (NameError, r"^name '(\w+)' is not defined", missing_name),
    ((TypeError, AttributeError), r"NoneType|(?:masked_fill|where)\(\) received [\s\S]* got \(bool,", no_value),
    (AttributeError, r"'([\w.]+)' (?:object )?has no attribute '(\w+)'", missing_attribute),
    (
        TypeError,
        r"slice indices must be integers|tuple of ints, ?but got float|not float\b|'float' object cannot be inter|"
        r"(view|reshape|zeros|ones|expand)\(\) received .* got \([^)]*float",
        no_integer,
    ),
    (
        (ValueError, TypeError, RuntimeError),
        r"only one element tensors|cannot be converted to Scalar|only (length-1|0-dimensional) arrays",
        one_number,
    ),
    (TypeError, r"(\w+)\(\): argument '\w+' \(position 1\) must be Tensor, not (?:int|float)", no_tensor),
    (TypeError, r"(\w+)\.(\w+)\(\) takes (\d+) positional arguments? but (\d+) were given", too_many_arguments),
    (TypeError, r"transpose\(\) takes 2 positional", "transpose exchanges two dimensions; permute orders all of them."),
    (TypeError, r"missing 1 required positional arguments?: \"dim\"", "Name the dimension: dim=-1 is the last one."),
    (
        TypeError,
        r"tuple indices must be integers or slices, not tuple",
        "What is before the [ is a tuple, not a tensor. Take one of its elements first, by its name or with [0].",
    ),
    (
        TypeError,
        r"unsupported operand type\(s\) for -: 'list'",
        "Lists have no minus. Make a list of what you keep, or tensors of numbers.",
    ),
    (TypeError, r"'tuple' object does not support item", "A tuple cannot be changed. Make a new one, (…,)."),
    (
        RuntimeError,
        r"Boolean value of Tensor with more than one value",
        "if, and, or, not and in need one truth value. Compare an optional argument with None, `is not None`, and "
        "reduce a comparison of tensors with .all() or .any().",
    ),
    (
        (RuntimeError, IndexError),
        r"only supports boolean masks|where expected condition to be a boolean|tensors used as indices must be",
        "This mask holds 1 and 0. Compare it first: mask == 0.",
    ),
    (
        IndexError,
        r"shape of the mask .* does not match the shape of the indexed tensor",
        "In […], a mask needs the full shape. torch.where(…) and masked_fill(…) repeat it where it has size 1.",
    ),
    (
        TypeError,
        r"unsupported operand type\(s\) for \S+ .*'(Linear|LayerNorm|Embedding|GELU|ReLU|Tanh|Dropout)'",
        r"A \1 is a module. Call it like a function, with the tensor in parentheses.",
    ),
    (RuntimeError, r"must match the size of tensor|not broadcastable|shape mismatch", BROADCAST),
    (RuntimeError, r"mat1 and mat2 shapes cannot|Expected size for first two dimensions", PRODUCT),
    (RuntimeError, r"view size is not compatible", "After a transpose, use reshape in place of view."),
    (RuntimeError, r"is invalid for input of size", with_shapes("The sizes multiply to another number of elements.")),
    (ValueError, r"values to unpack", UNPACKED),
    (IndexError, r"Dimension out of range|too many indices", with_shapes("There is no such dimension.")),
    (
        (IndexError, RuntimeError),
        r"out of (?:range|bounds)",
        "Positions are counted from 0, so the last one is the size minus 1.",
    ),
    (
        RuntimeError,
        r"must have the same dtype|to have the same dtype|expected scalar type",
        "Two tensors have different dtypes. Convert one of them: a.to(b.dtype).",
    ),
    (
        RuntimeError,
        r"Input dtype must be either a floating point|not implemented for '(?:Long|Bool|Int)'",
        "This needs numbers with a point. Convert them first: .float().",
    ),
)
