"""Answers readers give to the exercises of notebook 02: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.checkpoints import load_config

H, V = load_config().hidden_size, load_config().vocab_size


def by_squares(x, weight, bias, eps):
    mean, square = x.mean(-1, keepdim=True), (x * x).mean(-1, keepdim=True)
    return (x - mean) / (square - mean**2 + eps) ** 0.5 * weight + bias


def by_module(x, weight, bias, eps):
    norm = nn.LayerNorm(x.shape[-1], eps=eps)
    norm.weight.data, norm.bias.data = weight, bias
    return norm(x)


def token_by_token(x, weight, bias, eps):
    result = torch.empty_like(x)
    for b in range(x.size(0)):
        for s in range(x.size(1)):
            token = x[b, s]
            result[b, s] = (token - token.mean()) / (token.var(unbiased=False) + eps).sqrt()
    return result * weight + bias


def by_ids(words, table):
    return words + F.embedding(torch.arange(words.size(1)), table)


def by_one_hot(words, table):
    return words + F.one_hot(torch.arange(words.size(1)), len(table)).float() @ table


def in_place(words, table):
    for s in range(words.size(1)):
        words[:, s] += table[s]
    return words


def norm(x, weight, bias, divisor, dim=-1):
    return (x - x.mean(dim, keepdim=True)) / divisor * weight + bias


def biased(x, dim=-1):
    return x.var(dim, unbiased=False, keepdim=True)


RIGHT = {
    "2.1": [
        (4, 9, H),
        [4, 9, H],
        torch.Size([4, 9, H]),
        torch.tensor([4, 9, H]),
        np.array([4, 9, H]),
        (4.0, 9, H),
    ],
    "2.2": [
        23_837_184,
        23_837_184.0,
        (30_522 + 512 + 2 + 2) * 768,
        torch.tensor(23_837_184),
        np.int64(23_837_184),
        np.array([23_837_184]),
    ],
    "2.3": [1.25, 5 / 4, 1 / (1 - 0.2), torch.tensor(1.25), np.float32(1.25)],
    "2.4": [
        by_squares,
        by_module,
        token_by_token,
        lambda x, w, b, eps: F.layer_norm(x, x.shape[-1:], w, b, eps),
        lambda x, w, b, eps: norm(x, w, b, (biased(x) + eps).sqrt()),
    ],
    "2.5": [
        by_ids,
        by_one_hot,
        in_place,
        lambda words, table: words + table[: words.shape[1]].unsqueeze(0),
        lambda words, table: torch.stack([row + table[: len(row)] for row in words]),
    ],
}

WRONG = {
    "2.1": [
        ((4, 9), "ids"),
        ((9, H), "batch axis"),
        ((9, 4, H), "first"),
        ((4, 9, V), "one-hot"),
        ((4, 9, 3 * H), "added"),
        ((4, 9, 9, H), "Three sizes"),
        ((4, 11, H), "padding"),
        ((4, 9, H + 1), "hidden_size"),
        (4 * 9 * H, "int"),
        (("B", "S", "H"), "str"),
        (torch.zeros(4, 9), "list"),
    ],
    "2.2": [
        (23_835_648, "token types"),
        (23_836_416, "two vectors"),
        (23_440_896, "word vectors"),
        (23_443_968, "position"),
        (23_442_432, "position"),
        (23_835_650, "2 · H"),
        (23_834_112, "token-type"),
        (23.837184, "millions"),
        (109_482_240, "three tables"),
        ("23 million", "str"),
        ((30_522, 768), "tuple"),
        (True, "bool"),
    ],
    "2.3": [
        (0.8, "survives"),
        (0.2, "zero"),
        (1, "evaluation"),
        (1.2, "0.96"),
        (5, "1 - p"),
        (2, "mean"),
        (float("nan"), "mean"),
        (torch.ones(3), "shape"),
    ],
    "2.4": [
        (lambda x, w, b, eps: norm(x, w, b, biased(x) + eps), "variance"),
        (lambda x, w, b, eps: norm(x, w, b, (x.var(-1, keepdim=True) + eps).sqrt()), "unbiased"),
        (lambda x, w, b, eps: norm(x, w, b, x.std(-1, keepdim=True) + eps), "H - 1"),
        (lambda x, w, b, eps: norm(x, w, b, biased(x).sqrt() + eps), "outside"),
        (lambda x, w, b, eps: norm(x, w, b, biased(x).sqrt()), "missing"),
        (lambda x, w, b, eps: norm(x, 1, 0, (biased(x) + eps).sqrt()), "Scale and shift"),
        (lambda x, w, b, eps: norm(x, w, 0, (biased(x) + eps).sqrt()), "shift is missing"),
        (lambda x, w, b, eps: norm(x, 1, b, (biased(x) + eps).sqrt()), "scale is missing"),
        (lambda x, w, b, eps: x / (biased(x) + eps).sqrt() * w + b, "subtracted"),
        (lambda x, w, b, eps: norm(x, w, b, (biased(x, 1) + eps).sqrt(), 1), "over the tokens"),
        (lambda x, w, b, eps: norm(x, w, b, (biased(x, 0) + eps).sqrt(), 0), "over the batch"),
        (lambda x, w, b, eps: (x - x.mean()) / (x.var(unbiased=False) + eps).sqrt() * w + b, "whole tensor"),
        (lambda x, w, b, eps: x.mean(-1), "shape"),
        (lambda x, w, b, eps: x.softmax(-1), "subtract the mean"),
        (lambda x, w, b, eps: x.tolist(), "torch tensor"),
    ],
    "2.5": [
        (lambda words, table: words, "missing"),
        (lambda words, table: table[: words.size(1)], "alone"),
        (lambda words, table: table[: words.size(1)].expand_as(words), "alone"),
        (lambda words, table: words + table[: len(words), None], "batch"),
        (lambda words, table: words + table[1 : words.size(1) + 1], "starts with 1"),
        (lambda words, table: words + table[: words.size(1)].flip(0), "reverse"),
        (lambda words, table: words + table[-words.size(1) :], "last rows"),
        (lambda words, table: words + table[words.size(1)], "same vector"),
        (lambda words, table: words + table.mean(0), "same vector"),
        (lambda words, table: words * table[: words.size(1)], "row s"),
        (lambda words, table: words + table, "S tokens"),
        (lambda words, table: torch.cat([words, table[:5].expand_as(words)], -1), "shape"),
    ],
}
