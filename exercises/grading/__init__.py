"""Marks what a class has handed in: `cells` finds the answers, `process` runs them under `watch`, `report` tells."""

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tqdm.auto import tqdm

from exercises.grading.process import Allowance, Grader
from exercises.grading.report import Graded, accept, compare, printable


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """The hand-ins by the name of their files or, where several files have one name, by their folders too.

    Names that look the same, such as two that differ in white space only, get a number.
    """
    names = [printable(path.stem) for path in paths]
    if len(set(names)) < len(names):
        common = os.path.commonpath([path.resolve().parent for path in paths])
        names = [printable(path.resolve().relative_to(common).with_suffix("").as_posix()) for path in paths]
    seen, rows = Counter(), {}
    for name, path in zip(names, paths, strict=True):
        seen[name] += 1
        while (row := name if seen[name] == 1 else f"{name} ({seen[name]})") in rows:
            seen[name] += 1
        rows[row] = path
    return rows


def grade(
    original: Path,
    paths: Sequence[Path],
    save: Callable = lambda rows: None,
    processes: int = 1,
    allowance: Allowance | None = None,
    accepted: Sequence[tuple[str, str]] = (),
) -> list[Graded]:
    """Grade the hand-ins and return them in their order; `save` gets all rows at once, and again after each of them.

    So an interrupted grading keeps what it has. `accepted` are pairs of a name and an exercise whose answer is believed
    although it is doubted. ValueError for a notebook without exercises, or a pair that there is not.
    """
    grader, hand_ins = Grader(original, allowance or Allowance()), named(paths)
    rows = {name: grader.ungraded(name) for name in hand_ins}
    for name, number in accepted:
        if name not in rows or number not in grader.exercises:
            known = f"exercises {', '.join(grader.exercises)}" if name in rows else f"names {', '.join(rows)}"
            raise ValueError(f"{name}:{number} cannot be accepted: there are the {known}")
    save(list(rows.values()))  # now, rather than after minutes, it turns out whether it can be
    graded = contextlib.closing(grader.grade(hand_ins, processes))
    with graded as finished, contextlib.suppress(KeyboardInterrupt):
        for row in tqdm(finished, total=len(rows), unit="hand-in"):
            rows[row.name] = row
            for name, number in accepted:
                if name == row.name:
                    accept(row, number)
            compare(list(rows.values()))
            save(list(rows.values()))
    return list(rows.values())
