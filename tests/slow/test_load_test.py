"""`make room` opens a JupyterHub for two students, each with a server, a kernel and a folder of their own."""

import re
import shutil
import subprocess

import pytest

from tests.helpers import ROOT
from tests.repository import write_notebook


def open_room(notebook: str) -> subprocess.CompletedProcess:
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: install Node.js to test make room")
    command = ["make", "room", "N=2", f"NB={notebook}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900)


def test_two_students_run_the_first_notebook():
    done = open_room("00")
    assert done.returncode == 0, done.stdout + done.stderr
    for row in ("server is ready", "first view", "all cells", "memory"):
        numbers = re.search(rf"^{row} .*\)( +\d+ +\d+ +\d+ +\d+)$", done.stdout, re.MULTILINE)[1]
        least, median, most, seats = map(int, numbers.split())
        assert 0 < least <= median <= most
        assert seats == 2
    assert re.search(r"your machine carries about \d+ seats of it", done.stdout)
    assert "no errors" in done.stdout


def test_an_error_in_a_notebook_is_counted_for_each_student(tmp_path):
    done = open_room(str(write_notebook(tmp_path / "wrong.ipynb", "1 / 0")))
    assert done.returncode != 0
    for student in ("student1", "student2"):
        assert f"{student}: cell 1: ZeroDivisionError: division by zero" in done.stdout
    assert "2 of 2 students met an error" in done.stdout
