"""How far a token's vector turns when one link of one head is left out: measured, for `sentence_view`."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from views.any_model import NotPlainSoftmax
from views.models import hidden_states, inference, on_device, read_layers, require_tokens, tokenize_for_view

MOST = 64  # tokens; there are L·A·S² links
CHUNK = 2048  # links that are left out at a time


def measure_cuts(model: nn.Module, tokenizer: Callable, texts: Sequence[str]) -> Tensor:
    """Return how far the asking token's vector turns after its layer without one link, (2, L, A, S, S), in degrees.

    [0] leaves the link out, [1] also shares its weight among the head's other links; nan where there is nothing to
    share, at a weight of 1. The layer's own code computes the rest. ValueError for a text of more than 64 tokens and
    for a model of which this cannot be measured.
    """
    read = require_tokens("sentence_a", tokenize_for_view(model, tokenizer, texts[0], texts[1] if texts[1:] else None))
    if len(read.tokens) > MOST:
        raise ValueError(f"cuts=True measures texts of at most {MOST} tokens, got {len(read.tokens)}: shorten the text")
    with inference(model):
        inputs = on_device(model, read.inputs)
        try:
            layers = read_layers(model, inputs)
            blocks = blocks_around(model, layers.outputs, len(layers.weights))
            states = hidden_states(model, inputs)[:-1, 0]  # (L, S, H), which enter the layers
            parts = zip(blocks, layers.outputs, states, layers.weights, layers.values, strict=True)
            return torch.stack([turns_in_layer(*part) for part in parts], dim=1)
        except NotPlainSoftmax as reason:
            raise ValueError(f"cuts=True cannot be measured in this model, since {reason}: leave it out") from None


def blocks_around(model: nn.Module, outputs: Sequence[nn.Module], L: int) -> nn.ModuleList:
    """Return the list of the layers that hold the linear layers after attention; NotPlainSoftmax if there is none."""
    lists = (module for module in model.modules() if isinstance(module, nn.ModuleList))
    for blocks in lists:
        pairs = [*zip(blocks, outputs, strict=False)]
        if len(blocks) == len(pairs) == L and all(output in set(block.modules()) for block, output in pairs):
            return blocks
    raise NotPlainSoftmax("it has no list of layers, each with a linear layer after attention")


def turns_in_layer(block: nn.Module, output: nn.Module, states: Tensor, weights: Tensor, values: Tensor) -> Tensor:
    """Return the turns (2, A, S, S) of one layer, from the vectors that enter it and its heads' weights and values."""
    A, S, D = values.shape
    context = (weights @ values).transpose(0, 1)  # (S, A, D)
    whole = run_block(block, output, states, context.reshape(S, A * D))
    turns = torch.empty(2, A, S, S)
    for head in range(A):
        left = context[:, head, None] - weights[head, ..., None] * values[head]  # (S, S, D)
        for cut, own in enumerate((left, left / (1 - weights[head, ..., None]))):
            changed = context[:, None].repeat(1, S, 1, 1)  # (S, S, A, D)
            changed[:, :, head] = own
            asking = torch.arange(S).repeat_interleave(S)
            rows = zip(asking.split(CHUNK), changed.view(S * S, A * D).split(CHUNK), strict=True)
            cuts = torch.cat([run_block(block, output, states[some], part) for some, part in rows])
            turns[cut, head] = angle(cuts, whole[asking]).view(S, S)
    return turns


def run_block(block: nn.Module, output: nn.Module, states: Tensor, context: Tensor) -> Tensor:
    """Return what a layer makes of vectors (N, H), each alone, if its heads return `context` (N, A·D), in float32."""
    hook = output.register_forward_pre_hook(lambda *_: (context[:, None].to(output.weight),))
    try:
        result = block(states[:, None].to(output.weight))
    except TypeError as error:
        raise NotPlainSoftmax(f"its layers need more than vectors ({error})") from None
    finally:
        hook.remove()
    return (result if isinstance(result, Tensor) else result[0])[:, 0].float().cpu()


def angle(first: Tensor, second: Tensor) -> Tensor:
    """Return the angle between vectors (…, H) in degrees, exact for small ones, too (Kahan 2006, section 12)."""
    first, second = (nn.functional.normalize(side.double(), dim=-1) for side in (first, second))
    half = torch.atan2((first - second).norm(dim=-1), (first + second).norm(dim=-1))
    return (2 * half).rad2deg().float()
