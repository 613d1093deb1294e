"""Check answers to the exercises: `check("3.1", answer)` prints whether the answer is right, or a hint.

`solved("3.1", answer)` returns the same as True or False, and `python -m exercises grade` grades the hand-ins of a
class. The checks of notebook NN are in `notebook_NN.py`; `framework.py` has what they are written with.
"""

import contextlib
import importlib
import io
import pkgutil
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from importlib.util import find_spec
from pathlib import Path

if (found := find_spec("utils")) and Path(found.origin or "").parent != Path(__file__).parents[1] / "utils":
    raise ImportError(
        f"{found.origin} hides the package utils of this series, which exercises needs: rename it, or start Python "
        "with -P, which leaves out the files of the current folder"
    )

from exercises.framework import CHECKS, CORRECT, NOT_ATTEMPTED, PART_NAMES, WRONG, seeded, verdict
from exercises.part_checks import try_part
from exercises.parts import saved_parts
from exercises.saving_parts import save_part

TRIES: Counter[str] = Counter()  # the wrong answers that `check` has seen in this session, by exercise
COLLECTED: list[dict] = []  # where `check` puts answers while `collect_answers` is open


def check(number: str, answer) -> None:
    """Print one line about the answer to exercise `number`, such as "3.1"; errors in the reader's code do not raise.

    A right answer that is a part of BERT is saved, and `exercises.parts.my_encoder()` runs it from then on.
    """
    if COLLECTED:
        COLLECTED[-1][str(number)] = answer
        return
    try:
        check_answer = find_check(number)
    except ValueError as error:
        print(error)
    else:
        line = verdict(check_answer, answer, tries=TRIES[str(number)])
        TRIES[str(number)] += line.startswith(WRONG)
        if line.startswith(NOT_ATTEMPTED):
            line = already_yours(str(number)) or line
        else:
            line = f"{line} {part_remark(str(number), answer, line.startswith(CORRECT))}".rstrip()
        print(f"Exercise {number}: {line}")


def solved(number: str, answer) -> bool:
    """Return whether `check` would call the answer correct; print nothing. ValueError for an unknown exercise."""
    check_answer = find_check(number)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return verdict(check_answer, answer).startswith(CORRECT)


@contextlib.contextmanager
def collect_answers() -> Iterator[dict]:
    """Let `check` store answers by exercise in place of checking them: grading checks each in its turn."""
    COLLECTED.append({})
    try:
        yield COLLECTED[-1]
    finally:
        COLLECTED.pop()


def find_check(number: str) -> Callable:
    """Return the check of an exercise, such as "3.1"; ValueError lists the exercises of that notebook."""
    number = str(number)
    chapter = number.split(".")[0]
    if f"notebook_{chapter:0>2}" in {module.name for module in pkgutil.iter_modules(__path__)}:
        importlib.import_module(f"exercises.notebook_{chapter:0>2}")
    if number not in CHECKS:
        known = ", ".join(sorted(name for name in CHECKS if name.split(".")[0] == chapter))
        remedy = f"There are {known}." if known else "Write it as “3.1”."
        raise ValueError(f"There is no exercise {number}. {remedy}")
    return as_part(CHECKS[number], PART_NAMES[number]) if number in PART_NAMES else CHECKS[number]


def as_part(check_answer: Callable, name: str) -> Callable:
    """Return a check that also requires a right answer to work wherever BERT calls it."""

    def check_part(answer):
        remark = check_answer(answer)
        try_part(name, answer)
        return remark

    return check_part


def already_yours(number: str) -> str:
    """Return what to say of an untouched stub if the reader's part is saved, else an empty string."""
    saved = saved_parts().get(PART_NAMES.get(number, ""))
    if not saved:
        return ""
    since = date.fromtimestamp(saved.stat().st_mtime)
    return f"already yours since {since.day} {since:%B %Y}. Your BERT runs it; to write it again, replace the ..."


def part_remark(number: str, answer, is_right: bool) -> str:
    """Save a right answer that is a part of BERT; return a sentence for the verdict, or an empty string."""
    if number not in PART_NAMES:
        return ""
    name = PART_NAMES[number]
    if not is_right:
        return "Your earlier version, which was right, still runs in your BERT." if name in saved_parts() else ""
    with seeded(0):
        return save_part(name, answer)
