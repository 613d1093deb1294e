"""Give the hint that `check` would give for an answer in a file: `python -m exercises hint 3.2 FILE`.

The file is a notebook, or a Python file with the answer's definition. Nothing is saved, and only what the answer needs
is run, with your permissions.
"""

import os
from pathlib import Path

from IPython.core.interactiveshell import InteractiveShell

from exercises import collect_answers, find_check
from exercises.grading import cells
from exercises.grading.child import check_words, run_cell


def find_original(number: str) -> Path:
    """Return the notebook of an exercise."""
    return next((cells.ROOT / "notebooks").glob(f"{number.split('.')[0]:0>2}_*.ipynb"))


def read_answers(path: Path, exercise: cells.Cell) -> list[cells.Cell]:
    """Return the code cells of a file; a Python file is one cell, with a call of `check` added if it has none."""
    if path.suffix == ".ipynb":
        return cells.read_cells(path)
    if not path.is_file():
        raise ValueError(f"there is no file {path}")
    try:
        source = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} cannot be read ({error}): save it as UTF-8") from error
    if exercise.number not in cells.CHECK.findall(source):
        source += "\n\n" + exercise.source[cells.CHECK.search(exercise.source).start() :]
    return [cells.Cell(exercise.id, source)]


def hint(number: str, path: Path, again: bool = False) -> str:
    """Return the verdict on the answer to an exercise in a file; `again` for the more detailed of its hints.

    ValueError for an unknown exercise, a file that cannot be read, and one without a cell that checks the exercise.
    """
    find_check(number)
    given = cells.read_cells(find_original(number))
    exercise = next(cell for cell in given if cell.number == number)
    written = read_answers(path, exercise)
    found = {cell.number: cells.find_answer(cell, written) for cell in given if cell.number}
    answers = {each: cell for each, cell in found.items() if cell}
    if number not in answers:
        raise ValueError(f'{path} has no answer to exercise {number}: no cell calls check("{number}", …)')
    os.environ |= {"MINE": "off", "MPLBACKEND": "agg"}
    shell, error = InteractiveShell.instance(), None
    shell.reset(new_session=False)  # nothing of an earlier call
    with collect_answers() as answered:
        for _, cell in cells.steps_to_run(given, written, answers):
            error = run_cell(shell, cell, answered)
            if cell is answers[number]:
                break
        return f"Exercise {number}: {check_words(number, answered, error, tries=int(again))}"
