"""Figures show the values they are given, label them, and are shown once unless they are part of another figure."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from matplotlib import font_manager
from matplotlib.text import Text

from utils.support.colours import SMALL, WIDTH
from utils.support.plots import (
    PIXEL,
    arrows,
    bars,
    boxes,
    curves,
    dots,
    heatmap,
    histogram,
    ladder,
    panels,
    points,
    set_style,
)

WORDS = ["time", "flies"]


@pytest.fixture(autouse=True)
def shown(monkeypatch) -> list:
    """The figures that were shown; all are closed afterwards."""
    figures = []
    monkeypatch.setattr(plt, "show", lambda: figures.append(plt.gcf()))
    with mpl.rc_context({"backend": "agg"}):
        set_style()
        yield figures
        plt.close("all")


def draw_heatmap(**options):
    heatmap([[0.0, 1.0], [0.25, 0.75]], WORDS, WORDS, **options)


def draw_curves(**options):
    curves({"train": [3.0, 2.0, 1.0], "test": torch.tensor([3.0, 2.5, 2.6])}, **options)


def draw_bars(**options):
    bars({"exact": 120.0, "HNSW": 3.0}, **options)


def draw_dots(**options):
    dots({"ours": [0.5, 0.75], "theirs": [[0.25, 0.5], [1.0, 0.0]]}, WORDS, digits=".2f", **options)


def draw_points(**options):
    points({"text": [[1, 2], [3, 5]], "padding": [[4, 4]]}, marks={"mean": (2, 3.5)}, **options)


def draw_arrows(**options):
    arrows({"query": [3, 4], "key": torch.tensor([-1.0, 2.0])}, **options)


def draw_histogram(**options):
    histogram({"here": [1, 1, 2], "there": [0, 1, 1]}, bins=[0, 1, 2, 3], limit=1, **options)


def draw_boxes(**options):
    boxes([["he", "ran"], ["she"]], {"pale blue": [(1, 0)]}, below={(1, 0): "he"}, **options)


def draw_ladder(**options):
    ladder({"tokens": (100.0, 86.0, 114.0), "one layer": (159.5, 147.0, 170.0), "six layers": None}, **options)


DRAWN = [draw_heatmap, draw_curves, draw_bars, draw_dots, draw_points, draw_arrows, draw_histogram, draw_ladder]
DRAWN += [draw_boxes]


@pytest.mark.parametrize("draw", DRAWN)
def test_figures_are_as_wide_as_the_page_and_legible(draw, shown):
    draw(title="T", note="layer 5 $ of $ 6")
    [figure] = shown
    figure.draw_without_rendering()
    assert figure.get_tightbbox().padded(0.1).width * figure.dpi == pytest.approx(WIDTH, abs=1)
    assert figure.get_supxlabel() == r"layer 5 \$ of \$ 6"
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= SMALL * PIXEL


def test_curves_draw_intervals_levels_and_marks(shown):
    ends = {"train": ([2, 1, 0], [4, 3, 2])}
    draw_curves(x=["a", "b", "c"], intervals=ends, digits=".1f", levels={"chance": 2.5}, marks={"here": (1, 2)})
    ax = shown[0].axes[0]
    assert [path.vertices.tolist() for path in ax.collections[0].get_paths()][1] == [[1, 1], [1, 3]]
    assert list(ax.lines[2].get_ydata()) == [2.5, 2.5]
    assert [text.get_text() for text in ax.texts] == ["3.0", "2.0", "1.0", "3.0", "2.5", "2.6", "here"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]


def test_dots_show_each_number_and_the_mean_of_several(shown):
    draw_dots(intervals={"ours": [(0.4, 0.6), (0.7, 0.9)]}, limit=0.5)
    ax = shown[0].axes[0]
    assert [text.get_text() for text in ax.texts] == ["0.50", "0.75", "0.38", "0.50"]
    drawn = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "."]
    assert drawn == [[0.25, 0.5], [1, 0]]
    assert list(ax.lines[0].get_xdata()) == [0.4, 0.6]
    assert list(ax.lines[-1].get_xdata()) == [0.5, 0.5]


def test_points_and_arrows_end_where_their_numbers_say(shown):
    draw_points()
    draw_arrows()
    groups, plane = (figure.axes[0] for figure in shown)
    assert [group.get_offsets().tolist() for group in groups.collections] == [[[1, 2], [3, 5]], [[4, 4]]]
    assert [text.xy for text in groups.texts] == [(2, 3.5)]
    assert [tuple(text.xy) for text in plane.texts if not text.get_text()] == [(3, 4), (-1, 2)]
    assert plane.get_aspect() == 1


def test_bars_write_values_and_intervals(shown):
    bars({"exact": 0.5, "HNSW": -0.25}, intervals=[(0.4, 0.6), (-0.3, -0.2)], digits=".0%", signed=True)
    ax = shown[0].axes[0]
    assert [text.get_text() for text in ax.texts] == ["50%", "-25%"]
    ends = [path.vertices[:, 0].tolist() for path in ax.collections[0].get_paths()]
    assert ends == [pytest.approx([0.4, 0.6]), pytest.approx([-0.3, -0.2])]
    assert len({bar.get_facecolor() for bar in ax.patches}) == 2


def test_panels_have_one_colour_bar():
    axes = panels(2)
    for ax in axes:
        heatmap([[0.0, 1.0]], limits=(0, 1), colorbar="weight", ax=ax)
    assert [ax.get_ylabel() for ax in axes[0].figure.axes] == ["", "", "weight"]


@pytest.mark.parametrize("draw", DRAWN[:-1])
def test_only_own_figures_are_shown(draw, shown):
    draw(title="T", xlabel="X", ylabel="Y")
    ax = shown[0].axes[0]
    assert ax.get_title() == "T"
    assert ax.get_xlabel() == "X"
    assert ax.get_ylabel() == "Y"
    _, given = plt.subplots()
    draw(ax=given, title="given")
    assert given.get_title() == "given"
    assert len(shown) == 1


def test_heatmap_labels_rows_and_columns(shown):
    values = torch.arange(6.0, requires_grad=True).view(2, 3)
    heatmap(values, WORDS, ["a", "b", "c"], colorbar="weight", limits=(-1, 9))
    ax, colorbar = shown[0].axes
    assert [label.get_text() for label in ax.get_yticklabels()] == WORDS
    assert [label.get_text() for label in ax.get_xticklabels()] == ["a", "b", "c"]
    assert colorbar.get_ylabel() == "weight"
    image = ax.images[0]
    assert image.get_array().tolist() == values.tolist()
    assert image.get_clim() == (-1, 9)


@pytest.mark.parametrize(("columns", "rotation"), [(["an", "I"], 0), (["arrow", "I"], 45)])
def test_heatmap_turns_labels_that_would_overlap(shown, columns, rotation):
    heatmap(np.eye(2), WORDS, columns)
    assert {label.get_rotation() for label in shown[0].axes[0].get_xticklabels()} == {rotation}


def test_heatmap_with_too_few_labels():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but there are 2 rows, 2 columns"):
        heatmap(torch.zeros(2, 3), ["a", "b"], ["a", "b"])


def test_letters_come_from_other_fonts_or_are_reported_once(shown, monkeypatch, capsys, recwarn):
    """\ue000 is in a font that comes with matplotlib; the letters of Beijing are in none of these."""
    fonts = [font for font in font_manager.fontManager.ttflist if font.name in ("DejaVu Sans", "STIXNonUnicode")]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", fonts)
    for words in (["\ue000", "é"], ["北京", "é"], ["京北", "a"]):
        heatmap([[0.0, 1.0], [0.25, 0.75]], words, words)
        shown[-1].canvas.draw()
    families = {family for text in shown[0].findobj(Text) for family in text.get_family()}
    assert families == {"DejaVu Sans", "STIXNonUnicode"}
    assert capsys.readouterr().out.startswith("The fonts of this computer lack 京北: install a font of their script")
    assert not [warning for warning in recwarn if "missing from" in str(warning.message)]
