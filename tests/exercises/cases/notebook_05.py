"""Answers readers give to the exercises of notebook 05: right ones, and wrong ones with a word of the hint."""

import math

import numpy as np
import torch
from torch.nn import functional as F

from utils.encoder_layer import TransformerEncoderLayer


def gelu(x):
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))


class ByModule(torch.nn.Module):
    def forward(self, x):
        return gelu(x)


def post_only(stream, sublayer, norm, norm_first=False):
    return norm(stream + sublayer(stream))


def swapped(stream, sublayer, norm, norm_first=False):
    return post_only(stream, sublayer, norm) if norm_first else stream + sublayer(norm(stream))


def in_one_expression(x, f, ln, norm_first=False):
    return x + f(ln(x)) if norm_first else ln(x + f(x))


def by_position(x, f, ln, norm_first):
    return x + f(ln(x)) if norm_first else ln(x + f(x))


def in_place(stream, sublayer, norm, norm_first=False):
    if norm_first:
        stream += sublayer(norm(stream))
        return stream
    return norm(stream + sublayer(stream))


def layer(layer, hidden_states, attention_mask):
    attended, _ = layer.attention(hidden_states, attention_mask)
    hidden_states = layer.attention_norm(hidden_states + layer.dropout(attended))
    return layer.feed_forward_norm(hidden_states + layer.dropout(layer.feed_forward(hidden_states)))


def layer_by_half(layer, states, mask):
    def half(part, norm, states):
        change = F.dropout(part(states), layer.dropout.p, layer.training)
        return norm(change + states)

    states = half(lambda states: layer.attention(states, mask)[0], layer.attention_norm, states)
    return half(layer.feed_forward, layer.feed_forward_norm, states)


def a_layer(
    residual=(1, 1), norms=("attention_norm", "feed_forward_norm"), masked=True, dropout=True, reads="middle"
):
    """A layer that can go wrong in each of its places."""

    def forward(layer, states, mask):
        drop = layer.dropout if dropout is True else lambda change: change
        first, second = (getattr(layer, name) if name else lambda states: states for name in norms)
        attended = layer.attention(states, mask if masked else None)[0]
        middle = first(residual[0] * states + drop(attended))
        change = layer.feed_forward(states if reads == "input" else middle)
        start = states if reads == "adds to the input" else middle
        if dropout == "sum":
            return second(layer.dropout(residual[1] * start + change))
        return second(residual[1] * start + drop(change))

    return forward


def pre_ln(layer, states, mask):
    states = states + layer.attention(layer.attention_norm(states), mask)[0]
    return states + layer.feed_forward(layer.feed_forward_norm(states))


def layer_in_place(layer, states, mask):
    states += layer.attention(states, mask)[0]
    states = layer.attention_norm(states)
    return layer.feed_forward_norm(states + layer.feed_forward(states))


def layer_without_gradient(layer_given, states, mask):
    with torch.no_grad():
        return layer(layer_given, states, mask)


def layer_with_detached_residual(layer, states, mask):
    middle = layer.attention_norm(states.detach() + layer.dropout(layer.attention(states, mask)[0]))
    return layer.feed_forward_norm(middle + layer.dropout(layer.feed_forward(middle)))


def layer_that_always_drops(layer, states, mask):
    states = layer.attention_norm(states + F.dropout(layer.attention(states, mask)[0], 0.1))
    return layer.feed_forward_norm(states + F.dropout(layer.feed_forward(states), 0.1))


def layer_with_the_pair(layer, states, mask):
    states = layer.attention_norm(states + layer.attention(states, mask))
    return layer.feed_forward_norm(states + layer.feed_forward(states))


def layer_dropping_the_pair(layer, states, mask):
    states = layer.attention_norm(states + layer.dropout(layer.attention(states, mask)))
    return layer.feed_forward_norm(states + layer.dropout(layer.feed_forward(states)))


def in_steps(stream, sublayer, norm, norm_first=False):
    change = sublayer(norm(stream) if norm_first else stream)
    total = torch.add(change, stream)
    return total if norm_first else norm(total)


RIGHT = {
    "5.1": [
        lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x),
        lambda x: 0.5 * x * (1 + torch.erf(x * 2**-0.5)),
        lambda x: gelu(x).numpy(),
        ByModule(),
        lambda x: x * torch.special.ndtr(x),
    ],
    "5.2": [
        ([3], range(6)),
        ((3,), {0, 1, 2, 3, 4, 5}),
        [torch.tensor([3]), torch.arange(6)],
        (3, [5, 4, 3, 2, 1, 0]),
        (np.array([3]), np.arange(6)),
        ([False, False, False, True, False, False], torch.ones(6, dtype=torch.bool)),
        ([3], "all"),
    ],
    "5.3": [layer, layer_by_half, a_layer()],
    "5.4": [
        7_087_872,
        7_087_872.0,
        torch.tensor(7_087_872),
        np.int64(7_087_872),
        "7,087,872 parameters",
        "7 087 872",
        12 * 768**2 + 13 * 768,
    ],
    "5.5": [in_one_expression, in_steps, by_position],
}
WRONG = {
    "5.1": [
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
        (lambda x: x.mul_(F.gelu(x) / x), "writes into its input"),
        (lambda x: F.gelu(x.view(2, 3, 5)) if x.numel() == 30 else x, "torch's own GELU"),
        (lambda x: gelu(x) if x.numel() == 30 else x, "but not for the shape (3,)"),
        (F.gelu, "torch's own GELU"),
        (torch.nn.GELU(), "torch's own GELU"),
        (torch.nn.GELU, "GELU is a class"),
        (torch.ops.aten.gelu, "torch's own GELU"),
        (lambda x: gelu(x).detach(), "no detach"),
        (torch.no_grad()(lambda x: gelu(x)), "no torch.no_grad()"),
        (lambda x: gelu(x.double()), "the next layer would refuse it"),
        (lambda x: torch.stack([gelu(row) for row in x]), "a single number"),
    ],
    "5.2": [
        (([3], [3]), "has attention in it"),
        (([3], [3, 4, 5]), "no causal mask"),
        ((range(6), range(6)), "each position alone"),
        (([4], range(6)), "count from 0"),
        (([3], [0, 1, 2, 4, 5]), "Position 3 itself"),
        (([3], range(1, 7)), "end with 5"),
        (([3], "every one"), "list of numbers"),
        (([3], "012345"), "list of numbers"),
        (([3.7], range(6)), "whole numbers"),
        (([3, 3], range(6)), "stands there twice"),
        (([3], range(5)), "attend to position 3"),
        (([2], range(6)), "read position 3"),
        ([3], "two lists"),
    ],
    "5.3": [
        (pre_ln, "This is pre-LN"),
        (a_layer(residual=(0, 1)), "around attention is missing"),
        (a_layer(residual=(1, 0)), "around the feed-forward network is missing"),
        (a_layer(residual=(0, 0)), "Both residual connections"),
        (a_layer(norms=(None, None)), "Both LayerNorms are missing"),
        (a_layer(norms=(None, "feed_forward_norm")), "after attention is missing"),
        (a_layer(norms=("attention_norm", None)), "at the end is missing"),
        (a_layer(norms=("feed_forward_norm", "attention_norm")), "changed places"),
        (a_layer(norms=("attention_norm", "attention_norm")), "in both places"),
        (a_layer(reads="input"), "has to read what attention made"),
        (a_layer(reads="adds to the input"), "not to the layer's input"),
        (a_layer(masked=False), "“layer 0, padded batch” differs"),
        (a_layer(dropout=False), "“in training, with dropout” differs"),
        (a_layer(dropout="sum"), "“in training, with dropout” differs"),
        (lambda block, x, mask: block.attention_norm(x + block.attention(x, mask)[0]), "half alone"),
        (lambda block, x, mask: block.feed_forward_norm(x + block.feed_forward(x)), "Attention is missing"),
        (lambda block, x, mask: block(x, mask)[0], "calls the finished layer"),
        (lambda block, x, mask: block.forward(x, mask)[0], "calls the finished layer"),
        (lambda block, x, mask: (layer(block, x, mask), None), "hidden states alone"),
        (lambda block, x, mask: layer(block, x, mask)[0], "shape"),
        (lambda block, x, mask: layer(block, x, mask) + 1, "“layer 0, one sentence” differs"),
        (layer_in_place, "writes into the hidden states"),
        (lambda block, x, mask: type(block).forward(block, x, mask)[0], "calls the finished layer"),
        (
            lambda block, x, mask: TransformerEncoderLayer.forward(block, x, mask)[0],
            "calls the finished layer",
        ),
        (lambda block, x, mask: layer(block, x, mask).detach(), "gradients do not get back"),
        (layer_without_gradient, "gradients do not get back"),
        (layer_with_detached_residual, "gradients do not get back"),
        (layer_that_always_drops, "in evaluation mode too"),
        (layer_with_the_pair, "returns a pair"),
        (layer_dropping_the_pair, "returns a pair"),
    ],
    "5.4": [
        (7_084_800, "LayerNorms are missing"),
        (7_086_336, "two LayerNorms"),
        (12 * 768**2, "Biases and LayerNorms"),
        (12 * 4 * (768**2 + 768) + 2 * 768 * 3072 + 3072 + 768 + 4 * 768, "12 times"),
        (4 * (768**2 + 768) + 4 * 768 + 768 * 3072 + 3072, "two maps"),
        (4 * (768**2 + 768) + 4 * 768 + 2 * 768 * 12 + 12 + 768, "number of heads"),
        (4 * (768**2 + 768), "attention alone"),
        ("about 7 million", "a number"),
        (7_000_000, "Which six linear maps"),
        (1_774_464, "H = 384"),
        (12 * 7_087_872, "twelve layers"),
    ],
    "5.5": [
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
        (in_place, "writes into the stream"),
        (
            lambda x, f, ln, norm_first=False: (
                x + f(ln(x)) if norm_first else F.layer_norm(x + f(x), x.shape[-1:])
            ),
            "call the `norm` that is given",
        ),
        (
            lambda x, f, ln, norm_first=False: (
                x + f(F.layer_norm(x, x.shape[-1:])) if norm_first else ln(x + f(x))
            ),
            "In pre-LN, too, call the `norm`",
        ),
        (lambda x, f, ln, norm_first=False: x + f(ln(x)) if norm_first else ln(ln(x + f(x))), "twice"),
        (lambda x, f, ln, norm_first=False: x + f(ln(ln(x))) if norm_first else ln(x + f(x)), "twice before"),
        (lambda x, f, ln, norm_first=True: x + f(ln(x)) if norm_first else ln(x + f(x)), "the default is"),
        (lambda *given: in_one_expression(*given).detach(), "no detach"),
        (torch.no_grad()(lambda *given: in_one_expression(*given)), "no torch.no_grad()"),
        (lambda x, f, ln, first=False: in_one_expression(x, lambda y: f(y).detach(), ln, first), "no detach"),
        (lambda x, f, ln, first=False: in_one_expression(x.detach(), f, ln, first), "no detach"),
        (lambda *given: in_one_expression(*given).double(), "the next layer would refuse it"),
    ],
}
