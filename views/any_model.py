"""Read attention weights, queries and keys from transformers models of any family.

The weights are always the ones that the model returns. Queries and keys come from the library's own attention
interface, after rotation and with the layer's own scale, and are used only if their softmax gives those weights.
"""

import inspect
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor, nn

from views.inputs import check_weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel

RECORDER = "a view of attention"  # the name of `record_attention` in transformers
HOOKED = "_output_capturing_hooks_installed"  # transformers' mark on models that it has given hooks
# arguments of a layer by which its weights are not the plain softmax of queries and keys
EXTRA_TERMS = {
    "softcap": "soft-caps its scores",
    "s_aux": "gives attention sinks a share of each row",
    "position_bias": "adds a bias for each distance to its scores",
}
SIDES = {"encoder": "encoder_attentions", "decoder": "decoder_attentions", "cross": "cross_attentions"}
# where a configuration has the number of layers of the decoder of two sides, and of any other model
DECODER_LAYERS, LAYERS = ("decoder_layers", "num_decoder_layers"), ("num_hidden_layers",)


def is_official(model) -> bool:
    """Return whether a model is one of transformers', without importing transformers for others."""
    models = sys.modules.get("transformers.modeling_utils")
    return models is not None and isinstance(model, models.PreTrainedModel)


def family_of(model) -> str:
    """Return transformers' name of the model's family, such as "modernbert"."""
    return getattr(model.config, "model_type", "") or type(model).__name__


def has_two_sides(model) -> bool:
    """Return whether a model is an encoder–decoder of transformers."""
    return is_official(model) and "decoder_input_ids" in takes(model)


def takes(model) -> Collection[str]:
    """Return the names of the parameters of a model's `forward`."""
    return inspect.signature(type(model).forward).parameters


def accepted(model, batch: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs that the model needs: token types only if it has several, a mask only if it hides tokens."""
    kept = {name: value for name, value in batch.items() if name in takes(model)}
    if getattr(model.config, "type_vocab_size", 0) < 2:
        kept.pop("token_type_ids", None)
    if "attention_mask" in kept and bool(kept["attention_mask"].all()):
        del kept["attention_mask"]
    return kept


def check_positions(model, inputs: dict[str, Tensor], kind: str, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless there is a weight for each pair of tokens, unlike in models with windows or chunks."""
    read, written = (inputs[name].size(1) if name in inputs else None for name in ("input_ids", "decoder_input_ids"))
    wanted = {"decoder": (written, written), "cross": (written, read)}.get(kind, (read, read))
    if read is not None and shape[2:] != wanted:
        positions, tokens = (" × ".join(map(str, sizes)) for sizes in (shape[2:], wanted))
        raise ValueError(
            f"the weights of a {family_of(model)} have {positions} positions for {tokens} tokens, so a view cannot "
            "draw them between tokens"
        )


def layer_count(model, kind: str) -> int | None:
    """Return the number of layers of a model or of one of its sides, or None if it does not say."""
    config = getattr(model.config, "text_config", None) or model.config
    if kind == "all" and getattr(config, "is_encoder_decoder", False) and hasattr(model, "layers"):
        return len(model.layers)  # one side, with the configuration of both
    names = LAYERS if kind in ("all", "encoder") else DECODER_LAYERS + LAYERS
    return next((size for name in names if (size := getattr(config, name, None))), None)


class Call(NamedTuple):
    """The inputs and the weights of attention in one layer, for B = 1 text."""

    query: Tensor  # (1, A, S, D), times scale · √D
    key: Tensor  # (1, A, S, D)
    value: Tensor  # (1, A, S, D)
    mask: Tensor  # (1, A, S, S), added to the scores
    weights: Tensor  # (1, A, S, S)


class Layers(NamedTuple):
    """What L layers of A heads compute for S tokens; only the weights, if nothing else is read."""

    weights: Tensor  # (L, A, S, S)
    queries: Tensor | None = None  # (L, A, S, D)
    keys: Tensor | None = None  # (L, A, S, D)
    values: Tensor | None = None  # (L, A, S, D)
    hidden: Tensor | None = None  # (L, A, S, S) or (L, 1, S, S), True where a mask hides a token
    outputs: Sequence[nn.Module] = ()  # the linear layer after attention, where it is found


CALLS: dict[int, list[Call]] = {}  # of `record_attention`, by the thread that reads, one per layer


class NotPlainSoftmax(Exception):  # noqa: N818 - its callers catch it and report the reason
    """A layer's weights depend on more than the softmax of its queries and keys; the message gives the reason."""


@contextmanager
def use_attention(model: "PreTrainedModel", name: str) -> Iterator[None]:
    """Switch all parts of a model to the attention implementation of this name, and restore the model afterwards.

    This includes removing the hooks that transformers adds to record weights.
    """
    modules = list(model.modules())
    configs = {id(config): config for module in modules for config in configs_of(module)}
    before = [(config, config._attn_implementation) for config in configs.values()]
    hooks = [(module, set(module._forward_hooks), HOOKED in vars(module)) for module in modules]
    try:
        for config in configs.values():
            config._attn_implementation = name
        yield
    finally:
        for config, own in before:  # the whole model's first, since it sets those of its parts
            config._attn_implementation = own
        for module, own, marked in hooks:
            for added in set(module._forward_hooks) - own:
                del module._forward_hooks[added]
            if not marked:
                vars(module).pop(HOOKED, None)


def configs_of(module) -> list:
    """Return the configuration of a part of a model, followed by its sub-configurations."""
    if not is_official(module):
        return []
    own = module.config
    return [own, *filter(None, (getattr(own, name, None) for name in own.sub_configs))]


def read_weights(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return the attention weights (L, A, S, T) that the model returns, under "all" or, if it has two sides, `SIDES`.

    ValueError for a model that returns none, or not those of each layer.
    """
    with use_attention(model, "eager"):
        output = model(**inputs, output_attentions=True, return_dict=True)
    names = SIDES if has_two_sides(model) else {"all": "attentions"}
    weights = {kind: output.get(name) for kind, name in names.items()}
    for kind, layers in weights.items():
        if not layers or any(layer is None for layer in layers):
            raise ValueError(
                f"a {family_of(model)} returns no attention weights ({names[kind]} is {layers!r:.40} with "
                "output_attentions=True), so there is nothing to draw"
            )
        if len(layers) != (count := layer_count(model, kind) or len(layers)):
            raise ValueError(
                f"a {family_of(model)} returns the attention weights of {len(layers)} of its {count} layers, so a view "
                "cannot number them: do not call the model in another thread meanwhile, and if you have removed "
                "layers, change its config"
            )
        shapes = {tuple(layer.shape) for layer in layers}
        if len(shapes) > 1:
            raise ValueError(
                f"the layers of a {family_of(model)} differ in their attention weights ({min(shapes)} and "
                f"{max(shapes)}), but a view can only draw layers of the same shape"
            )
        check_positions(model, inputs, kind, *shapes)
    weights = {kind: torch.cat([layer.float() for layer in layers]) for kind, layers in weights.items()}
    for each in weights.values():
        check_weights(each, f"the attention of a {family_of(model)}")
    return weights


def record_attention(module, query, key, value, attention_mask=None, scaling=None, **kwargs) -> tuple[Tensor, Tensor]:
    """Compute attention as transformers' attention functions do, and record its inputs and weights.

    Queries are recorded times scale · √D, so that q · k / √D is the model's score for any scale. Keys that several
    heads share (grouped queries) are repeated for each head. In threads that do not read, the model's own function is
    called.
    """
    calls = CALLS.get(get_ident())
    if calls is None:
        sources = (sys.modules[kind.__module__] for kind in type(module).__mro__)
        eager = next(source.eager_attention_forward for source in sources if hasattr(source, "eager_attention_forward"))
        return eager(module, query, key, value, attention_mask, scaling=scaling, **kwargs)
    for name, reason in EXTRA_TERMS.items():
        if kwargs.get(name) is not None:
            raise NotPlainSoftmax(reason)
    groups, D = query.size(1) // key.size(1), query.size(-1)
    key, value = (part.repeat_interleave(groups, dim=1) for part in (key, value))
    scaling = D**-0.5 if scaling is None else scaling
    scores = query @ key.mT * scaling  # (B, A, S, T)
    mask = scores.new_zeros(1) if attention_mask is None else attention_mask[..., : key.size(2)]
    weights = (scores + mask).softmax(dim=-1, dtype=torch.float).to(query.dtype)
    calls.append(Call(query * (scaling * D**0.5), key, value, mask.expand_as(scores), weights))
    return (weights @ value).transpose(1, 2).contiguous(), weights


@cache
def register() -> None:
    """Register `record_attention` with transformers, once; models use it only inside `use_attention`."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, eager_mask

    AttentionInterface.register(RECORDER, record_attention)
    AttentionMaskInterface.register(RECORDER, eager_mask)


def record_calls(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> tuple[list[Call], list[nn.Module]]:
    """Run a model, and return its calls of attention, and the first linear layer that gets the result of each."""
    thread, calls, outputs = get_ident(), [], []

    def look(module: nn.Module, arguments: tuple, _) -> None:
        if get_ident() != thread or len(calls) <= len(outputs) or not arguments:
            return
        mixed = (calls[-1].weights @ calls[-1].value).transpose(1, 2).flatten(2)
        if arguments[0].shape == mixed.shape and torch.equal(arguments[0], mixed):
            outputs.append(module)

    register()
    CALLS[thread] = calls
    hooks = [module.register_forward_hook(look) for module in model.modules() if isinstance(module, nn.Linear)]
    try:
        with use_attention(model, RECORDER):
            model(**inputs)
    except NotPlainSoftmax as reason:
        raise NotPlainSoftmax(f"{family_of(model)} {reason}") from None
    finally:
        del CALLS[thread]
        for hook in hooks:
            hook.remove()
    return calls, outputs


def read_neurons(model: "PreTrainedModel", inputs: dict[str, Tensor]) -> Layers:
    """Return the model's weights, and its queries, keys and values after rotation.

    NotPlainSoftmax unless the weights are the softmax of queries and keys.
    """
    weights, family = read_weights(model, inputs)["all"], family_of(model)
    calls, outputs = record_calls(model, inputs)
    if len(calls) != len(weights):
        raise NotPlainSoftmax(
            f"the queries and keys of a {family} cannot be read: {len(calls)} of its {len(weights)} layers use the "
            "attention interface of transformers"
        )
    if len(sizes := {call.query.size(-1) for call in calls}) > 1:
        raise NotPlainSoftmax(f"the heads of a {family} differ in their size D, {sorted(sizes)}")
    queries, keys, values, masks, recorded = (
        torch.cat([part.float() for part in parts]) for parts in zip(*calls, strict=True)
    )
    difference = (recorded - weights).abs().max().item()
    if not difference <= (1e-5 if next(model.parameters()).dtype in (torch.float, torch.double) else 1e-2):
        raise NotPlainSoftmax(f"the weights of {family} differ from it by {difference:.2g}")
    return Layers(weights, queries, keys, values, masks < -1e4, outputs)  # a mask adds the dtype's smallest number
