"""Answers readers give to the exercises of notebook 03: right ones, and wrong ones with a word of the hint."""

import math
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from utils.attention import AttentionHead, compute_attention_weights


def double_sum(scores):
    rows = scores.reshape(-1, scores.size(-1)).double()
    rows = (rows - rows.max(dim=1, keepdim=True).values).exp()
    return (rows / rows.sum(1)[:, None]).reshape(scores.shape).float()


def largest_in_numpy(scores):
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def by_einsum(scores):
    exponentials = torch.exp(scores - torch.max(scores, dim=-1, keepdim=True)[0])
    return exponentials / torch.einsum("...t->...", exponentials)[..., None]


def by_hand(subtract):
    def softmax(scores):
        exponentials = (scores - subtract(scores)).exp()
        return exponentials / exponentials.sum(dim=-1, keepdim=True)

    return softmax


def by_fused_attention(scores):
    unit = torch.eye(scores.size(-1)).expand(*scores.shape[:-2], -1, -1)
    return F.scaled_dot_product_attention(scores, unit, unit, scale=1.0)


def formula(
    scale=lambda query: query.size(-1) ** -0.5,
    masked=lambda scores, mask: scores.masked_fill(mask == 0, -torch.inf),
    dim=-1,
):
    """The attention weights, a step of which the cases below get wrong."""

    def weights(query, key, attention_mask=None):
        scores = query @ key.transpose(-2, -1) * scale(query)
        return (scores if attention_mask is None else masked(scores, attention_mask)).softmax(dim)

    return weights


def by_einsum_over_d(query, key, attention_mask=None):
    scores = torch.einsum("...sd,...td->...st", query, key) / query.shape[-1] ** 0.5
    if attention_mask is not None:
        scores = scores.masked_fill(attention_mask.bool().logical_not(), -torch.inf)
    exponentials = (scores - scores.amax(-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(-1, keepdim=True)


def maximum_before_the_mask(query, key, attention_mask=None):
    scores = query @ key.mT / query.size(-1) ** 0.5
    weights = (scores - scores.amax(-1, keepdim=True)).exp()
    weights = weights if attention_mask is None else weights * (attention_mask != 0)
    return weights / weights.sum(-1, keepdim=True)


def weights_set_to_0(query, key, attention_mask=None):
    weights = formula()(query, key)
    return weights if attention_mask is None else weights * attention_mask


def renormalised(query, key, attention_mask=None):
    weights = weights_set_to_0(query, key, attention_mask)
    return weights / weights.sum(-1, keepdim=True)


def mask_not_asked_for(query, key, attention_mask=None):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    return scores.masked_fill(attention_mask == 0, -torch.inf).softmax(-1)


def if_mask(query, key, attention_mask=None):
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    if attention_mask:
        scores = scores.masked_fill(attention_mask == 0, -torch.inf)
    return scores.softmax(-1)


class ByEinsum(nn.Module):
    """A right head, written otherwise."""

    def __init__(self, hidden_size, head_size):
        super().__init__()
        self.value, self.key, self.query = (nn.Linear(hidden_size, head_size) for _ in range(3))
        self.scale = head_size**-0.5

    def forward(self, x, mask=None):
        bias = 0 if mask is None else (1 - mask[:, None].float()) * -1e9
        scores = torch.einsum("bsd,btd->bst", self.query(x), self.key(x)) * self.scale
        weights = torch.softmax(scores + bias, -1)
        return [torch.bmm(weights, self.value(x)), weights]


class Head(nn.Module):
    """A right head, a part of which the cases below get wrong."""

    def __init__(self, hidden_size, head_size):
        super().__init__()
        self.query = nn.Linear(hidden_size, head_size)
        self.key = nn.Linear(hidden_size, head_size)
        self.value = nn.Linear(hidden_size, head_size)

    def weights(self, query, key, mask):
        scores = query @ key.transpose(1, 2) * self.scale(query)
        return (scores if mask is None else self.masked(scores, mask)).softmax(self.dim)

    def scale(self, query):
        return query.size(-1) ** -0.5

    def masked(self, scores, mask):
        return scores.masked_fill(mask[:, None, :] == 0, -torch.inf)

    def forward(self, hidden_states, attention_mask=None):
        weights = self.weights(self.query(hidden_states), self.key(hidden_states), attention_mask)
        return weights @ self.average(hidden_states), weights

    def average(self, hidden_states):
        return self.value(hidden_states)

    dim = -1


def wrong_head(**parts):
    return type("WrongHead", (Head,), parts)


def hide_with(number):
    return lambda self, scores, mask: scores.masked_fill(mask[:, None] == 0, number)


def returning(change):
    """A head that changes what it returns, or what it is given."""

    def forward(self, hidden_states, attention_mask=None):
        return change(hidden_states, *Head.forward(self, hidden_states, attention_mask))

    return wrong_head(forward=forward)


class SizesFixed(Head):
    def __init__(self, hidden_size, head_size):
        super().__init__(384, 32)


class NoBias(Head):
    def __init__(self, hidden_size, head_size):
        super().__init__(hidden_size, head_size)
        self.query = nn.Linear(hidden_size, head_size, bias=False)


class OtherNames(nn.Module):
    def __init__(self, hidden_size, head_size):
        super().__init__()
        self.q = nn.Linear(hidden_size, head_size)


class Exchanged(Head):
    def __init__(self, hidden_size, head_size):
        super().__init__(head_size, hidden_size)


class Empty(nn.Module):
    def __init__(self, hidden_size, head_size):
        super().__init__()

    def forward(self, hidden_states, attention_mask=None):
        return hidden_states, hidden_states


class NoSuper(nn.Module):
    def __init__(self, hidden_size, head_size):
        self.query = nn.Linear(hidden_size, head_size)


class MaskNotAskedFor(Head):
    def weights(self, query, key, mask):
        return super().weights(query, key, mask[:, None, :])


class SwapsResults(Head):
    def forward(self, hidden_states, attention_mask=None):
        return super().forward(hidden_states, attention_mask)[::-1]


class OnlyContext(Head):
    def forward(self, hidden_states, attention_mask=None):
        return super().forward(hidden_states, attention_mask)[0]


class IgnoresTheMask(Head):
    def forward(self, hidden_states, attention_mask=None):
        return super().forward(hidden_states)


RIGHT = {
    "3.4": [
        lambda scores: torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True)),
        double_sum,
        largest_in_numpy,
        by_einsum,
        lambda scores: largest_in_numpy(scores.numpy()),
        by_hand(lambda scores: scores.amax(-1, keepdim=True)),
    ],
    "3.1": [
        ((2, 7, 5), (2, 7, 32)),
        ([2, 7, 5], [2, 7, 32]),
        [torch.Size([2, 7, 5]), torch.Size([2, 7, 32])],
        (torch.tensor([2, 7, 5]), np.array([2, 7, 32])),
        ("(2, 7, 5)", "torch.Size([2, 7, 32])"),
    ],
    "3.2": [
        formula(),
        formula(masked=lambda scores, mask: scores.masked_fill(mask == 0, -1e9)),
        formula(masked=lambda scores, mask: scores.masked_fill(~mask.bool(), torch.finfo(scores.dtype).min)),
        formula(masked=lambda scores, mask: torch.where(mask > 0, scores, -torch.inf)),
        formula(masked=lambda scores, mask: scores + mask.to(scores.dtype).log()),
        lambda query, key, mask=None: formula()(query * query.size(-1) ** -0.25, key * query.size(-1) ** 0.25, mask),
        by_einsum_over_d,
    ],
    "3.3": [
        Head,
        ByEinsum,
        wrong_head(masked=hide_with(torch.finfo(torch.float32).min)),
        wrong_head(masked=lambda self, scores, mask: scores + (1.0 - mask[:, None]) * -1e4),
        wrong_head(masked=lambda self, scores, mask: torch.where(mask[:, None] > 0, scores, -torch.inf)),
    ],
}

WRONG = {
    "3.4": [
        (lambda scores: scores.exp() / scores.exp().sum(-1, keepdim=True), "1,000 give nan"),
        (lambda scores: scores.softmax(-1), "torch's softmax"),
        (partial(F.softmax, dim=-1), "torch's softmax"),
        (lambda scores: torch.ops.aten._softmax(scores, -1, False), "torch's softmax"),
        (lambda scores: nn.Softmax(dim=-1)(scores), "torch's softmax"),
        (lambda scores: scores.log_softmax(-1).exp(), "torch's softmax"),
        (by_hand(lambda scores: scores.max()), "own largest"),
        (by_hand(lambda scores: scores.amax(-1, keepdim=True).clamp(min=0)), "−1,000 give nan"),
        (
            by_hand(lambda scores: scores.amax(-1, keepdim=True) * (scores.amax(-1, keepdim=True).abs() > 100)),
            "scores of 88",
        ),
        (by_hand(lambda scores: scores.mean(-1, keepdim=True)), "in one row give nan"),
        (lambda s: by_hand(lambda s: s.mean(-1, keepdim=True))(s.double()).float(), "in one row give nan"),
        (by_hand(lambda scores: scores.amin(-1, keepdim=True)), "in one row give nan"),
        (by_hand(lambda scores: scores.median(-1, keepdim=True).values), "in one row give nan"),
        (by_hand(lambda scores: scores[..., :1]), "in one row give nan"),
        (by_hand(lambda scores: scores[..., -1:]), "in one row give nan"),
        (
            by_hand(lambda scores: scores.isinf().any(-1, keepdim=True) * scores + scores.amax(-1, keepdim=True)),
            "masked scores",
        ),
        (by_fused_attention, "torch's softmax"),
        (lambda scores: scores / scores.sum(-1, keepdim=True), "rows are not right"),
        (lambda scores: by_hand(torch.zeros_like)(scores.clamp(max=10)), "not for scores of 1,000"),
        (lambda scores: double_sum(scores)[0], "shape"),
        (by_hand(lambda scores: scores.max(dim=-1, keepdim=True)), "a pair, (values, indices). Add .values"),
        (lambda scores: scores.max(dim=-1), "the pair (values, indices). Add .values"),
        (lambda scores: math.exp(scores) / scores.exp().sum(-1, keepdim=True), "and torch.exp a whole tensor"),
    ],
    "3.1": [
        (((2, 5, 7), (2, 7, 32)), "row for each query"),
        (((2, 7, 7), (2, 7, 32)), "There are 5 keys, not 7"),
        (((2, 64, 64), (2, 7, 32)), "sums the 64 away"),
        (((2, 7, 5), (2, 7, 64)), "wide as a value"),
        (((2, 7, 5), (2, 5, 32)), "not for each key"),
        (((2, 7, 5), (7, 32)), "weights @ value"),
        (((2, 7, 5), 32), "a shape"),
        ((2, 7, 5), "two answers"),
        (("(2, 7, 5)", "32"), "a shape"),
    ],
    "3.2": [
        (formula(scale=lambda query: 1), "not scaled"),
        (formula(scale=lambda query: 384**-0.5), "divided by √H"),
        (formula(scale=lambda query: 1 / query.size(-1)), "The scores are divided by D"),
        (formula(scale=lambda query: query.size(-1) ** 0.5), "multiplied by √D"),
        (formula(scale=lambda query: 32**-0.5), "but not for D = 5 and 6 keys"),
        (formula(scale=lambda query: 0.1), "The weights are the softmax, over"),
        (formula(dim=-2), "over the queries"),
        (formula(dim=1), "over the queries"),
        (formula(dim=0), "over the texts of the batch"),
        (formula(dim=2), "but not for one text, without a batch"),
        (lambda query, key, mask=None: formula()(key, query, mask), "Query and key are swapped. A"),
        (lambda query, key, mask=None: query @ key.mT / query.size(-1) ** 0.5, "These are the scores. Softmax over"),
        (lambda query, key, mask=None: (query @ key).softmax(-1), "the last two dimensions"),
        (lambda query, key, mask=None: (query @ key.permute(2, 1, 0)).softmax(-1), "the last two dimensions"),
        (formula(masked=lambda scores, mask: scores), "The mask has no effect on"),
        (formula(masked=lambda scores, mask: scores * mask), "e⁰ = 1"),
        (formula(masked=lambda scores, mask: scores + mask), "hides none"),
        (formula(masked=lambda scores, mask: scores + (1 - mask) * -torch.inf), "With a mask, some weights are"),
        (
            formula(masked=lambda scores, mask: scores.masked_fill(mask == 1, -torch.inf)),
            "Your function hides the visible keys",
        ),
        (formula(masked=lambda scores, mask: scores.masked_fill(mask == 0, -10.0)), "−∞"),
        (formula(masked=lambda scores, mask: scores.masked_fill(mask == 0, -20.0)), "with −inf"),
        (formula(masked=lambda scores, mask: scores.masked_fill(mask == 0, -100.0)), "with −inf"),
        (
            formula(masked=lambda scores, mask: scores.masked_fill(mask[:, None] == 0, -torch.inf)),
            "which fits the scores as it is",
        ),
        (formula(masked=lambda scores, mask: scores.masked_fill(mask != 1, -torch.inf)), "Only a mask of 1 counts"),
        (maximum_before_the_mask, "before you take the maximum"),
        (weights_set_to_0, "after the softmax"),
        (renormalised, "Set masked scores to −inf before the softmax"),
        (mask_not_asked_for, "attention_mask is None in this call, because there is no padding"),
        (if_mask, "Compare an optional argument with None, `is not None`"),
        (formula(scale=lambda query: 1 / torch.sqrt(query.size(-1))), "The root of a number is number ** 0.5"),
        (formula(masked=lambda scores, mask: scores.masked_fill(~mask, -torch.inf)), "Compare it first: mask == 0"),
        (compute_attention_weights, "the series' own compute_attention_weights"),
    ],
    "3.3": [
        (wrong_head(scale=lambda self, query: 1), "not scaled"),
        (wrong_head(scale=lambda self, query: self.query.in_features**-0.5), "divided by √H"),
        (wrong_head(scale=lambda self, query: 1 / query.size(-1)), "The scores are divided by D"),
        (wrong_head(scale=lambda self, query: query.size(-1) ** 0.5), "multiplied by √D"),
        (wrong_head(scale=lambda self, query: 32**-0.5), "but not for H = 18 and D = 6"),
        (wrong_head(dim=-2), "over the queries"),
        (wrong_head(dim=0), "over the texts of the batch"),
        (
            wrong_head(weights=lambda self, query, key, mask: Head.weights(self, key, query, mask)),
            "Query and key are swapped. A",
        ),
        (
            wrong_head(weights=lambda self, query, key, mask: query @ key.mT * self.scale(query)),
            "Softmax over the keys is missing",
        ),
        (wrong_head(scale=lambda self, query: 0.1), "The weights are the softmax over"),
        (wrong_head(masked=hide_with(-8.0)), "with −inf"),
        (wrong_head(masked=hide_with(-30.0)), "with −inf"),
        (wrong_head(masked=hide_with(-100.0)), "with −inf"),
        (wrong_head(masked=lambda self, scores, mask: scores + (mask[:, None] - 1) * 15.0), "with −inf"),
        (SizesFixed, "but not for H = 18 and D = 6"),
        (returning(lambda x, context, weights: (context.detach(), weights)), "Remove any detach"),
        (returning(lambda x, context, weights: (context.double(), weights)), "should have the dtype"),
        (returning(lambda x, context, weights: (context, weights, x.add_(1))[:2]), "changes its input in place"),
        (AttentionHead, "the series' own AttentionHead"),
        (type("MyHead", (AttentionHead,), {}), "inherits from it"),
        (wrong_head(average=lambda self, x: self.key(x)), "Right so far: weights. “context” differs"),
        (IgnoresTheMask, "Right so far: weights, context. “padded weights” differs"),
        (wrong_head(masked=lambda self, scores, mask: scores * mask[:, None]), "“padded weights” differs"),
        (wrong_head(masked=lambda self, scores, mask: scores.masked_fill(mask[..., None] == 0, -1e9)), "hides keys"),
        (
            wrong_head(
                masked=lambda self, scores, mask: scores.masked_fill((mask[:, None] * mask[..., None]) == 0, -1e9)
            ),
            "Every query keeps its row",
        ),
        (wrong_head(masked=lambda self, scores, mask: scores + mask[:, None]), "“padded weights” differs"),
        (NoBias, "no bias"),
        (OtherNames, "self.query should be"),
        (Exchanged, "hidden_size to head_size"),
        (Empty, "no parameters"),
        (NoSuper, "super().__init__()"),
        (wrong_head(masked=lambda self, scores, mask: scores.masked_fill(mask == 0, -torch.inf)), "(B, 1, S)"),
        (SwapsResults, "returned second"),
        (MaskNotAskedFor, "mask is None in this call, because there is no padding"),
        (wrong_head(scale=lambda self, query: self.head_size**-0.5), "has the parts query, key, value"),
        (OnlyContext, "returns two tensors"),
        (Head(8, 4), "the class itself"),
    ],
}
