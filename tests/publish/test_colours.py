"""All colours and letters come from one table, and colours that must differ do so for every type of colour vision."""

import json
import re
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import ROOT, project_paths
from utils.support.colours import (
    DARK,
    FACE,
    HEADS,
    LETTERS,
    LIGHT,
    MONOSPACE,
    ROLES,
    SCALES,
    SMALL,
    TINTS,
    TITLE,
    WIDTH,
)

THEMES = {"light": LIGHT, "dark": DARK}
TABLE = {*LIGHT.values(), *DARK.values(), *TINTS.values(), *HEADS["light"], *HEADS["dark"]}
TABLE |= {stop for theme in SCALES.values() for scale in theme.values() for stop in scale}
# Greys that drawings may use for lines and text in addition to the table; code and styles may use black and white.
GREYS = {"#111", "#333", "#444", "#555", "#595959", "#999", "#bbb", "#bbbbbb", "#ddd", "#ffffff"}
HEX = re.compile(r"(?<![#&\w])#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![\w-])")
HUES = "red|green|blue|orange|purple|pink|brown|cyan|magenta|gold|yellow|navy|teal|crimson|salmon|steelblue|gr[ae]y"
MAPS = r"Blues|Oranges|Greens|Reds|Gr[ae]ys|Set\d|viridis|cividis|plasma|magma|coolwarm|RdBu\w*|tab\d+"
NAMED = re.compile(
    rf"""["'](?:C\d|tab:\w+|{MAPS})["']|colou?rs?\b.*["'](?:dark|light)?(?:{HUES})["']"""
    rf"""|(?:color|fill|stroke|background): ?(?:{HUES})\b"""
)
FOLDERS = {"utils", "views", "exercises", "explorer", "publish", "benchmarks", "scripts", "notebooks"}
STYLED = {".py", ".css", ".js", ".html", ".toml", ".j2"}


def project_files(*suffixes: str) -> list[Path]:
    """Return the project's files with these suffixes, without Colab's badge and our colours."""
    others = {"notebooks/images/colab.svg", "utils/support/colours.py"}
    return [
        Path(name)
        for name in project_paths()
        if name.split("/")[0] in FOLDERS and Path(name).suffix in suffixes and name not in others
    ]


def found_in(text: str, allowed: set[str]) -> list[str]:
    return [one for one in HEX.findall(text) if one.lower() not in allowed] + NAMED.findall(text)


@pytest.mark.parametrize("path", project_files(*STYLED), ids=str)
def test_code_and_styles_use_no_literal_colours(path):
    assert found_in((ROOT / path).read_text("utf-8"), {"#ffffff"}) == []


@pytest.mark.parametrize("path", project_files(".ipynb"), ids=str)
def test_notebook_cells_use_colour_roles(path):
    cells = json.loads((ROOT / path).read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert found_in(code, set()) == []


@pytest.mark.parametrize("path", project_files(".svg"), ids=str)
def test_drawings_use_the_colours_and_fonts_of_the_table(path):
    text = (ROOT / path).read_text("utf-8")
    assert found_in(text, TABLE | GREYS) == []
    faces = set(re.findall(r'font-family="([^"]*)"', text))
    assert faces <= {FACE.replace('"', "'"), MONOSPACE.replace('"', "'")}
    assert re.match(rf'<svg [^>]*viewBox="-?\d+ 0 {WIDTH} (\d+)" width="{WIDTH}" height="\1"', text)
    if path.name != "07_attention_views.svg":  # three small views, a third of their size
        assert set(re.findall(r'font-size="([^"]*)"', text)) <= {str(SMALL), str(LETTERS), str(TITLE)}


# Machado, Oliveira and Fernandes 2009, "A physiologically-based model for simulation of color vision deficiency", table
# 1, severity 1.0, for linear red, green and blue
SIGHT = {
    "all": np.eye(3),
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(colour: str, sight: str = "all") -> np.ndarray:
    """Return CIE 1976 L*a*b* coordinates of a colour as seen with this type of colour vision."""
    seen = np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ seen / TO_XYZ.sum(axis=1), 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


# Pairs that occur in one picture and differ only by colour. Value and below zero also occur together, in
# attention_in_the_plane, but a label and dashes distinguish them: their colours are alike to red-green blind readers.
APART = [*combinations(("query", "key", "value", "average"), 2), *combinations(("ours", "other", "third"), 2)]
APART += [("above", "below"), ("key", "third"), ("query", "third")]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("one", "other"), APART)
def test_colours_differ_for_all_vision_types_and_in_grey(theme, one, other):
    colours = [THEMES[theme][ROLES[role]] for role in (one, other)]
    for sight in SIGHT:
        first, second = (lab(colour, sight) for colour in colours)
        assert np.linalg.norm(first - second) >= 18  # 2.3 is just visible where two areas touch
    lightness = [lab(colour)[0] for colour in colours]
    assert abs(lightness[0] - lightness[1]) >= 5


@pytest.mark.parametrize("theme", THEMES)
def test_heads_have_twelve_distinct_colours(theme):
    """All differ for most readers; heads 0 and 10, and 1 and 11, for every type of colour vision."""
    heads = HEADS[theme]
    assert len(heads) == 12
    for one, other in combinations(heads, 2):
        assert np.linalg.norm(lab(one) - lab(other)) >= 14
    for one, other in ((0, 10), (1, 11)):
        for sight in SIGHT:
            assert np.linalg.norm(lab(heads[one], sight) - lab(heads[other], sight)) >= 18
