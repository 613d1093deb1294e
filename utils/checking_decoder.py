"""The decoder's door: complaints about its configuration, the source that it looks at, and what it is to write."""

import copy

import torch
from torch import Tensor

from utils.checks import (
    check_config,
    check_mask_facts,
    check_same_shape,
    check_size,
    check_tensor,
    is_whole,
    mask_facts,
)


def check_decoder_config(config):
    """Return the configuration; ValueError for an encoder's, and for one that `check_config` refuses."""
    if not config.is_decoder:
        raise ValueError("is_decoder=False makes an encoder, and this is a decoder: use is_decoder=True")
    if not config.tie_word_embeddings:
        raise ValueError("tie_word_embeddings=False is not built here: use tie_word_embeddings=True")
    plain = copy.deepcopy(config)
    plain.is_decoder = plain.add_cross_attention = False
    check_config(plain)
    return config


def check_pair(encoder_config, decoder_config) -> None:
    """ValueError unless the decoder looks across, at an encoder of its own width."""
    if not decoder_config.add_cross_attention:
        raise ValueError("this decoder looks at no source: use add_cross_attention=True")
    if (H := encoder_config.hidden_size) != decoder_config.hidden_size:
        widths = f"hidden_size={H} of the encoder and {decoder_config.hidden_size} of the decoder"
        raise ValueError(f"{widths} differ: make them equal")


def check_source(
    config, batch_size: int, states: Tensor | None, mask: Tensor | None, kept: Tensor | None = None
) -> None:
    """ValueError unless the source (B, S, H) and its mask (B, S) fit the decoder, or are not there.

    `kept` is the source that a cache keeps keys and values of: another one is refused, the same not looked at again.
    """
    if not config.add_cross_attention:
        if states is not None or mask is not None:
            raise ValueError("this decoder looks at no source: leave it out, or use add_cross_attention=True")
        return
    if states is None:
        raise ValueError(
            "encoder_hidden_states=None, but this decoder looks at a source: pass the encoder's last_hidden_state"
        )
    check_tensor("encoder_hidden_states", states, "pass the encoder's last_hidden_state")
    wanted = f"({batch_size}, S, {config.hidden_size}), a source for each text"
    if states.dim() != 3 or 0 in states.shape or states.shape[::2] != (batch_size, config.hidden_size):
        raise ValueError(f"encoder_hidden_states must be {wanted}, got {tuple(states.shape)}")
    if mask is not None:
        check_tensor("encoder_attention_mask", mask)
        check_same_shape("encoder_attention_mask", mask, states.shape[:2])
    if torch.compiler.is_compiling():
        return
    if mask is not None:
        check_mask_facts("encoder_attention_mask", *mask_facts(mask))
    if kept is not None and kept is not states and not torch.equal(kept, states):
        raise ValueError(
            "the cache belongs to another source: pass its encoder_hidden_states, or a new cache"
        )
    if kept is None and not states.isfinite().all():
        raise ValueError("encoder_hidden_states hold NaN or inf: look for what made them")


def check_new_tokens(known: int, length: int) -> int:
    """Return how many tokens a cache knows; ValueError unless the text has more."""
    if known >= length:
        sizes = f"the cache knows {known} tokens, and the text has {length}"
        raise ValueError(f"{sizes}: pass the whole text so far, or a new cache")
    return known


def check_scores(logits: Tensor) -> Tensor:
    """Return the scores of the next token; ValueError for NaN and inf, of which none is the best."""
    if not logits.isfinite().all():
        remedy = "take the weights from before training went wrong"
        raise ValueError(f"the scores of the next token hold NaN or inf: {remedy}")
    return logits


def check_generation(config, max_length: int, num_beams: int) -> tuple[int, int, int, int, int]:
    """Start, end and padding token, length and beams; ValueError where one is missing or allows no text."""
    for name in ("bos_token_id", "eos_token_id"):
        token_id = getattr(config, name)
        if not is_whole(token_id) or not 0 <= token_id < config.vocab_size:
            ids = f"no id of its vocabulary, 0 … {config.vocab_size - 1}"
            raise ValueError(f"{name}={token_id!r} of the decoder's configuration is {ids}: set it there")
    check_size("max_length", max_length, 2, config.max_position_embeddings)
    check_size("num_beams", num_beams, 1, config.vocab_size // 2)
    pad = config.eos_token_id if config.pad_token_id is None else config.pad_token_id
    return config.bos_token_id, config.eos_token_id, pad, max_length, num_beams
