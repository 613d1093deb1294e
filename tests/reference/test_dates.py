"""The dates of notebook 12 never change, and text becomes characters and text again."""

from datetime import date

import pytest
import torch

from utils.support.dates import (
    END,
    IDS,
    LETTERS,
    PAD,
    SPELLINGS,
    START,
    date_examples,
    decode,
    encode,
    lessons,
    readable,
    spell,
)


@pytest.fixture(scope="module")
def parts():
    return date_examples()


def test_date_examples_have_fixed_sizes_and_share_no_day(parts):
    assert [len(part) for part in parts] == [34525, 1000, 1000]
    assert len({iso for part in parts for _, iso in part}) == 36525
    assert parts.train[0] == ("20 february 2047", "2047-02-20")


def test_each_example_is_a_spelling_of_its_day(parts):
    for text, iso in parts.test:
        assert text in {spell(date.fromisoformat(iso), spelling) for spelling in SPELLINGS}


@pytest.mark.parametrize(
    ("spelling", "text"),
    [
        ("{first} of {mon} {year}", "third of mar 1998"),
        ("{year}, {mon} {th}", "1998, mar 3rd"),
        ("{d:02}-{mon}-{yy:02}", "03-mar-98"),
        ("{m}/{d}/{year}", "3/3/1998"),
    ],
)
def test_spell_a_day(spelling, text):
    assert spell(date(1998, 3, 3), spelling) == text


@pytest.mark.parametrize(
    ("day", "text"), [(1, "1st"), (2, "2nd"), (11, "11th"), (12, "12th"), (23, "23rd"), (30, "30th")]
)
def test_spell_the_endings_of_days(day, text):
    assert spell(date(1998, 3, day), "{th}") == text


def test_lessons_shift_what_is_given_and_skip_padding():
    given, labels = lessons(torch.tensor([[7, 8, END], [9, END, PAD]]), START, PAD)
    assert given.tolist() == [[START, 7, 8], [START, 9, END]]
    assert labels.tolist() == [[7, 8, END], [9, END, -100]]


def test_encode_and_decode_restore_texts():
    texts = ["mar 3, 98", "", "1998-03-03"]
    assert decode(encode(texts)) == decode(encode(texts, end=True)) == texts
    assert encode(["", "ab"], end=True).tolist() == [[END, PAD, PAD], [IDS["a"], IDS["b"], END]]
    assert decode(torch.tensor([[START, IDS["a"], END, IDS["b"]]])) == ["a"]


@pytest.mark.parametrize(
    ("text", "default", "kept", "words"),
    [
        ("May 5, 1998", "x", "may 5, 1998", ""),
        ("ZÜRICH 3/4/98!", "x", "zrich 3/4/98", "the model reads"),
        ("1" * 50, "x", "1" * 40, "at most 40"),
        ("漢字", "x", "x", "must be one text"),
        (None, "x", "x", "must be one text"),
        ("", "x", "x", "must be one text"),
        ("漢字", "", "", "the model reads “”"),
        (("a", "b"), "", "", "must be one text"),
    ],
)
def test_readable_keeps_what_the_model_knows(text, default, kept, words, capsys):
    assert readable("my_text", text, default) == kept
    assert words in capsys.readouterr().out


def test_readable_keeps_letters_only_where_wanted():
    assert readable("my_letters", "Zürich 12", "", LETTERS, most=4) == "zric"
