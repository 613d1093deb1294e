"""Run in a kernel before a notebook: its figures on less paper, so that their letters are larger on a slide."""

import textwrap
import warnings
from itertools import combinations, pairwise

from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.text import Text

PAPER = 7, 3.2  # inches; shown 1,240 pixels wide and 570 high, letters of 10 points have 24
LEAST = 10  # points
LESS = 1, 1.1, 1.2, 1.35, 1.5, 1.7  # times that paper, for figures in which letters would meet


def fit_for_a_slide(figure) -> None:
    """Draw a figure on the least paper on which its texts do not meet, with no letter below 10 points.

    Where they meet on all of it (a number in each of many cells), those letters stay as small as they were asked for.
    """
    wide, high = figure.get_size_inches()
    texts = figure.findobj(Text)
    asked = [text.get_fontsize() for text in texts]
    for text in texts:
        text.set_fontsize(max(LEAST, text.get_fontsize()))
    for times in LESS:
        figure.set_size_inches(min(wide, PAPER[0] * times), min(high, PAPER[1] * times))
        lay_out(figure)
        if not meeting(figure):
            break
    else:
        for text, size in zip(texts, asked, strict=True):
            text.set_fontsize(size)
    for axes in figure.axes:
        thin_out(axes.xaxis, "x")
        thin_out(axes.yaxis, "y")


def lay_out(figure) -> None:
    """Break titles and labels that are longer than their place, and turn names below an axis that meet."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        spec = axes.get_subplotspec()
        rows, columns = spec.get_gridspec().get_geometry() if spec else (1, 1)
        for text in (axes.title, axes.xaxis.label):
            break_line(text, (0.94 if columns == 1 else 0.8) * figure.bbox.width / columns)
        break_line(axes.yaxis.label, figure.bbox.height / rows)
    figure.draw_without_rendering()
    for axes in figure.axes:
        labels = shown(axes.xaxis)
        named = any(character.isalpha() for label in labels for character in label.get_text())
        if named and meet(labels, "x"):
            axes.tick_params(axis="x", labelrotation=90)
    figure.draw_without_rendering()


def break_line(text: Text, place: float) -> None:
    """Let a text that is longer than its place, in pixels, go on below."""
    words, box = text.get_text(), text.get_window_extent()
    length = max(box.width, box.height)
    if words.strip() and "\n" not in words and length > place:
        text.set_text(textwrap.fill(words, max(8, int(len(words) * place / length))))


def meeting(figure) -> bool:
    """Whether two texts other than labels of ticks lie on each other, or a legend has pressed its axes together."""
    of_ticks = {
        id(label) for axes in figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
    }
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    boxes = [text.get_window_extent().padded(-2) for text in texts if id(text) not in of_ticks]
    legends = [legend for axes in figure.axes if (legend := axes.get_legend())]
    pressed = [one for one in legends if one.get_window_extent().width > one.axes.bbox.width]
    return bool(pressed) or any(one.overlaps(other) for one, other in combinations(boxes, 2))


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
