"""What a view reads from a model of the transformers library, of any family: weights, queries and keys.

The weights are always those that the model itself returns. Queries and keys come from the library's own attention
interface, after rotation and with the layer's own scale, and are drawn only if their softmax gives those weights.
"""

import inspect
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

READER = "a view of attention"  # under this name transformers knows `remember`
FOUND: list[tuple[Tensor, Tensor]] = []  # the scaled queries and the keys of each call of `remember`
SIDES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}


def is_official(model) -> bool:
    """Whether a model is one of transformers'; whoever has one has imported them, and nobody else need."""
    models = sys.modules.get("transformers.modeling_utils")
    return models is not None and isinstance(model, models.PreTrainedModel)


def family_of(model) -> str:
    """Return what transformers calls the model's family, such as "modernbert"."""
    return getattr(model.config, "model_type", "") or type(model).__name__


def has_two_sides(model) -> bool:
    """Whether a model is an encoder–decoder of transformers, which reads one text and writes another."""
    return is_official(model) and "decoder_input_ids" in takes(model)


def takes(model) -> Collection[str]:
    """Return the names of what a model's `forward` takes."""
    return inspect.signature(type(model).forward).parameters


def accepted(model, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Keep what the model takes: token types where it has several, a mask where it hides something."""
    kept = {name: value for name, value in batch.items() if name in takes(model)}
    if getattr(model.config, "type_vocab_size", 0) < 2:
        kept.pop("token_type_ids", None)
    if "attention_mask" in kept and bool(kept["attention_mask"].all()):
        del kept["attention_mask"]
    return kept


@contextmanager
def attention_by(model: "PreTrainedModel", name: str) -> Iterator[None]:
    """Let all parts of a model compute attention in the way of this name; afterwards they have their own again."""
    configs = {id(part.config): part.config for part in model.modules() if is_official(part)}
    before = [(config, config._attn_implementation) for config in configs.values()]
    try:
        for config in configs.values():
            config._attn_implementation = name
        yield
    finally:
        for config, own in before:  # the whole model's first, which sets those of its parts, too
            config._attn_implementation = own


def read_weights(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the attention weights (L, A, S, T) that the model itself gives, under "all" or under its two sides' names.

    ValueError for a model that gives none.
    """
    with attention_by(model, "eager"):
        output = model(**inputs, output_attentions=True, return_dict=True)
    names = SIDES if has_two_sides(model) else {"all": "attentions"}
    given = {kind: output.get(name) for kind, name in names.items()}
    for kind, layers in given.items():
        if not layers or any(layer is None for layer in layers):
            raise ValueError(
                f"a {family_of(model)} gives no attention weights ({names[kind]} is {layers!r:.40} with "
                "output_attentions=True), so there is nothing to draw"
            )
    return {kind: torch.cat([layer.float() for layer in layers]) for kind, layers in given.items()}


def remember(module, query, key, value, attention_mask=None, scaling=None, **kwargs) -> tuple[Tensor, Tensor]:
    """Compute attention as transformers' attention functions do, and keep queries and keys, (B, A, S, D) each.

    Queries are kept times scale · √D, so that q · k / √D is the model's score whatever its scale is. Keys that
    several heads share (grouped queries) are repeated for each.
    """
    groups, D = query.size(1) // key.size(1), query.size(-1)
    key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    scaling = D**-0.5 if scaling is None else scaling
    FOUND.append((query.detach() * (scaling * D**0.5), key.detach()))
    scores = query @ key.mT * scaling  # (B, A, S, T)
    for added in (kwargs.get("position_bias"), attention_mask):
        if added is not None:
            scores = scores + added[..., : key.size(2)]
    weights = scores.softmax(dim=-1, dtype=torch.float).to(query.dtype)
    return (weights @ value).transpose(1, 2).contiguous(), weights


@cache
def register() -> None:
    """Make `remember` known to transformers, once; no model uses it unless it is asked to."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(READER, remember)
    AttentionMaskInterface.register(READER, eager_mask)


def read_neurons(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries and keys (L, A, S, D), after rotation, and the model's own weights (L, A, S, S).

    ValueError for a model whose weights are not the softmax of its queries and keys, which a neuron view would show.
    """
    weights, family = read_weights(model, inputs)["all"], family_of(model)
    views = "head_view and model_view draw it"
    register()
    FOUND.clear()
    try:
        with attention_by(model, READER):
            model(**inputs)
        found = list(FOUND)
    finally:
        FOUND.clear()
    if len(found) != len(weights):
        raise ValueError(
            f"the queries and keys of a {family} cannot be read: {len(found)} of its {len(weights)} layers use the "
            f"attention interface of transformers. {views}"
        )
    queries, keys = (torch.cat([pair[part].float() for pair in found]) for part in (0, 1))
    scores = queries @ keys.mT / queries.size(-1) ** 0.5
    shown = scores.masked_fill(weights == 0, -torch.inf).softmax(dim=-1)
    far = (shown - weights).abs().max().item()
    if not far <= (1e-5 if next(model.parameters()).dtype == torch.float else 1e-2):
        raise ValueError(
            f"the weights of a {family} are not the softmax of its queries and keys alone (they are {far:.2g} away), "
            f"so a neuron view would show what it does not compute. {views}"
        )
    return queries, keys, weights
