"""A tiny BERT's settings and tokenizer, for the table of bad input and the tests."""

import json
from collections.abc import Sequence
from pathlib import Path

from utils.tokenization import WordPieceTokenizer

TINY = {"hidden_size": 12, "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 20}
TINY |= {"vocab_size": 50, "max_position_embeddings": 16}


def tiny_tokenizer(size: int = TINY["vocab_size"]) -> WordPieceTokenizer:
    """Return a tokenizer of the special tokens, letters and numbers, with a vocabulary of this size."""
    words = [*"abcdefghijklmnopqrstuvwxyz", *(str(number) for number in range(size))]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words][:size]
    return WordPieceTokenizer({token: number for number, token in enumerate(tokens)})


def write_vocabulary(folder: Path, tokens: Sequence[str], lowercase: bool = True) -> None:
    """Write a tokenizer with these tokens, in files that every release of transformers reads."""
    (folder / "vocab.txt").write_text("\n".join(tokens), "utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lowercase}), "utf-8")
