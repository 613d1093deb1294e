"""The first cell says what it waits for, if it waits long."""

import ast
import subprocess
import sys

import pytest

from tests.helpers import ONE_THREAD, ROOT
from utils.patience import IMPORTING, SECONDS

# a cell that waits, with the seconds a hundredth as long
CELL = """
import sys, threading, time
from IPython.core.interactiveshell import InteractiveShell
{shell}
Timer = threading.Timer
threading.Timer = lambda seconds, function: Timer(seconds / 100, function)
from utils import patience
time.sleep({waits})
patience.over()
print("ready")
"""
CLEARED = "\033[2K\n"  # what clear_output writes where no notebook is, its \r read as \n


@pytest.mark.parametrize(
    ("shell", "waits", "printed"),
    [
        ("InteractiveShell.instance()", SECONDS / 10, f"{IMPORTING}\n{2 * CLEARED}ready\n"),
        ("InteractiveShell.instance()", 0, "ready\n"),
        ("", SECONDS / 10, "ready\n"),
    ],
    ids=["long", "soon", "not in a notebook"],
)
def test_a_cell_says_what_it_waits_for(shell, waits, printed):
    command = [sys.executable, "-c", CELL.format(shell=shell, waits=waits)]
    run = subprocess.run(command, env=ONE_THREAD, capture_output=True, text=True, check=False)
    assert run.stdout == printed, run.stderr


def test_it_does_so_before_what_takes_long():
    program = ast.parse((ROOT / "utils" / "notebook.py").read_text("utf-8"))
    first = next(node for node in program.body if isinstance(node, ast.Import | ast.ImportFrom))
    assert ast.unparse(first) == "from utils import patience"
