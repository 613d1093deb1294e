"""All colours and letters come from one table, and colours that must differ do so for every type of colour vision."""

from itertools import combinations

import numpy as np
import pytest

from utils.support.colours import DARK, HEADS, LIGHT, ROLES

THEMES = {"light": LIGHT, "dark": DARK}


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
