"""`make room`: what it prints, and what it refuses. tests/slow/test_load_test.py opens a room."""

import os
import sys

import pytest
from tqdm import tqdm

from publish import load_test
from publish.load_test import Seat
from publish.server import run_server


class NoHub:
    """A hub whose servers do not start."""

    def start_server(self, name: str) -> None:
        raise TimeoutError(f"the server of {name} did not start")


def test_a_student_without_a_server_is_an_error_and_not_a_seat():
    seat = Seat("student1")
    load_test.attend(NoHub(), seat, {0: "1"}, tqdm(disable=True))
    assert seat.errors == ["TimeoutError: the server of student1 did not start"]
    assert seat.server is seat.first_view is seat.all_cells is None


def test_table_has_the_least_the_median_and_the_most():
    seats = [Seat(str(s), server=s, first_view=2 * s, memory=s * 1e8) for s in (1.0, 2.0, 9.0)]
    rows = [line.split() for line in load_test.table(seats).splitlines()]
    assert rows[0] == ["least", "median", "most", "seats"]
    assert [row[-4:] for row in rows[1:]] == [
        ["1", "2", "9", "3"],
        ["2", "4", "18", "3"],
        ["-", "-", "-", "0"],  # nobody ran all cells
        ["100", "200", "900", "3"],
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["0"], "N must be a whole number from 1 to 200, not '0': for example N=8"),
        (["eight"], "not 'eight'"),
        (["-3"], "not '-3'"),
        (["2", "99"], "0 notebooks begin with '99': give one, for example NB=00"),
        (["2", "1"], "6 notebooks begin with '1'"),
    ],
)
def test_bad_arguments_are_named(arguments, message, capsys):
    with pytest.raises(SystemExit, match="2"):
        load_test.main(arguments)
    assert message in capsys.readouterr().err


def test_a_server_that_ends_at_once_is_named_with_its_log(tmp_path):
    command = [sys.executable, "-m", "no_such_hub"]
    wanted = r"^no_such_hub does not start. The end of its log:\n.*No module named no_such_hub$"
    with (
        pytest.raises(TimeoutError, match=wanted),
        run_server(command, "http://127.0.0.1:9/", tmp_path, os.environ, 60),
    ):
        pytest.fail("it has not started")
