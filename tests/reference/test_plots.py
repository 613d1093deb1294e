"""Figures show the values they are given, label them, and are shown once unless they are part of another figure."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from utils.support.plots import bars, curves, heatmap

WORDS = ["time", "flies"]


@pytest.fixture(autouse=True)
def shown(monkeypatch) -> list:
    """The figures that were shown; all are closed afterwards."""
    figures = []
    monkeypatch.setattr(plt, "show", lambda: figures.append(plt.gcf()))
    with mpl.rc_context({"backend": "agg"}):
        yield figures
        plt.close("all")


def draw_heatmap(**options):
    heatmap([[0.0, 1.0], [0.25, 0.75]], WORDS, WORDS, **options)


def draw_curves(**options):
    curves({"train": [3.0, 2.0, 1.0], "test": torch.tensor([3.0, 2.5, 2.6])}, **options)


def draw_bars(**options):
    bars({"exact": 120.0, "HNSW": 3.0}, **options)


@pytest.mark.parametrize("draw", [draw_heatmap, draw_curves, draw_bars])
def test_only_own_figures_are_shown(draw, shown):
    draw(title="T", xlabel="X", ylabel="Y")
    ax = shown[0].axes[0]
    assert (ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) == ("T", "X", "Y")
    _, given = plt.subplots()
    draw(ax=given, title="given")
    assert given.get_title() == "given"
    assert len(shown) == 1


@pytest.mark.parametrize(
    ("draw", "misspelled"),
    [
        (draw_heatmap, {"anotate": True}),
        (draw_heatmap, {"limit": (0, 1)}),
        (draw_curves, {"logy": True}),
        (draw_curves, {"limit": (0, 1)}),
        (draw_bars, {"limits": 3}),
    ],
)
def test_unknown_plot_option_raises(draw, misspelled, shown):
    (name,) = misspelled
    with pytest.raises(TypeError, match=f"'{name}'"):
        draw(**misspelled)
    assert shown == []


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


def test_heatmap_values_contrast_with_their_colour(shown):
    heatmap([[0.0, 1.0], [float("nan"), 0.2]], WORDS, WORDS, annotate=True)
    texts = {text.get_position(): text for text in shown[0].axes[0].texts}
    assert texts[1, 0].get_text() == "1.00"
    assert texts[0, 0].get_color() == texts[1, 1].get_color() == "white", "on dark squares"
    assert texts[1, 0].get_color() == "black", "on a light square"


def test_curves_are_named_and_counted_from_zero(shown):
    draw_curves(marker="x")
    ax = shown[0].axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["train", "test"]
    assert [line.get_xdata().tolist() for line in ax.lines] == [[0, 1, 2]] * 2
    assert ax.lines[0].get_ydata().tolist() == [3, 2, 1]
    assert ax.lines[0].get_marker() == "x"
    assert ax.get_yscale() == "linear"


def test_curves_over_given_values(shown):
    draw_curves(x=[10, 100, 1000], log_y=True, limits=(0.5, 4))
    ax = shown[0].axes[0]
    assert ax.lines[1].get_xdata().tolist() == [10, 100, 1000]
    assert ax.get_yscale() == "log"
    assert ax.get_ylim() == (0.5, 4)


def test_bars_keep_their_order_from_the_top(shown):
    draw_bars(log_x=True, limit=50)
    ax = shown[0].axes[0]
    assert [bar.get_width() for bar in ax.patches] == [120, 3]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["exact", "HNSW"]
    assert ax.yaxis_inverted()
    assert ax.get_xscale() == "log"
    assert list(ax.lines[0].get_xdata()) == [50, 50]


def test_bars_without_options_have_no_limit(shown):
    draw_bars()
    assert not shown[0].axes[0].lines
    assert shown[0].axes[0].get_xscale() == "linear"


def test_heatmap_with_too_few_labels():
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but there are 2 rows, 2 columns"):
        heatmap(torch.zeros(2, 3), ["a", "b"], ["a", "b"])
