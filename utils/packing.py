"""Pack texts of different lengths into one row of tokens, without padding. Built in notebook 13, used from 09 on."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from utils.attention import MultiHeadAttention
from utils.encoder import TransformerEncoder
from utils.support.batches import device_of
from utils.support.checks import checked_mask

varlen_attn = None
if torch.cuda.is_available():  # only a GPU runs it, and the import loads torch's compiler
    with suppress(ImportError):  # before torch 2.10
        from torch.nn.attention.varlen import varlen_attn


def attend_packed(query: Tensor, key: Tensor, value: Tensor, dropout_p: float, lengths: Sequence[int]) -> Tensor:
    """Attend within each text of a packed row, (1, A, N, D) to (1, A, N, D), given each text's number of tokens.

    Consecutive texts of the same length share a call. Built in notebook 13, section “The whole encoder, packed”.
    """
    groups = [(len(list(same)), length) for length, same in groupby(lengths)]
    sizes = [texts * length for texts, length in groups]  # tokens in each group
    parts = zip(groups, *(x[0].split(sizes, dim=1) for x in (query, key, value)), strict=True)
    context = []
    for group, *part in parts:
        apart = [x.unflatten(1, group) for x in part]  # query, key and value, (A, texts, length, D)
        context.append(F.scaled_dot_product_attention(*apart, dropout_p=dropout_p).flatten(1, 2))
    return torch.cat(context, dim=1)[None]


def attend_packed_on_gpu(query: Tensor, key: Tensor, value: Tensor, _: float, ends: Tensor, longest: int) -> Tensor:
    """Do the same, (1, A, N, D) to (1, A, N, D), in one kernel, without dropout: text i begins at ends[i].

    Built in notebook 13, section “The whole encoder, packed”.
    """
    query, key, value = (x[0].transpose(0, 1) for x in (query, key, value))  # (N, A, D)
    return varlen_attn(query, key, value, ends, ends, longest, longest).transpose(0, 1)[None]


def packed_attention(encoder: TransformerEncoder, lengths: Sequence[int]) -> Callable[..., Tensor] | None:
    """Return the function that attends within texts of these lengths, or None if they have to be padded.

    On a GPU, only attention in 16 bits can be packed, from compute capability 8.0 (2020) on.
    Built in notebook 13, section “The whole encoder, packed”.
    """
    attentions = [layer.attention for layer in encoder.layers]
    if has_exchanged_methods(encoder) or any(type(attention) is not MultiHeadAttention for attention in attentions):
        return None
    weight, size = attentions[0].query.weight, encoder.config.hidden_size // attentions[0].num_heads
    if weight.device.type == "cpu":
        return partial(attend_packed, lengths=lengths)
    fits = weight.is_cuda and weight.dtype in (torch.float16, torch.bfloat16) and size % 8 == 0 and varlen_attn
    if not fits or encoder.training or torch.cuda.get_device_capability(weight.device) < (8, 0):
        return None
    ends = torch.tensor([0, *lengths]).cumsum(0).int().to(weight.device, non_blocking=True)
    return partial(attend_packed_on_gpu, ends=ends, longest=max(lengths))


def encode_packed(
    encoder: TransformerEncoder,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    token_type_ids: Tensor | None = None,
) -> Tensor:
    """Return the last_hidden_state (B, S, H) of a padded batch without computing its padding, whose vectors are 0.

    The layers process the real tokens of all texts as one row (1, N, H). Where `packed_attention` returns None, as for
    an encoder that runs a reader's own parts, they process the padded batch, with the same result. A batch on the
    processor is checked there and copied to the encoder's device without waiting. ValueError for an invalid mask.
    TypeError for an encoder whose layers use positions, such as ModernBERT: in a packed row they would not restart with
    each text.
    Built in notebook 13, section “The whole encoder, packed”.
    """
    if not isinstance(encoder, TransformerEncoder):
        kind = type(encoder).__name__
        raise TypeError(f"a {kind} cannot be packed: pass a TransformerEncoder, or pad its texts")
    checked_mask(input_ids, attention_mask, token_type_ids, encoder.config)
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
    types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
    attend = packed_attention(encoder, (mask != 0).sum(dim=1).tolist())
    places = mask.flatten().nonzero()[:, 0]  # of the real tokens, (N,)
    ids, mask, types, places = (x.to(device_of(encoder), non_blocking=True) for x in (input_ids, mask, types, places))
    if attend is None:
        return encoder(ids, mask, types).last_hidden_state.masked_fill((mask == 0)[:, :, None], 0)
    embedded = encoder.embeddings(ids, types)  # (B, S, H)
    packed = embedded.flatten(0, 1)[places][None]  # (1, N, H)
    for layer in encoder.layers:
        packed, _ = layer(packed, attend)
    return torch.zeros_like(embedded).flatten(0, 1).index_copy(0, places, packed[0]).view_as(embedded)


def has_exchanged_methods(model: nn.Module) -> bool:
    """Return whether any module overrides a method on the instance.

    Built in notebook 13, section “The whole encoder, packed”.
    """
    return any(
        callable(value) and hasattr(type(module), name)
        for module in model.modules()
        for name, value in vars(module).items()
    )
