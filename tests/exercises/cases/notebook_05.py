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


def in_place(stream, sublayer, norm):
    stream += sublayer(stream)
    return norm(stream)


def forward(self, hidden_states, attention_mask=None):
    change, weights = self.attention(hidden_states, attention_mask, True)
    hidden_states = self.attention_norm(hidden_states + self.dropout(change))
    return self.feed_forward_norm(hidden_states + self.dropout(self.feed_forward(hidden_states))), weights


def with_weights(part):
    """A layer that gives the right weights beside what the part makes of the states."""
    return lambda layer, states, mask=None: (part(layer, states, mask), layer.attention(states, mask, True)[1])


def by_residual_step(self, hidden_states, attention_mask=None):
    def step(stream, sublayer, norm):
        return norm(stream + self.dropout(sublayer(stream)))

    change, weights = self.attention(hidden_states, attention_mask, True)
    hidden_states = step(hidden_states, lambda _: change, self.attention_norm)
    return step(hidden_states, self.feed_forward, self.feed_forward_norm), weights


def in_two_lines(self, hidden_states):
    wide = self.activation(self.intermediate(hidden_states))
    return self.output(wide)


def by_products(self, hidden_states):
    wide = hidden_states @ self.intermediate.weight.T + self.intermediate.bias
    return F.linear(self.activation(wide), self.output.weight, self.output.bias)


def token_by_token(self, hidden_states):
    return torch.stack([in_two_lines(self, states) for states in hidden_states.unbind(1)], dim=1)


def layer(layer, hidden_states, attention_mask):
    attended, _ = layer.attention(hidden_states, attention_mask)
    hidden_states = layer.attention_norm(hidden_states + layer.dropout(attended))
    return layer.feed_forward_norm(hidden_states + layer.dropout(layer.feed_forward(hidden_states)))


class Bypassing:
    """A layer whose part of this name is called by its `forward`."""

    def __init__(self, block, name):
        self.block, self.name = block, name

    def __getattr__(self, name):
        part = getattr(self.block, name)
        return part.forward if name == self.name else part


def layer_by_half(layer, states, mask):
    def half(part, norm, states):
        change = F.dropout(part(states), layer.dropout.p, layer.training)
        return norm(change + states)

    states = half(lambda states: layer.attention(states, mask)[0], layer.attention_norm, states)
    return half(layer.feed_forward, layer.feed_forward_norm, states)


def a_layer(residual=(1, 1), norms=("attention_norm", "feed_forward_norm"), masked=True, dropout=True, reads="middle"):
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


def in_steps(stream, sublayer, norm):
    change = sublayer(stream)
    return norm(torch.add(change, stream))


RIGHT = {
    "5.1": [in_steps, lambda x, f, ln: ln(x + f(x)), lambda stream, sublayer, norm: norm(sublayer(stream) + stream)],
    "5.2": [
        lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x),
        lambda x: 0.5 * x * (1 + torch.erf(x * 2**-0.5)),
        lambda x: gelu(x).numpy(),
        ByModule(),
        lambda x: x * torch.special.ndtr(x),
    ],
    "5.3": [in_two_lines, token_by_token],
    "5.4": [
        ([3], range(6)),
        ((3,), {0, 1, 2, 3, 4, 5}),
        [torch.tensor([3]), torch.arange(6)],
        (3, [5, 4, 3, 2, 1, 0]),
        (np.array([3]), np.arange(6)),
        ([False, False, False, True, False, False], torch.ones(6, dtype=torch.bool)),
        ([3], "all"),
    ],
    "5.5": [forward, by_residual_step, with_weights(layer), with_weights(a_layer())],
}
WRONG = {
    "5.1": [
        (lambda x, f, ln: x + f(ln(x)), "LayerNorm stands before the sublayer: normalise the sum"),
        (lambda x, f, ln: ln(f(x)), "residual connection is missing"),
        (lambda x, f, ln: x + ln(f(x)), "has to see the sum"),
        (lambda x, f, ln: x + f(x), "LayerNorm is missing"),
        (lambda x, f, ln: ln(x + f(ln(x))), "reads the stream as it is"),
        (lambda x, f, ln: ln(ln(x) + f(x)), "before the sum"),
        (lambda x, f, ln: ln(ln(x + f(x))), "twice"),
        (in_place, "writes into the stream"),
        (lambda x, f, ln: F.layer_norm(x + f(x), x.shape[-1:]), "call the `norm` that is given"),
        (lambda x, f, ln: ln(2 * x + f(x)), "First the sum"),
        (lambda x, f, ln: ln(x + f(x)).detach(), "no detach"),
        (torch.no_grad()(lambda x, f, ln: ln(x + f(x))), "no torch.no_grad()"),
        (lambda x, f, ln: ln(x + f(x).detach()), "no detach"),
        (lambda x, f, ln: ln(x.detach() + f(x)), "no detach"),
        (lambda x, f, ln: ln(x + f(x)).double(), "the next layer would refuse it"),
    ],
    "5.2": [
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
    "5.3": [
        (lambda self, x: self.output(self.intermediate(x)), "The activation is missing"),
        (lambda self, x: self.activation(self.output(self.intermediate(x))), "stands at the end"),
        (lambda self, x: self.activation(in_two_lines(self, x)), "a second activation"),
        (lambda self, x: self.output(self.intermediate(self.activation(x))), "stands at the beginning"),
        (lambda self, x: x + in_two_lines(self, x), "the layer adds it"),
        (lambda self, x: self.output(F.gelu(self.intermediate(x))), "so call self.activation"),
        (lambda self, x: self.output(self.intermediate(x).relu()), "Widen with self.intermediate"),
        (lambda self, x: self.activation(self.intermediate(x)), "map them back to H"),
        (lambda self, x: self.intermediate(self.activation(self.output(x))), "The sizes do not fit"),
        (lambda self, x: in_two_lines(self, x).detach(), "no detach"),
        (lambda self, x: in_two_lines(self, x.mean(1, keepdim=True)), "shape"),
        (lambda self, x: in_two_lines(self, x.mul_(1.5)), "writes into the hidden states"),
    ],
    "5.4": [
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
    "5.5": [
        (with_weights(pre_ln), "This is pre-LN"),
        (with_weights(a_layer(residual=(0, 1))), "around attention is missing"),
        (with_weights(a_layer(residual=(1, 0))), "around the feed-forward network is missing"),
        (with_weights(a_layer(residual=(0, 0))), "Both residual connections"),
        (with_weights(a_layer(norms=(None, None))), "Both LayerNorms are missing"),
        (with_weights(a_layer(norms=(None, "feed_forward_norm"))), "after attention is missing"),
        (with_weights(a_layer(norms=("attention_norm", None))), "at the end is missing"),
        (with_weights(a_layer(norms=("feed_forward_norm", "attention_norm"))), "changed places"),
        (with_weights(a_layer(norms=("attention_norm", "attention_norm"))), "in both places"),
        (with_weights(a_layer(reads="input")), "has to read what attention made"),
        (with_weights(a_layer(reads="adds to the input")), "not to the layer's input"),
        (with_weights(a_layer(masked=False)), "“layer 0, padded batch” differs"),
        (with_weights(a_layer(dropout=False)), "“in training, with dropout” differs"),
        (with_weights(a_layer(dropout="sum")), "“in training, with dropout” differs"),
        (with_weights(lambda block, x, mask: block.attention_norm(x + block.attention(x, mask)[0])), "half alone"),
        (
            with_weights(lambda block, x, mask: block.feed_forward_norm(x + block.feed_forward(x))),
            "Attention is missing",
        ),
        (lambda block, x, mask: block(x, mask, True), "calls the finished layer"),
        (lambda block, x, mask: block.forward(x, mask, True), "calls the finished layer"),
        (with_weights(lambda block, x, mask: layer(block, x, mask)[0]), "shape"),
        (with_weights(lambda block, x, mask: layer(block, x, mask) + 1), "“layer 0, one sentence” differs"),
        (with_weights(layer_in_place), "writes into the hidden states"),
        (lambda block, x, mask: type(block).forward(block, x, mask, True), "calls the finished layer"),
        (lambda block, x, mask: TransformerEncoderLayer.forward(block, x, mask, True), "calls the finished layer"),
        (with_weights(lambda block, x, mask: layer(block, x, mask).detach()), "gradients do not get back"),
        (with_weights(layer_without_gradient), "gradients do not get back"),
        (with_weights(layer_with_detached_residual), "gradients do not get back"),
        (with_weights(layer_that_always_drops), "in evaluation mode too"),
        (with_weights(layer_with_the_pair), "returns a pair"),
        (with_weights(layer_dropping_the_pair), "returns a pair"),
        (with_weights(layer_by_half), "self.dropout is never called"),
        (lambda block, *given: forward(Bypassing(block, "attention"), *given), "self.attention is never called"),
        (lambda block, *given: forward(Bypassing(block, "feed_forward"), *given), "self.feed_forward is never called"),
        (layer, "Return two things"),
        (lambda block, x, mask: (layer(block, x, mask), None), "weights are None"),
        (lambda *given: forward(*given)[::-1], "exchanged"),
        (lambda *given: (layer(*given), layer(*given)), "returned second"),
    ],
}
