"""Photographs: every saved view and figure has one, it is that of its page, and only another page makes another."""

import base64
from contextlib import contextmanager

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from publish import browser, photograph
from publish.notebooks import notebook_paths
from publish.photograph import HTML, PAGE, PNG
from views import mask_painter
from views.page import INSTEAD

PICTURE = base64.b64encode(b"a picture").decode()


def notebook_of(*figures, metadata=None, png=None):
    """A notebook that has run, with a cell for each figure."""
    cells = []
    for figure in figures:
        data = {HTML: figure._repr_html_()} | ({PNG: png} if png else {})
        output = new_output("display_data", data, metadata=metadata or {})
        cells.append(new_code_cell(outputs=[output]))
    return new_notebook(cells=cells)


@contextmanager
def one_that_counts(taken: list):
    """A camera whose pictures are all alike."""

    def shoot(page: str):
        taken.append(page)
        return b"a picture", {"width": 10, "height": 20}

    yield shoot


@pytest.mark.parametrize("path", notebook_paths([]), ids=lambda path: path.stem)
def test_every_saved_view_and_figure_has_a_picture(path):
    outputs = [output for cell in nbformat.read(path, 4).cells for output in cell.get("outputs", [])]
    for output in outputs:
        if INSTEAD in output.get("data", {}).get("text/plain", ""):
            assert base64.b64decode(output.data[PNG]).startswith(b"\x89PNG")
            assert len(output.metadata[PNG][PAGE]) == 16
            size = output.metadata[PNG]
            assert 300 <= size["width"] <= 1100
            assert size["height"] <= 900


def test_a_picture_is_taken_once_and_kept_as_long_as_its_page_is_the_same(monkeypatch):
    taken, figure, other = [], mask_painter(["a", "b"]), mask_painter(["a", "c"])
    monkeypatch.setattr(photograph, "camera", lambda: one_that_counts(taken))
    saved = notebook_of(figure)
    photograph.photograph(saved, new_notebook())
    assert taken == [figure.page]
    assert saved.cells[0].outputs[0].data[PNG] == PICTURE
    assert saved.cells[0].outputs[0].metadata[PNG].keys() == {"width", "height", PAGE}

    again = notebook_of(figure, other)
    photograph.photograph(again, saved)
    assert taken == [figure.page, other.page]
    assert again.cells[0].outputs[0] == saved.cells[0].outputs[0]


def test_without_a_browser_saved_pictures_stay_and_others_are_missed_in_words(monkeypatch):
    monkeypatch.setattr(browser, "find_browser", lambda: None)
    figure, other = mask_painter(["a", "b"]), mask_painter(["a", "c"])
    with monkeypatch.context() as patched:
        patched.setattr(photograph, "camera", lambda: one_that_counts([]))
        photograph.photograph(saved := notebook_of(figure), new_notebook())
    photograph.photograph(notebook_of(figure), saved)  # needs none
    again = notebook_of(other, figure)
    with pytest.raises(FileNotFoundError, match="pictures of views need Chromium or Chrome"):
        photograph.photograph(again, saved)
    assert PNG not in again.cells[0].outputs[0].data
    assert again.cells[1].outputs[0].data[PNG] == PICTURE
