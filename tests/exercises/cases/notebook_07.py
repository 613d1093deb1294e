"""Answers to the exercises of notebook 07 that its checks do not declare."""

from itertools import count

import numpy as np
import torch

from exercises.heads import read_weights
from exercises.notebook_07 import HUNTS, IT, MACHINE, PLAYED, heads_that_find, link_weights, share_found


def ranked(link):
    """All heads, the one that gives the link the most weight first."""
    weights = link_weights(link)
    return [divmod(int(place), weights.size(1)) for place in weights.flatten().argsort(descending=True)]


IT_HEADS, PLAYED_HEADS, MACHINE_HEADS = ranked(IT), ranked(PLAYED), ranked(MACHINE)
BEST_IT, BEST_PLAYED = IT_HEADS[0], PLAYED_HEADS[0]
CHOSEN = (0, 4)
SHARES = [share_found(*CHOSEN, strangers=False), 1.0, share_found(*CHOSEN, strangers=True)]


def counted(name, *, turned=False):
    """In how many heads one token of a hunt finds the other."""
    text, *words = HUNTS[name]
    weights, tokens = read_weights(text)
    return heads_that_find(weights, *(tokens.index(word) for word in (words[::-1] if turned else words)))


COUNTS = {name: counted(name) for name in HUNTS}


def finds_in_loops(weights, query, key):
    L, A, S, _ = weights.shape
    places = [place for place in range(1, S - 1) if place != query]
    return [
        [max(places, key=lambda place: weights[layer, head, query, place]) == key for head in range(A)]
        for layer in range(L)
    ]


def largest_among_words(weights, query, key):
    row = weights[:, :, query].clone()
    row[..., [0, query, -1]] = -1
    return row.argmax(dim=-1) == key


def by_turns():
    """A rule that ignores the weights: all heads, then none."""
    calls = count(1)
    return lambda weights, query, key: torch.full(weights.shape[:2], next(calls) % 2 == 1)


RIGHT = r"""
    7.1 | lambda weights: torch.einsum("laii->la", weights[..., 1:, :-1]) / (weights.size(-1) - 1)
    7.1 | lambda weights: right(weights).numpy()
    7.1 | lambda weights: tuple(right(weights))
    7.2 | (BEST_IT, BEST_PLAYED)
    7.2 | [list(IT_HEADS[1]), torch.tensor(PLAYED_HEADS[1])]
    7.2 | ("{}-{}".format(*BEST_IT), "{}-{}".format(*BEST_PLAYED))
    7.2 | np.array([BEST_IT, BEST_PLAYED])
    7.2 | {"played_to_violin": BEST_PLAYED, "it_to_violin": BEST_IT}
    7.2 | (IT_HEADS[:2], [BEST_PLAYED])
    7.2 | ["layer {}, head {}".format(*head) for head in (BEST_IT, BEST_PLAYED)]
    7.2 | ["head {1} of layer {0}".format(*head) for head in (BEST_IT, BEST_PLAYED)]
    7.2 | ["L{}H{}".format(*head) for head in (BEST_IT, BEST_PLAYED)]
    7.3 | finds_in_loops
    7.3 | lambda w, q, k: right(w, q, k).int()
    7.3 | lambda w, q, k: list(right(w, q, k))
    7.3 | weights[:, :, query].clone() => weights[:, :, query].numpy().copy() ;; argmax(dim=-1) => argmax(-1)
    7.4 | ["{}-{}".format(*CHOSEN), *map(torch.tensor, SHARES)]
    7.4 | ((1, 7), "100 %", 1, "85 %")
    7.5 | list(COUNTS.values())
    7.5 | torch.tensor(list(COUNTS.values()))
    7.5 | {name: str(count) for name, count in COUNTS.items()}
    7.6 | (lambda w, q, k: w[:, :, q, k] > 1 / 3, "a")
    7.6 | (lambda w, q, k: w[:, :, q].argmax(dim=-1) == k, "A")
    7.6 | (lambda w, q, k: (w[:, :, q, k] > 0.2).int(), "(a)")
"""
WRONG = r"""
    7.1 | lambda w: right(w).mean() | shape
    7.1 | lambda w: "all" | torch tensor
    7.2 | (BEST_PLAYED, BEST_IT) | The two heads are swapped: “it”
    7.2 | (IT_HEADS[-1], BEST_PLAYED) | . Keep looking
    7.2 | ([BEST_IT, IT_HEADS[-1]], [BEST_PLAYED]) | . Keep looking
    7.2 | (BEST_IT, PLAYED_HEADS[-1]) | . Keep looking
    7.2 | ((99, 0), BEST_PLAYED) | both counted from 0, so
    7.2 | (BEST_IT, (-1, 3)) | both counted from 0, so
    7.2 | {"it": BEST_IT} | two heads
    7.2 | {"it": BEST_PLAYED, "played": BEST_IT} | The two heads are swapped: “it”
    7.2 | (BEST_IT,) | two heads
    7.3 | lambda w, q, k: right(w, q, k).T | shape
    7.3 | lambda w, q, k: right(w, q, k).float().mean() | shape
    7.3 | lambda w, q, k: w[:, :, q, k] | Yours says otherwise
    7.4 | ((0, 2), 1, 1, 1) | more collocations than strangers
    7.4 | (CHOSEN, SHARES[0], 0.0, SHARES[2]) | one token before
    7.4 | (CHOSEN, 0.123, 1.0, SHARES[2]) | for together
    7.4 | (CHOSEN, SHARES[0], 1.0, 0.123) | for strangers
    7.4 | (CHOSEN, 20, 20, 20) | from 0 to 1
    7.4 | (MACHINE_HEADS[-1], *SHARES) | . Keep looking
    7.4 | (CHOSEN, 1.0) | three shares
    7.4 | 3 | three shares
    7.5 | COUNTS | {"we": 72 - COUNTS["we"]} | that do not
    7.5 | COUNTS | {"time": COUNTS["time"] / 72} | a share
    7.5 | COUNTS | {"fruit": 5} | count the heads
    7.5 | COUNTS | {"time": counted("time", turned=True)} | query and key token are swapped
    7.5 | {"we": COUNTS["we"]} | keys
    7.6 | 7 | two things
    7.6 | (7, "a") | a function
    7.6 | (largest_among_words, "a") | By your rule 36 heads find “answering” and 36
    7.6 | (by_turns(), "a") | Called twice
    7.6 | (lambda w, q, k: w[:, :, k, q] > 1 / 3, "a") | look at weights[:, :, query, key]
    7.6 | (lambda w, q, k: w[:, :, q, k], "a") | True or False
    7.6 | (lambda w, q, k: (w[:, :, q, k] > 1 / 3).sum(), "a") | shape
    7.6 | (right[0], "b") | your own rule
    7.6 | (right[0], "c") | says more
"""
