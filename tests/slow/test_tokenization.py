"""Every character and a hundred thousand strings get the official tokenizer's ids."""

import unicodedata

from tests.texts import characters_by_category, generated_strings, in_words, mismatches


def test_every_character(tokenizer, official_tokenizer):
    characters = [character for group in characters_by_category().values() for character in group]
    assert len(characters) == 0x110000 - 0x800, "all but the surrogates"
    assert mismatches(tokenizer, official_tokenizer, in_words(characters)) == []


def test_a_hundred_thousand_strings(tokenizer, official_tokenizer):
    texts = generated_strings(100_000)
    assert len({unicodedata.category(character) for text in texts for character in text}) == 29
    assert mismatches(tokenizer, official_tokenizer, texts) == []
