"""The dates of notebook 12 never change, and text becomes characters and text again."""

from datetime import date

import pytest
import torch

from utils.support import dates


@pytest.fixture(scope="module")
def parts():
    return dates.date_examples()


def test_date_examples_have_fixed_sizes_and_share_no_day(parts):
    assert [len(part) for part in parts] == [34525, 1000, 1000]
    assert len({iso for part in parts for _, iso in part}) == 36525
    assert parts.train[0] == ("20 february 2047", "2047-02-20")


def test_each_example_is_a_spelling_of_its_day(parts):
    for text, iso in parts.test:
        assert text in {dates.spell(date.fromisoformat(iso), spelling) for spelling in dates.SPELLINGS}


@pytest.mark.parametrize(
    ("day", "spelling", "text"),
    [
        (3, "{first} of {mon} {year}", "third of mar 1998"),
        (3, "{year}, {mon} {th}", "1998, mar 3rd"),
        (3, "{d:02}-{mon}-{yy:02}", "03-mar-98"),
        (3, "{m}/{d}/{year}", "3/3/1998"),
        *((int(text[:-2]), "{th}", text) for text in ("1st", "2nd", "11th", "12th", "23rd", "30th")),
    ],
)
def test_spell_a_day(day, spelling, text):
    assert dates.spell(date(1998, 3, day), spelling) == text


def test_lessons_shift_what_is_given_and_skip_padding():
    given, labels = dates.lessons(torch.tensor([[7, 8, dates.END], [9, dates.END, dates.PAD]]), dates.START, dates.PAD)
    assert given.tolist() == [[dates.START, 7, 8], [dates.START, 9, dates.END]]
    assert labels.tolist() == [[7, 8, dates.END], [9, dates.END, -100]]


def test_encode_and_decode_restore_texts():
    texts = ["mar 3, 98", "", "1998-03-03"]
    assert dates.decode(dates.encode(texts)) == dates.decode(dates.encode(texts, end=True)) == texts
    wanted = [[dates.END, dates.PAD, dates.PAD], [dates.IDS["a"], dates.IDS["b"], dates.END]]
    assert dates.encode(["", "ab"], end=True).tolist() == wanted
    assert dates.decode(torch.tensor([[dates.START, dates.IDS["a"], dates.END, dates.IDS["b"]]])) == ["a"]


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
    assert dates.readable("my_text", text, default) == kept
    assert words in capsys.readouterr().out


def test_readable_keeps_letters_only_where_wanted():
    assert dates.readable("my_letters", "Zürich 12", "", dates.LETTERS, most=4) == "zric"
