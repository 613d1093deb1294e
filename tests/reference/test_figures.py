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


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [({"a": 0, "b": 2}, "2 tokens have ids up to 2: number them"), ({"a\n": 0}, "holds a line break")],
)
def test_a_vocabulary_has_a_line_for_each_id(vocabulary, message):
    with pytest.raises(ValueError, match=message):
        figures.vocabulary_lines(vocabulary)
