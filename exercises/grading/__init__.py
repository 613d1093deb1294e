"""Grade the hand-ins of a class: `cells` finds the answers, `child` judges them, `process` limits it, `report` writes.

It reports equal code and does not detect deliberate cheating. Hand-ins run with your permissions: see docs/GRADING.md
for containers.
"""

import contextlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tqdm.auto import tqdm

from exercises.grading.cells import published
from exercises.grading.process import Grader, apart
from exercises.grading.report import LMS_NAMES, Row, compare_rows, find_id, note_shared_ids, row_names


def grade(
    original: Path,
    paths: Sequence[Path],
    save: Callable = lambda rows: None,
    processes: int = 1,
    accepted: Sequence[tuple[str, str]] = (),
    id_pattern: str = LMS_NAMES,
    **limits: float,
) -> list[Row]:
    """Grade the hand-ins and return a row for each, in their order; Ctrl-C returns what is known so far.

    `save` gets all rows first, and again after each hand-in. `accepted` are pairs of a name and an exercise that gets
    its points whatever the verdict. `id_pattern` finds a student in a path. ValueError if the notebook has no
    exercises, or for an unknown pair.
    """
    grader, hand_ins = Grader(original, **limits), row_names(paths)
    open_ = dict.fromkeys(grader.exercises, ("not graded", "not graded yet."))
    rows = {name: Row(name, dict(open_), id=find_id(path, id_pattern)) for name, path in hand_ins.items()}
    for name, number in accepted:
        if name not in rows or number not in grader.exercises:
            known = f"exercises {', '.join(grader.exercises)}" if name in rows else f"names {', '.join(rows)}"
            raise ValueError(f"{name}:{number} cannot be accepted: there are the {known}")
    note_shared_ids(list(rows.values()))
    save(list(rows.values()))  # fails now, rather than after minutes, if the files cannot be written
    shown = published(original)
    with apart(), ThreadPoolExecutor(processes) as pool:
        futures = [pool.submit(grader.grade, row, hand_ins[name]) for name, row in rows.items()]
        try:
            for future in tqdm(as_completed(futures), total=len(rows), unit="hand-in"):
                row = future.result()
                for number in (number for name, number in accepted if name == row.name):
                    row.accept(number)
                compare_rows(list(rows.values()), shown)
                with contextlib.suppress(
                    OSError
                ):  # such as for a table that is open in Excel: the last save reports it
                    save(list(rows.values()))
        except KeyboardInterrupt:
            pass
        finally:
            grader.stopping.set()
            pool.shutdown(cancel_futures=True)
    return list(rows.values())
