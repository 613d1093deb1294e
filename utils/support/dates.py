"""Dates in many spellings, and text as characters: what notebook 12 learns from."""

import random
from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from utils.support.reader_input import validated

LETTERS = "abcdefghijklmnopqrstuvwxyz"
CHARACTERS = " ,-./0123456789" + LETTERS
PAD, START, END = range(3)  # the ids of the special tokens; the characters follow
TOKENS = ("[PAD]", "[START]", "[END]", *CHARACTERS)
IDS = {token: number for number, token in enumerate(TOKENS)}

MONTHS = ["january", "february", "march", "april", "may", "june"]
MONTHS += ["july", "august", "september", "october", "november", "december"]
FIRST = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh"]
FIRST += ["twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"]
FIRST += ["twentieth", *(f"twenty-{word}" for word in FIRST[:9]), "thirtieth", "thirty-first"]
SPELLINGS = (
    *("{month} {d}, {year}", "{first} of {mon} {year}", "{d} {month} {year}", "{mon} {d}, {yy:02}"),
    *("{d:02}-{mon}-{yy:02}", "{year}, {mon} {th}", "{d}.{m}.{year}", "{m}/{d}/{year}"),
)


class Dates(NamedTuple):
    """Pairs of a spelling and the date as year-month-day; no day is in two parts."""

    train: list[tuple[str, str]]
    choose: list[tuple[str, str]]
    test: list[tuple[str, str]]


def date_examples() -> Dates:
    """Return every day from 1950 to 2049 in one of 8 spellings: 34,525 to learn from, and twice 1,000."""
    draw = random.Random(0)
    days = [date(1950, 1, 1) + timedelta(days=number) for number in range(36525)]
    draw.shuffle(days)
    examples = [(spell(day, draw.choice(SPELLINGS)), day.isoformat()) for day in days]
    return Dates(test=examples[:1000], choose=examples[1000:2000], train=examples[2000:])


def spell(day: date, spelling: str) -> str:
    """Return a day in a spelling: "{first} of {mon} {year}" makes "third of mar 1998"."""
    month, endings = MONTHS[day.month - 1], {1: "st", 2: "nd", 3: "rd"}
    ending = "th" if 11 <= day.day <= 13 else endings.get(day.day % 10, "th")
    parts = {"month": month, "mon": month[:3], "m": day.month, "d": day.day, "th": f"{day.day}{ending}"}
    return spelling.format(**parts, year=day.year, yy=day.year % 100, first=FIRST[day.day - 1])


def encode(texts: Sequence[str], *, end: bool = False) -> Tensor:
    """Return the ids of the texts' characters, (B, S), if wanted with the end token, padded at the end."""
    rows = [[IDS[character] for character in text] + [END] * end for text in texts]
    return pad_sequence([torch.tensor(row, dtype=torch.long) for row in rows], batch_first=True, padding_value=PAD)


def lessons(texts: Tensor, start: int, pad: int) -> tuple[Tensor, Tensor]:
    """Return what a decoder is given, the texts shifted by a start token, and its labels, −100 at padding: (B, T)."""
    return F.pad(texts, (1, 0), value=start)[:, :-1], texts.masked_fill(texts == pad, -100)


def decode(ids: Tensor) -> list[str]:
    """Return the texts of rows of ids (B, S), each up to its end token and without special tokens."""
    rows = [row[: row.index(END)] if END in row else row for row in ids.tolist()]
    return ["".join(TOKENS[number] for number in row if number > END) for row in rows]


def readable(name: str, text, default: str, characters: str = CHARACTERS, most: int = 40) -> str:
    """Return a reader's text in lower case, without other characters, and the beginning of a long one, with a notice.

    If it is not a text, or nothing is left of it, return the default.
    """
    text = validated(name, text, default).lower().strip()
    kept = "".join(character for character in text if character in characters)[:most].strip()
    if kept != text:
        print(f"{name}: the model reads “{kept}”, at most {most} characters, and only those that it knows")
    return kept or validated(name, kept, default)
