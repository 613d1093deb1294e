"""The draggable figures, from Python: errors for invalid input, and pictures that are reproducible."""

import math
import re

import pytest
import torch

from views import figures

# attention_in_the_plane


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1, 2], [[1, 2]]), {}, r"keys has the shape \(1, 2\): this figure draws 2 to 6 × 2 numbers"),
        (([1, 2], [[1, 2]] * 40), {}, r"keys has the shape \(40, 2\)"),
        (([1, 2, 3], [[1, 2]] * 3), {}, r"query has the shape \(3,\): this figure draws 2 numbers"),
        (([1, float("nan")], [[1, 2]] * 3), {}, "query must not contain nan or inf"),
        (([1, 2], [[1, 2]] * 3, [[1, 2]] * 2), {}, r"values has the shape \(2, 2\)"),
        (([1, 2], [[1, 2]] * 3), {"tokens": ["one"]}, "tokens must be a list of 3 names, got 1"),
        (([1, 2], [[1, 2]] * 3), {"asking": 3}, "asking must be an integer from 0 to 2, got 3"),
    ],
)
def test_invalid_attention_in_the_plane_raises(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        figures.attention_in_the_plane(*arguments, **options)


# sharpness


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([1.0], {}, "scores has the shape .1,.: this figure draws 2 to 12 numbers"),
        (torch.zeros(40), {}, "scores has the shape .40,."),
        ([[1.0, 2.0]], {}, "scores has the shape .1, 2."),
        ([1.0, math.nan], {}, "scores must not contain nan or inf"),
        ([1.0, math.inf], {}, "scores must not contain nan or inf"),
        ([1.0, 2.0], {"tokens": ["time"]}, "tokens must be a list of 2 names, got 1"),
        ([1.0, 2.0], {"head_size": 1}, "head_size must be an integer from 2 to 1,024, got 1"),
        ([1.0, 2.0], {"head_size": 64.0}, "head_size must be an integer"),
    ],
)
def test_invalid_sharpness_raises(scores, options, message):
    with pytest.raises(ValueError, match=message):
        figures.sharpness(scores, **options)


LONG = ["a name longer than a picture has room for " * 3, "Donaudampfschifffahrtsgesellschaft"]


def test_long_names_are_drawn():
    assert figures.sharpness([1.0, 2.0], tokens=LONG).page.startswith("<!doctype html>")
    assert figures.next_token([1.0, 2.0], LONG).page.startswith("<!doctype html>")


# next_token


@pytest.mark.parametrize(
    ("logits", "tokens", "message"),
    [
        ([1.0], ["a"], "logits has the shape .1,.: this figure draws 2 to 500 numbers"),
        (torch.zeros(1, 2), ["a", "b"], "logits has the shape .1, 2."),
        (torch.zeros(30_522), ["a"], r"logits has 30,522 tokens.*at most 500: pass.*logits.topk.500."),
        ([1.0, -math.inf], ["a", "b"], "logits must not contain nan or inf"),
        ([1.0, 2.0], ["a"], "tokens must be a list of 2 names, got 1"),
    ],
)
def test_invalid_next_token_raises(logits, tokens, message):
    with pytest.raises(ValueError, match=message):
        figures.next_token(logits, tokens)


def test_next_token_with_string_of_names_raises():
    with pytest.raises(TypeError, match="tokens must be a list of 2 strings, got the string 'ab'"):
        figures.next_token([1.0, 2.0], "ab")


# sum_and_scale

TABLES = {"word": torch.zeros(2, 4), "position": torch.zeros(5, 4), "token_type": torch.zeros(2, 4)}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"word": torch.zeros(4)}, "word has the shape .4,.: this figure draws 1 to 20 × 2 to 1024 numbers"),
        ({"word": torch.zeros(40, 4)}, "word has the shape .40, 4."),
        ({"position": torch.zeros(5, 3)}, "position has the shape .5, 3.: .* 1 to 512 × 4 numbers"),
        ({"token_type": torch.full((2, 4), math.nan)}, "token_type must not contain nan or inf"),
        ({"weight": torch.ones(4)}, "pass both weight and bias"),
        ({"weight": torch.ones(4), "bias": torch.ones(3)}, "bias has the shape .3,."),
        ({"names": ["time"]}, "names must be a list of 2 names, got 1"),
        ({"number": 4}, "number must be an integer from 0 to 3, got 4"),
        ({"eps": 0}, "eps must be between 0 and 1, got 0"),
    ],
)
def test_invalid_sum_and_scale_raises(changed, message):
    with pytest.raises(ValueError, match=message):
        figures.sum_and_scale(**TABLES | changed)


def test_sum_and_scale_draws_vectors_of_zeros_at_one_position():
    view = figures.sum_and_scale(**TABLES | {"position": torch.zeros(1, 4)})
    assert view.page.startswith("<!doctype html>")


# longest_match


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (7, TypeError, "text must be a string, got int"),
        (" \n", ValueError, "text must contain a word"),
        ("a " * 101, ValueError, "at most 200 characters"),
    ],
)
def test_longest_match_without_word_raises(tokenizer, text, error, message):
    with pytest.raises(error, match=message):
        figures.longest_match(tokenizer, text)


def test_figure_with_other_tokenizer_raises(official_tokenizer, tokenizer):
    with pytest.raises(TypeError, match="WordPieceTokenizer or transformers' own, got dict"):
        figures.longest_match(tokenizer.vocab, "time")
    official = figures.longest_match(official_tokenizer, "unaffable 北京")
    assert official.page == figures.longest_match(tokenizer, "unaffable 北京").page


def test_what_a_reader_can_change_is_not_in_the_line_below_the_title(tokenizer):
    for one, other in (
        (figures.merges(["a b"]), figures.merges(["time flies"])),
        (figures.longest_match(tokenizer, "unaffable"), figures.longest_match(tokenizer, "time")),
        (figures.rotary_turn(pair=0), figures.rotary_turn(pair=8)),
        (figures.split_and_merge(2, 2, 3), figures.split_and_merge(4, 3, 2)),
    ):
        assert one.page != other.page
        assert one.summary == other.summary


@pytest.mark.parametrize("word", ["北", "$x$", "[MASK]", "x" * 150, "\x00a\ud800"])
def test_the_first_word_may_be_anything(tokenizer, word):
    assert figures.longest_match(tokenizer, word).page.startswith("<!doctype html>")


def test_a_special_token_is_a_word(tokenizer):
    assert '"text":"[MASK] x"' in figures.longest_match(tokenizer, "[MASK] x").page


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [({"a": 0, "b": 2}, "2 tokens have ids up to 2: number them"), ({"a\n": 0}, "contains a line break")],
)
def test_incomplete_vocabulary_raises(vocabulary, message):
    with pytest.raises(ValueError, match=message):
        figures.vocabulary_lines(vocabulary)


# merges


@pytest.mark.parametrize(
    ("texts", "steps", "error", "message"),
    [
        ("flies", 12, TypeError, "wrap one text in a list"),
        ([], 12, ValueError, "empty list"),
        (["1 + 1!"], 12, ValueError, "must contain at least one word of letters, got '1"),
        (["fly " * 501], 12, ValueError, "2,004 characters, but this figure takes at most 2,000: pass fewer"),
        (["flies"], 0, ValueError, "steps must be an integer from 1 to 60, got 0"),
    ],
)
def test_merges_without_words_raise(texts, steps, error, message):
    with pytest.raises(error, match=message):
        figures.merges(texts, steps)


@pytest.mark.parametrize("text", ["a", "北京大学", "$x$ {a}", "x" * 500, "\ud800 ab"])
def test_any_words_are_merged(text):
    assert figures.merges([text]).page.startswith("<!doctype html>")


# mask_painter
TOKENS = ["time", "flies"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tokens": "time flies"}, "tokens must be a list of tokens, got 'time flies'"),
        ({"tokens": None}, "tokens must be a list of tokens, got None"),
        ({"tokens": ["time"]}, "the number of tokens must be an integer from 2 to 12, got 1"),
        ({"tokens": ["x"] * 40}, "the number of tokens must be an integer from 2 to 12, got 40"),
        ({"values": [1]}, "values has the shape (1,): this figure draws 2 numbers"),
        ({"values": [1, math.nan]}, "values must not contain nan or inf"),
        ({"values": [1, -math.inf]}, "values must not contain nan or inf"),
        ({"values": [1, 1e30]}, "values must be between -1000 and 1000, got 1e+30"),
        ({"rows": []}, "the number of rows must be an integer from 1 to 12, got 0"),
        ({"mask": "future"}, "mask='future' cannot be drawn: use one of bidirectional, causal, padding, window"),
        ({"mask": "cross"}, "mask='cross' cannot be drawn: pass rows, the tokens that look"),
    ],
)
def test_invalid_mask_painter_raises(given, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        figures.mask_painter(**{"tokens": TOKENS, **given})


@pytest.mark.parametrize("mask", ["bidirectional", "causal", "padding", "window", "cross"])
def test_mask_painter_starts_with_each_mask(mask):
    view = figures.mask_painter([*TOKENS, "[PAD]"], rows=["le", "temps"], mask=mask)
    assert f'"mask":"{mask}"' in view.page
    assert view.page.startswith("<!doctype html>")


def test_mask_painter_draws_surrogates_and_long_tokens():
    assert figures.mask_painter(["\ud800", 99 * "long"]).page.startswith("<!doctype html>")


def test_padding_mask_hides_padding_or_last_token():
    assert figures.make_masks(["time", "[PAD]", "[PAD]"])["padding"].tolist() == [[1, 0, 0]] * 3
    assert figures.make_masks(["time", "flies"])["padding"].tolist() == [[1, 0]] * 2


# split_and_merge
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sequence": "time flies"}, "tokens must be a list of tokens, got 'time flies'"),
        ({"sequence": ["time"]}, "the number of tokens must be an integer from 2 to 6, got 1"),
        ({"sequence": 40}, "sequence must be an integer from 2 to 6, got 40"),
        ({"sequence": math.nan}, "sequence must be an integer from 2 to 6, got nan"),
        ({"heads": 0}, "heads must be an integer from 1 to 6, got 0"),
        ({"head_size": 2.5}, "head_size must be an integer from 1 to 6, got 2.5"),
        ({"heads": 6, "head_size": 5}, "heads=6 of head_size=5 are 30 numbers per token: this figure draws up to 24"),
    ],
)
def test_invalid_split_and_merge_raises(given, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        figures.split_and_merge(**{"sequence": 3, "heads": 2, "head_size": 4, **given})


@pytest.mark.parametrize("sizes", [(2, 1, 1), (6, 6, 4), (["time", "$x$"], 4, 6)])
def test_split_and_merge_draws_smallest_and_largest(sizes):
    assert figures.split_and_merge(*sizes).page.startswith("<!doctype html>")


# rotary_turn
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"query": [1, 2, 3]}, "query has the shape (3,): this figure draws 2 numbers"),
        ({"key": [[1, 2]]}, "key has the shape (1, 2): this figure draws 2 numbers"),
        ({"key": [1, math.inf]}, "key must not contain nan or inf"),
        ({"tokens": "time flies"}, "tokens must be a list of tokens, got 'time flies'"),
        ({"tokens": ["x"] * 40}, "the number of tokens must be an integer from 2 to 16, got 40"),
        ({"pair": 32}, "pair must be an integer from 0 to 31, got 32"),
        ({"pairs": 0}, "pairs must be an integer from 1 to 512, got 0"),
        ({"base": 1}, "base must be between 1 and 1e+09, got 1"),
    ],
)
def test_invalid_rotary_turn_raises(given, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        figures.rotary_turn(**given)


@pytest.mark.parametrize("tokens", [None, ["$x$", "\ud800"], [99 * "long"] * 16])
def test_rotary_turn_draws_any_tokens_and_zero_vectors(tokens):
    assert figures.rotary_turn((0, 0), (0, 0), tokens, pair=0, pairs=1).page.startswith("<!doctype html>")
