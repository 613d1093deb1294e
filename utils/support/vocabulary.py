"""Read the vocabulary of a tokenizer, and write it to files."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

from tokenizers import BertWordPieceTokenizer

from utils.support.checkpoint import PROBES, TOKENIZER_REMEDY, load_official_tokenizer
from utils.support.checks import SPECIAL_TOKENS, check_vocabulary

# the parts of an official tokenizer that behave like BERT's
TOKENIZER_PARTS = {
    "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##"},
}


def read_vocabulary(tokenizer) -> tuple[dict[str, int], bool]:
    """Return a tokenizer's vocabulary (token to id) and whether it lowercases; for ours and for official ones.

    ValueError unless an official one gives BERT's ids, with BERT's five special tokens and no others.
    """
    if hasattr(tokenizer, "segments"):  # a WordPieceTokenizer
        return tokenizer.vocab, tokenizer.lowercase
    if not hasattr(tokenizer, "backend_tokenizer"):
        raise ValueError(f"a {type(tokenizer).__name__} is not a BERT tokenizer: {TOKENIZER_REMEDY}")
    settings = json.loads(tokenizer.backend_tokenizer.to_str())
    for part, expected in TOKENIZER_PARTS.items():
        actual = {name: value for name, value in (settings[part] or {}).items() if name != "vocab"}
        if not expected.items() <= actual.items():
            raise ValueError(f"the tokenizer has a {part} that is not supported, {actual}: {TOKENIZER_REMEDY}")
    normalizer = settings["normalizer"]
    if normalizer.get("strip_accents") not in (None, normalizer["lowercase"]):
        raise ValueError(f"the tokenizer has a normalizer that is not supported, {normalizer}: {TOKENIZER_REMEDY}")
    others = {token["content"] for token in settings["added_tokens"]} - set(SPECIAL_TOKENS)
    if others:
        raise ValueError(
            f"the tokenizer has special tokens that BERT does not have, {sorted(others)}: "
            "use one with BERT's five special tokens"
        )
    vocab, lowercase = tokenizer.get_vocab(), normalizer["lowercase"]
    check_vocabulary(vocab)
    bert = BertWordPieceTokenizer(vocab, lowercase=lowercase)
    for text, pair in PROBES:
        pairs = None if pair is None else [pair]
        [ids] = tokenizer([text], pairs, padding=False, truncation=False, verbose=False)["input_ids"]
        if bert.encode(text, pair).ids != ids:
            raise ValueError(
                f"the tokenizer gives other ids for {text!r:.40} than BERT's tokenizer: {TOKENIZER_REMEDY}"
            )
    return vocab, lowercase


def write_vocabulary(folder: Path, vocab: Mapping[str, int], lowercase: bool, max_length: int) -> None:
    """Write a vocabulary (token to id) as files that `load_tokenizer` reads; ValueError if it reads differently."""
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "model_max_length": max_length}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    if all(re.fullmatch(r"\S+", token) for token in vocab):
        lines = "".join(f"{token}\n" for token in sorted(vocab, key=vocab.get))
        (folder / "vocab.txt").write_text(lines, "utf-8")
    else:  # white space, such as U+2028 of bert-base-chinese, would be lost in lines
        BertWordPieceTokenizer(dict(vocab), lowercase=lowercase).save(str(folder / "tokenizer.json"))
    stored = load_official_tokenizer(folder).get_vocab()
    if lost := [token for token in vocab if stored.get(token) != vocab[token]]:
        raise ValueError(f"the token {lost[0]!r} cannot be stored in a file: leave it out of the vocabulary")
