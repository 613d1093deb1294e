"""Where Chromium or Chrome is on this machine, for pictures, measurements and the browser tests."""

import shutil

BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome"),
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)


def find_browser() -> str | None:
    """The path of the first of `BROWSERS` that is installed; None if none is."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)
