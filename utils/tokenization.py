"""WordPiece tokenization in pure Python, id for id BERT's official tokenizer. Built in notebook 01."""

import re
import unicodedata
from functools import cache

import torch
from torch import Tensor

from utils.support.checkpoint import load_tokenizer
from utils.support.checks import SPECIAL_TOKENS, as_pairs, check_max_length, check_string, check_vocabulary
from utils.support.vocabulary import read_vocabulary

MAX_CHARACTERS_PER_WORD = 100
# The official tokenizer knows the characters of Unicode 8.0 (2015). The marks, signs and format characters that
# later versions brought lie in these ranges, and there it sees no category at all ...
# fmt: off
LATER_CHARACTERS = (
    (0x5C8, 0x5C9), (0x61D, 0x61D), (0x7FD, 0x7FD), (0x890, 0x8E2), (0x9FD, 0x9FE), (0xA76, 0xA76), (0xAFA, 0xAFF),
    (0xB53, 0xB55), (0xC04, 0xC3C), (0xC77, 0xC77), (0xC84, 0xC84), (0xD00, 0xD00), (0xD3B, 0xD3C), (0xD81, 0xD81),
    (0xEBA, 0xEBA), (0xECE, 0xECE), (0x180F, 0x1886), (0x1ABF, 0x1AF0), (0x1B4E, 0x1B4F), (0x1B7D, 0x1B7F),
    (0x1DF6, 0x1DFB), (0x2E43, 0x2E63), (0xA82C, 0xA82C), (0xA8C5, 0xA8C5), (0xA8FF, 0xA8FF), (0xA9BD, 0xA9BD),
    (0x10D24, 0x10F89), (0x11070, 0x11074), (0x110C2, 0x110CD), (0x111CF, 0x111CF), (0x1123E, 0x11241),
    (0x1133B, 0x1133B), (0x113BB, 0x1145E), (0x11660, 0x1166C), (0x116B9, 0x116B9), (0x1182F, 0x11FFF),
    (0x12FF1, 0x1612F), (0x16D6D, 0x16F4F), (0x16FE2, 0x16FE4), (0x1CF00, 0x1D128), (0x1D25B, 0x1D25C),
    (0x1E000, 0x1E6F5), (0x1E944, 0x1E95F),
)
# ... and these four have changed category since.
EARLIER_CATEGORY = {"\u166d": "Po", "\u1734": "Mn", "\U000111c9": "Po", "\U0001171e": "Mn"}

CJK_RANGES = (  # the sixth starts 256 characters late in the official tokenizer, so it does here
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)
# fmt: on


def in_ranges(character: str, ranges: tuple) -> bool:
    """Whether the character's code point lies in one of the (first, last) ranges."""
    return any(first <= ord(character) <= last for first, last in ranges)


@cache
def character_category(character: str) -> str:
    """Unicode general category such as "Ll" or "Mn", as of Unicode 8.0; "Cn" (not assigned) for later characters."""
    if in_ranges(character, LATER_CHARACTERS):
        return "Cn"
    return EARLIER_CATEGORY.get(character) or unicodedata.category(character)


@cache
def is_punctuation(character: str) -> bool:
    """Whether BERT splits here: at Unicode punctuation and at the ASCII signs that Unicode calls symbols."""
    return character in "$+<=>^`|~" or character_category(character).startswith("P")


@cache
def clean_character(character: str) -> str:
    """One character after cleaning: blank for white space, "" for control characters, spaces around a CJK ideograph."""
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or character_category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if character.isspace():
        return " "
    return f" {character} " if in_ranges(character, CJK_RANGES) else character


def split_special_tokens(text: str) -> list[str]:
    """The text in parts, special tokens such as [MASK] parts of their own. TypeError if it is no string."""
    check_string(text)
    return re.split(r"(\[(?:PAD|UNK|CLS|SEP|MASK)\])", text)


def drop_surrogates(text: str) -> str:
    """The text without halves of a surrogate pair, which are no characters and which no other library takes."""
    return text.encode("utf-8", "ignore").decode("utf-8")


def normalize(text: str, lowercase: bool = True) -> str:
    """Clean the text; with `lowercase` also strip accents and lower the case, character by character."""
    text = "".join(clean_character(character) for character in text)
    if not lowercase:
        return text
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(character.lower() for character in decomposed if character_category(character) != "Mn")


def pre_tokenize(text: str) -> list[str]:
    """Split into words at white space, each punctuation character a word of its own."""
    return "".join(f" {character} " if is_punctuation(character) else character for character in text).split()


def word_pieces(word: str, vocab: dict[str, int]) -> list[str]:
    """Greedy longest match from the left; the whole word is [UNK] if some rest matches nothing."""
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
    """Cut the longer of two id lists until both together hold at most `budget`, as the official tokenizer does."""
    if len(first) + len(second) <= budget:
        return first, second
    shorter = min(len(first), len(second), budget // 2)  # the shorter text keeps all, or half of the budget
    longer = budget - shorter  # the longer one gets the rest
    kept = (shorter, longer) if len(first) <= len(second) else (longer, shorter)  # in their own order
    return first[: kept[0]], second[: kept[1]]


def join_pieces(tokens: list[str]) -> str:
    """Tokens back to readable text: word pieces joined, and . , ? ! set close to the word before."""
    return re.sub(r" (?=[.,?!](?: |$))", "", " ".join(tokens).replace(" ##", ""))


def pad_batch(rows: list[tuple[list, list]], pad_id: int) -> dict[str, Tensor]:
    """Rows of (first, second) segment ids, padded to the longest: input_ids, token_type_ids, attention_mask (B, S)."""
    S = max(len(first) + len(second) for first, second in rows)
    batch = {"input_ids": [], "token_type_ids": [], "attention_mask": []}
    for first, second in rows:
        padding = S - len(first) - len(second)
        batch["input_ids"].append(first + second + [pad_id] * padding)
        batch["token_type_ids"].append([0] * len(first) + [1] * len(second) + [0] * padding)
        batch["attention_mask"].append([1] * (S - padding) + [0] * padding)
    return {name: torch.tensor(values) for name, values in batch.items()}


class WordPieceTokenizer:
    """BERT's tokenizer: text to tokens, ids and padded batches, and back (Devlin et al. 2019, section 3)."""

    word_pieces = staticmethod(word_pieces)

    def __init__(self, vocab: dict[str, int], lowercase: bool = True):
        """`vocab` maps token to id; ValueError where a special token is missing or two tokens share an id."""
        check_vocabulary(vocab)
        self.vocab, self.lowercase = vocab, lowercase
        self.tokens = {token_id: token for token, token_id in vocab.items()}

    @classmethod
    def from_checkpoint(cls, checkpoint: str | None = None):
        """Take vocabulary and case from a checkpoint: the embedded one, a local folder or a name on the Hub."""
        return cls(*read_vocabulary(load_tokenizer(checkpoint)))

    def tokenize(self, text: str) -> list[str]:
        """Text to word pieces; special tokens written in the text stay whole. TypeError if it is no string."""
        tokens = []
        for part in split_special_tokens(text):
            words = [part] if part in SPECIAL_TOKENS else pre_tokenize(normalize(part, self.lowercase))
            tokens += [piece for word in words for piece in self.word_pieces(word, self.vocab)]
        return tokens

    def ids_of(self, text: str) -> list[int]:
        """The ids of a text's tokens, and no others."""
        return [self.vocab[token] for token in self.tokenize(text)]

    def segments(self, text: str, pair: str | None, max_length: int | None = None) -> tuple[list, list]:
        """Ids of [CLS] text [SEP] and of pair [SEP] ([] without a pair), together at most `max_length`."""
        first = self.ids_of(text)
        second = [] if pair is None else self.ids_of(pair)
        if max_length is not None:
            special = 2 if pair is None else 3
            check_max_length(max_length, special)
            first, second = truncate(first, second, max_length - special)
        cls_id, sep_id = self.vocab["[CLS]"], self.vocab["[SEP]"]
        return [cls_id, *first, sep_id], [] if pair is None else [*second, sep_id]

    def encode(self, text: str, pair: str | None = None, add_special_tokens: bool = True) -> list[int]:
        """Text, or a pair of texts, to ids; "" gives [CLS] [SEP]."""
        if add_special_tokens:
            first, second = self.segments(text, pair)
            return first + second
        return self.ids_of(text) + ([] if pair is None else self.ids_of(pair))

    def decode(self, ids) -> str:
        """Ids (a list or a tensor) back to text; ValueError for an id without a token."""
        ids = [int(token_id) for token_id in ids]
        if unknown := [token_id for token_id in ids if token_id not in self.tokens]:
            raise ValueError(f"id {unknown[0]} is outside the vocabulary of {len(self.tokens)} tokens")
        return join_pieces([self.tokens[token_id] for token_id in ids])

    def __call__(self, texts, pairs=None, max_length: int | None = None) -> dict[str, Tensor]:
        """A batch padded to its longest row: input_ids, token_type_ids, attention_mask, each (B, S).

        `texts` is a string or a list of strings, `pairs` likewise; `max_length` cuts each row to so many ids.
        """
        rows = [self.segments(text, pair, max_length) for text, pair in as_pairs(texts, pairs)]
        return pad_batch(rows, self.vocab["[PAD]"])
