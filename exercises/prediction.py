"""Declare an exercise as a table: the right value, or several, and the usual wrong ones, each with its hint."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from exercises.framework import Hint, exercise, expect
from exercises.mistakes import MISTAKES, Wrong, read_table

PREDICTIONS: dict[str, Callable[[], list]] = {}  # what gives the right values, by exercise


def prediction(
    number: str,
    read: Callable | Sequence[Callable],
    table: str,
    *,
    ask: str = "",
    near: Callable = operator.eq,
    good: Callable | None = None,
    names: Callable[[], Mapping] = dict,
    later: str = "",
    remark: str = "",
    points: int = 1,
) -> None:
    """Register an exercise whose answer is a value, or several.

    For each value the table (see `exercises.mistakes`) has a line `= right value`, then the wrong ones; `read` reads
    one, or has a reader for each, and `ask` is the hint for another number of values. `near(value, wrong)` is whether a
    value is a wrong one of the table, and `good(value, right)`, by default the same, whether it is right. `names` are
    used in the table, and `later` is its last hint in more detail.
    """
    readers = read if isinstance(read, Sequence) else [read]
    parts = [part.partition("\n") for part in re.split(r"^ *= ", table, flags=re.MULTILINE)[1:]]
    tables = [read_table(rows) for *_, rows in parts]

    def value_of(source: str, **given):
        return eval(source, {**names(), **given})

    def right_values() -> list:
        return [value_of(right) for right, *_ in parts]

    def check_answer(answer):
        values = split(answer) if len(parts) > 1 else [answer]
        values = [reader(value) for reader, value in zip(readers, values, strict=True)]
        for value, right, mistakes in zip(values, right_values(), tables, strict=True):
            if not (good or near)(value, right):
                name_the_mistake(value, mistakes)
        return remark

    def split(answer) -> list:
        answer = answer.tolist() if hasattr(answer, "tolist") else answer
        expect(isinstance(answer, (tuple, list)) and len(answer) == len(parts), ask)
        return answer

    def name_the_mistake(value, mistakes) -> None:
        for each in mistakes:
            if any(near(value, value_of(wrong)) for wrong in each.answers) or value_of(each.condition, answer=value):
                break
        raise Hint(each.hint, later if each is mistakes[-1] else "")

    def answer_with(at: int, wrong: str):
        values = right_values()
        values[at] = value_of(wrong)
        return values if len(parts) > 1 else values[0]

    PREDICTIONS[number] = right_values
    for at, mistakes in enumerate(tables):
        for each in mistakes:
            MISTAKES[number] += [Wrong(wrong, each.hint, partial(answer_with, at, wrong)) for wrong in each.answers]
    exercise(number, points=points)(check_answer)


def within(margin: float) -> Callable[[float, float], bool]:
    """Return whether two numbers differ by at most `margin`."""
    return lambda value, other: abs(value - other) <= margin


def close_to(share: float) -> Callable[[float, float], bool]:
    """Return whether a number differs from another by at most this share of it."""
    return lambda value, other: abs(value / other - 1) <= share
