"""Answers readers give to the exercises of notebook 07: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch

from exercises.notebook_07 import HUNTS, IT, MACHINE, PLAYED, heads_that_find, link_weights, read_weights, share_found


def ranked(link):
    """All heads, the one that gives the link the most weight first."""
    weights = link_weights(link)
    return [divmod(int(place), weights.size(1)) for place in weights.flatten().argsort(descending=True)]


IT_HEADS, PLAYED_HEADS, MACHINE_HEADS = ranked(IT), ranked(PLAYED), ranked(MACHINE)
BEST_IT, BEST_PLAYED, BEST_MACHINE = IT_HEADS[0], PLAYED_HEADS[0], MACHINE_HEADS[0]
CHOSEN = (0, 4)
SHARES = [share_found(*CHOSEN, strangers=False), 1.0, share_found(*CHOSEN, strangers=True)]


def counted(name, *, turned=False):
    """In how many heads one token of a hunt finds the other."""
    text, *words = HUNTS[name]
    weights, tokens = read_weights(text)
    return heads_that_find(weights, *(tokens.index(word) for word in (words[::-1] if turned else words)))


COUNTS = {name: counted(name) for name in HUNTS}
TURNED = counted("time", turned=True)


def finds(weights, query, key):
    row = weights[:, :, query].clone()
    row[..., [0, query, -1]] = -1
    return row.argmax(dim=-1) == key


def finds_by_comparison(weights, query, key):
    rivals = [place for place in range(1, weights.size(-1) - 1) if place not in (query, key)]
    return (weights[:, :, query, key, None] > weights[:, :, query][..., rivals]).all(dim=-1)


def finds_numpy(weights, query, key):
    row = weights[:, :, query].numpy().copy()
    row[..., [0, query, -1]] = 0
    return row.argmax(-1) == key


def finds_without(*left_out):
    def rule(weights, query, key):
        row = weights[:, :, query].clone()
        row[..., [{"first": 0, "last": -1, "itself": query}[name] for name in left_out]] = -1
        return row.argmax(dim=-1) == key

    return rule


def before(weights):
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=-1)


def before_in_a_loop(weights):
    S = weights.size(-1)
    return sum(weights[..., place, place - 1] for place in range(1, S)) / (S - 1)


def before_by_einsum(weights):
    return torch.einsum("laii->la", weights[..., 1:, :-1]) / (weights.size(-1) - 1)


def finds_in_a_slice(weights, query, key):
    return weights[:, :, query, 1:-1].argmax(dim=-1) == key


def finds_in_loops(weights, query, key):
    L, A, S, _ = weights.shape
    places = [place for place in range(1, S - 1) if place != query]
    return [
        [max(places, key=lambda place: weights[layer, head, query, place]) == key for head in range(A)]
        for layer in range(L)
    ]


def mixed(weights):
    return (weights.mean(dim=1) + torch.eye(weights.size(-1))) / 2


def rollout(weights):
    total = torch.eye(weights.size(-1))
    for layer in mixed(weights):
        total = layer @ total
    return total


def rollout_turned(weights):
    return turned(list(mixed(weights)))


def turned(matrices):
    total = torch.eye(matrices[0].size(-1))
    for matrix in matrices:
        total = total @ matrix
    return total


def rollout_no_residual(weights):
    return turned(list(weights.mean(dim=1).flip(0)))


def rollout_of_three(weights):
    first, second, third = mixed(weights)[:3] if len(weights) > 2 else [torch.eye(weights.size(-1))] * 3
    return third @ second @ first


RIGHT = {
    "7.1": [
        before,
        before_in_a_loop,
        before_by_einsum,
        lambda w: before(w).numpy(),
        lambda w: before(w).tolist(),
        lambda w: tuple(before(w)),
    ],
    "7.2": [
        (BEST_IT, BEST_PLAYED),
        [list(IT_HEADS[1]), torch.tensor(PLAYED_HEADS[1])],
        ("{}-{}".format(*BEST_IT), "{}-{}".format(*BEST_PLAYED)),
        np.array([BEST_IT, BEST_PLAYED]),
        {"it": BEST_IT, "played": BEST_PLAYED},
        (IT_HEADS[:2], [BEST_PLAYED]),
        {"played_to_violin": BEST_PLAYED, "it_to_violin": BEST_IT},
        ["layer {}, head {}".format(*head) for head in (BEST_IT, BEST_PLAYED)],
        ["head {1} of layer {0}".format(*head) for head in (BEST_IT, BEST_PLAYED)],
        ["L{}H{}".format(*head) for head in (BEST_IT, BEST_PLAYED)],
        [f"{BEST_IT}", f"{BEST_PLAYED}"],
    ],
    "7.3": [
        finds,
        finds_by_comparison,
        finds_numpy,
        finds_in_loops,
        lambda w, q, k: finds(w, q, k).int(),
        lambda w, q, k: finds(w, q, k).tolist(),
        lambda w, q, k: list(finds(w, q, k)),
    ],
    "7.4": [(CHOSEN, *SHARES), ["{}-{}".format(*CHOSEN), *map(torch.tensor, SHARES)], ((1, 7), 1.0, 1, 0.85)],
    "7.5": [
        COUNTS,
        list(COUNTS.values()),
        tuple(COUNTS.values()),
        torch.tensor(list(COUNTS.values())),
        {name: torch.tensor(count) for name, count in COUNTS.items()},
        {name: str(count) for name, count in COUNTS.items()},
    ],
    "7.6": [
        rollout,
        lambda w: turned(list(mixed(w).flip(0))),
        lambda w: rollout(w).numpy(),
        lambda w: rollout(w.clone().double().float()),
        lambda w: rollout(w).tolist(),
    ],
}

WRONG = {
    "7.1": [
        (lambda w: w.diagonal(1, -2, -1).mean(-1), "token after"),
        (lambda w: w.diagonal(0, -2, -1).mean(-1), "These are the weights that tokens"),
        (lambda w: w.diagonal(-1, -2, -1).sum(-1), "This is the sum. Take the mean"),
        (lambda w: w.diagonal(-1, -2, -1).sum(-1) / w.size(-1), "S − 1"),
        (lambda w: w.diagonal(-1, -2, -1).sum(-1) / 4, "i - 1"),
        (lambda w: w.diagonal(-1, -2, -1), "shape"),
        (lambda w: before(w).mean(), "shape"),
        (lambda w: w.diagonal(-2, -2, -1).mean(-1), "i - 1"),
        (lambda w: w[..., 1:, :].mean(dim=(-1, -2)), "looked at"),
        (lambda w: w[..., -1, -2], "This is only the last token"),
        (lambda w: w.diagonal(-1, -2, -1).amax(-1), "largest weight"),
        (lambda w: "all", "torch tensor"),
    ],
    "7.2": [
        ((BEST_PLAYED, BEST_IT), "The two heads are swapped: “it”"),
        ((IT_HEADS[-1], BEST_PLAYED), ". Keep looking"),
        (([BEST_IT, IT_HEADS[-1]], [BEST_PLAYED]), ". Keep looking"),
        ((BEST_IT, PLAYED_HEADS[-1]), ". Keep looking"),
        (((99, 0), BEST_PLAYED), "both counted from 0, so"),
        ((BEST_IT, (-1, 3)), "both counted from 0, so"),
        ((BEST_IT, "-1-3"), "two numbers"),
        ((BEST_IT, "the third"), "two numbers"),
        ({"it": BEST_IT}, "two heads"),
        ({"it": BEST_PLAYED, "played": BEST_IT}, "The two heads are swapped: “it”"),
        ((BEST_IT, (0, 1, 2)), "two numbers"),
        (BEST_IT, "two numbers"),
        ((BEST_IT,), "two heads"),
        (5, "two heads"),
    ],
    "7.3": [
        (finds_without(), "[CLS], [SEP] and the token itself"),
        (finds_without("first", "last"), "The query token itself"),
        (finds_without("itself"), "the first and the last"),
        (finds_without("first", "itself"), "[SEP] is still included. Leave out"),
        (finds_without("last", "itself"), "[CLS] is still included. Leave out"),
        (lambda w, q, k: finds(w, k, q), "Query and key token are swapped"),
        (lambda w, q, k: finds(w.mT, q, k), "column"),
        (finds_in_a_slice, "A slice that begins at token"),
        (lambda w, q, k: finds_in_a_slice(w, q, k - 1), "itself is still included"),
        (lambda w, q, k: finds(w, q, k).T, "shape"),
        (lambda w, q, k: finds(w, q, k).float().mean(), "shape"),
        (lambda w, q, k: w[:, :, q, k], "Yours says otherwise"),
        (lambda w, q, k: w[:, :, q, k] > 1 / 3, "Yours says otherwise"),
        (lambda w, q, k: [["yes"] * w.size(1)] * w.size(0), "torch tensor"),
    ],
    "7.4": [
        (((0, 2), 1, 1, 1), "whose two shares differ"),
        (((1, 9), 1, 1, 1), "whose two shares differ"),
        (((2, 11), 1, 1, 1), "whose two shares differ"),
        ((CHOSEN, SHARES[0], 0.0, SHARES[2]), "one token before"),
        ((CHOSEN, 0.123, 1.0, SHARES[2]), "for together"),
        ((CHOSEN, SHARES[0], 1.0, 0.123), "for strangers"),
        ((CHOSEN, 20, 20, 20), "from 0 to 1"),
        ((MACHINE_HEADS[-1], *SHARES), ". Keep looking"),
        ((CHOSEN, "all", 1.0, 1.0), "a number"),
        ((CHOSEN, 1.0), "three shares"),
        (3, "three shares"),
    ],
    "7.5": [
        (COUNTS | {"we": 72 - COUNTS["we"]}, "that do not"),
        (COUNTS | {"time": COUNTS["time"] / 72}, "a share"),
        (COUNTS | {"fruit": 5}, "count the heads"),
        (COUNTS | {"time": TURNED}, "query and key token are swapped"),
        (COUNTS | {"we": "many"}, "a number"),
        ({"we": COUNTS["we"]}, "keys"),
        (list(COUNTS.values())[:2], "three numbers"),
        (7, "dictionary"),
    ],
    "7.6": [
        (rollout_turned, "The order is reversed. Each later"),
        (rollout_no_residual, "residual"),
        (lambda w: mixed(w).mean(dim=0), "averaged"),
        (lambda w: mixed(w).prod(dim=0), "not products of entries"),
        (lambda w: rollout(w) * 2 ** w.size(0), "divide by 2"),
        (lambda w: mixed(w)[-1], "This is only the last layer"),
        (lambda w: rollout(w) * 3, "sum to 1"),
        (rollout_of_three, "half of each matrix the identity"),
        (lambda w: torch.eye(w.size(-1)), "half of each matrix the identity"),
        (lambda w: rollout(w[:6]), "The number of layers is fixed"),
        (lambda w: rollout(w[:13]), "half of each matrix the identity"),
        (lambda w: rollout(w[:, :1]), "first head"),
        (lambda w: rollout(w[1:]) if len(w) > 1 else rollout(w), "first layer is left out"),
        (lambda w: w.mean(dim=1), "shape"),
    ],
}
