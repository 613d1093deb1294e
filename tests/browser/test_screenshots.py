"""The camera of screenshots takes what it took, so that a picture changes only with its page."""

import io
from contextlib import nullcontext

from PIL import Image

from publish import screenshots
from publish.screenshots import screenshotter
from tests.browser.figure_examples import FIGURES


def test_the_camera_takes_the_same_picture_twice(browser, monkeypatch):
    monkeypatch.setattr(screenshots, "open_browser", lambda: nullcontext(browser))
    view = FIGURES["mask_painter"].make(["time", "flies", "like"])
    with screenshotter() as take_screenshot:
        (png, size), again = take_screenshot(view.page), take_screenshot(view.page)
    assert (png, size) == again
    picture = Image.open(io.BytesIO(png))
    assert picture.width == 2 * size["width"]
    assert len(picture.getcolors()) <= 128
