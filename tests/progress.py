"""Tells how far a long run is, once a minute, and at its end where the time went: `pytest -p tests.progress`."""

import time
from collections import Counter

import pytest

EVERY = 60  # seconds


class Progress:
    """Counts what the processes of a run report."""

    def __init__(self, every: float = EVERY):
        self.every, self.done, self.spent = every, 0, Counter()
        self.begun = self.told = time.monotonic()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, which knows how many tests there are."""
        self.session = session
        self.reporter = session.config.pluginmanager.getplugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test's seconds to those of its place, and say from time to time how many are done."""
        self.spent[place_of(report.nodeid)] += report.duration
        self.done += report.when == "teardown"
        if (now := time.monotonic()) - self.told >= self.every:
            self.told = now
            minutes = f"{(now - self.begun) / 60:.0f} min"
            self.reporter.write_line(f"  {minutes}: {self.done:,} of {self.session.testscollected:,} tests")

    def pytest_terminal_summary(self) -> None:
        """Say how many seconds each place took, of all processes together."""
        self.reporter.section("where the time went")
        for place, seconds in self.spent.most_common():
            self.reporter.write_line(f"{seconds:7.0f} s  {place}")


def place_of(nodeid: str) -> str:
    """The folder of a test, or the notebook: what shares a kernel, a server or a browser."""
    file = nodeid.split("::")[0]
    return file if file.startswith("notebooks/") and "solutions" not in file else file.rpartition("/")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Count in the process that shares the tests out, or the only one."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress())
