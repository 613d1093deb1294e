"""Answers readers give to the exercises of notebook 05: right ones, and wrong ones with a word of the hint."""

import math

import numpy as np
import torch
from torch.nn import functional as F


def post_only(stream, sublayer, norm, norm_first=False):
    return norm(stream + sublayer(stream))


def swapped(stream, sublayer, norm, norm_first=False):
    return post_only(stream, sublayer, norm) if norm_first else stream + sublayer(norm(stream))


def in_one_expression(x, f, ln, norm_first=False):
    return x + f(ln(x)) if norm_first else ln(x + f(x))


def in_steps(stream, sublayer, norm, norm_first=False):
    change = sublayer(norm(stream) if norm_first else stream)
    total = torch.add(change, stream)
    return total if norm_first else norm(total)


RIGHT = {
    "5.1": [
        ([3], range(6)),
        ((3,), {0, 1, 2, 3, 4, 5}),
        [torch.tensor([3]), torch.arange(6)],
        (3, [5, 4, 3, 2, 1, 0]),
        (np.array([3]), np.arange(6)),
    ],
    "5.2": [
        7_087_872,
        7_087_872.0,
        torch.tensor(7_087_872),
        np.int64(7_087_872),
        12 * 768**2 + 13 * 768,
    ],
    "5.3": [
        F.gelu,
        torch.nn.GELU(),
        lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x),
        lambda x: 0.5 * x * (1 + torch.erf(x * 2**-0.5)),
    ],
    "5.4": [in_one_expression, in_steps],
}
WRONG = {
    "5.1": [
        (([3], [3]), "has attention in it"),
        (([3], [3, 4, 5]), "no causal mask"),
        ((range(6), range(6)), "each position alone"),
        (([4], range(6)), "count from 0"),
        (([3], [0, 1, 2, 4, 5]), "Position 3 itself"),
        (([3], range(1, 7)), "end with 5"),
        (([3], "all"), "list of numbers"),
        (([3], range(5)), "attend to position 3"),
        (([2], range(6)), "read position 3"),
        ([3], "two lists"),
    ],
    "5.2": [
        (7_084_800, "LayerNorms are missing"),
        (7_086_336, "two LayerNorms"),
        (12 * 768**2, "Biases and LayerNorms"),
        (12 * 4 * (768**2 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768, "12 times"),
        (4 * (768**2 + 768) + 4 * 768 + 768 * 3072 + 3072, "two maps"),
        (4 * (768**2 + 768) + 4 * 768 + 2 * 768 * 12 + 12 + 768, "number of heads"),
        (4 * (768**2 + 768), "attention alone"),
        ("7087872", "one whole number"),
        (7_000_000, "Count 4 maps"),
    ],
    "5.3": [
        (torch.relu, "ReLU"),
        (lambda x: F.gelu(x, approximate="tanh"), "tanh form"),
        (lambda x: x * torch.sigmoid(1.702 * x), "sigmoid"),
        (F.silu, "SiLU"),
        (lambda x: x / 2 * (1 + torch.erf(x)), "√2"),
        (lambda x: (1 + torch.erf(x / math.sqrt(2))) / 2, "multiply it by x"),
        (lambda x: x * (1 + torch.erf(x / math.sqrt(2))), "Twice too large"),
        (lambda x: F.gelu(x).sum(), "shape"),
        (lambda x: F.gelu(x).tolist(), "torch tensor"),
        (torch.tanh, "Φ(x)"),
    ],
    "5.4": [
        (swapped, "post-LN"),
        (post_only, "makes no difference"),
        (lambda x, f, ln, norm_first=False: ln(f(x)), "residual connection is missing"),
        (lambda x, f, ln, norm_first=False: x + ln(f(x)), "has to see the sum"),
        (lambda x, f, ln, norm_first=False: x + f(x), "LayerNorm is missing"),
        (lambda x, f, ln, norm_first=False: ln(x + f(ln(x))), "once"),
        (lambda x, f, ln, norm_first=False: ln(x) + f(ln(x)) if norm_first else ln(x + f(x)), "untouched"),
        (
            lambda x, f, ln, norm_first=False: f(ln(x)) if norm_first else ln(x + f(x)),
            "In pre-LN the residual",
        ),
        (lambda x, f, ln, norm_first=False: x + ln(f(x)) if norm_first else ln(x + f(x)), "f(LN(x))"),
    ],
}
