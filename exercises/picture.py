"""Draw an SVG of rectangles, arrows and texts, such as encoder.svg, as a PNG: without a browser, by matplotlib."""

import io
import re
import textwrap
from xml.etree import ElementTree

from matplotlib.figure import Figure
from matplotlib.font_manager import findfont, get_font
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path as Line

from utils.support.colours import LIGHT

WIDTH, ABOVE = 860, 120  # pixels, of which 100 are an inch
SIDES = {"start": "left", "middle": "center", "end": "right"}


def can_draw(text: str) -> bool:
    """Return whether matplotlib's font has every character of a text."""
    font = get_font(findfont("DejaVu Sans"))
    return all(font.get_char_index(ord(character)) for character in text)


def draw_png(svg: str, headline: str, lines: str) -> bytes:
    """Return a PNG, twice as large as the SVG, with a headline and further lines, in one string, above it."""
    root = ElementTree.fromstring(svg)
    height = int(root.attrib["height"])
    figure = Figure(figsize=(WIDTH / 100, (height + ABOVE) / 100), dpi=200)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, WIDTH), ylim=(height, -ABOVE))
    axes.set_axis_off()
    write = {"parse_math": False, "family": "DejaVu Sans"}
    axes.text(20, 36 - ABOVE, headline, fontsize=min(19, 950 / len(headline)), **write)
    axes.text(20, 54 - ABOVE, textwrap.fill(lines, 108), fontsize=10, color=LIGHT["ink"], va="top", **write)
    for element in root:
        kind, at = element.tag.rpartition("}")[2], element.attrib
        if kind == "rect":
            x, y, wide, high, radius = (float(at.get(name, 0)) for name in ("x", "y", "width", "height", "rx"))
            style = {"boxstyle": f"round,pad=0,rounding_size={radius}", "facecolor": at["fill"]}
            dashes = "--" if "stroke-dasharray" in at else "-"
            axes.add_patch(FancyBboxPatch((x, y), wide, high, edgecolor=at.get("stroke", "none"), ls=dashes, **style))
        elif kind == "path":
            axes.add_patch(
                FancyArrowPatch(path=Line(corners(at["d"])), arrowstyle="-|>", mutation_scale=9, color=LIGHT["ink"])
            )
        elif kind == "text":
            style = {"ha": SIDES[at["text-anchor"]], "fontsize": 0.72 * float(at["font-size"]), "color": at["fill"]}
            axes.text(float(at["x"]), float(at["y"]), element.text, weight=at["font-weight"], **style, **write)
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def corners(line: str) -> list[tuple[float, float]]:
    """Return the corners of a line in SVG's letters M, L, H and V."""
    places = []
    for letter, first, second in re.findall(r"([MLHV])([\d.]+)(?: ([\d.]+))?", line):
        x, y = places[-1] if places else (0, 0)
        places.append((x, float(first)) if letter == "V" else (float(first), float(second or y)))
    return places
