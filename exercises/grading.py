"""Marks hand-ins: the original notebook's cells with a student's exercise cells in their places, each in a process.

What a hand-in prints is not believed: the process calls the checks itself (`handed_in.py`) and tells this one.
"""

import ast
import contextlib
import csv
import io
import json
import multiprocessing
import os
import re
import secrets
import symtable
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
from IPython.core.inputtransformer2 import TransformerManager
from tqdm.auto import tqdm

from exercises import CORRECT, POINTS, find_check
from utils.files import write_file

CHECK = re.compile(r"""\bcheck\(\s*["']([\d.]+)["']""")
START_UP = 300  # seconds for a process to import what it needs, on a machine that is busy
STARTS_THREADS = "onnxruntime"  # when it is imported, and a process with threads is not safely forked
QUIET = {  # of the processes, which share the cores and show nothing
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MPLBACKEND": "agg",
    "DEVICE": "cpu",
    "CUDA_VISIBLE_DEVICES": "",
}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
WRITTEN_BY_HAND = ("utils", "views", "exercises", "solutions", "notebooks")
BACK_DOORS = {
    *("importlib", "runpy", "builtins", "inspect", "gc", "ctypes", "sys", "os", "subprocess", "socket"),
    *("__import__", "eval", "exec", "compile", "open", "get_ipython", "globals", "vars"),
    *("__globals__", "__builtins__", "__closure__", "__code__", "__dict__", "__subclasses__", "_getframe"),
}
MODULES = {"torch", "nn", "F", "np", "plt", "math", "random"}  # by the names that notebooks give them
SIGNS = {"not yet": "0", "not attempted": "·", "look": "!", "stopped": "!", "not graded": "?"}


def printable(text: str) -> str:
    """A text of a student's on one line, without what would steer a terminal or cannot be saved."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


@dataclass
class Verdict:
    """What became of one exercise: correct, not yet, not attempted, look, stopped or not graded; and why, in words."""

    kind: str
    words: str

    def __post_init__(self):
        self.words = printable(self.words)


@dataclass
class Graded:
    """One hand-in: its name, the verdict on each exercise by number, and remarks on the whole."""

    name: str
    verdicts: dict[str, Verdict]
    remarks: list[str] = field(default_factory=list)

    def points(self, number: str) -> int:
        """The points of an exercise: all if it is correct, else none."""
        return POINTS[number] if self.verdicts[number].kind == "correct" else 0

    @property
    def total(self) -> int:
        """The points of all exercises."""
        return sum(map(self.points, self.verdicts))


@dataclass(frozen=True)
class Cell:
    """A code cell: its id and its source."""

    id: str
    source: str

    @property
    def number(self) -> str:
        """Of the exercise that it checks, such as "3.1", or ""."""
        found = CHECK.search(self.source)
        return found[1] if found else ""


@dataclass(frozen=True)
class Limits:
    """What a hand-in may take: seconds for each cell, gigabytes in all, and whether it may use the network."""

    seconds: float = 60
    gigabytes: float = 4
    network: bool = False


def read_cells(path: Path) -> list[Cell]:
    """The code cells of a notebook; ValueError for what is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is no notebook: it cannot be read as JSON ({error})") from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        raise ValueError(
            f"{path} is no notebook of version 4: it has no list of cells. Save it in JupyterLab"
        )
    try:
        code = [cell for cell in cells if cell["cell_type"] == "code"]
        return [Cell(str(cell.get("id", "")), "".join(cell["source"])) for cell in code]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} is no notebook: a cell lacks {error}") from error


def read_original(path: Path) -> list[Cell]:
    """The code cells of the notebook that was handed out; ValueError if it has no exercises that there are."""
    cells = read_cells(path)
    numbers = [cell.number for cell in cells if cell.number]
    if not numbers:
        raise ValueError(f'{path} has no exercises: no cell calls check("3.1", …)')
    for number in numbers:
        find_check(number)
    return cells


def find_answer(exercise: Cell, handed_in: Sequence[Cell]) -> Cell | None:
    """The student's cell for an exercise: that of the same id or, if that is missing or unchanged, one checking it."""
    same = [cell for cell in handed_in if cell.id == exercise.id]
    checking = [cell for cell in handed_in if exercise.number in CHECK.findall(cell.source)]
    written = [cell for cell in checking if cell.source.strip() != exercise.source.strip()]
    for cells in ([cell for cell in written if cell in same], written[::-1], checking, same):
        if cells:
            return cells[0]
    return None


def with_helpers(answer: Cell, handed_in: Sequence[Cell], original: Sequence[Cell], given: set[str]) -> str:
    """A student's cell, below cells of their own that stand above it and that it needs, such as one with a function.

    Their own are those that they have added, and those that they have edited, such as the imports; of these, only
    what binds a name that the original has not given counts.
    """
    ids, sources = {cell.id for cell in original}, {cell.source for cell in original}
    above = handed_in[: handed_in.index(answer)]
    parts, wanted = [answer.source], used(answer.source)
    for cell in reversed([cell for cell in above if not cell.number and cell.source not in sources]):
        if leaves(cell.source) & (wanted - given if cell.id in ids else wanted):
            parts.append(cell.source)
            wanted |= used(cell.source)
    return "\n\n".join(reversed(parts))


def in_place(original: Sequence[Cell], answers: dict[str, str]) -> list[tuple[str, str]]:
    """The cells to run, as (number or "", source): the answers, and of the original's cells those that they need.

    Needed are the first two, set-up and imports, and what binds or changes a name that a needed cell below it uses.
    """
    steps, wanted = [], set()
    for place, cell in reversed(list(enumerate(original))):
        source = answers.get(cell.number) if cell.number else cell.source
        if source is not None and (cell.number or place < 2 or leaves(source) & wanted):
            steps.append((cell.number, source))
            wanted |= used(source)
    return steps[::-1]


def parsed(source: str) -> ast.Module:
    """A cell's syntax tree, magics translated; empty for one that does not parse."""
    with contextlib.suppress(Exception):  # of the many kinds, such as MemoryError for a thousand brackets
        return ast.parse(TransformerManager().transform_cell(source))
    return ast.Module([], [])


def tables(source: str) -> list[symtable.SymbolTable]:
    """Of a cell and of all functions and classes in it, which names are what; none if it does not parse."""
    found = []
    with contextlib.suppress(Exception):
        found.append(symtable.symtable(TransformerManager().transform_cell(source), "cell", "exec"))
    for table in found:
        found += table.get_children()  # and then theirs
    return found


def used(source: str) -> set[str]:
    """The names that a cell takes from cells before it."""
    return {
        symbol.get_name()
        for number, table in enumerate(tables(source))
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (number == 0 or symbol.is_global())
    }


def bound(source: str) -> set[str]:
    """The names that a cell binds for cells after it."""
    symbols = [symbol for table in tables(source)[:1] for symbol in table.get_symbols()]
    return {symbol.get_name() for symbol in symbols if symbol.is_assigned() or symbol.is_imported()}


def leaves(source: str) -> set[str]:
    """The names that a cell binds, sets a part of, or calls a method of for its effect: `x = 1`, `x.y = 1`, `x.add(1)`.

    A function of a module that is called so, such as torch.manual_seed, changes no name.
    """
    names = set()
    for node in ast.walk(parsed(source)):
        if isinstance(node, (ast.Attribute, ast.Subscript)) and isinstance(node.ctx, ast.Store):
            names.add(root(node))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            names.add(root(node.value.func))
    return bound(source) | names - MODULES


def root(node: ast.expr) -> str:
    """The name that an expression such as x.y[0].z() begins with, or ""; of a bare function none."""
    depth = 0
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node, depth = node.func if isinstance(node, ast.Call) else node.value, depth + 1
    return node.id if depth and isinstance(node, ast.Name) else ""


def imported(source: str) -> dict[str, str]:
    """What a cell imports anywhere: the name it is given, and what it is, such as "utils.attention.AttentionHead"."""
    found = {}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            found |= {alias.asname or alias.name.partition(".")[0]: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            home = "." * node.level + (node.module or "")
            found |= {alias.asname or alias.name: f"{home}.{alias.name}" for alias in node.names}
    return found


def borrowed(source: str, given: set[str]) -> list[str]:
    """What an exercise cell takes from the series that is not given above it, or uses to get behind the check."""
    nodes = list(ast.walk(parsed(source)))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    imports = [
        home
        for name, home in imported(source).items()
        if name in names and home.rpartition(".")[2] not in given
    ]
    doors = {home.partition(".")[0] for home in imports} | names
    doors |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    ours = [home for home in imports if home.partition(".")[0] in WRITTEN_BY_HAND]
    return [f"imports {home}" for home in ours] + [f"uses {name}" for name in sorted(doors & BACK_DOORS)]


def named(paths: Sequence[Path]) -> dict[str, Path]:
    """The hand-ins by the name of their files or, where several files have one name, by their folders too."""
    stems = [printable(path.stem) for path in paths]
    if len(set(stems)) == len(stems):
        return dict(zip(stems, paths, strict=True))
    common = os.path.commonpath([path.resolve().parent for path in paths])
    places = [path.resolve().relative_to(common).with_suffix("").as_posix() for path in paths]
    return dict(zip(map(printable, places), paths, strict=True))


class Grader:
    """Marks hand-ins of one notebook, each in processes of its own."""

    def __init__(self, original: Path, limits: Limits):
        self.cells, self.limits = read_original(original), limits
        self.exercises = {cell.number: cell for cell in self.cells if cell.number}
        modules = [name for cell in self.cells for name in imported(cell.source).values()]
        self.modules = [
            *(f"exercises.notebook_{int(number.split('.')[0]):02}" for number in self.exercises),
            *(name for full in modules for name in (full.rpartition(".")[0], full) if name),
        ]
        self.modules = [name for name in dict.fromkeys(self.modules) if STARTS_THREADS not in name]
        # Linux alone forks safely: there a process begins with all imports done
        self.context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        self.stopping = threading.Event()

    def ungraded(self, name: str, kind: str = "not graded", words: str = "not graded yet.") -> Graded:
        """A hand-in with one verdict on all exercises."""
        return Graded(name, {number: Verdict(kind, words) for number in self.exercises})

    def grade(self, hand_ins: dict[str, Path], processes: int) -> Iterator[Graded]:
        """The hand-ins as they are graded, several at a time; who leaves off early ends the processes."""
        if self.context.get_start_method() == "forkserver":
            self.context.set_forkserver_preload(["exercises.handed_in", *self.modules])
        with changed_environment(QUIET | ({} if self.limits.network else OFFLINE)):
            pool = ThreadPoolExecutor(processes)
            try:
                waiting = [pool.submit(self.grade_one, name, path) for name, path in hand_ins.items()]
                for graded in as_completed(waiting):
                    yield graded.result()
            finally:
                self.stopping.set()
                pool.shutdown(cancel_futures=True)

    def grade_one(self, name: str, path: Path) -> Graded:
        """One hand-in; an exercise that ends the process costs itself, and the others are run without it."""
        graded = self.ungraded(name)
        try:
            handed_in = read_cells(path)
        except ValueError as error:
            return self.ungraded(name, "stopped", f"stopped: {error}.")
        answers = {number: find_answer(cell, handed_in) for number, cell in self.exercises.items()}
        for number, cell in answers.items():
            if cell is None:
                graded.verdicts[number] = Verdict("not attempted", "not attempted: its cell is missing.")
        sources = {
            number: with_helpers(cell, handed_in, self.cells, self.given(number))
            for number, cell in answers.items()
            if cell
        }
        while sources and not self.stopping.is_set():
            told, at, ended = self.run(in_place(self.cells, sources), graded.remarks)
            for number, message in told.items():
                if graded.verdicts[number].kind == "not graded":
                    graded.verdicts[number] = self.judge(number, sources[number], message)
            if at is None:
                break
            if at not in sources:
                graded.remarks.append(f"{ended} in a cell that is not the student's")
                break
            graded.verdicts[at] = Verdict("stopped", f"stopped: {ended}.")
            del sources[at]
        return graded

    def given(self, number: str) -> set[str]:
        """The names that the original binds above an exercise, by import or by hand."""
        above = self.cells[: self.cells.index(self.exercises[number])]
        return set().union(*(bound(cell.source) for cell in above))

    def judge(self, number: str, source: str, message: dict) -> Verdict:
        """The verdict on an exercise, of what its process tells and of what its cell imports."""
        words = message["words"]
        doubts = borrowed(source, self.given(number)) + message["noted"]
        if words.startswith(CORRECT) and not doubts:
            return Verdict("correct", words)
        if message["claims"] and not words.startswith(CORRECT):
            doubts.append("prints “correct” itself")
        if words.startswith("not attempted yet"):  # the rest is for the student, at the notebook
            words = "not attempted."
        if doubts:
            return Verdict("look", f"look at it: it {'; it '.join(doubts)}. The check says: {words}")
        return Verdict("not attempted" if words.startswith("not attempted") else "not yet", words)

    def run(self, steps: list[tuple[str, str]], remarks: list[str]) -> tuple[dict, str | None, str]:
        """Run cells in a process: what it tells of each exercise, in which it ended (None: it did not), and how."""
        secret, told, at = secrets.token_hex(), {}, ""
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            ours, theirs = self.context.Pipe(duplex=False)
            arguments = (steps, self.modules, folder, self.limits.network, theirs, secret)
            process = self.context.Process(target=run_hand_in, args=arguments, daemon=True)
            process.start()
            theirs.close()
            try:
                deadline = time.monotonic() + START_UP
                while True:
                    if message := receive(ours, secret):
                        deadline = time.monotonic() + self.limits.seconds
                        at = message.get("begins", at)
                        if "number" in message:
                            told[message["number"]] = message
                        if "broken" in message:
                            remark = f"a cell of the original notebook raised {printable(message['broken'])}"
                            remarks += [remark] * (remark not in remarks)
                        if "failed" in message:
                            return told, at, f"breaks the grader ({message['failed']})"
                        if "ends" in message:
                            return told, None, ""
                    elif message is None:
                        process.join(5)
                        return told, at, f"ends the process ({ending(process.exitcode)})"
                    elif time.monotonic() > deadline:
                        return told, at, f"does not end within {self.limits.seconds:g} seconds"
                    elif memory(process.pid) > self.limits.gigabytes * 1e9:
                        return told, at, f"takes more than {self.limits.gigabytes:g} GB of memory"
                    elif self.stopping.is_set():
                        return told, at, "was interrupted"
            finally:
                end(process.pid)
                process.join()
                ours.close()


def run_hand_in(*arguments) -> None:
    """What a process of a hand-in begins with; its imports are its own."""
    from exercises.handed_in import work

    work(*arguments)


def receive(connection: Connection, secret: str) -> dict | None:
    """The next message; {} if none has come for a moment, None if there will be none that can be believed."""
    try:
        if not connection.poll(0.1):
            return {}
        message = json.loads(connection.recv_bytes(2**20))
    except (EOFError, OSError, ValueError):
        return None
    return message if isinstance(message, dict) and message.pop("secret", None) == secret else None


def ending(code: int | None) -> str:
    """How a process ended."""
    if code is None:
        return "it broke off the connection"
    return f"signal {-code}" if code < 0 else f"exit status {code}"


def memory(pid: int) -> int:
    """The bytes that a process holds; 0 once it has ended."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).memory_info().rss
    return 0


def end(pid: int) -> None:
    """Kill a process and those that it has started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.Error):
                each.kill()


@contextlib.contextmanager
def changed_environment(variables: dict[str, str]) -> Iterator[None]:
    """Environment variables for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


def write_csv(path: Path, rows: Sequence[Graded]) -> None:
    """A row per hand-in: points, then what was said of each exercise. OSError where that cannot be written."""
    numbers = list(rows[0].verdicts)
    text = io.StringIO(newline="")
    table = csv.writer(text)
    told = [f"{number} told" for number in numbers]
    table.writerow(["name", *numbers, "points", "of", "look at", *told, "remarks"])
    for row in rows:
        verdicts = row.verdicts.values()
        points = [
            "" if verdict.kind == "not graded" else row.points(number)
            for number, verdict in row.verdicts.items()
        ]
        doubtful = [number for number, verdict in row.verdicts.items() if SIGNS.get(verdict.kind) == "!"]
        cells = [row.name, *points, row.total, sum(POINTS[number] for number in numbers), " ".join(doubtful)]
        cells += [verdict.words for verdict in verdicts]
        table.writerow([harmless(cell) for cell in (*cells, "; ".join(row.remarks))])
    write_file(path, "\N{BYTE ORDER MARK}" + text.getvalue())  # by which Excel knows that it is UTF-8


def harmless(cell: str | int) -> str | int:
    """A cell that no spreadsheet takes for a formula."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell


def report(rows: Sequence[Graded]) -> str:
    """The table of names and exercises, and below it in words what is not correct."""
    numbers = list(rows[0].verdicts)
    width = max(len("exercise"), *(len(row.name) for row in rows))
    most = sum(POINTS[number] for number in numbers)
    lines = [f"{'exercise':<{width}}" + "".join(f"{number:>6}" for number in numbers) + "   points"]
    lines.append(
        f"{'points':<{width}}" + "".join(f"{POINTS[number]:>6}" for number in numbers) + f"   of {most}"
    )
    for row in rows:
        signs = [
            SIGNS.get(verdict.kind) or str(row.points(number)) for number, verdict in row.verdicts.items()
        ]
        lines.append(f"{row.name:<{width}}" + "".join(f"{sign:>6}" for sign in signs) + f"   {row.total:>6}")
    lines += ["", "0 not yet correct   · not attempted   ! stopped or not believed, see below   ? not graded"]
    for row in rows:
        told = {}
        for number, verdict in row.verdicts.items():
            if verdict.kind not in ("correct", "not graded"):
                told.setdefault(verdict.words, []).append(number)
        if told or row.remarks:
            lines += ["", row.name]
            lines += [f"  {', '.join(numbers)}: {words}" for words, numbers in told.items()]
            lines += [f"  {remark}" for remark in row.remarks]
    return "\n".join(lines)


def grade(
    original: Path, paths: Sequence[Path], table: Path | None, processes: int, limits: Limits
) -> list[Graded]:
    """Grade the hand-ins and return them in their order; the table is written anew after each of them.

    So an interrupted grading keeps what it has. ValueError for a notebook without exercises, OSError for a table that
    cannot be written.
    """
    grader, hand_ins = Grader(original, limits), named(paths)
    rows = {name: grader.ungraded(name) for name in hand_ins}

    def save() -> None:
        if table is not None:
            write_csv(table, list(rows.values()))

    save()  # now, rather than after minutes, it turns out whether it can be
    graded = contextlib.closing(grader.grade(hand_ins, processes))
    with graded as finished, contextlib.suppress(KeyboardInterrupt):
        for row in tqdm(finished, total=len(rows), unit="hand-in"):
            rows[row.name] = row
            save()
    return list(rows.values())
