"""Figures fitted for slides: no texts overlap, and each stays in its cell or box."""

import runpy
from itertools import combinations

import matplotlib.pyplot as plt
import pytest
from matplotlib.backend_bases import FigureCanvasBase

from publish.slides import LARGER_TEXT


@pytest.fixture
def fit(monkeypatch):
    """Return the function that fits a figure to a slide, without patching matplotlib."""
    monkeypatch.setattr(FigureCanvasBase, "print_figure", FigureCanvasBase.print_figure)
    with plt.rc_context():
        plt.rcdefaults()  # whatever a test before this one has set
        yield runpy.run_path(str(LARGER_TEXT))["fit_for_a_slide"]
    plt.close("all")


def numbers_in_cells(rows: int, columns: int, size: int, paper: tuple[float, float]):
    """Draw a heat map with a number in each cell."""
    figure, ax = plt.subplots(figsize=paper)
    ax.imshow([[0.5] * columns] * rows, aspect="auto")
    for row in range(rows):
        for column in range(columns):
            ax.text(column, row, "0.50", ha="center", va="center", fontsize=size)
    return figure, ax


@pytest.mark.parametrize(("rows", "columns", "width"), [(2, 2, 9), (6, 6, 14), (12, 14, 9), (14, 30, 14)])
def test_numbers_stay_apart_and_in_their_cells(fit, rows, columns, width):
    figure, ax = numbers_in_cells(rows, columns, 7, (width, 4.5))
    fit(figure)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
    cell = ax.bbox.width / columns
    assert all(box.width <= cell for box in boxes)
    assert {text.get_fontsize() for text in ax.texts} == ({7} if columns == 30 else {10})
