"""The lines that `make test` prints during a run and at its end."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.helpers import ONE_THREAD
from tests.progress import Progress, group_of

SKIPPING = """\
import pytest

@pytest.fixture
def browser():
    pytest.skip("install Chromium for the browser tests")

@pytest.mark.parametrize("number", range(7))
def test_page(browser, number): ...

@pytest.mark.skipif(True, reason="needs a French locale")
def test_locale(): ...
"""


class Reporter:
    """A terminal reporter that keeps its lines."""

    def __init__(self):
        self.lines = []
        self.write_line = self.section = self.lines.append


def report_two_tests(every: float) -> list[str]:
    """Return the lines printed for a run of two tests, with progress after each of these seconds."""
    reporter, progress = Reporter(), Progress(every)
    manager = SimpleNamespace(getplugin={"terminalreporter": reporter}.get)
    progress.pytest_sessionstart(SimpleNamespace(testscollected=2, config=SimpleNamespace(pluginmanager=manager)))
    for nodeid, seconds in (("tests/browser/test_site.py::test_links", 3), ("tests/slow/test_a.py::test_b", 9)):
        for when in ("setup", "call", "teardown"):
            progress.pytest_runtest_logreport(SimpleNamespace(nodeid=nodeid, when=when, duration=seconds))
    progress.pytest_terminal_summary()
    return reporter.lines


def test_progress_counts_tests_and_sums_seconds():
    *counts, title, first, second = report_two_tests(every=0)
    assert (counts[2], counts[-1], len(counts)) == ("  0 min: 1 of 2 tests", "  0 min: 2 of 2 tests", 6)
    assert title == "where the time went"
    assert (first, second) == ("     27 s  tests/slow", "      9 s  tests/browser")


def test_progress_is_printed_once_a_minute():
    assert len(report_two_tests(every=60)) == 3


@pytest.mark.parametrize(
    ("nodeid", "group"),
    [
        ("notebooks/08_classifier.ipynb::Cell 3", "notebooks/08_classifier.ipynb"),
        ("notebooks/solutions/08_solutions.ipynb::Cell 3", "notebooks/solutions"),
        ("tests/browser/test_site.py::test_links[a/b]", "tests/browser"),
    ],
)
def test_group_of_test(nodeid, group):
    assert group_of(nodeid) == group


@pytest.mark.long
@pytest.mark.parametrize("processes", [[], ["-n", "1"]], ids=["one process", "xdist"])
def test_skipped_tests_get_one_line_per_reason(tmp_path, processes):
    (tmp_path / "conftest.py").write_text("from tests.conftest import pytest_terminal_summary\n", "utf-8")
    (tmp_path / "test_skipping.py").write_text(SKIPPING, "utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-rfExX", "-p", "no:nbval", "-p", "no:nbmake", *processes]
    done = subprocess.run(command, cwd=tmp_path, env=ONE_THREAD, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if "skipped:" in line.lower()]
    assert lines == ["7 skipped: install Chromium for the browser tests", "1 skipped: needs a French locale"]
