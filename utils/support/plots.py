"""Figures of the notebooks, one call each, with the letters, colours and width of the colour table.

`title` states what a reader sees; `note`, small and grey below, what was drawn. A function draws into `ax`, one of
`panels`, or makes a figure as wide as the page and shows it; it returns None.
"""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from textwrap import fill
from typing import TypedDict, Unpack

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib import colormaps, cycler, font_manager
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, get_named_colors_mapping
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from utils.support.colours import FACE, HEADS, LETTERS, LIGHT, ROLES, SCALES, SMALL, TINTS, TITLE, WIDTH

MARKERS = ("o", "s", "^", "D", "v", "P")  # so that lines also differ in shape
PIXEL = 10 / LETTERS  # in points
PAGE = WIDTH * PIXEL / 72 - 0.2  # inches; Jupyter adds 0.1 on each side
DASHED = {"color": "black", "linestyle": "--", "linewidth": 1}


def set_style() -> None:
    """Register the colours and fonts of the colour table with matplotlib, by name: "ours", "pale blue", cmap="weights".

    The set-up cell of a notebook calls it. cmap="weights" goes from white to blue, "others" from white to orange;
    "signed" is blue above zero and orange below; "heads" has one colour per head.
    """
    named = {role: LIGHT[hue] for role, hue in ROLES.items()} | {"mark": LIGHT["mark"], "soft": LIGHT["soft"]}
    above, below = SCALES["light"]["above"], SCALES["light"]["below"]
    named |= {f"pale {hue}": tint for hue, tint in TINTS.items()} | {"light blue": above[2], "light orange": below[2]}
    get_named_colors_mapping().update(named)
    for name, stops in {"weights": above, "others": below, "signed": (*reversed(below), *above[1:])}.items():
        if name not in colormaps:
            colormaps.register(LinearSegmentedColormap.from_list(name, stops))
    if "heads" not in colormaps:
        colormaps.register(ListedColormap(HEADS["light"], "heads"))
    order = [named[role] for role in ("ours", "other", "third", "average", "query", "value")]
    plt.rcParams.update(
        {
            "font.family": FACE.split('"')[1],
            "font.size": LETTERS * PIXEL,
            "figure.dpi": 72 / PIXEL,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": cycler(color=order),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "image.cmap": "weights",
        }
    )


class Frame(TypedDict, total=False):
    """What every figure takes; `height` is in inches, and only for a figure of its own."""

    ax: Axes
    height: float
    title: str
    note: str
    xlabel: str
    ylabel: str


def panels(
    count: int = 1,
    *,
    height: float = 3.6,
    title: str = "",
    note: str = "",
    share: bool = False,
    widths: Sequence[float] | None = None,
) -> list[Axes]:
    """Return axes side by side in a figure as wide as the page, to draw into before `plt.show()`.

    `title` and `note` belong to all panels. `share` gives them one y axis; `widths` are their relative widths.
    """
    figure, [axes] = plt.subplots(
        1, count, figsize=(PAGE, height), squeeze=False, sharey=share, width_ratios=widths, layout="compressed"
    )
    page = Rectangle((0, 0), 1, 1, transform=figure.transFigure, fill=False, linewidth=0)
    figure.add_artist(page)  # without it, Jupyter crops the figure, and pictures differ in width
    if title:
        figure.suptitle(fill(plain(title), 80), fontsize=TITLE * PIXEL, weight="bold")
    if note:
        figure.supxlabel(fill(plain(note), 110), fontsize=SMALL * PIXEL, color=LIGHT["soft"])
    return list(axes)


@contextmanager
def axes_of(frame: Frame, height: float) -> Iterator[Axes]:
    """Yield the given axes, or those of a new figure of this height; then label them, and show the new figure."""
    if unknown := sorted(frame.keys() - Frame.__annotations__.keys()):
        raise TypeError(f"unexpected keyword argument '{unknown[0]}': use one of {', '.join(Frame.__annotations__)}")
    given = frame.get("ax")
    note = {"note": frame["note"]} if "note" in frame else {}
    ax = given or panels(height=frame.get("height", height), **note)[0]
    yield ax
    inner = len(ax.get_shared_y_axes().get_siblings(ax)) > 1 and not ax.get_subplotspec().is_first_col()
    ax.set(**{name: plain(frame[name]) for name in ("xlabel", "ylabel")[: 2 - inner] if name in frame})
    if "title" in frame:
        size, weight = (LETTERS, "normal") if given else (TITLE, "bold")
        ax.set_title(fill(plain(frame["title"]), 80), fontsize=size * PIXEL, weight=weight)
    complete_fonts(ax.figure)
    if given is None:
        plt.show()


def complete_fonts(figure) -> None:
    """Take letters that the font lacks from other fonts of the system, or print in one line what to install."""
    face, texts = FACE.split('"')[1], figure.findobj(Text)
    missing = {letter for text in texts for letter in text.get_text() if not letter.isspace()}
    missing -= letters_of(font_manager.findfont(face))
    others = []
    for font in sorted(font_manager.fontManager.ttflist, key=lambda font: (font.weight != 400, font.name)):
        if missing and (found := missing & letters_of(font.fname)):
            others.append(font.name)
            missing -= found
    for text in texts if others else ():
        text.set_family([face, *others])
    if missing:
        report_missing("".join(sorted(missing)))


@cache
def letters_of(path: str) -> frozenset[str]:
    """Return the letters of a font, or none of a file that cannot be read, such as one of coloured pictures."""
    with suppress(RuntimeError, OSError):
        return frozenset(map(chr, font_manager.get_font(path).get_charmap()))
    return frozenset()


@cache
def report_missing(letters: str) -> None:
    """Print once which letters are boxes here, in place of matplotlib's warning for each."""
    warnings.filterwarnings("ignore", message="Glyph .* missing from")
    remedy = "install a font of their script, such as Noto Sans (fonts-noto), and restart the kernel"
    print(f"The fonts of this computer lack {letters}: {remedy}.")


def heatmap(
    values,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    *,
    colorbar: str = "",
    annotate: bool | float = False,
    limits: tuple[float, float] | None = None,
    signed: bool = False,
    frames: Sequence[tuple[float, float, float, float]] = (),
    **frame: Unpack[Frame],
) -> None:
    """Draw a matrix (R, C) as coloured squares, one label per row and column, or numbers; nan is left empty.

    `colorbar` draws a colour bar with this label, once for all panels; `annotate` writes each value, or those of at
    least this size; `limits` are the ends of the colour scale; `signed` makes values above zero blue and those below
    orange; `frames` are (row, column, rows, columns). ValueError if the labels do not fit.
    """
    values = to_numpy(values)
    R, C = values.shape
    if (len(rows or range(R)), len(columns or range(C))) != (R, C):
        given = f"there are {len(rows or range(R))} rows, {len(columns or range(C))} columns"
        raise ValueError(f"values have the shape {values.shape}, but {given}")
    with axes_of(frame, 1.6 + 0.32 * R) as ax:
        largest = np.nanmax(np.abs(values)) if signed else None
        lowest, highest = limits or ((-largest, largest) if largest else (None, None))
        image = ax.imshow(values, vmin=lowest, vmax=highest, aspect="auto", cmap="signed" if largest else None)
        if columns:
            turn = 45 if max(map(len, columns)) > 2 else 0
            ax.set_xticks(range(C), map(plain, columns), rotation=90 if turn and C > 12 else turn)
        if rows:
            ax.set_yticks(range(R), map(plain, rows))
        if "ax" not in frame and (0.5 * C < PAGE - 2 or R == C):
            ax.set_box_aspect(0.64 * R / C if 0.5 * C < PAGE - 2 else 1)  # cells of equal size in all figures
        if max(R, C) > 16:
            ax.tick_params(labelsize=SMALL * PIXEL)
        if colorbar and ax.get_subplotspec().is_last_col():
            ax.figure.colorbar(image, ax=ax.figure.axes, label=plain(colorbar))
        for (row, column), value in np.ndenumerate(values):
            if annotate and (annotate is True or value >= annotate):
                color = "black" if np.dot(image.to_rgba(value)[:3], (0.3, 0.6, 0.1)) > 0.5 else "white"
                written = {"ha": "center", "va": "center", "color": color, "fontsize": SMALL * PIXEL}
                ax.text(column, row, f"{value:.2f}", **written)
        for row, column, height, width in frames:
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), width, height, fill=False, linewidth=2.5))


def curves(
    lines: Mapping[str, Sequence],
    *,
    x=None,
    intervals: Mapping[str, tuple[Sequence, Sequence]] | None = None,
    digits: str = "",
    levels: Mapping[str, float] | None = None,
    marks: Mapping[str, tuple[float, float]] | None = None,
    marker: str | None = None,
    log_y: bool = False,
    limits: tuple[float, float] | None = None,
    at_ends: bool = False,
    **frame: Unpack[Frame],
) -> None:
    """Draw named curves over x (numbers or names; 0, 1, 2 … by default), with a legend, or each name `at_ends`.

    `intervals` are the lower and upper ends at each point; `digits`, such as ".2f", writes each value; `levels` are
    dashed horizontal lines, and `marks` points, with a name. Each curve has its own marker, unless `marker` sets one
    for all ("" for none). `log_y` makes the y axis logarithmic; `limits` are the ends of the y axis.
    """
    with axes_of(frame, 3.6) as ax:
        named = x is not None and isinstance(next(iter(x)), str)
        for (name, values), form in zip(lines.items(), cycle(MARKERS), strict=False):
            positions, heights = range(len(values)) if x is None or named else to_numpy(x), to_numpy(values)
            form = form if marker is None else marker
            [line] = ax.plot(positions, heights, marker=form, label=plain(name))
            if name in (intervals or {}):
                ax.vlines(positions, *map(to_numpy, intervals[name]), color=line.get_color(), linewidth=1.5)
            for number, place in enumerate(positions) if digits else ():
                top = heights[number] >= max(float(other[number]) for other in lines.values())
                where = (place, heights[number])
                write(ax, f"{heights[number]:{digits}}", where, (0, 7 if top else -16), color=line.get_color())
        for (name, height), style in zip((levels or {}).items(), cycle(("--", ":"))):
            ax.axhline(height, **DASHED | {"linestyle": style}, label=plain(name))
        for name, place in (marks or {}).items():
            write(ax, name, place, (0, 9))
        if log_y:
            ax.set_yscale("log")
        if named:
            ax.set_xticks(range(len(x)), map(plain, x))
        if limits:
            ax.set_ylim(*limits)
        if at_ends:
            name_ends(ax)
        else:
            ax.legend(frameon=False)


def name_ends(ax: Axes) -> None:
    """Write the name of each curve at its right end, in its colour; of curves that cover each other, all names."""
    room, groups = np.ptp(ax.get_ylim()) * SMALL / 200, []  # the height of a line, about
    for line in ax.get_lines():
        covered = (group for group in groups if np.abs(line.get_ydata() - group[0].get_ydata()).max() < room / 4)
        if group := next(covered, None):
            group.append(line)
        else:
            groups.append([line])
    height = -np.inf
    for group in sorted(groups, key=lambda group: group[0].get_ydata()[-1]):
        height = max(group[0].get_ydata()[-1], height + room)
        place, color = (group[0].get_xdata()[-1], height), group[-1].get_color()
        write(ax, " = ".join(line.get_label() for line in group), place, (6, 0), ha="left", va="center", color=color)


def bars(
    values: Mapping[str, float],
    *,
    intervals: Sequence[tuple[float, float]] | None = None,
    digits: str = "",
    signed: bool = False,
    colors: Sequence[str] | None = None,
    **frame: Unpack[Frame],
) -> None:
    """Draw one horizontal bar per name, from top to bottom, with its `intervals`.

    `digits`, such as ".2f", writes each value; `signed` makes bars above zero blue and those below orange.
    """
    numbers = list(map(float, values.values()))
    with axes_of(frame, 1.3 + 0.32 * len(values)) as ax:
        colors = ["above" if number > 0 else "below" for number in numbers] if signed else colors
        ax.barh([plain(name) for name in values], numbers, color=colors)
        ends = np.transpose([numbers] * 2) if intervals is None else to_numpy(intervals)
        if intervals is not None:
            ax.hlines(range(len(numbers)), *ends.T, color="black", linewidth=1.5)
        for row, (number, (_, high)) in enumerate(zip(numbers, ends, strict=True)) if digits else ():
            write(ax, f"{number:{digits}}", (max(number, high, 0), row), (5, 0), ha="left", va="center")
        ax.set_ylim(len(values) - 0.5, -0.5)
        ax.margins(x=0.1 if digits else 0.05)
        if signed:
            ax.axvline(0, **DASHED)


def ladder(rungs: Mapping[str, tuple[float, float, float] | None], **frame: Unpack[Frame]) -> None:
    """Draw the exchange test's steps so far, from `utils.exchanges.rungs`: one bar each, with its 95 % interval.

    The last bar is the darkest; an entry of None is an empty bar, the next step. The dashed line is a coin.
    """
    total = 200
    with axes_of(frame, 1.3 + 0.36 * len(rungs)) as ax:
        known = [name for name, rung in rungs.items() if rung]
        for row, (name, rung) in enumerate(rungs.items()):
            if rung is None:
                ax.barh(row, total, fill=False, edgecolor=LIGHT["soft"], linestyle=":")
                write(ax, "?", (total / 2, row), (8, 0), va="center", color=LIGHT["soft"])
                continue
            right, low, high = rung
            ax.barh(row, right, color="ours" if name == known[-1] else "light blue")
            ax.hlines(row, low, high, color="black", linewidth=1.5)
            write(ax, f"{right:g}", (high, row), (5, 0), ha="left", va="center")
        ax.axvline(total / 2, **DASHED)
        ax.set_yticks(range(len(rungs)), map(plain, rungs))
        ax.set(xlim=(0, total), ylim=(len(rungs) - 0.5, -0.5), xlabel=f"right, of {total} sentences (dashed: a coin)")


def dots(
    series: Mapping[str, Sequence],
    rows: Sequence[str],
    *,
    intervals: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    digits: str = "",
    joined: bool = False,
    limit: float | None = None,
    **frame: Unpack[Frame],
) -> None:
    """Draw one dot per row for each named series, or, where its entry holds several numbers, all and their mean.

    `intervals` are (low, high) per row; `digits`, such as ".2f", writes each number or mean; `joined` draws all series
    on one line per row, and connects them; `limit` is a dashed line.
    """
    apart = 0 if joined else 0.7 / len(series)
    with axes_of(frame, 1.5 + (0.36 + 0.1 * len(series) * (not joined)) * len(rows)) as ax:
        for number, (name, entries) in enumerate(series.items()):
            color = f"C{number}"
            for row, entry in enumerate(entries):
                values, place = np.atleast_1d(to_numpy(entry)), row + apart * (number - (len(series) - 1) / 2)
                middle, several = values.mean(), len(values) > 1
                ends = (intervals or {}).get(name, [[middle, middle]] * len(rows))[row]
                ax.plot(ends, [place] * 2, color=color, linewidth=3, solid_capstyle="butt", zorder=1)
                aside = (np.arange(len(values)) * 0.618 % 1 - 0.5) * 0.5 * (apart or 0.7) * several
                style = {"marker": "." if several else MARKERS[number % 6], "label": None if row else plain(name)}
                ax.plot(values, place + aside, color=color, linestyle="", **style)
                if several:
                    ax.plot(middle, place, "|", color="black", markersize=18, markeredgewidth=2)
                if digits:
                    write(ax, f"{middle:{digits}}", (max(*values, *ends), place), (7, 0), ha="left", va="center")
        if joined:
            ends = np.array([to_numpy(entries) for entries in series.values()])
            ax.hlines(range(len(rows)), ends.min(axis=0), ends.max(axis=0), color="0.8", zorder=0)
        ax.set_yticks(range(len(rows)), map(plain, rows))
        ax.set_ylim(len(rows) - 0.5, -0.5)
        ax.margins(x=0.1 if digits else 0.05)
        if limit is not None:
            ax.axvline(limit, **DASHED)
        if len(series) > 1:
            ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def points(
    groups: Mapping[str, Sequence],
    *,
    values: Sequence | None = None,
    colorbar: str = "",
    marks: Mapping[str, tuple[float, float]] | None = None,
    **frame: Unpack[Frame],
) -> None:
    """Draw named groups of points (N, 2), each with its own colour and form, and a legend if there are several.

    `values` (N,) colour the points of a single group, with a colour bar of this label; `marks` are places with a name.
    """
    with axes_of(frame, 4.2) as ax:
        for (name, places), form in zip(groups.items(), cycle(MARKERS), strict=False):
            colours = {} if values is None else {"c": to_numpy(values), "edgecolors": LIGHT["soft"], "linewidths": 0.5}
            drawn = ax.scatter(*to_numpy(places).reshape(-1, 2).T, s=45, marker=form, label=plain(name), **colours)
        if colorbar:
            ax.figure.colorbar(drawn, ax=ax, label=plain(colorbar))
        for name, place in (marks or {}).items():
            ax.plot(*place, "x", color="black")
            write(ax, name, place, (8, 8), ha="left")
        if len(groups) > 1:
            ax.legend(frameon=False)


def arrows(
    vectors: Mapping[str, Sequence[float]], *, colors: Sequence[str] = ("ours",), **frame: Unpack[Frame]
) -> None:
    """Draw named arrows from the origin in a plane with equal axes, each in its colour."""
    with axes_of(frame, 3.6) as ax:
        ends = np.array([to_numpy(vector) for vector in vectors.values()])
        for (name, _), end, color in zip(vectors.items(), ends, cycle(colors), strict=False):
            ax.annotate("", end, (0, 0), arrowprops={"arrowstyle": "->", "color": color, "lw": 2, "shrinkB": 0})
            write(ax, name, end, (6, 2), ha="left", color=color)
        low, high = np.minimum(ends.min(axis=0), 0), np.maximum(ends.max(axis=0), 0)
        room = 0.15 * (high - low).max()
        ax.set(xlim=(low[0] - room, high[0] + 3 * room), ylim=(low[1] - room, high[1] + room), aspect="equal")


def histogram(samples: Mapping[str, Sequence], *, bins=20, limit: float | None = None, **frame: Unpack[Frame]) -> None:
    """Draw how often values occur in each named sample, with its mean as a line; `limit` is a dashed line."""
    with axes_of(frame, 3.2) as ax:
        for number, (name, values) in enumerate(samples.items()):
            mean = to_numpy(values).mean()
            ax.hist(to_numpy(values), bins, alpha=0.7, color=f"C{number}", label=f"{plain(name)}: mean {mean:.2f}")
            ax.axvline(mean, color=f"C{number}", linewidth=2)
        if limit is not None:
            ax.axvline(limit, **DASHED)
        ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))


def boxes(
    rows: Sequence[Sequence],
    fills: Mapping[str, Sequence[tuple[int, int]]],
    *,
    labels: Sequence[str] = (),
    below: Mapping[tuple[int, int], str] | None = None,
    **frame: Unpack[Frame],
) -> None:
    """Draw rows of tokens or numbers in boxes; `fills` maps a colour to its boxes, (row, column).

    A box holds a text, a number or a vector; "" leaves it out. `labels` are texts to the left of the rows, `below` bold
    texts under boxes.
    """
    colour_of = {tuple(place): colour for colour, places in fills.items() for place in places}
    step = 1.7 if below else 1
    with axes_of(frame, 0.8 + 0.36 * step * len(rows)) as ax:
        texts = [[entry if isinstance(entry, str) else rounded(entry) for entry in row] for row in rows]
        for row, column, token in (
            (row, column, token) for row, all in enumerate(texts) for column, token in enumerate(all) if token
        ):
            place, middle = (row, column), (column + 0.47, step * row + 0.42)
            style = {"facecolor": colour_of.get(place, "white"), "edgecolor": "0.7"}
            ax.add_patch(Rectangle((column, step * row), 0.94, 0.84, **style))
            write(ax, token, middle, (0, 0), va="center")
            if place in (below or {}):
                write(ax, below[place], (middle[0], middle[1] + 0.8), (0, 0), va="center", weight="bold")
        for row, label in enumerate(labels):
            write(ax, label, (0, step * row + 0.42), (-6, 0), ha="right", va="center", color=LIGHT["soft"])
        ax.set(xlim=(-0.05, max(map(len, texts))), ylim=(step * len(texts), -0.1))
        ax.set_axis_off()


def write(ax: Axes, text: str, place: Sequence[float], aside: tuple[float, float], **style) -> None:
    """Write small text at a place, moved aside by points."""
    style = {"ha": "center", "fontsize": SMALL * PIXEL} | style
    ax.annotate(text, place, aside, textcoords="offset points", parse_math=False, **style)


def rounded(values) -> str:
    """Return a number or a vector with at most two decimals, as in "1   0.5"."""
    return "   ".join(f"{round(number, 2) + 0.0:g}" for number in np.atleast_1d(to_numpy(values)).tolist())


def to_numpy(values) -> np.ndarray:
    """Return a tensor (on any device, with or without gradient), list or array as a float array."""
    return torch.as_tensor(values).detach().float().cpu().numpy()


def plain(text) -> str:
    """Escape dollar signs, between which matplotlib would set mathematics."""
    return str(text).replace("$", r"\$")
