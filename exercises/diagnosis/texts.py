"""From text to ids, and from states to one vector per text, as it should be and with the classic bugs."""

import copy
from collections.abc import Callable, Sequence

import torch
from tokenizers import normalizers, pre_tokenizers
from torch import Tensor
from torch.nn import functional as F

# a capital, an accent, punctuation inside and at the end; a single text, a pair, and a short text that is padded
TEXTS = ("Time flies like an arrow.", ("An unaffable café, so it goes!", "Fruit flies like a banana."), "So it goes.")
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
Batch = tuple[Tensor, ...]  # ids, mask and types, (B, S) each


def padded_rows(tokenizer, texts: Sequence, first: int = 0, last: int = 0, **settings) -> Batch:
    """Return ids, mask and types of texts and pairs, padded; without the first or the last so many tokens."""
    pairs = [[text] if isinstance(text, str) else text for text in texts]
    rows = [tokenizer(*pair, return_token_type_ids=True, **settings) for pair in pairs]
    S = max(len(row["input_ids"]) for row in rows) - first - last

    def padded(field: str) -> Tensor:
        kept = [torch.tensor(row[field][first : len(row[field]) - last]) for row in rows]
        return torch.stack([F.pad(values, (0, S - len(values))) for values in kept])

    return tuple(map(padded, INPUTS))


def encode(tokenizer, **settings) -> Batch:
    """Return the rows of TEXTS."""
    return padded_rows(tokenizer, TEXTS, **settings)


def unmasked(batch: Batch) -> Batch:
    """Return a batch in which padding counts as real."""
    ids, mask, types = batch
    return ids, torch.ones_like(mask), types


def normalized(**settings) -> Callable[..., Batch]:
    """Return `encode` with other settings of the tokenizer's normalizer."""

    def encode_otherwise(tokenizer) -> Batch:
        changed = copy.deepcopy(tokenizer)
        changed.backend_tokenizer.normalizer = normalizers.BertNormalizer(**settings)
        return encode(changed)

    return encode_otherwise


def split_at_spaces(tokenizer) -> Batch:
    """Encode texts that were split at spaces alone."""
    changed = copy.deepcopy(tokenizer)
    changed.backend_tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return encode(changed)


def total(states: Tensor, mask: Tensor) -> Tensor:
    """Return the sum of the real tokens' vectors, (B, H)."""
    return (states * mask[..., None]).sum(1)


def mean(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of the real tokens' vectors, (B, H): the right way for the default checkpoint."""
    return total(states, mask) / mask.sum(1, keepdim=True)
