"""Answers to the exercises of notebook 05 that its checks do not declare."""

import math
from types import FunctionType

import torch
from torch.nn import functional as F

from utils.encoder_layer import TransformerEncoderLayer
from utils.support.checkpoint import load_tokenizer

vocabulary = load_tokenizer().get_vocab()
whole = [word for word in sorted(vocabulary, key=vocabulary.get) if word.isalpha() and word.isascii()]


class ByModule(torch.nn.Module):
    def forward(self, x):
        return x / 2 * (1 + torch.erf(x / math.sqrt(2)))


class Bypassing:
    """A layer whose part of this name is called by its `forward`."""

    def __init__(self, block, name):
        self.block, self.name = block, name

    def __getattr__(self, name):
        part = getattr(self.block, name)
        return part.forward if name == self.name else part


def without_math(gelu):
    return FunctionType(gelu.__code__, {"torch": torch})


RIGHT = r"""
    5.6 | (whole[:100], "A")
    5.6 | (tuple(whole[:2000]), "(a)")
    5.1 | stream + sublayer(stream) => torch.add(sublayer(stream), stream)
    5.2 | lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x)
    5.2 | lambda x: right(x).numpy()
    5.2 | ByModule()
    5.2 | lambda x: x * torch.special.ndtr(x)
    5.3 | lambda self, x: torch.stack([right(self, states) for states in x.unbind(1)], dim=1)
    5.4 | (3, [5, 4, 3, 2, 1, 0])
    5.4 | ([False, False, False, True, False, False], "all")
    5.5 | hidden_states + self.dropout(transformed) => self.dropout(transformed) + hidden_states
"""
WRONG = r"""
    5.6 | 3 | two things
    5.6 | (whole[3000:3200], "a") | 100.0% are read back
    5.6 | (whole[:50], "a") | 100 to 5,000
    5.6 | ([*whole[:100], "the"], "a") | twice
    5.6 | ([*whole[:100], "unaffable"], "a") | one token
    5.6 | (whole[:100], "b") | falls with the most frequent
    5.6 | (whole[:100], "c") | all are read back
    5.1 | sublayer(stream) => sublayer(stream).detach() | Remove any detach
    5.2 | lambda x: F.gelu(x.view(2, 3, 5)) if x.numel() == 30 else x | torch's own GELU
    5.2 | lambda x: right(x) if x.numel() == 30 else x | but not for the shape (3,)
    5.2 | lambda x: torch.stack([right(row) for row in x]) | a single number
    5.2 | without_math(right) | Write `import math` above your function
    5.2 | math.sqrt => torch.sqrt | The root of a number is number ** 0.5
    5.2 | torch.erf => math.erf | and torch.erf a whole tensor
    5.3 | self.intermediate(hidden_states) => hidden_states @ self.intermediate.weight.T + self.intermediate.bias | self.intermediate is never called
    5.3 | lambda self, x: right(self, x.mean(1, keepdim=True)) | shape
    5.4 | ([3], "012345") | list of numbers
    5.4 | ([3.7], right[1]) | whole numbers
    5.4 | ([3, 3], right[1]) | appears twice
    5.4 | [3] | two lists
    5.5 | (hidden_states, attention_mask, True) => (hidden_states, None, True) | “layer 0, padded batch” differs
    5.5 | self.dropout(attended) => attended ;; self.dropout(transformed) => transformed | “in training, with dropout” differs
    5.5 | lambda block, x, mask: block(x, mask, True) | calls the finished layer
    5.5 | lambda *given: (right(*given)[0] + 1, right(*given)[1]) | “layer 0, one sentence” differs
    5.5 | self.attention_norm(hidden_states + => self.attention_norm(hidden_states.detach() + | gradients do not flow back
    5.5 | self.dropout(attended) => F.dropout(attended, 0.1) ;; self.dropout(transformed) => F.dropout(transformed, 0.1) | Your function drops values in evaluation
    5.5 | transformed = => self.dropout(attended); transformed = | self.dropout runs 3 times
    5.5 | self.dropout(attended) => F.dropout(attended, self.dropout.p, self.training) ;; self.dropout(transformed) => F.dropout(transformed, self.dropout.p, self.training) | self.dropout is never called
    5.5 | lambda block, *given: right(Bypassing(block, "attention"), *given) | self.attention is never called
    5.5 | lambda block, *given: right(Bypassing(block, "feed_forward"), *given) | self.feed_forward is never called
    5.5 | lambda *given: right(*given)[0] | Return two things
    5.5 | lambda *given: (right(*given)[0], None) | weights are None
    5.5 | lambda *given: right(*given)[::-1] | The two are swapped: the new
    5.5 | lambda *given: (right(*given)[0],) * 2 | returned second
"""
