"""Answers to the exercises of notebook 05 that its checks do not declare."""

import math
from types import FunctionType

import torch

from utils.encoder_layer import TransformerEncoderLayer


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


RIGHT = {
    "5.1": "stream + sublayer(stream) => torch.add(sublayer(stream), stream)",
    "5.2": """
        lambda x: x * torch.distributions.Normal(0.0, 1.0).cdf(x)
        lambda x: right(x).numpy()
        ByModule()
        lambda x: x * torch.special.ndtr(x)
    """,
    "5.3": "lambda self, x: torch.stack([right(self, states) for states in x.unbind(1)], dim=1)",
    "5.4": """
        (3, [5, 4, 3, 2, 1, 0])
        ([False, False, False, True, False, False], "all")
    """,
    "5.5": "hidden_states + self.dropout(transformed) => self.dropout(transformed) + hidden_states",
}
WRONG = {
    "5.1": """
        sublayer(stream) => sublayer(stream).detach() | Remove any detach
        norm(stream => norm(stream.detach() | Remove any detach
    """,
    "5.2": """
        lambda x: F.gelu(x.view(2, 3, 5)) if x.numel() == 30 else x | torch's own GELU
        lambda x: right(x) if x.numel() == 30 else x | but not for the shape (3,)
        F.gelu | torch's own GELU
        lambda x: torch.stack([right(row) for row in x]) | a single number
        without_math(right) | Write `import math` above your function
        math.sqrt => torch.sqrt | The root of a number is number ** 0.5
        torch.erf => math.erf | and torch.erf a whole tensor
    """,
    "5.3": """
        self.intermediate(hidden_states) => hidden_states @ self.intermediate.weight.T + self.intermediate.bias | self.intermediate is never called
        lambda self, x: right(self, x.mean(1, keepdim=True)) | shape
    """,
    "5.4": """
        ([3], "012345") | list of numbers
        ([3.7], right[1]) | whole numbers
        ([3, 3], right[1]) | appears twice
        [3] | two lists
    """,
    "5.5": """
        (hidden_states, attention_mask, True) => (hidden_states, None, True) | “layer 0, padded batch” differs
        self.dropout(attended) => attended ;; self.dropout(transformed) => transformed | “in training, with dropout” differs
        hidden_states + self.dropout(transformed) => self.dropout(hidden_states + transformed) | “in training, with dropout” differs
        lambda block, x, mask: block(x, mask, True) | calls the finished layer
        lambda *given: TransformerEncoderLayer.forward(*given, True) | calls the finished layer
        lambda *given: (right(*given)[0] + 1, right(*given)[1]) | “layer 0, one sentence” differs
        self.attention_norm(hidden_states + => self.attention_norm(hidden_states.detach() + | gradients do not flow back
        self.dropout(attended) => F.dropout(attended, 0.1) ;; self.dropout(transformed) => F.dropout(transformed, 0.1) | Your function drops values in evaluation
        self.feed_forward(hidden_states) => self.feed_forward(self.attention_norm(hidden_states)) ;; self.attention_norm(hidden_states + self.dropout(attended)) => hidden_states + self.dropout(attended) | differs
        transformed = => self.dropout(attended); transformed = | self.dropout runs 3 times
        self.dropout(attended) => F.dropout(attended, self.dropout.p, self.training) ;; self.dropout(transformed) => F.dropout(transformed, self.dropout.p, self.training) | self.dropout is never called
        lambda block, *given: right(Bypassing(block, "attention"), *given) | self.attention is never called
        lambda block, *given: right(Bypassing(block, "feed_forward"), *given) | self.feed_forward is never called
        lambda *given: right(*given)[0] | Return two things
        lambda *given: (right(*given)[0], None) | weights are None
        lambda *given: right(*given)[::-1] | The two are swapped: the new
        lambda *given: (right(*given)[0],) * 2 | returned second
    """,
}
