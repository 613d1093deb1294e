"""Plugin that prints progress once a minute and the time of each group at the end: `pytest -p tests.progress`."""

import time
from collections import Counter

import pytest

EVERY = 60  # seconds


class Progress:
    """Count the tests and seconds that all processes of a run report."""

    def __init__(self, every: float = EVERY):
        self.every, self.done, self.spent = every, 0, Counter()
        self.begun = self.printed = time.monotonic()

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Keep the session, which has the number of tests."""
        self.session = session
        self.reporter = session.config.pluginmanager.getplugin("terminalreporter")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add the seconds of a test to those of its group, and print progress from time to time."""
        self.spent[group_of(report.nodeid)] += report.duration
        self.done += report.when == "teardown"
        if (now := time.monotonic()) - self.printed >= self.every:
            self.printed = now
            minutes = f"{(now - self.begun) / 60:.0f} min"
            self.reporter.write_line(f"  {minutes}: {self.done:,} of {self.session.testscollected:,} tests")

    def pytest_terminal_summary(self) -> None:
        """Print the seconds of each group, summed over all processes."""
        self.reporter.section("where the time went")
        for group, seconds in self.spent.most_common():
            self.reporter.write_line(f"{seconds:7.0f} s  {group}")


def group_of(nodeid: str) -> str:
    """Return the folder of a test, or its notebook: tests that share a kernel, a server or a browser."""
    file = nodeid.split("::")[0]
    return file if file.startswith("notebooks/") and file.count("/") == 1 else file.rpartition("/")[0]


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin in pytest-xdist's controller or the only process."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Progress())
