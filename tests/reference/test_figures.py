"""The figures that can be dragged: what they refuse, and the still pictures of their beginnings."""

import pytest

from utils.views import figures

# longest_match


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (7, TypeError, "text must be a string, got int"),
        (" \n", ValueError, "must hold a word"),
        ("a " * 101, ValueError, "at most 200 characters"),
    ],
)
def test_a_text_to_cut_holds_a_word(tokenizer, text, error, message):
    with pytest.raises(error, match=message):
        figures.longest_match(tokenizer, text)


def test_a_tokenizer_is_one_of_ours_or_of_transformers(official_tokenizer, tokenizer):
    with pytest.raises(TypeError, match="WordPieceTokenizer or transformers' own, got dict"):
        figures.longest_match(tokenizer.vocab, "time")
    official = figures.longest_match(official_tokenizer, "unaffable 北京")
    assert official.page == figures.longest_match(tokenizer, "unaffable 北京").page
    assert official.summary == "Longest match: “unaffable” is cut into una ##ffa ##ble"


@pytest.mark.parametrize("word", ["北", "$x$", "[MASK]", "x" * 150, "\x00a\ud800"])
def test_the_first_word_may_be_anything(tokenizer, word):
    assert figures.longest_match(tokenizer, word)._repr_png_().startswith(b"\x89PNG")


def test_a_special_token_is_a_word(tokenizer):
    assert (
        figures.longest_match(tokenizer, "[MASK] x").summary == "Longest match: “[MASK]” is cut into [MASK]"
    )


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [({"a": 0, "b": 2}, "2 tokens have ids up to 2: number them"), ({"a\n": 0}, "holds a line break")],
)
def test_a_vocabulary_has_a_line_for_each_id(vocabulary, message):
    with pytest.raises(ValueError, match=message):
        figures.vocabulary_lines(vocabulary)


# merges


@pytest.mark.parametrize(
    ("texts", "steps", "error", "message"),
    [
        ("flies", 12, TypeError, "wrap one text in a list"),
        ([], 12, ValueError, "empty list"),
        (["1 + 1!"], 12, ValueError, "hold no word of letters"),
        (["fly " * 501], 12, ValueError, "2,004 characters: pass some of them"),
        (["flies"], 0, ValueError, "steps=0 must be a whole number from 1 to 60"),
    ],
)
def test_merges_need_words(texts, steps, error, message):
    with pytest.raises(error, match=message):
        figures.merges(texts, steps)


@pytest.mark.parametrize("text", ["a", "北京大学", "$x$ {a}", "x" * 500, "\ud800 ab"])
def test_any_words_are_merged(text):
    assert figures.merges([text])._repr_png_().startswith(b"\x89PNG")
