"""What the exercises of notebooks 07 and 10 have in common: attention weights of a text, and names of heads."""

import re
from functools import cache

import torch
from torch import Tensor

from exercises.framework import Hint, expect
from utils.encoder import TransformerEncoder
from utils.tokenization import WordPieceTokenizer


def random_weights(L: int, A: int, S: int) -> Tensor:
    """Return seeded attention weights, (L, A, S, S)."""
    scores = torch.randn(L, A, S, S, generator=torch.Generator().manual_seed(7))
    return (2 * scores).softmax(dim=-1)


@torch.inference_mode()
def read_weights(*text: str) -> tuple[Tensor, list[str]]:
    """Return the checkpoint's attention weights (L, A, S, S) for a text or a pair, and its tokens."""
    encoder, tokenizer = models()
    batch = tokenizer(*text)
    tokens = [tokenizer.tokens[token_id] for token_id in batch["input_ids"][0].tolist()]
    return torch.cat(encoder(**batch, output_attentions=True).attentions), tokens


@cache
def models() -> tuple[TransformerEncoder, WordPieceTokenizer]:
    """Return the checkpoint's encoder and tokenizer, loaded once."""
    return TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()


def as_head(answer, L: int, A: int) -> tuple[int, int]:
    """Return layer and head of (5, 3), [5, 3], a tensor, "5-3" or "layer 5, head 3"; `Hint` if there is none."""
    try:
        layer, head = map(int, numbers_in(answer) if isinstance(answer, str) else answer)
    except (TypeError, ValueError, RuntimeError, AttributeError):
        raise Hint("Give a head as two numbers, such as (3, 7): the layer and the head.") from None
    exists = 0 <= layer < L and 0 <= head < A
    expect(exists, f"There are {L} layers and {A} heads, both counted from 0, so {layer}-{head} does not exist.")
    return layer, head


def numbers_in(text: str) -> list[str]:
    """Return layer and head from text, by name as in "head 3 of layer 5" or "L5H3", or else in order."""
    by_name = [re.search(rf"(?i){name}[\s:=#]*(\d+)", text) for name in ("l(?:ayer)?", "h(?:ead)?")]
    if all(by_name):
        return [found[1] for found in by_name]
    return re.fullmatch(r"\s*\(?(\d+)\s*[-–.,:/ ]\s*(\d+)\)?\s*", text).groups()


def largest_is(rows: Tensor, key: int, left_out: list[int]) -> Tensor:
    """Return whether a row's largest weight, some places left out, is the key's, as 0 and 1."""
    rows = rows.clone()
    rows[..., left_out] = -1
    return (rows.argmax(dim=-1) == key).double()
