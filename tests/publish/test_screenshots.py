"""Screenshots: every saved view and figure has one, and it is retaken only when its page changes."""

import base64
from contextlib import contextmanager

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from publish import browser, screenshots
from publish.notebooks import notebook_paths
from publish.screenshots import HTML, PAGE, PNG
from views import mask_painter
from views.page import STATIC_NOTICE

PICTURE = base64.b64encode(b"a picture").decode()


def notebook_of(*figures, metadata=None, png=None):
    """Return an executed notebook with a cell for each figure."""
    cells = []
    for figure in figures:
        data = {HTML: figure._repr_html_()} | ({PNG: png} if png else {})
        output = new_output("display_data", data, metadata=metadata or {})
        cells.append(new_code_cell(outputs=[output]))
    return new_notebook(cells=cells)


@contextmanager
def counting_screenshotter(taken: list):
    """Yield a function that records each page and returns the same picture for all."""

    def take_screenshot(page: str):
        taken.append(page)
        return b"a picture", {"width": 10, "height": 20}

    yield take_screenshot


@pytest.mark.parametrize("path", notebook_paths([]), ids=lambda path: path.stem)
def test_saved_views_and_figures_have_a_screenshot(path):
    outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    for output in outputs:
        if STATIC_NOTICE in output.get("data", {}).get("text/plain", ""):
            assert base64.b64decode(output.data[PNG]).startswith(b"\x89PNG")
            assert len(output.metadata[PNG][PAGE]) == 16
            size = output.metadata[PNG]
            assert 300 <= size["width"] <= 1100
            assert size["height"] <= 900


def test_screenshot_is_kept_while_its_page_is_unchanged(monkeypatch):
    taken, figure, other = [], mask_painter(["a", "b"]), mask_painter(["a", "c"])
    monkeypatch.setattr(screenshots, "screenshotter", lambda: counting_screenshotter(taken))
    saved = notebook_of(figure)
    screenshots.add_screenshots(saved, new_notebook())
    assert taken == [figure.page]
    assert saved.cells[0].outputs[0].data[PNG] == PICTURE
    assert saved.cells[0].outputs[0].metadata[PNG].keys() == {"width", "height", PAGE}

    again = notebook_of(figure, other)
    screenshots.add_screenshots(again, saved)
    assert taken == [figure.page, other.page]
    assert again.cells[0].outputs[0] == saved.cells[0].outputs[0]


def test_missing_browser_raises_only_for_new_screenshots(monkeypatch):
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    figure, other = mask_painter(["a", "b"]), mask_painter(["a", "c"])
    with monkeypatch.context() as patched:
        patched.setattr(screenshots, "screenshotter", lambda: counting_screenshotter([]))
        screenshots.add_screenshots(saved := notebook_of(figure), new_notebook())
    screenshots.add_screenshots(notebook_of(figure), saved)  # needs no browser
    again = notebook_of(other, figure)
    with pytest.raises(FileNotFoundError, match="pictures of views need Chromium or Chrome"):
        screenshots.add_screenshots(again, saved)
    assert PNG not in again.cells[0].outputs[0].data
    assert again.cells[1].outputs[0].data[PNG] == PICTURE
