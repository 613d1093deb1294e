"""Texts and a vocabulary of one's own."""

import math

import torch

from tests.helpers import tiny_tokenizer
from tests.reference.bad_input import Bad, Good, each
from tests.reference.bad_input.models import IDS
from utils.masked_lm import mask_tokens
from utils.pretraining import fill_rows, train_vocabulary
from utils.support.checks import check_string
from utils.tokenization import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

VOCABULARY = [
    Bad(
        "a list for a vocabulary",
        lambda _: WordPieceTokenizer(SPECIAL),
        "must be a dictionary from token to id, got list",
        lambda _: WordPieceTokenizer({token: number for number, token in enumerate(SPECIAL)}),
        error=TypeError,
    ),
    Bad(
        "a vocabulary without [SEP] and [MASK]",
        lambda _: WordPieceTokenizer({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}),
        "the vocabulary lacks [SEP], [MASK]: pass BERT's complete vocabulary",
        lambda _: WordPieceTokenizer(tiny_tokenizer().vocab),
    ),
    *(
        Bad(
            f"a token with the id {wrong!r}",
            lambda _, wrong=wrong: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": wrong}),
            f"the vocabulary gives 'n' the id {wrong!r}: ids must be integers of at least 0",
            lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": 50}),
        )
        for wrong in (-1, 50.0)
    ),
    *(
        Bad(
            f"the id {wrong}, to decode",
            lambda _, wrong=wrong: tiny_tokenizer().decode([5, wrong]),
            f"id {wrong} is outside the vocabulary of 50 tokens",
            lambda _: tiny_tokenizer().decode([5, 49]),
        )
        for wrong in (-1, 50)
    ),
    Bad(
        "two tokens with one id",
        lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 7}),
        "gives several tokens the id 7: use each id once",
        lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 50}),
    ),
    *(
        Bad(
            f"a text that is {text!r}",
            lambda _, text=text: tiny_tokenizer().tokenize(text),
            f"text must be a string, got {type(text).__name__}: pass one string",
            lambda _: tiny_tokenizer().tokenize("a"),
            error=TypeError,
        )
        for text in (None, ["a"])
    ),
    *(
        Bad(
            f"texts that are {texts!r}",
            lambda _, texts=texts: tiny_tokenizer()(texts),
            f"texts must be a list, got {type(texts).__name__}: pass a list, or one column of a table",
            each(lambda _: tiny_tokenizer()("a"), lambda _: tiny_tokenizer()(["a"])),
            error=TypeError,
        )
        for texts in (None, {"a"})
    ),
    Bad(
        "a dictionary to learn a vocabulary from",
        lambda _: train_vocabulary({"a": 1}, 80),
        "texts must be a list, got dict: pass a list, or one column of a table",
        each(lambda _: train_vocabulary(["a"], 80), lambda _: train_vocabulary(iter(["a"]), 80)),
        error=TypeError,
    ),
    Bad(
        "an empty stream to learn a vocabulary from",
        lambda _: train_vocabulary(iter([]), 80),
        "got no texts: pass a list",
        each(lambda _: train_vocabulary(["a"], 80), lambda _: train_vocabulary(iter(["a"]), 80)),
    ),
    Bad(
        "a text of six million letters",
        lambda _: tiny_tokenizer().encode("a " * 3_000_000),
        "text has 6,000,000 characters: split it into parts of at most 5,000,000",
        lambda _: check_string("a " * 2_500_000) or tiny_tokenizer().encode("a"),
    ),
    Bad(
        "no texts",
        lambda _: tiny_tokenizer()([]),
        "got 0 texts but 0 pairs: pass at least one text",
        lambda _: tiny_tokenizer()(["a"]),
    ),
    Bad(
        "`max_length=1`",
        lambda _: tiny_tokenizer()("a", max_length=1),
        "max_length=1 is too small for 2 special tokens: use at least 2",
        lambda _: tiny_tokenizer()("a", max_length=2),
    ),
    Good("an empty text", lambda _: tiny_tokenizer().encode("") == [2, 3]),
    Good("half a surrogate pair", lambda _: tiny_tokenizer().encode("a \ud800") == [2, 5, 3]),
    *(
        Bad(
            f"`probability={share!r}`",
            lambda _, share=share: mask_tokens(IDS, tiny_tokenizer(), share),
            "probability must be between 0 and 1, got ",
            lambda _: mask_tokens(IDS, tiny_tokenizer(), 0.15),
        )
        for share in (0, 1, math.nan)
    ),
    Bad(
        "too little text for a row",
        lambda _: fill_rows(["a"], tiny_tokenizer(), 8),
        "the texts have 2 tokens, and a row takes 6: use more, or shorter rows",
        each(
            lambda _: fill_rows(["a b c d e f"], tiny_tokenizer(), 8), lambda _: fill_rows(["a"], tiny_tokenizer(), 3)
        ),
    ),
    *(
        Bad(
            f"a vocabulary of {size!r} tokens to learn",
            lambda _, size=size: train_vocabulary(["a"], size),
            "size must be an integer from 41 to 1,000,000",
            each(lambda _: train_vocabulary(["a"], 41), lambda _: train_vocabulary(["a"], 10**6)),
        )
        for size in (40, "many")
    ),
    Bad(
        "rows of special tokens only",
        lambda _: mask_tokens(torch.tensor([[2, 1, 3]]), tiny_tokenizer()),
        "input_ids contain only special tokens: use rows of text",
        lambda _: mask_tokens(torch.tensor([[2, 5, 3]]), tiny_tokenizer()),
    ),
]
