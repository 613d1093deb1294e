"""Interactive views of attention, and draggable figures; all of them work offline."""

from importlib.util import find_spec
from pathlib import Path

if (found := find_spec("utils")) and Path(found.origin or "").parent != Path(__file__).parents[1] / "utils":
    raise ImportError(
        f"{found.origin} hides the package utils of this series, which views needs: rename it, or start Python with "
        "-P, which leaves out the files of the current folder"
    )

from views.draw import head_view, model_view, neuron_view
from views.explore import explore
from views.figures import (
    attention_in_the_plane,
    longest_match,
    mask_painter,
    merges,
    next_token,
    rotary_turn,
    sharpness,
    split_and_merge,
    sum_and_scale,
)
from views.page import View
from views.path import path_view
from views.sentence import sentence_view
from views.words import whole_words

__all__ = [
    "View",
    "attention_in_the_plane",
    "explore",
    "head_view",
    "longest_match",
    "mask_painter",
    "merges",
    "model_view",
    "neuron_view",
    "next_token",
    "path_view",
    "rotary_turn",
    "sentence_view",
    "sharpness",
    "split_and_merge",
    "sum_and_scale",
    "whole_words",
]
