"""What a student reads who gives a wrong answer of tests/exercises/cases."""

import contextlib
import io
import re

from exercises import TRIES, check

MEASURED = re.compile(r"(?<= by )\d\S*(?=\.( |$))|\b\d+\.\d+(?=%)")  # how far a result is off: the machine's digits


def hint_of(number: str, answer) -> str:
    """What a student reads who gives this wrong answer, measured differences left out."""
    printed = io.StringIO()
    TRIES.clear()  # the first hint, not a later one
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        check(number, answer)
    start, said = f"Exercise {number}: not yet. ", printed.getvalue().strip()
    if not said.startswith(start):
        raise ValueError(f"not a wrong answer, or no hint for it: {said}")
    return MEASURED.sub("…", re.sub(r"\s+", " ", said.removeprefix(start)))
