"""Change an encoder as a bug would: the building blocks of the table in `bugs.py`.

A patch changes an encoder in place: give it a `light_copy`. It holds whether or not attention weights are requested,
because a changed attention no longer uses the fused kernel.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

Patch = Callable[[nn.Module], None]
ALL = ("embeddings", "layers")


class Do(nn.Module):
    """A function in the place of a module."""

    def __init__(self, function: Callable):
        super().__init__()
        self.forward = function


def light_copy(module: nn.Module) -> nn.Module:
    """Return a copy of a tree of modules that shares all weights: 100 times faster than a deep copy."""
    copied = object.__new__(type(module))
    copied.__dict__.update(module.__dict__)
    copied._parameters = dict(module._parameters)
    copied._modules = {name: child and light_copy(child) for name, child in module._modules.items()}
    return copied


def wrap(part: nn.Module, method: str, function: Callable) -> None:
    """Replace a method of a module; `function` gets the earlier one before the arguments."""
    earlier = getattr(part, method)
    setattr(part, method, lambda *inputs: function(earlier, *inputs))


def layers(change: Callable) -> Patch:
    """Change every layer."""

    def patch(encoder: nn.Module) -> None:
        for layer in encoder.layers:
            change(layer)

    return patch


def attentions(change: Callable) -> Patch:
    """Change the attention of every layer."""
    return layers(lambda layer: change(layer.attention))


def replace(**makers: Callable) -> Callable:
    """Return a change that replaces parts of a module, each by a function of the module."""

    def change(module: nn.Module) -> None:
        parts = {name: make(module) for name, make in makers.items()}
        for name, part in parts.items():
            setattr(module, name, part)

    return change


def exchange(one: str, other: str) -> Callable:
    """Return a change that exchanges two parts of a module."""
    return replace(**{one: lambda module: getattr(module, other), other: lambda module: getattr(module, one)})


# Embeddings


def embedded(function: Callable) -> Patch:
    """Replace the embeddings by `function(norm, w, t, p)` of the vectors of words, types and positions."""

    def change(parts: nn.Module) -> None:
        def forward(ids: Tensor, types: Tensor) -> Tensor:
            positions = parts.position_embeddings.weight[: ids.size(1)]
            return function(parts.layer_norm, parts.word_embeddings(ids), parts.token_type_embeddings(types), positions)

        parts.forward = forward

    return lambda encoder: change(encoder.embeddings)


def type_vectors(function: Callable) -> Patch:
    """Replace the token-type vectors by a function of the look-up and the types."""
    return lambda encoder: wrap(encoder.embeddings.token_type_embeddings, "forward", function)


def position_table(function: Callable[[Tensor], Tensor]) -> Patch:
    """Replace the table of positions by a function of it."""

    def patch(encoder: nn.Module) -> None:
        positions = encoder.embeddings.position_embeddings
        positions.weight = nn.Parameter(function(positions.weight.detach()))

    return patch


def sinusoids(table: Tensor) -> Tensor:
    """Return the sines and cosines of Vaswani et al. 2017, in the shape of a table (P, H)."""
    P, H = table.shape
    angles = torch.arange(P)[:, None] / 10000 ** (torch.arange(0, H, 2) / H)  # (P, H / 2)
    return torch.stack((angles.sin(), angles.cos()), dim=2).view(P, H)


def types_as_positions(encoder: nn.Module) -> None:
    """Look types up in the table of positions; all types count as 0."""
    parts = encoder.embeddings

    def forward(ids: Tensor, types: Tensor) -> Tensor:
        vectors = parts.word_embeddings(ids) + parts.token_type_embeddings(types * 0)
        return parts.layer_norm(vectors + parts.position_embeddings(types))

    parts.forward = forward


def mask_and_types_exchanged(encoder: nn.Module) -> None:
    """Pass mask and types in each other's place; a row without any type 1 hides nothing."""
    right = encoder.forward

    def forward(ids: Tensor, mask: Tensor, types: Tensor, **options):
        return right(ids, types | (types.sum(1, keepdim=True) == 0), mask, **options)

    encoder.forward = forward


# Attention


def attention_weights(function: Callable) -> Patch:
    """Replace the attention weights by `function(compute, query, key, mask)`, with a mask (B, 1, S, T) of booleans."""

    def change(attention: nn.Module) -> None:
        compute = attention.compute_attention_weights

        def weights(query: Tensor, key: Tensor, mask: Tensor | None = None) -> Tensor:
            shape = (query.size(0), 1, query.size(-2), key.size(-2))
            visible = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
            return function(compute, query, key, visible)

        attention.compute_attention_weights = weights
        wrap(attention, "attend", lambda attend, query, key, value, mask, _: attend(query, key, value, mask, True))

    return attentions(change)


def scored(function: Callable[[Tensor, Tensor], Tensor]) -> Patch:
    """Replace the attention weights by a function of the scores (B, A, S, T), divided by √D, and the mask."""
    return attention_weights(lambda compute, q, k, mask: function(q @ k.mT * q.size(-1) ** -0.5, mask))


def scaled(factor: Callable[[int, int], float]) -> Patch:
    """Multiply the scores by a function of A and D."""
    return attention_weights(lambda compute, q, k, mask: compute(q * factor(q.size(1), q.size(-1)), k, mask))


def hide(scores: Tensor, mask: Tensor) -> Tensor:
    """Hide scores where the mask is False; a row of hidden ones becomes uniform in softmax, not NaN."""
    return scores.masked_fill(~mask, -1e9)


def of_another_row(mask: Tensor, A: int) -> Tensor:
    """Return the masks (B, A, S, T) that heads get if a mask is repeated along the wrong dimension."""
    B = len(mask)
    return mask[torch.arange(B * A).view(B, A) % B, 0]


def linear_maps(function: Callable[[nn.Linear, Tensor], Tensor], *names: str) -> Patch:
    """Replace linear maps of every attention by a function of the map and its input."""

    def change(attention: nn.Module) -> None:
        for name in names:
            linear = getattr(attention, name)
            setattr(attention, name, Do(lambda x, linear=linear: function(linear, x)))

    return attentions(change)


def heads_split(function: Callable[[Tensor, int], Tensor]) -> Patch:
    """Split (B, S, H) into heads (B, A, S, D) in another way."""
    return attentions(replace(split_heads=lambda attention: lambda x: function(x, attention.num_heads)))


def number_of_heads(function: Callable[[int], int]) -> Patch:
    """Split (B, S, H) into as many heads as a function of A says, if H can be divided so."""

    def split(x: Tensor, A: int) -> Tensor:
        count = function(A)
        return x.unflatten(-1, (count if count and x.size(-1) % count == 0 else A, -1)).transpose(1, 2)

    return heads_split(split)


def merged_without_transpose(attention: nn.Module) -> None:
    """Merge the context (B, A, S, D) without transposing back, before the output layer."""

    def forward(project: Callable, x: Tensor) -> Tensor:
        context = x.unflatten(-1, (attention.num_heads, -1)).transpose(1, 2)  # (B, A, S, D)
        return project(context.reshape(x.shape))

    wrap(attention.output, "forward", forward)


# Layer and stack


def recomputed(function: Callable) -> Patch:
    """Replace a layer's output by `function(layer, x, a)`, where a is what attention makes of x."""

    def change(layer: nn.Module) -> None:
        def forward(x: Tensor, mask: Tensor | None = None, output_attentions: bool = False) -> tuple:
            attended, weights = layer.attention(x, mask, output_attentions)
            return function(layer, x, attended), weights

        layer.forward = forward

    return layers(change)


def activation(function: Callable[[Tensor], Tensor]) -> Patch:
    """Replace the activation."""
    return layers(lambda layer: setattr(layer.feed_forward, "activation", Do(function)))


def norms(function: Callable[[nn.LayerNorm, Tensor], Tensor], *parts: str) -> Patch:
    """Replace what each LayerNorm, or each of some parts, does by a function of it and its input."""

    def patch(encoder: nn.Module) -> None:
        for module in (module for part in parts or ALL for module in getattr(encoder, part).modules()):
            if isinstance(module, nn.LayerNorm):
                module.forward = lambda x, norm=module: function(norm, x)

    return patch


def stack(function: Callable[[list], list]) -> Patch:
    """Replace the list of layers by a function of it."""
    return lambda encoder: setattr(encoder, "layers", nn.ModuleList(function(list(encoder.layers))))
