"""What the figures that can be dragged refuse, and the still pictures of their beginning."""

import math
import re

import pytest

from utils.views import figures

# mask_painter
TOKENS = ["time", "flies"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": "time flies"}, "tokens='time flies' is no list of tokens: pass a list of texts"),
        ({"tokens": None}, "tokens=None is no list"),
        ({"tokens": ["time"]}, "the number of tokens=1 must be a whole number from 2 to 12"),
        ({"tokens": ["x"] * 40}, "the number of tokens=40 must be a whole number from 2 to 12"),
        ({"values": [1]}, "values has the shape (1,): this figure draws 2 numbers"),
        ({"values": [1, math.nan]}, "values holds nan or inf"),
        ({"values": [1, -math.inf]}, "values holds nan or inf"),
        ({"values": [1, 1e30]}, "values reach 1e+30, which is too large to be drawn: use -1000 to 1000"),
        ({"rows": []}, "the number of rows=0 must be a whole number from 1 to 12"),
        (
            {"mask": "future"},
            "mask='future' cannot be drawn: use one of bidirectional, causal, padding, window",
        ),
        ({"mask": "cross"}, "mask='cross' cannot be drawn: pass rows, the tokens that look"),
    ],
)
def test_a_mask_painter_refuses(given, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        figures.mask_painter(**{"tokens": TOKENS, **given})


@pytest.mark.parametrize("mask", ["bidirectional", "causal", "padding", "window", "cross"])
def test_a_mask_painter_begins_with_each_mask(mask):
    view = figures.mask_painter([*TOKENS, "[PAD]"], rows=["le", "temps"], mask=mask)
    assert mask in view.summary
    assert view.still.startswith(b"\x89PNG")


def test_a_mask_painter_draws_half_a_character_and_a_long_token():
    assert figures.mask_painter(["\ud800", 99 * "long"]).still.startswith(b"\x89PNG")


def test_padding_hides_the_padding_or_the_last_token():
    assert figures.masks_of(["time", "[PAD]", "[PAD]"])["padding"].tolist() == [[1, 0, 0]] * 3
    assert figures.masks_of(["time", "flies"])["padding"].tolist() == [[1, 0]] * 2


# split_and_merge
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sequence": "time flies"}, "tokens='time flies' is no list of tokens: pass a list of texts"),
        ({"sequence": ["time"]}, "the number of tokens=1 must be a whole number from 2 to 6"),
        ({"sequence": 40}, "sequence=40 must be a whole number from 2 to 6"),
        ({"sequence": math.nan}, "sequence=nan must be a whole number from 2 to 6"),
        ({"heads": 0}, "heads=0 must be a whole number from 1 to 6"),
        ({"head_size": 2.5}, "head_size=2.5 must be a whole number from 1 to 6"),
        (
            {"heads": 6, "head_size": 5},
            "heads=6 of head_size=5 are 30 numbers per token: this figure draws up to 24",
        ),
    ],
)
def test_split_and_merge_refuses(given, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        figures.split_and_merge(**{"sequence": 3, "heads": 2, "head_size": 4, **given})


@pytest.mark.parametrize("sizes", [(2, 1, 1), (6, 6, 4), (["time", "$x$"], 4, 6)])
def test_split_and_merge_draws_the_smallest_and_the_largest(sizes):
    assert figures.split_and_merge(*sizes).still.startswith(b"\x89PNG")
