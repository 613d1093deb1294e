"""Figures that several notebooks share: each labels its axes, shows itself and returns None."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib import colormaps, cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, ListedColormap, get_named_colors_mapping

from utils.support.colours import FACE, HEADS, LETTERS, LIGHT, ROLES, SCALES, TINTS

MARKERS = ("o", "s", "^", "D", "v", "P")  # so that lines also differ in shape


def set_style() -> None:
    """Register the colours and fonts of the colour table with matplotlib, by name: "ours", "pale blue", cmap="weights".

    The set-up cell of a notebook calls it. cmap="weights" goes from white to blue, "others" from white to orange;
    "signed" is blue above zero and orange below; "heads" has one colour per head.
    """
    named = {role: LIGHT[hue] for role, hue in ROLES.items()} | {"mark": LIGHT["mark"]}
    above, below = SCALES["light"]["above"], SCALES["light"]["below"]
    named |= {f"pale {hue}": tint for hue, tint in TINTS.items()} | {"light blue": above[2], "light orange": below[2]}
    get_named_colors_mapping().update(named)
    for name, stops in {"weights": above, "others": below, "signed": (*reversed(below), *above[1:])}.items():
        if name not in colormaps:
            colormaps.register(LinearSegmentedColormap.from_list(name, stops))
    if "heads" not in colormaps:
        colormaps.register(ListedColormap(HEADS["light"], "heads"))
    order = [named[role] for role in ("ours", "other", "third", "average", "query", "value")]
    points = 10
    plt.rcParams.update(
        {
            "font.family": FACE.split('"')[1],
            "font.size": points,
            "figure.dpi": 72 * LETTERS / points,
            "figure.constrained_layout.use": True,
            "axes.prop_cycle": cycler(color=order),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "image.cmap": "weights",
        }
    )


def to_numpy(values) -> np.ndarray:
    """Return a tensor (on any device, with or without gradient), list or array as a float array."""
    return torch.as_tensor(values).detach().float().cpu().numpy()


def heatmap(
    values,
    rows: Sequence[str],
    columns: Sequence[str],
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    colorbar: str = "",
    annotate: bool = False,
    limits: tuple[float, float] | None = None,
    signed: bool = False,
    ax: Axes | None = None,
) -> None:
    """Draw a matrix (R, C) as coloured squares with a colour bar, one label per row and column; nan is left empty.

    `colorbar` is the colour bar's label; `annotate` writes each value; `limits` are the ends of the colour scale;
    `signed` makes values above zero blue and those below orange; `ax` draws into existing axes. ValueError if the
    labels do not fit.
    """
    values = to_numpy(values)
    if values.shape != (len(rows), len(columns)):
        raise ValueError(
            f"values have the shape {values.shape}, but there are {len(rows)} rows, {len(columns)} columns"
        )
    ax, own_figure = axes_for(ax, width=2 + 0.45 * len(columns), height=1.6 + 0.32 * len(rows))
    largest = np.nanmax(np.abs(values)) if signed else None
    lowest, highest = limits or ((-largest, largest) if largest else (None, None))
    image = ax.imshow(values, vmin=lowest, vmax=highest, aspect="auto", cmap="signed" if largest else None)
    ax.set_xticks(range(len(columns)), map(plain, columns), rotation=45 if max(map(len, columns)) > 2 else 0)
    ax.set_yticks(range(len(rows)), map(plain, rows))
    ax.figure.colorbar(image, ax=ax, label=plain(colorbar))
    if annotate:
        for (row, column), value in np.ndenumerate(values):
            brightness = np.dot(image.to_rgba(value)[:3], (0.3, 0.6, 0.1))
            color = "black" if brightness > 0.5 else "white"
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8)
    finish(ax, own_figure, title=title, xlabel=xlabel, ylabel=ylabel)


def curves(
    lines: Mapping[str, Sequence],
    *,
    x=None,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    marker: str | None = None,
    log_y: bool = False,
    limits: tuple[float, float] | None = None,
    ax: Axes | None = None,
) -> None:
    """Draw named curves over x (0, 1, 2 … by default), with a legend.

    Each curve has its own marker, unless `marker` sets one for all ("" for none). `log_y` makes y logarithmic;
    `limits` are the ends of the y axis; `ax` draws into existing axes.
    """
    ax, own_figure = axes_for(ax, width=6.4, height=3.6)
    for (name, values), form in zip(lines.items(), cycle(MARKERS), strict=False):
        positions = range(len(values)) if x is None else to_numpy(x)
        ax.plot(positions, to_numpy(values), marker=form if marker is None else marker, label=plain(name))
    if log_y:
        ax.set_yscale("log")
    if limits:
        ax.set_ylim(*limits)
    ax.legend(frameon=False)
    finish(ax, own_figure, title=title, xlabel=xlabel, ylabel=ylabel)


def bars(
    values: Mapping[str, float],
    *,
    title: str = "",
    xlabel: str = "",
    ylabel: str = "",
    log_x: bool = False,
    limit: float | None = None,
    ax: Axes | None = None,
) -> None:
    """Draw one horizontal bar per name, from top to bottom.

    `log_x` makes x logarithmic; `limit` is a dashed line; `ax` draws into existing axes.
    """
    ax, own_figure = axes_for(ax, width=6.4, height=1.2 + 0.34 * len(values))
    ax.barh([plain(name) for name in values], list(values.values()))
    ax.invert_yaxis()
    if log_x:
        ax.set_xscale("log")
    if limit is not None:
        ax.axvline(limit, color="black", linestyle="--", linewidth=1)
    finish(ax, own_figure, title=title, xlabel=xlabel, ylabel=ylabel)


def plain(text) -> str:
    """Escape dollar signs, between which matplotlib would set mathematics."""
    return str(text).replace("$", r"\$")


def axes_for(ax: Axes | None, width: float, height: float) -> tuple[Axes, bool]:
    """Return the given axes, or new ones of this size in inches, and whether they are new."""
    if ax is not None:
        return ax, False
    return plt.subplots(figsize=(width, height))[1], True


def finish(ax, own_figure: bool, **labels: str) -> None:
    """Set the title and the axis labels, and show a new figure."""
    ax.set(**{name: plain(text) for name, text in labels.items()})
    if own_figure:
        plt.show()
