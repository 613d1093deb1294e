"""WordPiece tokenization in pure Python, with the ids of BERT's official tokenizer. Built in notebook 01."""

import re
import unicodedata
from functools import cache

import torch
from torch import Tensor

from utils.support.characters import character_category, clean_character
from utils.support.checkpoint import load_tokenizer
from utils.support.checks import SPECIAL_TOKENS, as_pairs, check_max_length, check_string, check_vocabulary
from utils.support.vocabulary import read_vocabulary

MAX_CHARACTERS_PER_WORD = 100


@cache
def is_punctuation(character: str) -> bool:
    """Return whether BERT splits here: at Unicode punctuation, and at ASCII characters that Unicode calls symbols.

    Built in notebook 01, section “Step 2: split into words”.
    """
    return character in "$+<=>^`|~" or character_category(character).startswith("P")


def split_special_tokens(text: str) -> list[str]:
    """Split a text at special tokens such as [MASK], and keep these as parts. TypeError for anything but a string.

    Built in notebook 01, section “Assemble: the tokenizer”.
    """
    check_string(text)
    return re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text)


def normalize(text: str, lowercase: bool = True) -> str:
    """Clean the text; with `lowercase` also strip accents and lowercase it, character by character.

    Built in notebook 01, section “Step 1: clean the text”.
    """
    text = "".join(clean_character(character) for character in text)
    if not lowercase:
        return text
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character.lower() for character in decomposed if character_category(character) != "Mn")


def pre_tokenize(text: str) -> list[str]:
    """Split a text into words at white space; each punctuation character is a word.

    Built in notebook 01, section “Step 2: split into words”.
    """
    return "".join(f" {character} " if is_punctuation(character) else character for character in text).split()


def word_pieces(word: str, vocab: dict[str, int]) -> list[str]:
    """Split a word into the longest matching pieces from the left; a word with an unmatched rest becomes [UNK].

    Built in notebook 01, exercise 1.1.
    """
    if len(word) > MAX_CHARACTERS_PER_WORD:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start > 0 else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if prefix + word[start:end] in vocab), None)
        if end is None:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces


def truncate(first: list, second: list, budget: int) -> tuple[list, list]:
    """Truncate the longer of two id lists until both have at most `budget` ids, as the official tokenizer does.

    Built in notebook 01, section “Assemble: the tokenizer”.
    """
    if len(first) + len(second) <= budget:
        return first, second
    shorter = min(len(first), len(second), budget // 2)  # the shorter text keeps all, or half of the budget
    longer = budget - shorter  # the longer one gets the rest
    kept = (shorter, longer) if len(first) <= len(second) else (longer, shorter)  # in their own order
    return first[: kept[0]], second[: kept[1]]


def join_pieces(tokens: list[str]) -> str:
    """Join tokens to readable text, without spaces inside words and before . , ? !

    Built in notebook 01, section “Assemble: the tokenizer”.
    """
    return re.sub(r" (?=[.,?!](?: |$))", "", " ".join(tokens).replace(" ##", ""))


def pad_batch(rows: list[tuple[list, list]], pad_id: int) -> dict[str, Tensor]:
    """Pad rows of (first, second) segment ids to the longest row: input_ids, token_type_ids, attention_mask (B, S).

    Built in notebook 01, section “Assemble: the tokenizer”.
    """
    S = max(len(first) + len(second) for first, second in rows)
    batch = {"input_ids": [], "token_type_ids": [], "attention_mask": []}
    for first, second in rows:
        padding = S - len(first) - len(second)
        batch["input_ids"].append(first + second + [pad_id] * padding)
        batch["token_type_ids"].append([0] * len(first) + [1] * len(second) + [0] * padding)
        batch["attention_mask"].append([1] * (S - padding) + [0] * padding)
    return {name: torch.tensor(values) for name, values in batch.items()}


class WordPieceTokenizer:
    """BERT's tokenizer: text to tokens, ids and padded batches, and back (Devlin et al. 2019, section 3).

    Built in notebook 01, section “Assemble: the tokenizer”.
    """

    word_pieces = staticmethod(word_pieces)

    def __init__(self, vocab: dict[str, int], lowercase: bool = True):
        """Take a dict of tokens and ids. ValueError if a special token is missing or two tokens share an id."""
        check_vocabulary(vocab)
        self.vocab, self.lowercase = vocab, lowercase
        self.tokens = {token_id: token for token, token_id in vocab.items()}

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None):
        """Load vocabulary and casing from a checkpoint: the embedded one, a local folder or a name on the Hub."""
        return cls(*read_vocabulary(load_tokenizer(checkpoint)))

    def tokenize(self, text: str) -> list[str]:
        """Split a text into word pieces, with special tokens intact. TypeError for anything but a string."""
        tokens = []
        for part in split_special_tokens(text):
            words = [part] if part in SPECIAL_TOKENS else pre_tokenize(normalize(part, self.lowercase))
            tokens += [piece for word in words for piece in self.word_pieces(word, self.vocab)]
        return tokens

    def ids_of(self, text: str) -> list[int]:
        """Return the ids of a text's tokens, without special tokens around them."""
        return [self.vocab[token] for token in self.tokenize(text)]

    def segments(self, text: str, pair: str | None, max_length: int | None = None) -> tuple[list, list]:
        """Return the ids of [CLS] text [SEP] and of pair [SEP] ([] without a pair), together at most `max_length`."""
        first = self.ids_of(text)
        second = [] if pair is None else self.ids_of(pair)
        if max_length is not None:
            special = 2 if pair is None else 3
            check_max_length(max_length, special)
            first, second = truncate(first, second, max_length - special)
        cls_id, sep_id = self.vocab["[CLS]"], self.vocab["[SEP]"]
        return [cls_id, *first, sep_id], [] if pair is None else [*second, sep_id]

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> list[int]:
        """Return the ids of a text or of a pair of texts; "" gives [CLS] [SEP]."""
        if add_special_tokens:
            first, second = self.segments(text, pair)
            return first + second
        return self.ids_of(text) + ([] if pair is None else self.ids_of(pair))

    def decode(self, ids) -> str:
        """Return the text of ids (a list or a tensor). ValueError for an id without a token."""
        ids = [int(token_id) for token_id in ids]
        if unknown := [token_id for token_id in ids if token_id not in self.tokens]:
            raise ValueError(f"id {unknown[0]} is outside the vocabulary of {len(self.tokens)} tokens")
        return join_pieces([self.tokens[token_id] for token_id in ids])

    def __call__(self, texts, pairs=None, max_length: int | None = None) -> dict[str, Tensor]:
        """Return a batch padded to its longest row: input_ids, token_type_ids, attention_mask, each (B, S).

        `texts` is a string or a list of strings, and so is `pairs`; `max_length` truncates each row.
        """
        rows = [self.segments(text, pair, max_length) for text, pair in as_pairs(texts, pairs)]
        return pad_batch(rows, self.vocab["[PAD]"])
