"""Texts and a vocabulary of one's own."""

import math

import torch

from tests.helpers import tiny_tokenizer
from tests.reference.bad_input import each
from tests.reference.bad_input.models import IDS
from utils.masked_lm import mask_tokens
from utils.pretraining import fill_rows, train_vocabulary
from utils.support.checks import check_string
from utils.tokenization import WordPieceTokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

# fmt: off
VOCABULARY = [
    ("a list for a vocabulary", lambda _: WordPieceTokenizer(SPECIAL),
     TypeError, "must be a dictionary from token to id, got list",
     lambda _: WordPieceTokenizer({token: number for number, token in enumerate(SPECIAL)})),
    ("a vocabulary without [SEP] and [MASK]", lambda _: WordPieceTokenizer({"[PAD]": 0, "[UNK]": 1, "[CLS]": 2}),
     ValueError, "the vocabulary lacks [SEP], [MASK]: pass BERT's complete vocabulary",
     lambda _: WordPieceTokenizer(tiny_tokenizer().vocab)),
    *((f"a token with the id {wrong!r}",
       lambda _, wrong=wrong: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": wrong}),
       ValueError, f"the vocabulary gives 'n' the id {wrong!r}: ids must be integers of at least 0",
       lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"n": 50})) for wrong in (-1, 50.0)),
    *((f"the id {wrong}, to decode", lambda _, wrong=wrong: tiny_tokenizer().decode([5, wrong]),
       ValueError, f"id {wrong} is outside the vocabulary of 50 tokens",
       lambda _: tiny_tokenizer().decode([5, 49])) for wrong in (-1, -100, 50)),
    ("two tokens with one id", lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 7}),
     ValueError, "gives several tokens the id 7: use each id once",
     lambda _: WordPieceTokenizer(tiny_tokenizer().vocab | {"new": 50})),
    *((f"a text that is {text!r}", lambda _, text=text: tiny_tokenizer().tokenize(text),
       TypeError, f"text must be a string, got {type(text).__name__}: pass one string",
       lambda _: tiny_tokenizer().tokenize("a")) for text in (None, 7, b"a", ["a"])),
    *((f"texts that are {texts!r}", lambda _, texts=texts: tiny_tokenizer()(texts),
       TypeError, "texts must be a string or a list of strings",
       each(lambda _: tiny_tokenizer()("a"), lambda _: tiny_tokenizer()(["a"]))) for texts in (None, 7, {"a"})),
    ("a dictionary to learn a vocabulary from", lambda _: train_vocabulary({"a": 1}, 80),
     TypeError, "texts must be a list or stream of strings, got dict",
     each(lambda _: train_vocabulary(["a"], 80), lambda _: train_vocabulary(iter(["a"]), 80))),
    ("an empty stream to learn a vocabulary from", lambda _: train_vocabulary(iter([]), 80),
     ValueError, "got no texts: pass a list",
     each(lambda _: train_vocabulary(["a"], 80), lambda _: train_vocabulary(iter(["a"]), 80))),
    ("a text of six million letters", lambda _: tiny_tokenizer().encode("a " * 3_000_000),
     ValueError, "text has 6,000,000 characters: split it into parts of at most 5,000,000",
     lambda _: check_string("a " * 2_500_000) or tiny_tokenizer().encode("a")),
    ("no texts", lambda _: tiny_tokenizer()([]),
     ValueError, "got 0 texts but 0 pairs: pass at least one text", lambda _: tiny_tokenizer()(["a"])),
    ("two texts and one pair", lambda _: tiny_tokenizer()(["a", "b"], ["c"]),
     ValueError, "got 2 texts but 1 pairs: pass at least one text, and one pair per text",
     lambda _: tiny_tokenizer()(["a", "b"], ["c", "d"])),
    ("`max_length=1`", lambda _: tiny_tokenizer()("a", max_length=1),
     ValueError, "max_length=1 is too small for 2 special tokens: use at least 2",
     lambda _: tiny_tokenizer()("a", max_length=2)),
    ("an empty text", lambda _: tiny_tokenizer().encode("") == [2, 3]),
    ("a text of a million letters", lambda _: tiny_tokenizer().encode("a" * 10**6) == [2, 1, 3]),
    ("half a surrogate pair", lambda _: tiny_tokenizer().encode("a \ud800") == [2, 5, 3]),
    ("half a surrogate pair among texts to learn from",
     lambda _: fill_rows(["a \ud800b c"], tiny_tokenizer(), 5).tolist() == [[2, 5, 6, 7, 3]]),
    *((f"`probability={share!r}`", lambda _, share=share: mask_tokens(IDS, tiny_tokenizer(), share),
       ValueError, "probability must be between 0 and 1, got ", lambda _: mask_tokens(IDS, tiny_tokenizer(), 0.15))
      for share in (0, 1, math.nan, True, "0.15")),
    ("too little text for a row", lambda _: fill_rows(["a"], tiny_tokenizer(), 8),
     ValueError, "the texts have 2 tokens, and a row takes 6: use more, or shorter rows",
     each(lambda _: fill_rows(["a b c d e f"], tiny_tokenizer(), 8), lambda _: fill_rows(["a"], tiny_tokenizer(), 3))),
    ("rows of two tokens", lambda _: fill_rows(["a"], tiny_tokenizer(), 2),
     ValueError, "length must be an integer of at least 3, got 2",
     lambda _: fill_rows(["a"], tiny_tokenizer(), 3)),
    *((f"a vocabulary of {size!r} tokens to learn", lambda _, size=size: train_vocabulary(["a"], size),
       ValueError, "size must be an integer from 41 to 1,000,000",
       each(lambda _: train_vocabulary(["a"], 41), lambda _: train_vocabulary(["a"], 10**6)))
      for size in (40, 10**9, "many")),
    ("rows of special tokens only", lambda _: mask_tokens(torch.tensor([[2, 1, 3]]), tiny_tokenizer()),
     ValueError, "input_ids contain only special tokens: use rows of text",
     lambda _: mask_tokens(torch.tensor([[2, 5, 3]]), tiny_tokenizer())),
]
# fmt: on
