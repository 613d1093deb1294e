"""Give the hint that `check` would give for an answer in a file: `python -m exercises hint 3.2 FILE`.

The file is a notebook, or a Python file with the answer's definition. It runs as in grading, in a process of its own
with the same limits, and nothing is saved.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from exercises import find_check
from exercises.grading import cells
from exercises.grading.process import Grader, apart
from exercises.grading.report import Row


def find_original(number: str) -> Path:
    """Return the notebook of an exercise."""
    return next((cells.ROOT / "notebooks").glob(f"{number.split('.')[0]:0>2}_*.ipynb"))


def read_answers(path: Path, exercise: cells.Cell) -> list[cells.Cell]:
    """Return the code cells of a file; a Python file is one cell, with a call of `check` added if it has none."""
    if not path.exists():
        raise ValueError(f"there is no file {path}")
    if path.suffix == ".ipynb":
        return cells.read_cells(path)
    try:
        source = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}): save it as UTF-8") from error
    if exercise.number not in cells.CHECK.findall(source):
        source += "\n\n" + exercise.source[cells.CHECK.search(exercise.source).start() :]
    return [cells.Cell(exercise.id, source)]


def write_notebook(path: Path, written: list[cells.Cell]) -> Path:
    """Write code cells as a notebook, and return its path."""
    code = [{"cell_type": "code", "id": cell.id, "source": cell.source} for cell in written]
    path.write_text(json.dumps({"cells": code}), "utf-8")
    return path


def hint(number: str, path: Path, again: bool = False, **limits: float) -> str:
    """Return the verdict on the answer to an exercise in a file; `again` for the more detailed of its hints.

    ValueError for an unknown exercise, a file that cannot be read, and one without a cell that checks the exercise.
    """
    find_check(number)
    original = find_original(number)
    given = {cell.number: cell for cell in cells.read_cells(original) if cell.number}
    written = read_answers(path, given[number])
    if cells.find_answer(given[number], written) is None:
        raise ValueError(f'{path} has no answer to exercise {number}: no cell calls check("{number}", …)')
    wanted = [*given][: [*given].index(number) + 1]  # what it needs comes before it
    row = Row("", dict.fromkeys(wanted, ("not graded", "")))
    with TemporaryDirectory() as folder, apart():
        hand_in = write_notebook(Path(folder) / "answer.ipynb", written)
        Grader(original, again=again, **limits).grade(row, hand_in, [*given.keys() - wanted])
    return f"Exercise {number}: {row.verdicts[number][1]}"
