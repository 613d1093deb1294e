"""Mark what a class has handed in: `python -m exercises grade notebooks/03_self_attention.ipynb handed_in/*.ipynb`.

Each hand-in is run in a process of its own: the original notebook's cells, with the student's exercise cells in their
places. It is no safe place for programs of people whom you do not trust: run those in a container.
"""

import argparse
import glob
import os
import sys
from pathlib import Path

from exercises.grading import grade
from exercises.grading.process import Allowance
from exercises.grading.report import report, write_csv, write_feedback
from exercises.grading.watch import landlock

SANDBOX = """
While they ran, the kernel (Landlock) let hand-ins write in a folder of their own only, and start no program."""
NO_SANDBOX = """
This machine's kernel has no Landlock: only Python held these programs back. TEACHING.md shows a container."""


def positive(text: str) -> float:
    """A number above 0."""
    if not (number := float(text)) > 0:
        raise ValueError
    return number


def name_and_number(text: str) -> tuple[str, str]:
    """A student's name and an exercise, as in "Ada:3.3"."""
    name, colon, number = text.rpartition(":")
    if not colon:
        raise ValueError
    return name, number


def read_options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m exercises", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("grade", help="mark hand-ins of a notebook")
    command.add_argument("notebook", type=Path, help="the original, as it was handed out")
    command.add_argument("handed_in", nargs="+", help="the students' notebooks; a file's name is a row's name")
    command.add_argument("--csv", type=Path, help="write the table there, for a spreadsheet")
    command.add_argument("--feedback", type=Path, help="write a text for each student into this folder")
    command.add_argument(
        "--accept",
        type=name_and_number,
        action="append",
        default=[],
        metavar="NAME:3.3",
        help="believe this answer although it is doubted; again for each",
    )
    cores = os.cpu_count() or 1
    command.add_argument(
        "--processes", type=int, default=cores, help=f"hand-ins at a time (default: the cores, {cores})"
    )
    allowance = Allowance()
    command.add_argument(
        "--seconds", type=positive, default=allowance.seconds, help="for each cell (default: %(default)g)"
    )
    command.add_argument(
        "--memory", type=positive, default=allowance.gigabytes, help="GB for a hand-in (default: %(default)g)"
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
    allowance = Allowance(options.seconds, options.memory, options.network)

    def save(rows: list) -> None:
        if options.csv:
            write_csv(options.csv, rows)
        if options.feedback:
            write_feedback(options.feedback, rows)

    try:
        paths = expand(options.handed_in)
        rows = grade(options.notebook, paths, save, options.processes, allowance, options.accept)
    except (OSError, ValueError) as error:
        return str(error)
    print(report(rows))
    print(SANDBOX if landlock() else NO_SANDBOX)
    for place in filter(None, (options.csv, options.feedback)):
        print(f"Written to {place}")
    return int(any(verdict.kind == "not graded" for row in rows for verdict in row.verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
