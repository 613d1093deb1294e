"""Chromium or Chrome on this machine, for pictures, measurements and the browser tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)


def find_browser() -> str | None:
    """Return the path of the first of `BROWSERS` that is installed, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextmanager
def open_browser(*options: str) -> Iterator[Browser]:
    """Open the installed browser headless with these options; FileNotFoundError if there is none."""
    if (program := find_browser()) is None:
        raise FileNotFoundError("pictures of views need Chromium or Chrome, such as apt install chromium")
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=program, args=["--no-sandbox", *options])
