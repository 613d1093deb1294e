"""The one table of colours: nothing is coloured from elsewhere, and what must be told apart can be, by everybody."""

import json
import re
import subprocess
from itertools import combinations, pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import ROOT
from utils.colours import DARK, FACE, HEADS, LETTERS, LIGHT, MONOSPACE, ROLES, SCALES, TINTS

THEMES = {"light": LIGHT, "dark": DARK}
TABLE = {*LIGHT.values(), *DARK.values(), *TINTS.values(), *HEADS["light"], *HEADS["dark"]}
TABLE |= {stop for theme in SCALES.values() for scale in theme.values() for stop in scale}
# Beside the table, drawings have these greys, for lines and letters; programs and styles have black and white.
GREYS = {"#111", "#333", "#444", "#555", "#595959", "#999", "#bbb", "#bbbbbb", "#ddd", "#ffffff"}
HEX = re.compile(r"(?<![#&\w])#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})(?![\w-])")
HUES = "red|green|blue|orange|purple|pink|brown|cyan|magenta|gold|yellow|navy|teal|crimson|salmon|steelblue|gr[ae]y"
MAPS = r"Blues|Oranges|Greens|Reds|Gr[ae]ys|Set\d|viridis|cividis|plasma|magma|coolwarm|RdBu\w*|tab\d+"
NAMED = re.compile(
    rf"""["'](?:C\d|tab:\w+|{MAPS})["']|colou?rs?\b.*["'](?:dark|light)?(?:{HUES})["']"""
    rf"""|(?:color|fill|stroke|background): ?(?:{HUES})\b"""
)
FOLDERS = {"utils", "views", "exercises", "explorer", "publish", "benchmarks", "scripts", "records", "notebooks"}
STYLED = {".py", ".css", ".js", ".html", ".toml", ".j2"}


def kept(*suffixes: str) -> list[Path]:
    """The project's own files of these kinds; Colab's badge is Colab's, and the table is where colours are from."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    others = {"notebooks/images/colab.svg", "utils/colours.py"}
    return [
        Path(name)
        for name in listed
        if name.split("/")[0] in FOLDERS and Path(name).suffix in suffixes and name not in others
    ]


def found_in(text: str, allowed: set[str]) -> list[str]:
    return [one for one in HEX.findall(text) if one.lower() not in allowed] + NAMED.findall(text)


@pytest.mark.parametrize("path", kept(*STYLED), ids=str)
def test_programs_and_styles_write_no_colour(path):
    assert found_in((ROOT / path).read_text("utf-8"), {"#ffffff"}) == []


@pytest.mark.parametrize("path", kept(".ipynb"), ids=str)
def test_cells_name_colours_by_what_they_mean(path):
    cells = json.loads((ROOT / path).read_text("utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert found_in(code, set()) == []


@pytest.mark.parametrize("path", kept(".svg"), ids=str)
def test_drawings_have_the_tables_colours_and_letters(path):
    text = (ROOT / path).read_text("utf-8")
    assert found_in(text, TABLE | GREYS) == []
    faces = set(re.findall(r'font-family="([^"]*)"', text))
    assert faces <= {FACE.replace('"', "'"), MONOSPACE.replace('"', "'")}
    if path.name != "07_attention_views.svg":  # three small views, with views' own sizes
        assert set(re.findall(r'font-size="([^"]*)"', text)) <= {"12", str(LETTERS), "16"}


RECT = re.compile(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)"[^>]* fill="(#\w+)"')
TEXT = re.compile(r'<text x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]+)</text>')
# What the grounds of boxes mean by their first line of letters: colours stand by what is drawn, not by choice
NAMES = {
    r"(causal self-|cross-|self-|multi-head )?attention|causal|cross": "blue",
    "query": "purple",
    "key": "blue",
    "value": "ochre",
    "context|weighted|average": "green",
    "feed-forward": "grey",
}


def boxes(text: str) -> list[tuple[str, str]]:
    """The first line of letters in each box of a drawing, and the box's ground: of boxes in a pile, the last."""
    found = {}
    for x, y, name in TEXT.findall(text):
        around = [box for box in RECT.findall(text) if holds(box, float(x), float(y))]
        if around:
            *_, ground = box = min(reversed(around), key=lambda box: float(box[2]) * float(box[3]))
            found.setdefault(box, (name, ground))
    return list(found.values())


def holds(box: tuple[str, ...], x: float, y: float) -> bool:
    left, top, width, height = map(float, box[:4])
    return left <= x <= left + width and top <= y <= top + height


@pytest.mark.parametrize("path", kept(".svg"), ids=str)
def test_boxes_of_drawings_have_the_ground_of_what_they_are(path):
    """A colour of the table in a wrong place is no better than another."""
    for name, ground in boxes((ROOT / path).read_text("utf-8")):
        for meaning, hue in NAMES.items():
            if re.fullmatch(meaning, name.strip()):
                assert ground == TINTS[hue], name


@pytest.mark.parametrize("path", kept(".svg"), ids=str)
def test_the_stream_has_no_values_colour(path):
    """Thick lines are the stream's, which is no value, query or key."""
    thick = re.findall(r'<path [^>]*stroke="(#\w+)" stroke-width="[4-9]"', (ROOT / path).read_text("utf-8"))
    assert set(thick) <= {LIGHT["grey"]}


def test_all_named_boxes_are_found():
    """That the two tests above look at something."""
    drawn = [name.strip() for path in kept(".svg") for name, _ in boxes((ROOT / path).read_text("utf-8"))]
    for meaning in NAMES:
        assert any(re.fullmatch(meaning, name) for name in drawn), meaning


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
    """Lightness 0 … 100, and two coordinates of hue (CIE 1976), as somebody of this sight has them."""
    seen = np.clip(np.array(SIGHT[sight]) @ linear(colour), 0, 1)
    x, y, z = np.cbrt(np.maximum(TO_XYZ @ seen / TO_XYZ.sum(axis=1), 1e-6))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    """The contrast of WCAG 2.1, from 1 to 21."""
    dark, light = sorted((TO_XYZ @ linear(colour))[1] + 0.05 for colour in (one, other))
    return light / dark


# What meets in one picture and is told by colour. Value and what is below zero meet in attention_in_the_plane, where a
# label and dashes tell them apart: their colours do not, to a reader without red and green.
APART = [*combinations(("query", "key", "value", "average"), 2), *combinations(("ours", "other", "third"), 2)]
APART += [("above", "below"), ("key", "third"), ("query", "third")]


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize(("one", "other"), APART)
def test_what_meets_in_a_picture_is_told_apart_by_everybody_and_on_grey_paper(theme, one, other):
    colours = [THEMES[theme][ROLES[role]] for role in (one, other)]
    for sight in SIGHT:
        first, second = (lab(colour, sight) for colour in colours)
        assert np.linalg.norm(first - second) >= 18  # 2.3 is just seen where two areas touch
    lightness = [lab(colour)[0] for colour in colours]
    assert abs(lightness[0] - lightness[1]) >= 5


@pytest.mark.parametrize("theme", THEMES)
def test_each_can_be_read_as_letters_on_its_ground(theme):
    table = THEMES[theme]
    for name in (*set(ROLES.values()) - {"grey"}, "mark", "ink", "soft"):
        for ground in ("paper", "card", "wash"):
            assert contrast(table[name], table[ground]) >= 4.5
    assert contrast(table["grey"], table["paper"]) >= 3  # for lines and bars


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("scale", ["above", "below"])
def test_a_scale_goes_one_way_from_the_ground(theme, scale):
    """So that more is more also in grey."""
    stops = SCALES[theme][scale]
    assert stops[0] == THEMES[theme]["paper"]
    away = [lab(stop)[0] for stop in stops]
    steps = [after - before for before, after in pairwise(away)]
    assert all(step < -5 for step in steps) if theme == "light" else all(step > 5 for step in steps)


@pytest.mark.parametrize("theme", THEMES)
def test_twelve_heads_have_twelve_colours(theme):
    """All differ to most readers; tiles 0 and 10, 1 and 11, which had one colour each, to everybody."""
    heads = HEADS[theme]
    assert len(heads) == 12
    for one, other in combinations(heads, 2):
        assert np.linalg.norm(lab(one) - lab(other)) >= 14
    for one, other in ((0, 10), (1, 11)):
        for sight in SIGHT:
            assert np.linalg.norm(lab(heads[one], sight) - lab(heads[other], sight)) >= 18
