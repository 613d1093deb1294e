"""What a view reads from a model of the transformers library, of any family: weights, queries and keys.

The weights are always those that the model itself returns. Queries and keys come from the library's own attention
interface, after rotation and with the layer's own scale, and are drawn only if their softmax gives those weights.
"""

import inspect
import sys
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

if TYPE_CHECKING:
    from transformers import PreTrainedModel

READER = "a view of attention"  # under this name transformers knows `remember`
MARK = "_output_capturing_hooks_installed"  # by which transformers knows the models that it gave hooks
# what a layer may pass beyond scale and mask, so that its weights are not the softmax of queries and keys alone
BENT = {
    "softcap": "soft-capping bends its scores",
    "s_aux": "attention sinks take a share of each row",
    "position_bias": "a bias for each distance is added to its scores",
}
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


def check_places(model, inputs: dict[str, Tensor], kind: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError for weights that do not lead from token to token, as those of windows and chunks do not."""
    read, written = (inputs[name].size(1) if name in inputs else None for name in ("input_ids", "decoder_input_ids"))
    wanted = {"decoder": (written, written), "cross": (written, read)}.get(kind, (read, read))
    if read is not None and shape[2:] != wanted:
        places, tokens = (" × ".join(map(str, sizes)) for sizes in (shape[2:], wanted))
        raise ValueError(
            f"the weights of a {family_of(model)} have {places} places for {tokens} tokens, so no view can draw "
            "them between tokens"
        )


class Call(NamedTuple):
    """What `remember` was given and made in one layer, for B = 1 text."""

    query: Tensor  # (1, A, S, D), times scale · √D
    key: Tensor  # (1, A, S, D)
    mask: Tensor  # (1, A, S, S), what is added to the scores
    weights: Tensor  # (1, A, S, S)


FOUND: list[Call] = []


class Bent(Exception):  # noqa: N818 - it tells `read_neurons` why, and goes no further
    """A layer's weights are not the softmax of its queries and keys alone; the message says what else there is."""


@contextmanager
def attention_by(model: "PreTrainedModel", name: str) -> Iterator[None]:
    """Let all parts of a model compute attention in the way of this name; afterwards it is as it was.

    That includes the hooks with which transformers records weights, and which it would leave behind.
    """
    modules = list(model.modules())
    configs = {id(config): config for module in modules for config in configs_of(module)}
    before = [(config, config._attn_implementation) for config in configs.values()]
    hooks = [(module, set(module._forward_hooks), MARK in vars(module)) for module in modules]
    try:
        for config in configs.values():
            config._attn_implementation = name
        yield
    finally:
        for config, own in before:  # the whole model's first, which sets those of its parts, too
            config._attn_implementation = own
        for module, own, marked in hooks:
            for added in set(module._forward_hooks) - own:
                del module._forward_hooks[added]
            if not marked:
                vars(module).pop(MARK, None)


def configs_of(module) -> list:
    """Return the configuration of a part of a model and, after it, those that it holds for other parts."""
    if not is_official(module):
        return []
    own = module.config
    return [own, *filter(None, (getattr(own, name, None) for name in own.sub_configs))]


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
        shapes = {tuple(layer.shape) for layer in layers}
        if len(shapes) > 1:
            raise ValueError(
                f"the layers of a {family_of(model)} differ in their attention weights ({min(shapes)} and "
                f"{max(shapes)}), and a view draws layers that are alike"
            )
        check_places(model, inputs, kind, *shapes)
    return {kind: torch.cat([layer.float() for layer in layers]) for kind, layers in given.items()}


def remember(module, query, key, value, attention_mask=None, scaling=None, **kwargs) -> tuple[Tensor, Tensor]:
    """Compute attention as transformers' attention functions do, and keep queries, keys, mask and weights.

    Queries are kept times scale · √D, so that q · k / √D is the model's score whatever its scale is. Keys that
    several heads share (grouped queries) are repeated for each.
    """
    for name, reason in BENT.items():
        if kwargs.get(name) is not None:
            raise Bent(reason)
    groups, D = query.size(1) // key.size(1), query.size(-1)
    key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    scaling = D**-0.5 if scaling is None else scaling
    scores = query @ key.mT * scaling  # (B, A, S, T)
    mask = scores.new_zeros(1) if attention_mask is None else attention_mask[..., : key.size(2)]
    weights = (scores + mask).softmax(dim=-1, dtype=torch.float).to(query.dtype)
    FOUND.append(Call(query * (scaling * D**0.5), key, mask.expand_as(scores), weights))
    return (weights @ value).transpose(1, 2).contiguous(), weights


@cache
def register() -> None:
    """Make `remember` known to transformers, once; no model uses it unless it is asked to."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(READER, remember)
    AttentionMaskInterface.register(READER, eager_mask)


def read_neurons(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return queries and keys (L, A, S, D), after rotation, the model's own weights (L, A, S, S), and what is masked.

    ValueError for a model whose weights are not the softmax of its queries and keys, which a neuron view would show.
    """
    weights, family = read_weights(model, inputs)["all"], family_of(model)
    views = "head_view and model_view draw it"
    not_alone = f"the weights of a {family} are not the softmax of its queries and keys alone"
    register()
    FOUND.clear()
    try:
        with attention_by(model, READER):
            model(**inputs)
        found = list(FOUND)
    except Bent as reason:
        raise ValueError(f"{not_alone}: {reason}. {views}") from None
    finally:
        FOUND.clear()
    if len(found) != len(weights):
        raise ValueError(
            f"the queries and keys of a {family} cannot be read: {len(found)} of its {len(weights)} layers use the "
            f"attention interface of transformers. {views}"
        )
    if len(sizes := {call.query.size(-1) for call in found}) > 1:
        raise ValueError(f"the heads of a {family} differ in their size D, {sorted(sizes)}. {views}")
    queries, keys, masks, made = (torch.cat([part.float() for part in parts]) for parts in zip(*found, strict=True))
    far = (made - weights).abs().max().item()
    if not far <= (1e-5 if next(model.parameters()).dtype in (torch.float, torch.double) else 1e-2):
        raise ValueError(
            f"{not_alone} (they are {far:.2g} away), so a neuron view would show what it does not compute. {views}"
        )
    return queries, keys, weights, masks < -1e4  # a mask adds the smallest number that there is
