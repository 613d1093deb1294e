"""Pack texts of different lengths into one row of tokens, without padding. Built in notebook 13, used from 09 on."""

from collections.abc import Sequence
from itertools import groupby

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from utils.encoder import TransformerEncoder
from utils.support.checks import checked_mask


class TextBoundaries(TorchFunctionMode):
    """Context manager that makes torch's fused attention block-diagonal over the texts of a packed row.

    `lengths` are the numbers of tokens of the texts, in order. Consecutive texts of the same length share a call.
    """

    def __init__(self, lengths: Sequence[int]):
        super().__init__()
        self.groups = [(len(list(same)), length) for length, same in groupby(lengths)]
        self.calls = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Run fused attention, (1, A, N, D) to (1, A, N, D), on each group; run any other function as it is."""
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
    """Return the last_hidden_state (B, S, H) of a padded batch without computing its padding, whose vectors are 0.

    The layers process the real tokens of all texts as one row (1, N, H). An encoder that runs a reader's own parts
    processes the padded batch instead, with the same result. ValueError for an invalid mask, and for an encoder that
    does not use torch's fused attention, since only that is split at the texts' ends. TypeError for an encoder whose
    layers use positions, such as ModernBERT: in a packed row they would not restart with each text.
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
        raise ValueError(
            f"{boundaries.calls} of {len(encoder.layers)} layers used torch's fused attention, so texts were mixed: "
            "pad them, as encoder(input_ids, attention_mask) does"
        )
    return torch.zeros_like(embedded).masked_scatter(real[:, :, None], packed)


def has_exchanged_methods(model: torch.nn.Module) -> bool:
    """Return whether any module overrides a method on the instance."""
    return any(
        callable(value) and hasattr(type(module), name)
        for module in model.modules()
        for name, value in vars(module).items()
    )
