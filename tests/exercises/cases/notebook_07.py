"""Answers readers give to the exercises of notebook 07: right alternatives, and wrong ones with a word of the hint."""

import math

import numpy as np
import torch

from exercises.notebook_07 import possessive_accuracy


def before(weights):
    return weights.diagonal(offset=-1, dim1=-2, dim2=-1).mean(dim=-1)


def before_in_a_loop(weights):
    S = weights.size(-1)
    return sum(weights[..., place, place - 1] for place in range(1, S)) / (S - 1)


def before_by_einsum(weights):
    return torch.einsum("laii->la", weights[..., 1:, :-1]) / (weights.size(-1) - 1)


def mixed(weights):
    return (weights.mean(dim=1) + torch.eye(weights.size(-1))) / 2


def rollout(weights):
    total = torch.eye(weights.size(-1))
    for layer in mixed(weights):
        total = layer @ total
    return total


def rollout_multi_dot(weights):
    return torch.linalg.multi_dot(list(mixed(weights).flip(0)))


def rollout_turned(weights):
    return torch.linalg.multi_dot(list(mixed(weights)))


def rollout_no_residual(weights):
    return torch.linalg.multi_dot(list(weights.mean(dim=1).flip(0)))


def rollout_not_halved(weights):
    return rollout_multi_dot(weights) * 2 ** weights.size(0)


def best_head():
    accuracy = possessive_accuracy()
    return divmod(int(accuracy.argmax()), accuracy.size(1))


def worst_head():
    accuracy = possessive_accuracy()
    return divmod(int(accuracy.argmin()), accuracy.size(1))


RIGHT = {
    "7.1": [
        1.75,
        7 / 4,
        np.float64(1.75),
        torch.tensor(1.75),
        -sum(w * math.log2(w) for w in (0.5, 0.25, 0.125, 0.125)),
    ],
    "7.2": [before, before_in_a_loop, before_by_einsum],
    "7.3": [rollout, rollout_multi_dot],
    "7.4": [best_head(), list(best_head()), torch.tensor(best_head()), np.array(best_head())],
}

WRONG = {
    "7.1": [
        (-1.75, "minus"),
        (2, "even row"),
        (1.75 * math.log(2), "nats"),
        (1.375, "count both"),
        (1.5, "Add"),
        ("much", "a number"),
        (torch.zeros(2), "a number"),
    ],
    "7.2": [
        (lambda w: w.diagonal(1, -2, -1).mean(-1), "token after"),
        (lambda w: w.diagonal(0, -2, -1).mean(-1), "to itself"),
        (lambda w: w.diagonal(-1, -2, -1).sum(-1), "take the mean"),
        (lambda w: w.diagonal(-1, -2, -1).sum(-1) / w.size(-1), "S − 1"),
        (lambda w: w.diagonal(-1, -2, -1), "shape"),
        (lambda w: before(w).mean(), "shape"),
        (lambda w: w.diagonal(-2, -2, -1).mean(-1), "i - 1"),
        (lambda w: before(w).tolist(), "torch tensor"),
        (lambda w: None, "return"),
    ],
    "7.3": [
        (rollout_turned, "order is turned"),
        (rollout_no_residual, "residual"),
        (lambda w: mixed(w).mean(dim=0), "averaged"),
        (lambda w: mixed(w).prod(dim=0), "not products of entries"),
        (rollout_not_halved, "divide by 2"),
        (lambda w: mixed(w)[-1], "last layer alone"),
        (lambda w: rollout(w) * 3, "sum to 1"),
        (lambda w: torch.eye(w.size(-1)), "Average the heads"),
        (lambda w: w.mean(dim=1), "shape"),
        (lambda w: None, "return"),
    ],
    "7.4": [
        (worst_head(), "a better one"),
        (
            best_head()[::-1],
            "Turn it round" if best_head()[1] < possessive_accuracy().size(0) else "not there",
        ),
        ((99, 0), "not there"),
        ((-1, 3), "not there"),
        (5, "two numbers"),
        ((1, 2, 3), "two numbers"),
        ("5-10", "two numbers"),
    ],
}
