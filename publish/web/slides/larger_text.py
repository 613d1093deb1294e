"""Shrink the figures of a notebook on slides, so that their text is larger; run in its kernel first."""

import textwrap
import warnings
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.text import Text
from matplotlib.transforms import Bbox

PAPER = 6.97, 3.2  # inches; with Jupyter's margin 1,445 pixels, displayed at 1,240, so 10-point text is 24 pixels high
MIN_POINTS = 10
# Factors of that size, across and down, tried in turn while texts overlap: first only taller, because a figure alone on
# its slide is displayed 640 pixels high, with text of the same size.
SCALES = (1, 1), (1, 1.12), (1.05, 1.12), (1.1, 1.12), (1.2, 1.2), (1.35, 1.35), (1.5, 1.5), (1.7, 1.7)


def fit_for_a_slide(figure) -> None:
    """Draw a figure at the smallest size at which no text newly overlaps, with at least 10-point text.

    A text must not newly overlap another text, or newly leave the cell, box or bar that contains it. If no size allows
    that (a number in each of many cells), the figure stays as it was.
    """
    paper = tuple(figure.get_size_inches())
    texts = figure.findobj(Text)
    original = [(text, text.get_fontsize(), text.get_text()) for text in texts]
    figure.draw_without_rendering()
    before = out_of_place(figure)
    for text in texts:
        text.set_fontsize(max(MIN_POINTS, text.get_fontsize()))
    for across, down in SCALES:
        figure.set_size_inches(min(paper[0], PAPER[0] * across), min(paper[1], PAPER[1] * down))
        lay_out(figure)
        take_back(figure)
        if not (out_of_place(figure) - before or pressed(figure)):
            break
    else:
        figure.set_size_inches(*paper)
        for text, size, words in original:
            text.set_fontsize(size)
            text.set_text(words)
        figure.draw_without_rendering()
    for axes in figure.findobj(Axes):
        thin_out(axes.xaxis, "x")
        thin_out(axes.yaxis, "y")


def lay_out(figure) -> None:
    """Wrap titles and labels that are too long, and rotate names under an axis that overlap."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        for text in (axes.title, axes.xaxis.label):
            break_line(text, 0.94 * pitch(axes))
        rows = spec.get_gridspec().nrows if (spec := axes.get_subplotspec()) else 1
        break_line(axes.yaxis.label, figure.bbox.height / rows)
    figure.draw_without_rendering()
    for axes in figure.axes:
        labels = shown(axes.xaxis)
        named = any(character.isalpha() for label in labels for character in label.get_text())
        if named and meet(labels, "x"):
            axes.tick_params(axis="x", labelrotation=90)
    figure.draw_without_rendering()


def take_back(figure) -> None:
    """Narrow a figure by what extends beyond its sides, because Jupyter widens the picture by as much."""
    page = figure.get_size_inches()[0]
    for _ in range(4):  # a narrower layout can extend a little further
        beyond, (width, height) = figure.get_tightbbox().width - page, figure.get_size_inches()
        if beyond < 0.005:
            return
        figure.set_size_inches(width - beyond, height)
        lay_out(figure)


def pitch(axes) -> float:
    """Return the pixels between the centres of an axes and its horizontal neighbour, or the figure's width."""
    middle, figure_width = axes.bbox.x0 + axes.bbox.width / 2, axes.figure.bbox.width
    distances = [
        abs(other.bbox.x0 + other.bbox.width / 2 - middle)
        for other in axes.figure.axes
        if other is not axes
        and other.get_subplotspec()
        and other.bbox.y0 < axes.bbox.y1
        and other.bbox.y1 > axes.bbox.y0
    ]
    return min(distances, default=figure_width)


def break_line(text: Text, width: float) -> None:
    """Wrap a text that is longer than `width` pixels."""
    words, box = text.get_text(), text.get_window_extent()
    length = max(box.width, box.height)
    if words.strip() and "\n" not in words and length > width:
        text.set_text(textwrap.fill(words, max(8, int(len(words) * width / length))))


def out_of_place(figure) -> set:
    """Return pairs of overlapping texts and texts that extend beyond what contains them, without tick labels."""
    of_ticks = {
        id(label)
        for axes in figure.findobj(Axes)  # inset axes too
        for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
    }
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = {text: text.get_window_extent() for text in texts if id(text) not in of_ticks}
    if not boxes:
        return set()
    low, high = (np.array([getattr(box, end) for box in boxes.values()]).T for end in ("min", "max"))
    meet = np.logical_and.reduce([a[:, None] < b[None] - 2 for a, b in zip(low, high, strict=True)])
    names = [id(text) for text in boxes]
    found = {(names[one], names[other]) for one, other in np.argwhere(meet & meet.T) if one < other}
    for text, box in boxes.items():
        holding = around(text.axes, box) if text.axes else []
        if any(box.width > one.width or box.height > one.height for one in holding):
            found.add(id(text))
    return found


def around(axes, box) -> list[Bbox]:
    """Return the boxes, bars and image cells that contain the centre of a text's box."""
    middle = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    holding = [patch.get_window_extent() for patch in axes.patches]
    for image in axes.images:
        whole, (rows, columns) = image.get_window_extent(), image.get_array().shape[:2]
        width, height = whole.width / columns, whole.height / rows
        left = whole.x0 + (middle[0] - whole.x0) // width * width
        low = whole.y0 + (middle[1] - whole.y0) // height * height
        if whole.contains(*middle):
            holding.append(Bbox.from_bounds(left, low, width, height))
    return [one for one in holding if one.contains(*middle)]


def pressed(figure) -> bool:
    """Return whether a legend is wider than its axes."""
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    return any(one.get_window_extent().width > one.axes.bbox.width for one in legends)


def shown(axis) -> list[Text]:
    """Return the visible tick labels of an axis that are not empty."""
    labels = axis.get_ticklabels()
    return [label for label in labels if label.get_visible() and label.get_text().strip()]


def meet(labels: list[Text], way: str) -> bool:
    """Return whether labels of an axis overlap; slanted labels are ignored."""
    boxes = [label.get_window_extent() for label in labels if label.get_rotation() % 90 == 0]
    spans = sorted((getattr(box, f"{way}0"), getattr(box, f"{way}1")) for box in boxes)
    return any(before[1] > after[0] for before, after in pairwise(spans))


def thin_out(axis, way: str) -> None:
    """Hide every other label of an axis until the visible ones do not overlap."""
    labels = shown(axis)
    while len(labels) > 2 and meet(labels, way):
        for label in labels[1::2]:
            label.set_alpha(0)
        labels = labels[::2]


def on_a_slide(print_figure):
    """Wrap a canvas's print_figure so that it first fits the figure for a slide, once."""

    def fit_and_print(canvas, *arguments, **options):
        if not getattr(canvas.figure, "fitted", False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # from layouts that turn out too small
                fit_for_a_slide(canvas.figure)
            canvas.figure.fitted = True
        return print_figure(canvas, *arguments, **options)

    return fit_and_print


FigureCanvasBase.print_figure = on_a_slide(FigureCanvasBase.print_figure)
