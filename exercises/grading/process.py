"""Runs hand-ins: the original notebook's cells with a student's exercise cells in their places, each in a process.

What a hand-in prints is not believed: the process calls the checks itself (`watch.py`) and tells this one.
"""

import contextlib
import json
import multiprocessing
import os
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

import psutil

from exercises import CORRECT
from exercises.grading import cells
from exercises.grading.report import ALTERS, Graded, Verdict
from exercises.grading.watch import work

PATIENCE = 5  # times the seconds of a cell by the clock: on a busy machine a process waits for a core
START_UP = 300  # seconds for a process to import what it needs, on a machine that is busy
IMPORTED_LATE = "transformers.models.bert.modeling_bert"  # by checks: not under the eyes that watch the student
STARTS_THREADS = "onnxruntime"  # when it is imported, and a process with threads is not safely forked
QUIET = {  # of the processes, which share the cores and show nothing
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "MPLBACKEND": "agg",
    "DEVICE": "cpu",
    "MINE": "off",
    "CUDA_VISIBLE_DEVICES": "",
}
OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


@dataclass(frozen=True)
class Allowance:
    """What a hand-in may take: seconds for each cell, gigabytes in all, and whether it may use the network."""

    seconds: float = 60
    gigabytes: float = 4
    network: bool = False


class Grader:
    """Marks hand-ins of one notebook, each in processes of its own."""

    def __init__(self, original: Path, allowance: Allowance):
        self.original, self.allowance = original, allowance
        self.cells = cells.read_original(original)
        self.exercises = {cell.number: cell for cell in self.cells if cell.number}
        modules = [name for cell in self.cells for _, name in cells.imported(cell.source)]
        self.modules = [
            *(f"exercises.notebook_{int(number.split('.')[0]):02}" for number in self.exercises),
            *(name for full in modules for name in (full.rpartition(".")[0], full) if name),
            IMPORTED_LATE,
        ]
        self.modules = [name for name in dict.fromkeys(self.modules) if STARTS_THREADS not in name]
        # Linux alone forks safely: there a process begins with all imports done
        self.context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        self.stopping = threading.Event()

    @cached_property
    def published(self) -> dict[str, str]:
        """What the notebook, its solutions and `utils` show, by its shape."""
        return cells.published(self.original, self.cells)

    def ungraded(self, name: str, kind: str = "not graded", words: str = "not graded yet.") -> Graded:
        """A hand-in with one verdict on all exercises."""
        return Graded(name, {number: Verdict(kind, words) for number in self.exercises})

    def grade(self, hand_ins: dict[str, Path], processes: int) -> Iterator[Graded]:
        """The hand-ins as they are graded, several at a time; who leaves off early ends the processes."""
        if self.context.get_start_method() == "forkserver":
            self.context.set_forkserver_preload(["exercises.grading.watch", *self.modules])
        with mock.patch.dict(os.environ, QUIET | ({} if self.allowance.network else OFFLINE)):
            pool = ThreadPoolExecutor(processes)
            try:
                waiting = [pool.submit(self.grade_one, name, path) for name, path in hand_ins.items()]
                for graded in as_completed(waiting):
                    yield graded.result()
            finally:
                self.stopping.set()
                pool.shutdown(cancel_futures=True)

    def grade_one(self, name: str, path: Path) -> Graded:
        """One hand-in; an exercise that ends the process, or alters it, is left out, and the others are run again."""
        graded = self.ungraded(name)
        try:
            handed_in = cells.read_cells(path)
            cells.expect_chapter(path, handed_in, list(self.exercises))
        except ValueError as error:
            graded = self.ungraded(name, "stopped", "stopped: see the remark.")
            graded.remark(f"{error}.")
            return graded
        answers = {}
        for number, exercise in self.exercises.items():
            cell = cells.find_answer(exercise, handed_in)
            if cell is None:
                words = f"not attempted: its cell is missing, or does not call check({number!r}, …)."
                graded.verdicts[number] = Verdict("not attempted", words)
                continue
            answers[number] = cells.with_helpers(cell, handed_in, self.cells, self.above(number, cells.bound))
            graded.shapes[number] = cells.shapes(answers[number].text, exercise.source)
            if answers[number].below:
                graded.remark(f"{number} uses a cell that stands below it")
        left = dict(answers)
        while left and not self.stopping.is_set():
            told, at, ended = self.run(cells.in_place(self.cells, left), graded)
            for number, message in told.items():
                if graded.verdicts[number].kind == "not graded":
                    graded.verdicts[number] = self.judge(message)
            if at is None:
                break
            if at not in left:
                graded.remark(f"{ended} in a cell that is not the student's")
                break
            if ended:
                graded.verdicts[at] = Verdict("stopped", f"stopped: {ended}.")
            del left[at]
        for number in graded.shapes:
            if graded.verdicts[number].kind in ("correct", "look"):
                graded.same[number] = {self.published[shape] for shape in graded.shapes[number] & self.published.keys()}
        return graded

    def above(self, number: str, names: Callable[[str], set[str]]) -> set[str]:
        """The names that the original's cells above an exercise bind, or give to it."""
        above = self.cells[: self.cells.index(self.exercises[number])]
        return set().union(*(names(cell.source) for cell in above))

    def judge(self, message: dict) -> Verdict:
        """The verdict on an exercise, of what its process tells."""
        words, doubts = message["words"], message["noted"]
        if words.startswith("not attempted yet"):  # the rest is for the student, at the notebook
            words = "not attempted."
        if message["claims"] and not words.startswith(CORRECT):
            doubts = [*doubts, "prints “correct” itself"]
        if doubts:
            return Verdict("look", f"look at it: it {'; it '.join(doubts)}. The check says: {words}")
        kinds = {CORRECT: "correct", "not attempted": "not attempted"}
        return Verdict(next((kinds[start] for start in kinds if words.startswith(start)), "not yet"), words)

    def run(self, steps: list[tuple], graded: Graded) -> tuple[dict, str | None, str]:
        """Run cells in a process: what it tells of each exercise, in which it ended (None: it did not), and how.

        It is believed as long as it tells what is expected: of each step, once, that it begins and what came of it.
        """
        secret, told, at = secrets.token_hex(), {}, ""
        steps = [
            (number, sources, sorted(self.above(number, cells.given_by)) if number else ()) for number, sources in steps
        ]
        expected = [(key, number) for number, *_ in steps for key in ("begins", "number")]
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            ours, theirs = self.context.Pipe(duplex=False)
            arguments = (steps, self.modules, folder, self.allowance.network, theirs, secret)
            process = self.context.Process(target=work, args=arguments, daemon=True)
            process.start()
            theirs.close()
            try:
                seconds, since = START_UP, times(process.pid)
                while True:
                    message = receive(ours, secret)
                    if message is None:
                        process.join(5)
                        code = process.exitcode  # None: it has closed the connection
                        return told, at, f"ends the process (exit status {code})"
                    if not message:
                        if over := exceeded(process.pid, self.allowance, seconds, since):
                            return told, at, over
                        if self.stopping.is_set():
                            return told, at, "was interrupted"
                        continue
                    if "ends" in message:
                        early = "tells the grader itself how it was answered" if expected else ""
                        ended = message["ends"] or early
                        return told, at if ended else None, ended
                    key, number = expected.pop(0) if expected else ("", "")
                    if message.get(key) != number:
                        return told, at, "tells the grader itself how it was answered"
                    if key == "begins":
                        at, seconds, since = number, self.allowance.seconds, times(process.pid)
                    elif message.get("broken"):
                        graded.remark(f"a cell of the original notebook raised {message['broken']}")
                    elif number:
                        told[number] = message
                        if any(words.startswith(ALTERS) for words in message["noted"]):
                            return told, at, ""  # those after it are run in a process of their own
            finally:
                end(process.pid)
                process.join()
                ours.close()


def exceeded(pid: int, allowance: Allowance, seconds: float, since: tuple[float, float]) -> str:
    """What a process takes too much of, or "": memory, or seconds, which are a core's, since it may wait for one."""
    with contextlib.suppress(psutil.Error):
        if psutil.Process(pid).memory_info().rss > allowance.gigabytes * 1e9:
            return f"takes more than {allowance.gigabytes:g} GB of memory"
    clock, core = (now - before for now, before in zip(times(pid), since, strict=True))
    return f"does not end within {seconds:g} seconds" if core > seconds or clock > PATIENCE * seconds else ""


def times(pid: int) -> tuple[float, float]:
    """The time, and how long a process has computed."""
    with contextlib.suppress(psutil.Error):
        return time.monotonic(), sum(psutil.Process(pid).cpu_times()[:2])
    return time.monotonic(), 0.0


def receive(connection: Connection, secret: str) -> dict | None:
    """The next message; {} if none has come for a moment, None if there will be none that can be believed."""
    try:
        if not connection.poll(0.1):
            return {}
        message = json.loads(connection.recv_bytes(2**20))
    except (EOFError, OSError, ValueError):
        return None
    return message if isinstance(message, dict) and message.pop("secret", None) == secret else None


def end(pid: int) -> None:
    """Kill a process and those that it has started."""
    with contextlib.suppress(psutil.Error):
        process = psutil.Process(pid)
        for each in (*process.children(recursive=True), process):
            with contextlib.suppress(psutil.Error):
                each.kill()
