"""Run each hand-in in a process with limits. Any failure there becomes the verdict of its row."""

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO
from unittest import mock

import psutil

from exercises import find_check
from exercises.grading import cells
from exercises.grading.child import MAX_WORDS, adopt_orphans, end_all, work
from exercises.grading.report import Row

QUIET = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "MPLBACKEND": "agg", "HF_HUB_OFFLINE": "1"}
QUIET |= {"DEVICE": "cpu", "CUDA_VISIBLE_DEVICES": "", "MINE": "off"}  # processes share the cores and show nothing
START_UP = 300  # seconds for the imports of a process, on a busy machine
MAX_RESULTS = 2**20  # bytes read from the messages of a process
PRELOADED = ["exercises.grading.child", "exercises.parts", "utils.support.plots", "views"]
PRELOADED += ["transformers.models.bert.modeling_bert"]


class Grader:
    """Grade hand-ins of one notebook, with seconds for each cell, and gigabytes of memory for each hand-in.

    Verdicts have the first hint, or `again` the second.
    """

    def __init__(self, original: Path, seconds: float = 60, gigabytes: float = 4, again: bool = False):
        self.original, self.seconds, self.gigabytes, self.again = original.resolve(), seconds, gigabytes, again
        self.exercises = [cell.number for cell in cells.read_cells(original) if cell.number]
        if not self.exercises:
            raise ValueError(f'{original} has no exercises: no cell calls check("3.1", …)')
        for number in self.exercises:
            find_check(number)
        self.stopping = threading.Event()
        # only Linux forks safely, and there a process starts with its imports done
        self.context = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
        if sys.platform == "linux":
            self.context.set_forkserver_preload(PRELOADED)

    def grade(self, row: Row, path: Path, without: Sequence[str] = ()) -> Row:
        """Grade one hand-in; an exercise that ends its process is left out, and the others are run again."""
        without = [*without]
        try:
            while not self.stopping.is_set():
                messages, stopped = self.run(path.resolve(), without)
                at = ""
                for kind, *values in messages:
                    if kind == "judged":
                        row.judge(*values)
                    elif kind == "follows":
                        row.follow(*values)
                    elif kind == "remark":
                        row.remark(*values)
                    elif kind == "begins":
                        (at,) = values
                    elif kind == "ends":
                        (stopped,) = values
                        at = at if stopped else ""
                if self.stopping.is_set():
                    break
                row.stop([at] if row.is_open(at) else self.exercises if stopped else [], stopped)
                if not stopped or at == "" or at in without:
                    break
                without.append(at)
        except Exception as error:  # it wrote unexpected messages, or its process could not be started
            row.stop(self.exercises, f"it cannot be graded ({type(error).__name__}: {error})"[:MAX_WORDS])
        return row

    def run(self, path: Path, without: list[str]) -> tuple[list, str]:
        """Run a hand-in in a process, and return its messages and what ended it."""
        with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            results = Path(folder) / "results"
            with results.open("w+b") as file:  # stays open, because a hand-in may replace it
                process = self.context.Process(target=work, args=(self.original, path, without, self.again, results))
                process.start()
                try:
                    stopped = self.wait(process, file)
                finally:
                    end(process)
                return read_messages(file), stopped

    def wait(self, process: BaseProcess, file: BinaryIO) -> str:
        """Wait for a process, and return which limit it exceeded, or that it has ended."""
        seconds, count, since = START_UP, 0, time.monotonic()
        latest = since + START_UP + self.seconds * 2 * len(self.exercises)
        while process.is_alive() and not self.stopping.is_set():
            process.join(0.1)
            if len(messages := read_messages(file)) > count:
                seconds, count, since = self.seconds, len(messages), time.monotonic()
            if time.monotonic() > min(since + seconds, latest):
                return f"it does not end within {self.seconds:g} seconds"
            with contextlib.suppress(psutil.Error):
                processes = tree(process)
                if sum(each.memory_info().rss for each in processes[1:] or processes) > self.gigabytes * 1e9:
                    return f"it takes more than {self.gigabytes:g} GB of memory"
        return "it ends its process"


def read_messages(file: BinaryIO) -> list[list]:
    """Return the messages in a file, without invalid lines."""
    file.seek(0)
    messages = []
    for line in file.read(MAX_RESULTS).splitlines():
        with contextlib.suppress(ValueError, RecursionError):
            messages.append(json.loads(line))
    return [message for message in messages if isinstance(message, list) and message]


def tree(process: BaseProcess) -> list[psutil.Process]:
    """Return a process and all that it has started."""
    found = psutil.Process(process.pid)
    return [found, *found.children(recursive=True)]


def end(process: BaseProcess) -> None:
    """Kill a process, its descendants and the rest of its group."""
    with contextlib.suppress(psutil.Error):
        for _ in range(3):  # it adopts what they leave behind meanwhile, so it dies last
            end_all(tree(process)[1:])
        end_all([psutil.Process(process.pid)])
    if hasattr(os, "killpg"):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)
    process.join()


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """Keep screen, GPU and network from hand-ins; on Linux, end what they leave behind, such as an orphan."""
    with mock.patch.dict(os.environ, QUIET), end_orphans():
        yield


@contextlib.contextmanager
def end_orphans() -> Iterator[None]:
    """End what hand-ins have left behind, such as one that has killed the parent of its process; on Linux."""
    if sys.platform != "linux":
        yield
        return
    from multiprocessing import forkserver  # other systems may not have it

    adopt_orphans()
    forkserver.ensure_running()
    before = psutil.Process().children()
    try:
        yield
    finally:
        for _ in range(3):  # what they leave behind in their turn, too
            end_all([each for each in psutil.Process().children() if each not in before])
