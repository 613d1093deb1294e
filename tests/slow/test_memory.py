"""A notebook takes no more memory than docs/ROOMS.md says."""

import re
import threading
from contextlib import suppress
from pathlib import Path

import nbformat
import psutil
import pytest
from nbclient import NotebookClient

from publish.notebooks import number_of
from tests.helpers import ROOT

ROOMS = (ROOT / "docs" / "ROOMS.md").read_text("utf-8")
TABLE = re.findall(r"^\| ([\w, ]+) \| (?:[\d.]+–)?([\d.]+) GB \|$", ROOMS, re.M)
MOST = {number: float(most) for numbers, most in TABLE for number in numbers.split(", ")}  # GB, by notebook
NOTEBOOKS = sorted((ROOT / "notebooks").glob("[0-9e]*.ipynb"))


def test_every_notebook_has_its_memory_told():
    assert sorted(MOST) == [number_of(path) for path in NOTEBOOKS]


def resident(process: psutil.Process) -> int:
    """The bytes of memory that a process and its children hold.

    Of a child only its own memory counts: what it shares with its parent is counted there.
    """
    held = process.memory_info().rss
    for child in process.children(recursive=True):
        with suppress(psutil.Error):  # it has just ended
            held += child.memory_full_info().uss
    return held


def peak_of(path: Path) -> int:
    """The most bytes that the kernel of a notebook and its children held, looked at ten times a second."""
    client = NotebookClient(nbformat.read(path, as_version=4), timeout=None, kernel_name="python3")
    client.resources["metadata"] = {"path": str(path.parent)}
    held, over = [0], threading.Event()

    def watch() -> None:
        while not over.wait(0.1):
            with suppress(psutil.Error):
                held.append(resident(psutil.Process(client.km.provisioner.pid)))

    with client.setup_kernel():
        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            for number, cell in enumerate(client.nb.cells):
                client.execute_cell(cell, number)
        finally:
            over.set()
            watcher.join()
    return max(held)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_takes_no_more_memory_than_is_told(path):
    assert peak_of(path) <= (MOST[number_of(path)] + 0.05) * 1e9  # the table is rounded
