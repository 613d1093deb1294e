"""Screenshots show the choices, the selected token and a stepper's end, without controls."""

import io
from contextlib import nullcontext

import pytest
from PIL import Image

from publish import screenshots
from publish.screenshots import DRAWN, screenshotter
from tests.browser.figure_examples import FIGURES


@pytest.fixture(scope="module")
def open_for_screenshot(browser):
    """Yield a function that opens a view's page as the screenshotter does."""
    with browser.new_page(viewport={"width": 1080, "height": 100}) as tab:

        def opened(view):
            tab.goto("about:blank")
            tab.evaluate("window.still = true")
            tab.set_content(view.page)
            tab.wait_for_function(DRAWN)
            return tab

        yield opened


@pytest.mark.parametrize("kind", ["head", "model", "neuron"])
def test_a_view_shows_what_is_chosen_and_nothing_to_press(open_for_screenshot, draw, kind):
    tab = open_for_screenshot(draw[kind]())
    shown = [one for one in tab.locator("select, input, button:not(.cell), #help").all() if one.is_visible()]
    assert {control.evaluate("(e) => e.tagName") for control in shown} <= {"SELECT"}
    assert not tab.locator("#tip").is_visible()


@pytest.mark.parametrize("name", FIGURES)
def test_a_still_shows_nothing_to_press(open_for_screenshot, name):
    tab = open_for_screenshot(FIGURES[name].make(["time", "flies", "like"]))
    tab.add_style_tag(content=screenshots.STILL)
    look = "(all) => all.filter((e) => e.checkVisibility()).map((e) => getComputedStyle(e).borderTopWidth)"
    shown = tab.locator("select, input, button:not(.cell), textarea, summary, #help").evaluate_all(look)
    assert set(shown) <= {"0px"}


def test_the_camera_takes_the_same_picture_twice(browser, monkeypatch):
    monkeypatch.setattr(screenshots, "open_browser", lambda: nullcontext(browser))
    view = FIGURES["mask_painter"].make(["time", "flies", "like"])
    with screenshotter() as take_screenshot:
        (png, size), again = take_screenshot(view.page), take_screenshot(view.page)
    assert (png, size) == again
    picture = Image.open(io.BytesIO(png))
    assert picture.width == 2 * size["width"]
    assert len(picture.getcolors()) <= 128
