"""Clear errors for what the tokenizer cannot read."""

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def check_special_tokens(vocab: dict[str, int]) -> None:
    """Raise ValueError naming the special tokens that a vocabulary lacks."""
    missing = [token for token in SPECIAL_TOKENS if token not in vocab]
    if missing:
        raise ValueError(
            f"the vocabulary lacks {', '.join(missing)}: pass BERT's whole vocabulary, token to id"
        )


def room_for_text(max_length: int, pair: str | None) -> int:
    """How many of `max_length` ids the special tokens leave; ValueError if they do not fit themselves."""
    special = 2 if pair is None else 3
    if max_length < special:
        raise ValueError(
            f"max_length={max_length} is too small for {special} special tokens: use {special} or more"
        )
    return max_length - special


def check_known_ids(ids, tokens: dict[int, str]) -> None:
    """Raise ValueError naming the first id that is no key of `tokens`."""
    for token_id in ids:
        if int(token_id) not in tokens:
            raise ValueError(f"id {int(token_id)} is outside the vocabulary of {len(tokens)} tokens")


def match_pairs(texts, pairs) -> list[tuple]:
    """(text, pair) for each text, pair None if there are none. ValueError for no texts or unequal counts."""
    texts, pairs = ([item] if isinstance(item, str) else item for item in (texts, pairs))
    if not isinstance(texts, (list, tuple)):
        raise TypeError(f"texts must be a string or a list of strings, got {type(texts).__name__}")
    pairs = [None] * len(texts) if pairs is None else pairs
    if not texts or len(texts) != len(pairs):
        raise ValueError(
            f"got {len(texts)} texts and {len(pairs)} pairs: pass one text or more, and a pair for each"
        )
    return list(zip(texts, pairs, strict=True))
