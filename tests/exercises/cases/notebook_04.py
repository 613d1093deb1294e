"""Answers readers give to the exercises of notebook 04: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch


def split_by_permute(x, num_heads):
    B, S, _ = x.shape
    return x.reshape(B, S, num_heads, -1).permute(0, 2, 1, 3)


def split_by_chunks(x, num_heads):
    return torch.stack(x.chunk(num_heads, dim=-1), dim=1)


def merge_by_concatenation(x):
    return torch.cat(list(x.unbind(dim=1)), dim=-1)


def merge_by_flatten(x):
    return x.transpose(1, 2).flatten(2)


def merge_contiguous(x):
    B, A, S, D = x.shape
    return x.permute(0, 2, 1, 3).contiguous().view(B, S, A * D)


def row_slice_by_view(weight, index, num_heads):
    return weight.view(num_heads, -1, weight.size(1))[index]


SHAPES = [(2, 6, 7, 8), (2, 6, 7, 7), (2, 7, 48)]

RIGHT = {
    "4.1": [
        SHAPES,
        [torch.Size(shape) for shape in SHAPES],
        [list(shape) for shape in SHAPES],
        [torch.tensor(shape) for shape in SHAPES],
        tuple(SHAPES),
    ],
    "4.2": [2_362_368, 2362368.0, np.int64(2_362_368), torch.tensor(2_362_368), 4 * 768 * 769],
    "4.3": [split_by_permute, split_by_chunks],
    "4.4": [merge_by_concatenation, merge_by_flatten, merge_contiguous],
    "4.5": [row_slice_by_view, lambda weight, index, num_heads: weight.chunk(num_heads)[index]],
}
WRONG = {
    "4.1": [
        ([(2, 7, 6, 8), SHAPES[1], SHAPES[2]], "transpose"),
        ([(2, 6, 7, 48), SHAPES[1], SHAPES[2]], "D = H / A"),
        ([(2, 8, 7, 6), SHAPES[1], SHAPES[2]], "exchange"),
        ([SHAPES[0], (2, 7, 7), SHAPES[2]], "its own matrix"),
        ([SHAPES[0], (2, 6, 7, 8), SHAPES[2]], "summed over"),
        ([*SHAPES[:2], (2, 7, 8)], "one head's context"),
        ([*SHAPES[:2], (2, 48)], "shape of the input"),
        ([1, 2, 3], "query_shape should be a shape"),
        ([SHAPES[0]], "three shapes"),
        (["a", "b", "c"], "should be a shape"),
    ],
    "4.2": [
        (4 * 768 * 768, "biases"),
        (3 * 768 * 769, "output projection"),
        (3 * 768 * 768, "biases and the output projection"),
        (12 * 4 * 768 * 769, "do not multiply"),
        (12 * 3 * 768 * 769 + 768 * 769, "H / A numbers"),
        (3 * (768 * 64 + 64), "one head"),
        (1000, "Four linear maps"),
        ("many", "one number"),
        (torch.zeros(3), "one number"),
    ],
    "4.3": [
        (lambda x, num_heads: x.view(x.size(0), x.size(1), num_heads, -1), "transpose(1, 2)"),
        (lambda x, num_heads: x.view(x.size(0), num_heads, x.size(1), -1), "mixed"),
        (lambda x, num_heads: x.view(*x.shape[:2], -1, num_heads).transpose(1, 2), "exchanged"),
        (lambda x, num_heads: x.view(*x.shape[:2], -1, num_heads).permute(0, 3, 1, 2), "neighbours"),
        (lambda x, num_heads: x.view(-1, 3, 5, 4).transpose(1, 2), "other sizes"),
        (lambda x, num_heads: x, "shape (2, 5, 3, 4)"),
        (lambda x, num_heads: x.tolist(), "torch tensor"),
        (lambda x, num_heads: torch.zeros(2, 5, 3, 4), "Head i should hold"),
    ],
    "4.4": [
        (lambda x: x.transpose(1, 2), "join the last two"),
        (lambda x: x.reshape(x.size(0), x.size(2), -1), "mixed"),
        (lambda x: x.flatten(2), "move the tokens"),
        (lambda x: x.permute(0, 2, 3, 1).flatten(2), "alternate"),
        (lambda x: x.transpose(1, 2).view(x.size(0), x.size(2), -1), "use reshape"),
        (lambda x: x.transpose(1, 2).flatten(2).flip(2), "Each token should hold"),
    ],
    "4.5": [
        (lambda weight, index, num_heads: weight.chunk(num_heads, dim=1)[index], "columns"),
        (lambda weight, index, num_heads: weight[index::num_heads], "neighbours"),
        (lambda weight, index, num_heads: weight[index], "one row"),
        (lambda weight, index, num_heads: weight[index * num_heads : (index + 1) * num_heads], "A rows"),
        (
            lambda weight, index, num_heads: weight[4 * index : 4 * index + 4, 4 * index : 4 * index + 4],
            "slice",
        ),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[index - 1], "counted from 0"),
        (lambda weight, index, num_heads: weight.chunk(num_heads)[-1], "i·D"),
        (lambda weight, index, num_heads: weight[4:8], "other sizes"),
    ],
}
