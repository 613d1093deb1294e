"""The draggable figures, from Python: errors for invalid input, and pictures that are reproducible."""

import math
import re

import pytest
import torch

from views import figures

KEYS, NAMES, LONG = [[1, 2]] * 3, [str(number) for number in range(12)], [99 * "long"] * 16
TOKENS = ["time", "flies"]
TABLES = {"word": torch.zeros(2, 4), "position": torch.zeros(5, 4), "token_type": torch.zeros(2, 4)}


def plane(*arguments, **options):
    return lambda _: figures.attention_in_the_plane(*arguments, **options)


def sharp(scores, **options):
    return lambda _: figures.sharpness(scores, **options)


def next_of(logits, tokens):
    return lambda _: figures.next_token(logits, tokens)


def scaled(**changes):
    return lambda _: figures.sum_and_scale(**TABLES | changes)


def matched(*arguments):
    return lambda tokenizer: figures.longest_match(tokenizer, *arguments)


def merged(*arguments):
    return lambda _: figures.merges(*arguments)


def painted(**changes):
    return lambda _: figures.mask_painter(**{"tokens": TOKENS} | changes)


def split(**changes):
    return lambda _: figures.split_and_merge(**{"sequence": 3, "heads": 2, "head_size": 4} | changes)


def turned(*arguments, **options):
    return lambda _: figures.rotary_turn(*arguments, **options)


# a call that gets the tokenizer, and words of its ValueError
REFUSED = [
    (plane([1, 2], KEYS[:1]), "keys has the shape (1, 2): this figure draws 2 to 6 × 2 numbers"),
    (plane([1, 2], KEYS, asking=3), "asking must be an integer from 0 to 2, got 3"),
    (sharp([1.0]), "scores has the shape (1,): this figure draws 2 to 12 numbers"),
    (sharp([1.0, 2.0], head_size=1), "head_size must be an integer from 2 to 1,024, got 1"),
    (next_of(torch.zeros(1, 2), ["a", "b"]), "logits has the shape (1, 2): this figure draws 2 to 500 numbers"),
    (next_of(torch.zeros(30_522), ["a"]), "logits has 30,522 tokens"),
    (scaled(word=torch.zeros(40, 4)), "word has the shape (40, 4): this figure draws 1 to 20 × 2 to 1024 numbers"),
    (scaled(weight=torch.ones(4)), "pass both weight and bias"),
    (matched(" \n"), "text must contain a word"),
    (matched("a " * 101), "at most 200 characters"),
    (lambda _: figures.vocabulary_lines({"a": 0, "b": 2}), "2 tokens have ids up to 2: number them"),
    (lambda _: figures.vocabulary_lines({"a\n": 0}), "contains a line break"),
    (merged(["1 + 1!"]), "must contain at least one word of letters, got '1"),
    (merged(["fly " * 501]), "2,004 characters, but this figure takes at most 2,000: pass fewer"),
    (merged(["flies"], 0), "steps must be an integer from 1 to 60, got 0"),
    (painted(tokens=["time"]), "the number of tokens must be an integer from 2 to 12, got 1"),
    (painted(values=[1, 1e30]), "values must be between -1000 and 1000, got 1e+30"),
    (painted(mask="future"), "mask='future' cannot be drawn: use one of bidirectional, causal, padding, window"),
    (painted(mask="cross"), "mask='cross' cannot be drawn: pass rows, the tokens that look"),
    (split(heads=0), "heads must be an integer from 1 to 6, got 0"),
    (split(heads=6, head_size=5), "heads=6 of head_size=5 are 30 numbers per token: this figure draws up to 24"),
    (turned(key=[1, math.inf]), "key must not contain nan or inf"),
    (turned(pair=32), "pair must be an integer from 0 to 31, got 32"),
    (turned(base=1), "base must be between 1 and 1e+09, got 1"),
]
# the same for a TypeError
OTHER_TYPES = [
    (next_of([1.0, 2.0], "ab"), "tokens must be a list of 2 strings, got the string 'ab'"),
    (matched(7), "text must be a string, got int"),
    (lambda tokenizer: figures.longest_match(tokenizer.vocab, "time"), "WordPieceTokenizer or transformers' own"),
    (merged("flies"), "wrap one text in a list"),
    (painted(tokens="time flies"), "tokens must be a list of tokens, got 'time flies'"),
]


@pytest.mark.parametrize(("call", "words"), REFUSED + OTHER_TYPES)
def test_invalid_arguments_raise(tokenizer, call, words):
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as raised:
        call(tokenizer)
    assert raised.type is (TypeError if (call, words) in OTHER_TYPES else ValueError)


# the smallest and largest of what is drawn, and odd words
DRAWN = [
    *(matched(word) for word in ("北", "$x$", "[MASK]", "x" * 150, "\x00a\ud800")),
    *(merged([text]) for text in ("a", "北京大学", "$x$ {a}", "x" * 500, "\ud800 ab")),
    painted(tokens=["\ud800", LONG[0]]),
    *(lambda _, sizes=sizes: figures.split_and_merge(*sizes) for sizes in ((2, 1, 1), (6, 6, 4), (["a", "$x$"], 4, 6))),
    *(turned((0, 0), (0, 0), tokens, pair=0, pairs=1) for tokens in (None, ["$x$", "\ud800"], LONG)),
]


@pytest.mark.parametrize("call", DRAWN)
def test_any_names_and_sizes_are_drawn(tokenizer, call):
    assert call(tokenizer).page.startswith("<!doctype html>")


def test_both_tokenizers_give_one_figure(official_tokenizer, tokenizer):
    official = figures.longest_match(official_tokenizer, "unaffable 北京")
    assert official.page == figures.longest_match(tokenizer, "unaffable 北京").page
    assert '"text":"[MASK] x"' in figures.longest_match(tokenizer, "[MASK] x").page


def test_what_a_reader_can_change_is_not_in_the_line_below_the_title(tokenizer):
    for one, other in (
        (figures.merges(["a b"]), figures.merges(["time flies"])),
        (figures.longest_match(tokenizer, "unaffable"), figures.longest_match(tokenizer, "time")),
        (figures.rotary_turn(pair=0), figures.rotary_turn(pair=8)),
        (figures.split_and_merge(2, 2, 3), figures.split_and_merge(4, 3, 2)),
    ):
        assert one.page != other.page
        assert one.summary == other.summary


@pytest.mark.parametrize("mask", ["bidirectional", "causal", "padding", "window", "cross"])
def test_mask_painter_starts_with_each_mask(mask):
    assert f'"mask":"{mask}"' in figures.mask_painter([*TOKENS, "[PAD]"], rows=["le", "temps"], mask=mask).page


def test_padding_mask_hides_padding_or_last_token():
    assert figures.make_masks(["time", "[PAD]", "[PAD]"])["padding"].tolist() == [[1, 0, 0]] * 3
    assert figures.make_masks(["time", "flies"])["padding"].tolist() == [[1, 0]] * 2
    assert figures.make_masks(["a", "b", "c"])["window"].tolist() == [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
