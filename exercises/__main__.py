"""Grade the hand-ins of a class: `python -m exercises grade notebooks/03_self_attention.ipynb handed_in/*.ipynb`.

Each hand-in runs in its own process: the cells of the original notebook, with the student's exercise cells in place.
`python -m exercises hint 3.2 notebooks/03_self_attention.ipynb` gives the hint that `check` would give, with the same
limits.
`python -m exercises diagnose out.npy` names the bug in a BERT from its numbers.
"""

import argparse
import glob
import json
import os
import re
import sys
from dataclasses import asdict
from pathlib import Path

from exercises.diagnosis import diagnose
from exercises.diagnosis.probe import probe, read_numbers
from exercises.diagnosis.reference import default_reference
from exercises.grading import grade
from exercises.grading.report import LMS_NAMES, importable, report, write_canvas, write_csv, write_letters, write_moodle
from exercises.hints import hint
from utils.support.characters import replace_unprintable
from utils.support.checkpoint import checkpoint_name
from utils.support.command_line import Parser
from utils.support.files import write_file

NOT_DONE = """
"Same as" reports equal code, which can be honest; nothing detects deliberate cheating. Hand-ins run with your
permissions: for people you do not trust, use a container or nbgrader (docs/GRADING.md)."""


def positive(text: str) -> float:
    """Return a number above 0."""
    if not (number := float(text)) > 0:
        raise ValueError
    return number


def name_and_number(text: str) -> tuple[str, str]:
    """Return a student's name and an exercise, as in "Ada:3.2"."""
    name, colon, number = text.rpartition(":")
    if not colon:
        raise ValueError
    return name, number


def read_options() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = Parser(
        prog="python -m exercises", description=__doc__ + NOT_DONE, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    asked = commands.add_parser("hint", help="print the hint for one answer")
    asked.add_argument("number", help="the exercise, such as 3.2")
    asked.add_argument("file", type=Path, help="a notebook, or a Python file that defines the answer")
    asked.add_argument("--again", action="store_true", help="print the second, more detailed hint, if there is one")
    numbers = commands.add_parser("diagnose", help="name the bug in a BERT from its numbers (1 unless it is right)")
    source = numbers.add_mutually_exclusive_group(required=True)
    source.add_argument("file", type=Path, nargs="?", help="what the BERT returned for the probe: .npy or .json")
    source.add_argument("--probe", type=Path, metavar="FILE", help="write what to feed to the BERT to this JSON file")
    numbers.add_argument("--json", action="store_true", help="print the answer as JSON")
    command = commands.add_parser("grade", help="grade the hand-ins for one notebook")
    add = command.add_argument
    cores = os.cpu_count() or 1
    add("notebook", type=Path, help="the original notebook, as you handed it out")
    add("handed_in", nargs="+", help="the students' notebooks; each row of the table has its file's name")
    add("--csv", type=Path, help="write the table to this file")
    add("--feedback", type=Path, help="write a letter for each student to this folder")
    add("--moodle", type=Path, help="write a grading worksheet to import in Moodle's assignment to this file")
    add("--canvas", type=Path, help="write grades to import in Canvas' gradebook to this file")
    help_id = "regular expression whose last group is a student's id or address in a path (default: of both systems)"
    add("--id", type=re.compile, default=re.compile(LMS_NAMES), metavar="PATTERN", help=help_id)
    help_accept = "award the points of this exercise by hand (repeatable)"
    add("--accept", type=name_and_number, action="append", default=[], metavar="NAME:3.2", help=help_accept)
    add(
        "--processes",
        type=int,
        default=cores,
        help=f"grade this many hand-ins in parallel (default: {cores}, the cores)",
    )
    add("--seconds", type=positive, default=60, help="time limit for each cell (default: %(default)g)")
    add("--memory", type=positive, default=4, help="memory limit for each hand-in, in GB (default: %(default)g)")
    options = parser.parse_args()
    if options.command == "grade" and options.processes < 1:
        command.error(f"--processes must be at least 1, got {options.processes}")
    return options


def expand(names: list[str]) -> list[Path]:
    """Return the files, including those of patterns such as handed_in/*.ipynb, which Windows leaves to programs."""
    matches = {name: [name] if Path(name).exists() else sorted(glob.glob(name)) for name in names}  # noqa: PTH207
    for name, found in matches.items():
        if not found:
            raise ValueError(f"there is no hand-in {name}")
    return [Path(path) for path in dict.fromkeys(path for found in matches.values() for path in found)]


def main() -> str | int | None:
    """Run a command; return an error message, or 1 if a hand-in was not graded, such as after Ctrl-C."""
    options = read_options()
    replace_unprintable()
    if options.command == "grade":
        return grade_class(options)
    try:
        if options.command == "diagnose":
            return diagnose_file(options)
        print(hint(options.number, options.file, options.again))
    except (OSError, ValueError) as error:
        return str(error)
    return None


def diagnose_file(options: argparse.Namespace) -> int:
    """Write the probe, or print the diagnosis of a file; return 0 if all is right."""
    if options.probe:
        reference = default_reference(checkpoint_name())
        write_file(options.probe, json.dumps(probe(reference.encoder, reference.tokenizer), ensure_ascii=False))
        return 0
    numbers, sums = read_numbers(options.file)
    answer = diagnose(numbers, sums=sums)
    print(json.dumps(asdict(answer), ensure_ascii=False) if options.json else answer)
    return int(answer.verdict != "right")


def grade_class(options: argparse.Namespace) -> str | int:
    """Grade the hand-ins; return an error message, or whether a hand-in was not graded."""

    def save(rows: list) -> None:
        if options.csv:
            write_csv(options.csv, rows)
        if options.feedback:
            write_letters(options.feedback, rows)
        if options.moodle:
            write_moodle(options.moodle, rows)
        if options.canvas:
            write_canvas(options.canvas, rows, options.notebook.stem)

    try:
        limits = {"seconds": options.seconds, "gigabytes": options.memory}
        paths = expand(options.handed_in)
        rows = grade(options.notebook, paths, save, options.processes, options.accept, options.id.pattern, **limits)
        print(report(rows) + "\n" + NOT_DONE)
        save(rows)
    except (OSError, ValueError) as error:
        return str(error)
    unknown = {row.name for row in rows if row.is_graded} - {row.name for row in importable(rows)}
    if unknown and (options.moodle or options.canvas):
        print(f"Without an id of their own, and so in no file to import: {', '.join(sorted(unknown))}. See --id.")
    for path in filter(None, (options.csv, options.feedback, options.moodle, options.canvas)):
        print(f"Written to {path}")
    return int(any(kind == "not graded" for row in rows for kind, _ in row.verdicts.values()))


if __name__ == "__main__":
    sys.exit(main())
