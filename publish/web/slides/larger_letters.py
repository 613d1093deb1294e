"""Run in a kernel before a notebook: its figures on less paper, so that their letters are larger on a slide."""

import textwrap
import warnings
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.text import Text
from matplotlib.transforms import Bbox

PAPER = 7, 3.2  # inches; shown 1,240 pixels wide and 570 high, letters of 10 points have 24
LEAST = 10  # points
# Times that paper, across and down, for figures in which letters would meet: at first only higher, since alone on its
# slide a figure is shown 640 pixels high, with the same letters.
LESS = (1, 1), (1, 1.12), (1.05, 1.12), (1.1, 1.12), (1.2, 1.2), (1.35, 1.35), (1.5, 1.5), (1.7, 1.7)


def fit_for_a_slide(figure) -> None:
    """Draw a figure on the least paper on which its texts keep their places, with no letter below 10 points.

    A text keeps its place if it lies on no other text and leaves no cell, box or bar that held it, where it did so as
    it was asked for. Where that is not to be had (a number in each of many cells), all stays as it was asked for.
    """
    paper = tuple(figure.get_size_inches())
    texts = figure.findobj(Text)
    asked = [(text, text.get_fontsize(), text.get_text()) for text in texts]
    figure.draw_without_rendering()
    before = out_of_place(figure)
    for text in texts:
        text.set_fontsize(max(LEAST, text.get_fontsize()))
    for across, down in LESS:
        figure.set_size_inches(min(paper[0], PAPER[0] * across), min(paper[1], PAPER[1] * down))
        lay_out(figure)
        if not (out_of_place(figure) - before or pressed(figure)):
            break
    else:
        figure.set_size_inches(*paper)
        for text, size, words in asked:
            text.set_fontsize(size)
            text.set_text(words)
        figure.draw_without_rendering()
    for axes in figure.findobj(Axes):
        thin_out(axes.xaxis, "x")
        thin_out(axes.yaxis, "y")


def lay_out(figure) -> None:
    """Break titles and labels that are longer than their place, and turn names below an axis that meet."""
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


def pitch(axes) -> float:
    """How many pixels the middle of an axes is from that of the next one beside it; or the width of the figure."""
    middle, whole = axes.bbox.x0 + axes.bbox.width / 2, axes.figure.bbox.width
    beside = [
        abs(other.bbox.x0 + other.bbox.width / 2 - middle)
        for other in axes.figure.axes
        if other is not axes
        and other.get_subplotspec()
        and other.bbox.y0 < axes.bbox.y1
        and other.bbox.y1 > axes.bbox.y0
    ]
    return min(beside, default=whole)


def break_line(text: Text, place: float) -> None:
    """Let a text that is longer than its place, in pixels, go on below."""
    words, box = text.get_text(), text.get_window_extent()
    length = max(box.width, box.height)
    if words.strip() and "\n" not in words and length > place:
        text.set_text(textwrap.fill(words, max(8, int(len(words) * place / length))))


def out_of_place(figure) -> set:
    """The texts, but for labels of ticks, that lie on each other, in pairs, and those that leave what they lie in."""
    of_ticks = {
        id(label)
        for axes in figure.findobj(Axes)  # those set into others, too
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
    """The boxes, bars and cells of an image in which the middle of a text's box lies."""
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
    """Whether a legend has pressed its axes together."""
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    return any(one.get_window_extent().width > one.axes.bbox.width for one in legends)


def shown(axis) -> list[Text]:
    """The labels of an axis that are not empty."""
    labels = axis.get_ticklabels()
    return [label for label in labels if label.get_visible() and label.get_text().strip()]


def meet(labels: list[Text], way: str) -> bool:
    """Whether labels of an axis meet; slanted ones do not."""
    boxes = [label.get_window_extent() for label in labels if label.get_rotation() % 90 == 0]
    spans = sorted((getattr(box, f"{way}0"), getattr(box, f"{way}1")) for box in boxes)
    return any(before[1] > after[0] for before, after in pairwise(spans))


def thin_out(axis, way: str) -> None:
    """Leave out every other label of an axis, until those that stay do not meet."""
    labels = shown(axis)
    while len(labels) > 2 and meet(labels, way):
        for label in labels[1::2]:
            label.set_alpha(0)
        labels = labels[::2]


def on_a_slide(print_figure):
    """A canvas's way to print its figure that fits it for a slide before, once."""

    def fit_and_print(canvas, *arguments, **options):
        if not getattr(canvas.figure, "fitted", False):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a layout that was tried and is too small
                fit_for_a_slide(canvas.figure)
            canvas.figure.fitted = True
        return print_figure(canvas, *arguments, **options)

    return fit_and_print


FigureCanvasBase.print_figure = on_a_slide(FigureCanvasBase.print_figure)
