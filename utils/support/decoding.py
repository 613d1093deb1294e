"""What a decoder refuses, and the limits of what it writes. Used by the decoder of notebook 12."""

import copy
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import BertConfig

from utils.support.checks import check_config, check_mask, check_same_shape, check_size, check_tensor


def check_decoder_config(config: BertConfig) -> None:
    """Check a decoder's configuration; ValueError for an encoder's, and for one that `check_config` refuses."""
    if not config.is_decoder:
        raise ValueError("is_decoder=False makes an encoder, but this is a decoder: use is_decoder=True")
    if not config.tie_word_embeddings:
        raise ValueError("tie_word_embeddings=False is not supported: use tie_word_embeddings=True")
    plain = copy.deepcopy(config)
    plain.is_decoder = plain.add_cross_attention = False
    check_config(plain)


def check_source(config: BertConfig, B: int, states: Tensor | None, mask: Tensor | None) -> None:
    """Check the encoder's states (B, S, H) and mask (B, S).

    ValueError for a source that is missing, does not fit or is not used.
    """
    if not config.add_cross_attention:
        if states is not None:
            raise ValueError("this decoder does not use a source: leave it out, or use add_cross_attention=True")
        return
    remedy = "pass the encoder's last_hidden_state"
    if states is None:
        raise ValueError(f"encoder_hidden_states=None, but this decoder looks at a source: {remedy}")
    check_tensor("encoder_hidden_states", states, remedy=remedy)
    if states.dim() != 3 or states.size(0) != B or states.size(2) != config.hidden_size:
        raise ValueError(
            f"encoder_hidden_states must be ({B}, S, {config.hidden_size}), a source for each text, "
            f"got {tuple(states.shape)}"
        )
    if not torch.compiler.is_compiling() and not states.isfinite().all():
        raise ValueError("encoder_hidden_states contain NaN or inf: look for what went wrong in the encoder")
    if mask is not None:
        check_tensor("encoder_attention_mask", mask)
        check_same_shape("encoder_attention_mask", mask, states.shape[:2])
        check_mask("encoder_attention_mask", mask)


def check_cache(cached: int, given: tuple, input_ids: Tensor, *source: Tensor | nn.Module | None) -> None:
    """Check that a cache of so many tokens, `given` these inputs, fits the text (B, T) and its source.

    ValueError for a text without new tokens, and for another beginning, source or decoder than those of the cache.
    """
    length = input_ids.size(1)
    if cached >= length:
        raise ValueError(
            f"{cached} tokens are cached, and the text has {length}: pass the whole text so far, or a new cache"
        )
    if cached and not torch.compiler.is_compiling():
        pairs = zip(given, (input_ids[:, :cached], *source), strict=True)
        if not all(is_same(old, new) for old, new in pairs):
            raise ValueError(
                "the cache was filled with another text, source or decoder: pass the same ones, or call new_cache()"
            )


def is_same(old, new) -> bool:
    """Return True for the same object, or for tensors with equal values."""
    both = isinstance(old, Tensor) and isinstance(new, Tensor)
    return old is new or (both and old.shape == new.shape and bool((old == new).all()))


class WritingLimits(NamedTuple):
    """The start, end and padding tokens, the maximum length, and the number of beams per source."""

    start: int
    end: int
    pad: int
    max_length: int  # including the start token
    num_beams: int


def as_limits(config: BertConfig, max_length: int, num_beams: int) -> WritingLimits:
    """Return the limits for a decoder; ValueError for a missing token or a size that allows no text."""
    start, end, pad = config.bos_token_id, config.eos_token_id, config.pad_token_id
    check_size("bos_token_id", start, 0, config.vocab_size - 1)
    check_size("eos_token_id", end, 0, config.vocab_size - 1)
    pad = end if pad is None else pad
    check_size("pad_token_id", pad, 0, config.vocab_size - 1)
    check_size("max_length", max_length, 2, config.max_position_embeddings)
    check_size("num_beams", num_beams, 1, config.vocab_size // 2)
    return WritingLimits(start, end, pad, max_length, num_beams)


class DecoderStep:
    """Next-token scores of a decoder, with each source repeated once per beam."""

    def __init__(
        self, decoder: nn.Module, states: Tensor, mask: Tensor | None, limits: WritingLimits, use_cache: bool = True
    ):
        """Keep the decoder, and the encoder's `states` (B, S, H) and `mask` (B, S), repeated for each beam."""
        self.decoder, self.B = decoder, len(states)
        self.states = states.repeat_interleave(limits.num_beams, dim=0)  # (B · K, S, H)
        self.mask = None if mask is None else mask.repeat_interleave(limits.num_beams, dim=0)  # (B · K, S)
        self.cache = decoder.new_cache() if use_cache else None

    def begin(self, limits: WritingLimits) -> Tensor:
        """Return the start token of each text, (B, 1)."""
        return torch.full((self.B, 1), limits.start, device=self.states.device)

    def next_logits(self, ids: Tensor) -> Tensor:
        """Map the texts so far (B · K, T) to the scores (B · K, V) of the next token; ValueError for NaN and inf."""
        logits = self.decoder(ids, None, self.states, self.mask, cache=self.cache).logits[:, -1]
        if not logits.isfinite().all():
            raise ValueError(
                "the scores of the next token contain NaN or inf: use weights from before training went wrong"
            )
        return logits

    def reorder(self, rows: Tensor) -> None:
        """Continue with these rows, (B · K,), of the texts so far."""
        for layer in self.cache or ():
            layer.reorder(rows)
