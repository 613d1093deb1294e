"""Texts of different lengths as one row of tokens, without padding. Built in notebook 13, used from 09 on."""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from utils.checks import checked_mask
from utils.encoder import TransformerEncoder


class TextBoundaries(TorchFunctionMode):
    """While it is active, torch's fused attention keeps the texts of a packed row apart.

    `lengths` are the texts' numbers of tokens, in order. Texts of the same length that stand together share a call.
    """

    def __init__(self, lengths: Sequence[int]):
        super().__init__()
        self.groups = [(len(list(same)), length) for length, same in groupby(lengths)]
        self.calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Run any torch function as it is, but fused attention on each group: (1, A, N, D) to (1, A, N, D)."""
        kwargs = kwargs or {}
        if function is not F.scaled_dot_product_attention:
            return function(*args, **kwargs)
        self.calls += 1
        sizes = [texts * length for texts, length in self.groups]  # tokens in each group
        queries, keys, values = (x[0].split(sizes, dim=1) for x in args[:3])
        context = []
        for group, query, key, value in zip(self.groups, queries, keys, values, strict=True):
            apart = [x.unflatten(1, group) for x in (query, key, value)]  # (A, texts, length, D)
            context.append(function(*apart, *args[3:], **kwargs).flatten(1, 2))
        return torch.cat(context, dim=1)[None]


def encode_packed(
    encoder: TransformerEncoder,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    token_type_ids: Tensor | None = None,
) -> Tensor:
    """The encoder's last_hidden_state (B, S, H) of a padded batch, whose padding skips the layers and comes out as 0.

    The layers get the real tokens of all texts as one row (1, N, H); an encoder with methods exchanged for a reader's
    own gets the padded batch, with the same result. ValueError for a bad mask, and for an encoder whose attention is
    not torch's fused one, which alone knows here where a text ends. TypeError for an encoder whose layers count
    positions, as ModernBERT's do: in the row they would not begin anew with each text.
    """
    if not isinstance(encoder, TransformerEncoder):
        kind = type(encoder).__name__
        raise TypeError(f"a {kind} cannot be packed: pass a TransformerEncoder, or pad its texts")
    checked_mask(input_ids, attention_mask, token_type_ids, encoder.config)
    if attention_mask is None:
        attention_mask = torch.ones_like(input_ids)
    real = attention_mask != 0  # (B, S)
    if has_exchanged_methods(encoder):
        padded = encoder(input_ids, attention_mask, token_type_ids).last_hidden_state
        return padded.masked_fill(~real[:, :, None], 0)
    embedded = encoder.embeddings(input_ids, token_type_ids)  # (B, S, H)
    packed = embedded[real][None]  # (1, N, H)
    with TextBoundaries(real.sum(dim=1).tolist()) as boundaries:
        for layer in encoder.layers:
            packed, _ = layer(packed)
    if boundaries.calls != len(encoder.layers):
        fused = f"{boundaries.calls} of {len(encoder.layers)} layers used torch's fused attention"
        raise ValueError(f"{fused}, so texts were mixed: pad them, as encoder(input_ids, attention_mask) does")
    return torch.zeros_like(embedded).masked_scatter(real[:, :, None], packed)


def has_exchanged_methods(model: torch.nn.Module) -> bool:
    """Whether a module of the model has, of its own, another function in the place of a method of its class."""
    return any(
        callable(value) and hasattr(type(module), name)
        for module in model.modules()
        for name, value in vars(module).items()
    )
