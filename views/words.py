"""Attention between whole words instead of their pieces."""

import re
from collections.abc import Sequence
from itertools import accumulate, chain, groupby, pairwise
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

PIECE_OF_A_CHARACTER = re.compile(r"(.+)·(\d)")  # as `readable_tokens` names them
MARKS = ("Ġ", "▁")  # at the beginning of a word, in byte-pair and SentencePiece vocabularies


class Words(NamedTuple):
    """The words of S tokens: `ids` (S,) counts them from 0, and `names` holds one name per word."""

    ids: list[int]
    names: list[str]


def whole_words(
    attentions: Tensor | Sequence[Tensor],
    word_ids: Sequence[int | None],
    key_word_ids: Sequence[int | None] | None = None,
) -> Tensor | list[Tensor]:
    """Merge attention weights (…, S, T) into those between whole words.

    Weights are summed over the pieces of a key and averaged over those of a query, so that rows still add up to 1.
    `attentions` is a tensor, or one per layer, as a model returns them. `word_ids` (S,)
    holds the word of each token, such as a fast tokenizer's `batch.word_ids()`: equal neighbours are pieces of one
    word, and None is a word of its own. `key_word_ids` (T,) are those of the keys in cross-attention. ValueError unless
    there is an id for each token.
    """
    if not isinstance(attentions, Tensor):
        return [whole_words(torch.as_tensor(layer), word_ids, key_word_ids) for layer in attentions]
    sides = word_ids, word_ids if key_word_ids is None else key_word_ids
    for ids, size in zip(sides, attentions.shape[-2:], strict=True):
        if len(ids) != size:
            raise ValueError(f"there are {len(ids)} word ids for {size} positions: pass one per token")
    return merge(attentions, *map(count_words, sides))


def merge(attentions: Tensor, queries: Sequence[int], keys: Sequence[int], count: int | None = None) -> Tensor:
    """Sum weights (…, S, T) over the keys of each group, and average them over its queries: (…, groups, groups).

    `queries` (S,) and `keys` (T,) hold the group of each token; there are `count` groups on both sides, 0 where a group
    is empty. By default there are as many as needed.
    """
    number = -1 if count is None else count
    rows, columns = (F.one_hot(torch.tensor(ids), number).to(attentions) for ids in (queries, keys))
    return (rows / rows.sum(dim=0).clamp(min=1)).mT @ attentions @ columns


def count_words(word_ids: Sequence[int | None]) -> list[int]:
    """Return the words' indices in reading order; equal neighbours share one, and None is a word of its own."""
    begins = [word is None or word != before for before, word in pairwise([None, *word_ids])]
    return [number - 1 for number in accumulate(map(int, begins))]


def words_of(shown: Sequence[str], word_ids: Sequence[int | None]) -> Words:
    """Return the words of tokens that are readable already, and the id of each token's word."""
    ids = count_words(word_ids)
    pairs = groupby(zip(ids, shown, strict=True), key=lambda pair: pair[0])
    return Words(ids, [name_of_word([token for _, token in group]) for _, group in pairs])


def words_for_page(left: Words, right: Words) -> dict | None:
    """Return what a page needs to show whole words: ids and names on both sides; None if each token is a word."""
    if len(left.names) == len(left.ids) and len(right.names) == len(right.ids):
        return None
    return {"left": left.ids, "right": right.ids, "left_text": left.names, "right_text": right.names}


def name_of_word(pieces: Sequence[str]) -> str:
    """Join the pieces of a word; a character that takes several pieces appears once."""
    first, *others = (
        match[1] * (match[2] == "1") if (match := PIECE_OF_A_CHARACTER.fullmatch(piece)) else piece for piece in pieces
    )
    if others:
        first = first.replace("␣", " ")  # as `visible` writes a token of spaces
    return first + "".join(piece.removeprefix("##") for piece in others)


def guess_word_ids(tokens: Sequence[str]) -> list[int]:
    """Return the word of each token by the marks of WordPiece, SentencePiece and byte-pair vocabularies.

    Without a mark, each token is a word.
    """
    if any(token.startswith("##") for token in tokens):
        begins = [not token.startswith("##") for token in tokens]
    elif any(token.startswith(MARKS) for token in tokens):
        begins = [
            token.startswith(MARKS) or is_special(before) or is_special(token) or is_word(token) != is_word(before)
            for before, token in pairwise(["<s>", *tokens])
        ]
    elif any(token.endswith("</w>") for token in tokens):
        begins = [before.endswith("</w>") or is_special(before) for before in ["<s>", *tokens[:-1]]]
    else:
        begins = [True] * len(tokens)
    return [number - 1 for number in accumulate(map(int, begins))]


def marks_among(*texts: Sequence[str]) -> list[str]:
    """Return the tokens of these texts that are special, or have neither letters nor digits."""
    return sorted({token for token in chain(*texts) if is_special(token) or not is_word(token)})


def is_special(token: str) -> bool:
    """Return whether a token has the form of a special one, such as [CLS] or </s>."""
    return re.fullmatch(r"\[\w+\]|<[^<>]+>", token) is not None


def is_word(token: str) -> bool:
    """Return whether a token holds letters or digits, unlike punctuation."""
    return any(map(str.isalnum, token.lstrip("".join(MARKS))))
