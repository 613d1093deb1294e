"""Answers readers give to the exercises of notebook 05: right ones, and wrong ones with a word of the hint."""

import math
from types import FunctionType

import numpy as np
import torch
from torch.nn import functional as F

from exercises.notebook_05 import with_weights
from utils.encoder_layer import TransformerEncoderLayer


def gelu(x):
    return x / 2 * (1 + torch.erf(x / math.sqrt(2)))


class ByModule(torch.nn.Module):
    def forward(self, x):
        return gelu(x)


def forward(self, hidden_states, attention_mask=None):
    change, weights = self.attention(hidden_states, attention_mask, True)
    hidden_states = self.attention_norm(hidden_states + self.dropout(change))
    return self.feed_forward_norm(hidden_states + self.dropout(self.feed_forward(hidden_states))), weights


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


def computes_half_twice(self, hidden_states, attention_mask=None):
    change, weights = self.attention(hidden_states, attention_mask, True)
    network = self.feed_forward(self.attention_norm(hidden_states + self.dropout(change)))
    hidden_states = self.attention_norm(hidden_states + self.dropout(change))
    return self.feed_forward_norm(hidden_states + self.dropout(network)), weights


def unmasked(layer_given, states, mask):
    return layer(layer_given, states, torch.ones_like(mask))


def never_drops(layer, states, mask):
    states = layer.attention_norm(states + layer.attention(states, mask)[0])
    return layer.feed_forward_norm(states + layer.feed_forward(states))


def drops_the_sum(layer, states, mask):
    states = layer.attention_norm(states + layer.dropout(layer.attention(states, mask)[0]))
    return layer.feed_forward_norm(layer.dropout(states + layer.feed_forward(states)))


def layer_with_detached_residual(layer, states, mask):
    middle = layer.attention_norm(states.detach() + layer.dropout(layer.attention(states, mask)[0]))
    return layer.feed_forward_norm(middle + layer.dropout(layer.feed_forward(middle)))


def layer_that_always_drops(layer, states, mask):
    states = layer.attention_norm(states + F.dropout(layer.attention(states, mask)[0], 0.1))
    return layer.feed_forward_norm(states + F.dropout(layer.feed_forward(states), 0.1))


def in_steps(stream, sublayer, norm):
    change = sublayer(stream)
    return norm(torch.add(change, stream))


RIGHT = {
    "5.1": [in_steps, lambda x, f, ln: ln(x + f(x)), lambda stream, sublayer, norm: norm(sublayer(stream) + stream)],
    "5.2": [
        gelu,
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
    "5.5": [forward, by_residual_step, with_weights(layer)],
}
# besides the mistakes that exercises/notebook_05.py declares, and what tests/exercises/faults.py makes of right answers
WRONG = {
    "5.1": [
        (lambda x, f, ln: ln(2 * x + f(x)), "Add stream and change first, then"),
        (lambda x, f, ln: ln(x + f(x).detach()), "Remove any detach"),
        (lambda x, f, ln: ln(x.detach() + f(x)), "Remove any detach"),
    ],
    "5.2": [
        (torch.tanh, "Φ(x)"),
        (lambda x: F.gelu(x.view(2, 3, 5)) if x.numel() == 30 else x, "torch's own GELU"),
        (lambda x: gelu(x) if x.numel() == 30 else x, "but not for the shape (3,)"),
        (F.gelu, "torch's own GELU"),
        (torch.nn.GELU(), "torch's own GELU"),
        (torch.ops.aten.gelu, "torch's own GELU"),
        (lambda x: torch.stack([gelu(row) for row in x]), "a single number"),
        (FunctionType(gelu.__code__, {"torch": torch}), "Write `import math` above your function"),
        (lambda x: x / 2 * (1 + torch.erf(x / torch.sqrt(2))), "The root of a number is number ** 0.5"),
        (lambda x: x / 2 * (1 + math.erf(x / 2**0.5)), "and torch.erf a whole tensor"),
    ],
    "5.3": [
        (by_products, "self.intermediate is never called"),
        (
            lambda self, x: self.output(self.intermediate(x).relu()),
            "Apply self.intermediate, then self.activation, then self.output",
        ),
        (lambda self, x: in_two_lines(self, x.mean(1, keepdim=True)), "shape"),
    ],
    "5.4": [
        (([3], [3]), "A whole layer contains attention, in"),
        (([3], [3, 4, 5]), "no causal mask"),
        ((range(6), range(6)), "each position alone"),
        (([4], range(6)), "count from 0"),
        (([3], [0, 1, 2, 4, 5]), "Position 3 itself"),
        (([3], range(1, 7)), "end with 5"),
        (([3], "every one"), "list of numbers"),
        (([3], "012345"), "list of numbers"),
        (([3.7], range(6)), "whole numbers"),
        (([3, 3], range(6)), "appears twice"),
        (([3], range(5)), "attend to position 3"),
        (([2], range(6)), "read position 3"),
        ([3], "two lists"),
    ],
    "5.5": [
        (with_weights(unmasked), "“layer 0, padded batch” differs"),
        (with_weights(never_drops), "“in training, with dropout” differs"),
        (with_weights(drops_the_sum), "“in training, with dropout” differs"),
        (lambda block, x, mask: block(x, mask, True), "calls the finished layer"),
        (lambda block, x, mask: block.forward(x, mask, True), "calls the finished layer"),
        (lambda block, x, mask: type(block).forward(block, x, mask, True), "calls the finished layer"),
        (lambda *given: TransformerEncoderLayer.forward(*given, True), "calls the finished layer"),
        (with_weights(lambda block, x, mask: layer(block, x, mask) + 1), "“layer 0, one sentence” differs"),
        (with_weights(layer_with_detached_residual), "gradients do not flow back"),
        (with_weights(layer_that_always_drops), "Your function drops values in evaluation"),
        (computes_half_twice, "self.dropout runs 3 times"),
        (with_weights(layer_by_half), "self.dropout is never called"),
        (lambda block, *given: forward(Bypassing(block, "attention"), *given), "self.attention is never called"),
        (lambda block, *given: forward(Bypassing(block, "feed_forward"), *given), "self.feed_forward is never called"),
        (layer, "Return two things"),
        (lambda block, x, mask: (layer(block, x, mask), None), "weights are None"),
        (lambda *given: forward(*given)[::-1], "The two are swapped: the new"),
        (lambda *given: (layer(*given), layer(*given)), "returned second"),
    ],
}
