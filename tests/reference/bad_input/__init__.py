"""Inputs that readers may use, by entrance, with their outcome: a correct result, or a clear error.

Each row has a name and a call that receives the folder of a tiny checkpoint.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Good:
    """Unusual input that is taken: the call returns whether the result is correct."""

    name: str
    call: Callable[[Path], bool]


@dataclass(frozen=True)
class Bad:
    """Input that is refused, words of the message, and a call that does what the message advises."""

    name: str
    call: Callable[[Path], object]
    message: str
    remedy: Callable[[Path], object]
    error: type[Exception] = ValueError


def each(*calls):
    """Do one after another, such as the several things that a message offers."""
    return lambda folder: all(call(folder) is not False for call in calls)
