"""How far a token's vector turns when one link of one head is left out: measured, for `sentence_view`."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from views.any_model import NotPlainSoftmax
from views.models import hidden_states, inference, on_device, read_layers, require_tokens, tokenize_for_view

MOST = 64  # tokens; there are L·A·S² links
CHUNK = 2048  # links that are left out at a time


def measure_cuts(model: nn.Module, tokenizer: Callable, texts: Sequence[str], last_of: int | None = None) -> Tensor:
    """Return how far the asking token's vector turns after its layer without one link, (2, L, A, S, S), in degrees.

    [0] leaves the link out, [1] also shares its weight among the head's other links; nan where there is nothing to
    share, at a weight of 1. With `last_of`, only the links of this token are left out, and its last vector is compared;
    all other links are nan. The layers' own code computes the rest. ValueError for a text of more than 64 tokens and
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
            states = hidden_states(model, inputs)[:, 0]  # (L + 1, S, H), which enter the layers, and the last
            parts = zip(layers.outputs, layers.weights, layers.values, strict=True)
            return torch.stack(
                [turns_in_layer(blocks[at:], *part, states[at:], last_of) for at, part in enumerate(parts)], dim=1
            )
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


def turns_in_layer(
    blocks: nn.ModuleList, output: nn.Module, weights: Tensor, values: Tensor, states: Tensor, last_of: int | None
) -> Tensor:
    """Return the turns (2, A, S, S) of the first of these layers, from its heads' weights and values.

    `states` are the vectors that enter the layers, and the last ones.
    """
    A, S, D = values.shape
    askers = torch.arange(S) if last_of is None else torch.tensor([last_of])
    context = (weights @ values).transpose(0, 1)[askers]  # (askers, A, D)

    def turned(asking: Tensor, context: Tensor) -> Tensor:
        """Return the vectors (N, H) of these askers, if the heads return `context` (N, A·D)."""
        vectors = run_block(blocks[0], output, states[0, asking], context)
        return vectors if last_of is None else go_on(blocks[1:], states[1], last_of, vectors)

    whole = turned(askers, context.reshape(-1, A * D))
    turns = torch.full((2, A, S, S), torch.nan)
    for head in range(A):
        own = weights[head, askers, :, None]  # (askers, S, 1)
        left = context[:, head, None] - own * values[head]  # (askers, S, D)
        for cut, instead in enumerate((left, left / (1 - own))):
            changed = context[:, None].repeat(1, S, 1, 1)  # (askers, S, A, D)
            changed[:, :, head] = instead
            rows = zip(askers.repeat_interleave(S).split(CHUNK), changed.view(-1, A * D).split(CHUNK), strict=True)
            cuts = torch.cat([turned(*part) for part in rows])
            turns[cut, head, askers] = angle(cuts, whole.repeat_interleave(S, dim=0)).view(-1, S)
    return turns


def go_on(blocks: nn.ModuleList, states: Tensor, token: int, vectors: Tensor) -> Tensor:
    """Return a token's last vectors (N, H), if these vectors of it (N, H) enter the layers in place of its own."""
    texts = states.repeat(len(vectors), 1, 1)  # (N, S, H)
    texts[:, token] = vectors
    for block in blocks:
        result = block(texts.to(next(block.parameters())))
        texts = (result if isinstance(result, Tensor) else result[0]).float().cpu()
    return texts[:, token]


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
