"""Mark what a class has handed in: `python -m exercises grade notebooks/03_self_attention.ipynb handed_in/*.ipynb`.

Each hand-in is run in a process of its own: the original notebook's cells, with the student's exercise cells in their
places. It is no sandbox: run the hand-ins of people whom you do not trust in a container.
"""

import argparse
import glob
import os
import sys
from pathlib import Path

from exercises.grading import Limits, grade, report


def positive(text: str) -> float:
    """A number above 0."""
    if not (number := float(text)) > 0:
        raise ValueError
    return number


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m exercises",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("grade", help="mark hand-ins of a notebook")
    command.add_argument("notebook", type=Path, help="the original, as it was handed out")
    command.add_argument(
        "handed_in", nargs="+", help="the students' notebooks; a file's name is a row's name"
    )
    command.add_argument("--csv", type=Path, help="write the table there, for a spreadsheet")
    cores = os.cpu_count() or 1
    command.add_argument(
        "--processes", type=int, default=cores, help=f"hand-ins at a time (default: the cores, {cores})"
    )
    limits = Limits()
    command.add_argument(
        "--seconds", type=positive, default=limits.seconds, help="for each cell (default: %(default)g)"
    )
    command.add_argument(
        "--memory", type=positive, default=limits.gigabytes, help="GB for a hand-in (default: %(default)g)"
    )
    command.add_argument("--network", action="store_true", help="let hand-ins use it; else it is refused")
    options = parser.parse_args()
    if options.processes < 1:
        command.error(f"--processes {options.processes}: at least 1")
    return options


def expand(names: list[str]) -> list[Path]:
    """The files named, patterns such as handed_in/*.ipynb included, which Windows leaves to programs."""
    matches = {name: [name] if Path(name).exists() else sorted(glob.glob(name)) for name in names}  # noqa: PTH207
    for name, found in matches.items():
        if not found:
            raise ValueError(f"there is no hand-in {name}")
    paths = [Path(path) for path in dict.fromkeys(path for found in matches.values() for path in found)]
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{path} is a folder: name its notebooks, {path / '*.ipynb'}")
    return paths


def main() -> str | int | None:
    """Grade; return what is wrong, or 1 if a hand-in is not graded, as after an interruption."""
    options = read_options()
    limits = Limits(options.seconds, options.memory, options.network)
    try:
        rows = grade(options.notebook, expand(options.handed_in), options.csv, options.processes, limits)
    except (OSError, ValueError) as error:
        return str(error)
    print(report(rows))
    if options.csv:
        print(f"\nWritten to {options.csv}")
    return int(any(verdict.kind == "not graded" for row in rows for verdict in row.verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
