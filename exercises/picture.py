"""Draw the ribbons of one head from one word as a PNG: without a browser, by matplotlib."""

import io
import textwrap

from matplotlib.figure import Figure
from matplotlib.font_manager import findfont
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Line

from utils.support.colours import LIGHT, ROLES
from utils.support.plots import letters_of

WIDTH, HEIGHT = 860, 520  # pixels, of which 100 are an inch
MOST = 18  # words that fit side by side
BASE, FULL = 380, 60  # the pixels above the words, and the width of a ribbon of weight 1


def can_draw(text: str) -> bool:
    """Return whether matplotlib's font has every character of a text."""
    return letters_of(findfont("DejaVu Sans")).issuperset(text)


def draw_png(tokens: list[str], weights: list[float], place: int, headline: str, lines: str) -> bytes:
    """Return a PNG, twice as large, of the ribbons from `tokens[place]` to all tokens, by its attention weights (T,).

    Of a long text it shows the `MOST` tokens around that one; `headline` and `lines` stand above it.
    """
    first = max(0, min(place - MOST // 2, len(tokens) - MOST))
    shown = range(first, min(first + MOST, len(tokens)))
    if len(shown) < len(tokens):
        lines += f" Shown are {len(shown)} of the {len(tokens)} tokens."
    step = WIDTH / (len(shown) + 1)
    figure = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=200, layout="none")  # notebooks choose another
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(HEIGHT, 0))
    axes.set_axis_off()
    write = {"parse_math": False, "family": "DejaVu Sans"}
    axes.text(20, 36, headline, fontsize=min(19, 950 / len(headline)), **write)
    axes.text(20, 54, textwrap.fill(lines, 108), fontsize=10, color=LIGHT["soft"], va="top", **write)
    x = {index: step * (column + 1) for column, index in enumerate(shown)}
    inner_first = [*range(place - 1, first - 1, -1), *range(shown[-1], place - 1, -1)]  # so that no two cross
    start = x[place] - FULL * sum(weights[index] for index in shown) / 2
    for index in inner_first:
        half, top = FULL * weights[index] / 2, BASE - 40 - 200 * abs(index - place) / len(shown)
        outline = arch(start + half, x[index], top, half)
        start += 2 * half
        axes.add_patch(PathPatch(outline, color=LIGHT[ROLES["key"]], lw=0.3))
        token = tokens[index] if can_draw(tokens[index]) else "?"
        style = {"ha": "right", "rotation": 45, "rotation_mode": "anchor", "fontsize": 11}
        colour = LIGHT[ROLES["query"] if index == place else "ink"]
        axes.text(x[index] + 5, BASE + 48, token, color=colour, **style, **write)
        axes.text(x[index], BASE + 22, f"{weights[index]:.2f}", ha="center", fontsize=9, color=LIGHT["soft"], **write)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def arch(start: float, end: float, top: float, half: float) -> Line:
    """Return the outline of a ribbon from `start` to `end`, over `top`, twice `half` wide at its ends."""
    side = half if start < end else -half
    high, low = 2 * top - BASE - half, 2 * top - BASE + half
    corners = [
        (start - side, BASE),
        (start - side, high),
        (end + side, high),
        (end + side, BASE),
        (end - side, BASE),
        (end - side, low),
        (start + side, low),
        (start + side, BASE),
        (start - side, BASE),
    ]
    curve = [Line.CURVE4] * 3
    return Line(corners, [Line.MOVETO, *curve, Line.LINETO, *curve, Line.CLOSEPOLY])
