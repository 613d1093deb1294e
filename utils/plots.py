"""Figures that several notebooks share: each has labelled axes, shows itself and returns nothing."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import torch

SIGNED = "RdBu"  # for numbers of either sign: blue above zero, red below, white at it


def to_numpy(values) -> np.ndarray:
    """A tensor (any device, with or without gradient), list or array as a float array."""
    return torch.as_tensor(values).detach().float().cpu().numpy()


def heatmap(
    values, rows: Sequence[str], columns: Sequence[str], *, title="", xlabel="", ylabel="", **options
) -> None:
    """A matrix (R, C) as coloured squares with a colour bar, one label a row and a column; nothing is drawn as nan.

    Options: `colorbar` label of the colour bar; `annotate` writes each value; `limits` (lowest, highest) of the scale;
    `signed` for blue above zero and red below; `ax` draws into an existing axes. ValueError if labels do not fit.
    """
    values = to_numpy(values)
    if values.shape != (len(rows), len(columns)):
        labels = f"{len(rows)} rows, {len(columns)} columns"
        raise ValueError(f"values have the shape {values.shape}, but there are {labels}")
    ax, own_figure = axes_for(options.get("ax"), width=2 + 0.45 * len(columns), height=1.6 + 0.32 * len(rows))
    largest = np.nanmax(np.abs(values)) if options.get("signed") else None
    lowest, highest = options.get("limits") or ((-largest, largest) if largest else (None, None))
    image = ax.imshow(values, vmin=lowest, vmax=highest, aspect="auto", cmap=SIGNED if largest else None)
    ax.set_xticks(range(len(columns)), map(plain, columns), rotation=45 if max(map(len, columns)) > 2 else 0)
    ax.set_yticks(range(len(rows)), map(plain, rows))
    ax.figure.colorbar(image, ax=ax, label=plain(options.get("colorbar", "")))
    if options.get("annotate"):
        for (row, column), value in np.ndenumerate(values):
            color = (
                "black" if np.dot(image.to_rgba(value)[:3], (0.3, 0.6, 0.1)) > 0.5 else "white"
            )  # by brightness
            ax.text(column, row, f"{value:.2f}", ha="center", va="center", color=color, fontsize=8)
    finish(ax, own_figure, title=title, xlabel=xlabel, ylabel=ylabel)


def curves(lines: Mapping[str, Sequence], *, x=None, title="", xlabel="", ylabel="", **options) -> None:
    """Named curves over x (0, 1, 2 … if not given), with a legend.

    Options: `marker`; `log_y` for a logarithmic axis; `limits` (lowest, highest) of y; `ax` an existing axes.
    """
    ax, own_figure = axes_for(options.get("ax"), width=6.4, height=3.6)
    for name, values in lines.items():
        positions = range(len(values)) if x is None else to_numpy(x)
        ax.plot(positions, to_numpy(values), marker=options.get("marker", "o"), label=plain(name))
    if options.get("log_y"):
        ax.set_yscale("log")
    if options.get("limits"):
        ax.set_ylim(*options["limits"])
    ax.legend(frameon=False)
    finish(ax, own_figure, title=title, xlabel=xlabel, ylabel=ylabel)


def bars(values: Mapping[str, float], *, title="", xlabel="", ylabel="", **options) -> None:
    """One horizontal bar a name, largest value first as given. Options: `log_x`; `limit` a dashed line; `ax`."""
    ax, own_figure = axes_for(options.get("ax"), width=6.4, height=1.2 + 0.34 * len(values))
    ax.barh([plain(name) for name in values], list(values.values()))
    ax.invert_yaxis()
    if options.get("log_x"):
        ax.set_xscale("log")
    if options.get("limit") is not None:
        ax.axvline(options["limit"], color="black", linestyle="--", linewidth=1)
    finish(ax, own_figure, title=title, xlabel=xlabel, ylabel=ylabel)


def plain(text) -> str:
    """A label as it reads: matplotlib would take what stands between two dollars for mathematics."""
    return str(text).replace("$", r"\$")


def axes_for(ax, width: float, height: float):
    """The given axes, or new ones of this size in inches; and whether they are new."""
    if ax is not None:
        return ax, False
    return plt.subplots(figsize=(width, height))[1], True


def finish(ax, own_figure: bool, **labels: str) -> None:
    """Title and axis labels; a figure of its own is shown."""
    ax.set(**{name: plain(text) for name, text in labels.items()})
    if own_figure:
        plt.show()
