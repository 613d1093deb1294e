"""Multiply with oneDNN where it is faster than MKL: the same numbers in less time."""

import copy
import time
from functools import cache

import torch
from torch import Tensor, nn

WORTH_A_COPY = 4096  # tokens, which take ten times as long as the copy
OPERATORS = ("_reorder_linear_weight", "_linear_pointwise")  # torch.compile uses them, too
HOOKS = ("_forward_hooks", "_forward_pre_hooks")


def with_fast_products(model: nn.Module, tokens: int) -> nn.Module:
    """Return a copy of a model for this many tokens whose products oneDNN computes, or the model itself.

    The copy shares all weights except those of the linear layers, which it holds a second time in oneDNN's order. It
    is not for training: the model itself comes back for one with hooks, with linear layers of another class, in
    another dtype than float32, on a GPU, and where MKL is as fast.
    """
    linear = [type(part) for part in model.modules() if isinstance(part, nn.Linear)]
    weights = {id(weight): weight for weight in model.parameters()}
    plain = all(weight.device.type == "cpu" and weight.dtype == torch.float32 for weight in weights.values())
    seen = any(getattr(part, hooks) for part in model.modules() for hooks in HOOKS)
    if tokens < WORTH_A_COPY or not plain or seen or set(linear) != {nn.Linear} or not onednn_is_faster():
        return model
    return to_onednn(copy.deepcopy(model, weights)).eval()  # the copy keeps the weights that are given


class PackedLinear(nn.Module):
    """A linear map (…, I) → (…, O) by oneDNN: its weight is reordered once, and GELU can be computed within it."""

    def __init__(self, linear: nn.Linear, activation: str = "none"):
        super().__init__()
        self.weight, self.bias, self.activation = linear.weight, linear.bias, activation
        self.reordered = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), None)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Map (…, I) to (…, O)."""
        return torch.ops.mkldnn._linear_pointwise(hidden_states, self.reordered, self.bias, self.activation, [], "none")


def to_onednn(model: nn.Module) -> nn.Module:
    """Replace a model's linear layers by oneDNN's; GELU joins the one before it, unless `forward` is a reader's own."""
    for part in list(model.modules()):
        ours = type(part).__name__ == "FeedForward" and type(part).forward.__module__ == "utils.encoder_layer"
        if ours and str(part.activation) == str(nn.GELU()):
            part.intermediate, part.activation = PackedLinear(part.intermediate, "gelu"), nn.Identity()
        for name, child in part.named_children():
            if type(child) is nn.Linear:
                setattr(part, name, PackedLinear(child))
    return model


@cache
def onednn_is_faster() -> bool:
    """Return whether oneDNN takes at most 0.8 of MKL's time here, timing both once, in turns, for some 20 ms."""
    if not torch.backends.mkldnn.is_available() or not all(hasattr(torch.ops.mkldnn, name) for name in OPERATORS):
        return False
    with torch.random.fork_rng(devices=()), torch.no_grad():
        linear, states = nn.Linear(384, 1536), torch.randn(256, 384)
        modules = linear, to_onednn(nn.Sequential(copy.deepcopy(linear)))
        seconds = [[], []]  # MKL's, oneDNN's
        for _ in range(10):
            for module, times in zip(modules, seconds, strict=True):
                started = time.perf_counter()
                module(states)
                times.append(time.perf_counter() - started)
    return min(seconds[1]) <= 0.8 * min(seconds[0])  # the best of each, which other programs disturb least
