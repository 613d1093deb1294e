"""What `make test` says of itself while it runs."""

from types import SimpleNamespace

import pytest

from tests.progress import Progress, group_of


class Reporter:
    """Keeps what would be printed."""

    def __init__(self):
        self.lines = []
        self.write_line = self.section = self.lines.append


def a_run(every: float) -> list[str]:
    """What is printed of a run of two tests, with these seconds between two lines."""
    reporter, progress = Reporter(), Progress(every)
    manager = SimpleNamespace(getplugin={"terminalreporter": reporter}.get)
    progress.pytest_sessionstart(SimpleNamespace(testscollected=2, config=SimpleNamespace(pluginmanager=manager)))
    for nodeid, seconds in (("tests/browser/test_site.py::test_links", 3), ("tests/slow/test_a.py::test_b", 9)):
        for when in ("setup", "call", "teardown"):
            progress.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, when=when, duration=seconds))
    progress.pytest_terminal_summary()
    return reporter.lines


def test_a_run_tells_how_far_it_is_and_where_its_time_went():
    *told, title, first, second = a_run(every=0)
    assert (told[2], told[-1], len(told)) == ("  0 min: 1 of 2 tests", "  0 min: 2 of 2 tests", 6)
    assert title == "where the time went"
    assert (first, second) == ("     27 s  tests/slow", "      9 s  tests/browser")


def test_it_says_so_once_a_minute():
    assert len(a_run(every=60)) == 3


@pytest.mark.parametrize(
    ("nodeid", "place"),
    [
        ("notebooks/08_classifier.ipynb::Cell 3", "notebooks/08_classifier.ipynb"),
        ("notebooks/solutions/08_solutions.ipynb::Cell 3", "notebooks/solutions"),
        ("tests/browser/test_site.py::test_links[a/b]", "tests/browser"),
    ],
)
def test_places(nodeid, place):
    assert group_of(nodeid) == place
