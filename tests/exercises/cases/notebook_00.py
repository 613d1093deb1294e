"""Answers readers give to the exercises of notebook 00: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch


def masks(S, T, lower=0, across=None):
    return torch.ones(S, S), torch.ones(T, T).tril(lower), torch.ones(T, S) if across is None else across


def masks_as_lists(S, T):
    causal = [[int(key <= query) for key in range(T)] for query in range(T)]
    return [[[1] * S for _ in range(S)], causal, [[1] * S for _ in range(T)]]


def masks_as_booleans(S, T):
    place = torch.arange(T)
    full = torch.ones(max(S, T), max(S, T), dtype=torch.bool)
    return full[:S, :S], place[:, None] >= place[None, :], full[:T, :S]


def masks_as_arrays(S, T):
    return np.ones((S, S)), np.tril(np.ones((T, T))), np.ones((T, S))


def with_decoder(change):
    return lambda S, T: (torch.ones(S, S), change(torch.ones(T, T)), torch.ones(T, S))


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
    "0.3": [masks, masks_as_lists, masks_as_booleans, masks_as_arrays],
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
    "0.3": [
        (with_decoder(torch.triu), "The decoder's mask is the wrong"),
        (with_decoder(lambda mask: mask.tril(-1)), "hides each token from itself"),
        (with_decoder(lambda mask: mask.triu(1)), "1 means visible"),
        (with_decoder(lambda mask: mask), "hides nothing"),
        (with_decoder(lambda mask: torch.eye(len(mask))), "up to and including"),
        (with_decoder(lambda mask: mask.log().masked_fill(mask.triu(1) == 1, -torch.inf)), "-inf"),
        (with_decoder(lambda mask: mask / mask.sum(-1, keepdim=True)), "ones (visible) and zeros"),
        (lambda S, T: masks(S, T, across=torch.ones(S, T)), "In the mask across, the decoder's"),
        (lambda S, T: masks(S, T, across=torch.ones(T, S).tril()), "The whole source is known before"),
        (lambda S, T: (torch.ones(S, S).tril(), *masks(S, T)[1:]), "reads both ways"),
        (lambda S, T: masks(T, T), "should have the shape"),
        (lambda S, T: masks(5, 3), "but not for S = 2 and T = 4"),
        (lambda S, T: masks(S, T)[:2], "three masks"),
        (lambda S, T: ("a", "b", "c"), "tensor"),
    ],
}
