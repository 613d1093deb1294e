"""Answers readers give to the exercises of notebook 03: right ones, and wrong ones with a word of the hint."""

import numpy as np
import torch
from torch.nn import functional as F


def double_sum(scores):
    rows = scores.reshape(-1, scores.size(-1)).double()
    rows = (rows - rows.max(dim=1, keepdim=True).values).exp()
    return (rows / rows.sum(1)[:, None]).reshape(scores.shape).float()


def masked(query, key, attention_mask, padding=True, causal=True, scale=True, dim=-1, hidden=-torch.inf):
    scores = query @ key.transpose(1, 2)
    scores = scores / query.size(-1) ** 0.5 if scale else scores
    if padding:
        scores = scores.masked_fill(attention_mask[:, None, :] == 0, hidden)
    if causal:
        later = torch.ones_like(scores[0]).triu(1) == 1
        scores = scores.masked_fill(later, hidden)
    return scores.softmax(dim)


def attend(**options):
    def causal_attention(query, key, value, attention_mask):
        weights = masked(query, key, attention_mask, **options)
        return weights @ value, weights

    return causal_attention


def with_a_loop(query, key, value, attention_mask):
    weights = torch.zeros(query.size(0), query.size(1), key.size(1))
    for b in range(query.size(0)):
        for i in range(query.size(1)):
            seen = [j for j in range(i + 1) if attention_mask[b, j] == 1]
            weights[b, i, seen] = (key[b, seen] @ query[b, i] / query.size(-1) ** 0.5).softmax(0)
    return [torch.bmm(weights, value), weights]


def with_added_bias(query, key, value, attention_mask):
    S = query.size(1)
    bias = torch.full((S, S), -1e9).triu(1) + (1.0 - attention_mask[:, None, :]) * -1e9
    weights = F.softmax(torch.einsum("bid,bjd->bij", query, key) / query.shape[-1] ** 0.5 + bias, dim=2)
    return weights @ value, weights


def padded_queries_zero(query, key, value, attention_mask):
    context, weights = attend()(query, key, value, attention_mask)
    return context * attention_mask[..., None], weights * attention_mask[..., None]


def zeroed_after(query, key, value, attention_mask):
    weights = masked(query, key, attention_mask, padding=False, causal=False)
    weights = weights * attention_mask[:, None, :] * torch.ones(query.size(1), query.size(1)).tril()
    return weights @ value, weights


def upper_triangle(query, key, value, attention_mask):
    scores = (query @ key.transpose(1, 2)) / query.size(-1) ** 0.5
    mask = (attention_mask[:, None, :] == 1) & (torch.ones(query.size(1), query.size(1)).triu() == 1)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights @ value, weights


def either_mask(query, key, value, attention_mask):
    scores = (query @ key.transpose(1, 2)) / query.size(-1) ** 0.5
    mask = (attention_mask[:, None, :] == 1) | (torch.ones(query.size(1), query.size(1)).tril() == 1)
    weights = scores.masked_fill(~mask, -torch.inf).softmax(-1)
    return weights @ value, weights


def values_forgotten(query, key, value, attention_mask):
    weights = masked(query, key, attention_mask)
    return weights @ key, weights


RIGHT = {
    "3.1": [
        ((2, 7, 5), (2, 7, 32)),
        ([2, 7, 5], [2, 7, 32]),
        [torch.Size([2, 7, 5]), torch.Size([2, 7, 32])],
        (torch.tensor([2, 7, 5]), np.array([2, 7, 32])),
    ],
    "3.2": [
        (8, 1),
        [8.0, 1.0],
        (64**0.5, np.float32(1)),
        (torch.tensor(8.0), torch.tensor(1)),
        torch.tensor([8.0, 1.0]),
    ],
    "3.3": [
        lambda scores: scores.softmax(-1),
        lambda scores: torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)),
        double_sum,
    ],
    "3.4": [attend(), attend(hidden=-1e9), with_a_loop, with_added_bias, padded_queries_zero],
}

WRONG = {
    "3.1": [
        (((2, 5, 7), (2, 7, 32)), "row for each query"),
        (((2, 7, 7), (2, 7, 32)), "keys are 5"),
        (((2, 64, 64), (2, 7, 32)), "sums the 64 away"),
        (((2, 7, 5), (2, 7, 64)), "wide as a value"),
        (((2, 7, 5), (2, 5, 32)), "not for each key"),
        (((2, 7, 5), (7, 32)), "weights @ value"),
        (((2, 7, 5), 32), "a shape"),
        ((2, 7, 5), "two answers"),
        (("(2, 7, 5)", "(2, 7, 32)"), "a shape"),
    ],
    "3.2": [
        ((64, 1), "variance"),
        ((1, 1), "variances add up"),
        ((8, 8), "as well"),
        ((8, 0.125), "what is left"),
        ((8, "one"), "numbers"),
        (8, "two answers"),
    ],
    "3.3": [
        (lambda scores: scores.softmax(-2), "columns"),
        (lambda scores: scores.exp(), "exponentials"),
        (lambda scores: scores.exp() / scores.exp().sum(), "each row should"),
        (lambda scores: scores.exp() / scores.exp().sum(-1), "keepdim"),
        (lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True), "1,000 gives nan"),
        (lambda scores: scores / scores.sum(-1, keepdim=True), "rows are not right"),
        (lambda scores: scores.clamp(max=10).softmax(-1), "not for scores of 1,000"),
        (lambda scores: scores.softmax(-1).tolist(), "torch tensor"),
        (lambda scores: scores.softmax(-1)[0], "shape"),
    ],
    "3.4": [
        (attend(scale=False), "not scaled"),
        (attend(padding=False, causal=False), "No mask"),
        (attend(causal=False), "later tokens"),
        (attend(padding=False), "where attention_mask is 0"),
        (upper_triangle, "lower triangle"),
        (either_mask, "both masks"),
        (zeroed_after, "after the softmax"),
        (attend(hidden=0.0), "use −inf"),
        (attend(dim=-2), "over the queries"),
        (values_forgotten, "weights @ value"),
        (
            lambda query, key, value, attention_mask: attend()(query, key, value, attention_mask)[0],
            "two tensors",
        ),
        (
            lambda query, key, value, attention_mask: attend()(query, key, value, attention_mask)[::-1],
            "returned first",
        ),
    ],
}
