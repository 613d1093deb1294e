"""Answers readers give to the exercises of notebook 00: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch

EVERY, LATER, ACROSS = [0, 1, 2, 3, 4, 5], [2, 3, 4, 5], [0, 1, 2]

RIGHT = {
    "0.1": [(2, 7, 384), [2, 7, 384], torch.Size([2, 7, 384]), "(2, 7, 384)", torch.zeros(2, 7, 384)],
    "0.2": [
        (EVERY, LATER, ACROSS),
        [range(6), range(2, 6), range(3)],
        (set(EVERY), {5, 4, 3, 2}, (2, 1, 0)),
        (torch.arange(6), np.arange(2, 6), torch.arange(3.0)),
        ([True] * 6, torch.arange(6) > 1, "all"),
    ],
}

WRONG = {
    "0.1": [
        ((2, 5, 384), "special tokens"),
        ((2, 6, 384), "in front"),
        ((2, 4, 384), "filled up"),
        ((1, 11, 384), "two rows"),
        ((2, 7), "shape of the ids"),
        ((7, 2, 384), "The numbers are right, but their"),
        ((2, 7, 768), "The last number is H. How"),
        ((3, 7, 384), "how many texts"),
        ((2, 7, 384, 1), "Give three numbers, (B, S, H)"),
        (14, "a shape"),
    ],
    "0.2": [
        ((LATER, LATER, ACROSS), "no causal mask"),
        (([0, 1, 3, 4, 5], LATER, ACROSS), "sees its own token"),
        (([2], LATER, ACROSS), "every token sees all six"),
        ((EVERY, [0, 1, 2], ACROSS), "It is the other way round"),
        ((EVERY, [3, 4, 5], ACROSS), "its own token"),
        ((EVERY, EVERY, ACROSS), "cannot see what comes later"),
        ((EVERY, [2], ACROSS), "column 2"),
        ((EVERY, LATER, [2]), "does not apply across"),
        ((EVERY, LATER, EVERY), "only three positions"),
        ((EVERY, LATER, []), "three written tokens"),
        (([1, 2, 3, 4, 5, 6], LATER, ACROSS), "counted from 0"),
        ((EVERY, 2, ACROSS), "Decoder-only: look at column 2 of"),
        ((EVERY, "later", ACROSS), "list of numbers"),
        (("012345", "2345", "012"), "list of numbers"),
        (([0, 1, 2, 2, 3, 4, 5], LATER, ACROSS), "appears twice"),
        ((EVERY, [False, False, True], ACROSS), "6 booleans"),
        ((EVERY, [2.5], ACROSS), "whole numbers"),
        ((EVERY, LATER), "three lists"),
    ],
}
