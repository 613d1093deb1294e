"""Unicode categories and ranges of characters, as the official tokenizer knows them, and cleaning by category."""

import io
import sys
import unicodedata
from functools import cache

# The official tokenizer knows the characters of Unicode 8.0 (2015). The marks, signs and format characters of
# later versions are in these ranges, where it finds no category ...
# fmt: off
LATER_CHARACTERS = (
    (0x5C8, 0x5C9), (0x61D, 0x61D), (0x7FD, 0x7FD), (0x890, 0x8E2), (0x9FD, 0x9FE), (0xA76, 0xA76), (0xAFA, 0xAFF),
    (0xB53, 0xB55), (0xC04, 0xC3C), (0xC77, 0xC77), (0xC84, 0xC84), (0xD00, 0xD00), (0xD3B, 0xD3C), (0xD81, 0xD81),
    (0xEBA, 0xEBA), (0xECE, 0xECE), (0x180F, 0x1886), (0x1ABF, 0x1AF0), (0x1B4E, 0x1B4F), (0x1B7D, 0x1B7F),
    (0x1DF6, 0x1DFB), (0x2E43, 0x2E63), (0xA82C, 0xA82C), (0xA8C5, 0xA8C5), (0xA8FF, 0xA8FF), (0xA9BD, 0xA9BD),
    (0x10D24, 0x10F89), (0x11070, 0x11074), (0x110C2, 0x110CD), (0x111CF, 0x111CF), (0x1123E, 0x11241),
    (0x1133B, 0x1133B), (0x113BB, 0x1145E), (0x11660, 0x1166C), (0x116B9, 0x116B9), (0x1182F, 0x11FFF),
    (0x12FF1, 0x1612F), (0x16D6D, 0x16F4F), (0x16FE2, 0x16FE4), (0x1CF00, 0x1D128), (0x1D25B, 0x1D25C),
    (0x1E000, 0x1E6F5), (0x1E944, 0x1E95F),
)
# ... and these four have changed category since.
EARLIER_CATEGORY = {"\u166d": "Po", "\u1734": "Mn", "\U000111c9": "Po", "\U0001171e": "Mn"}

CJK_RANGES = (  # the sixth starts 256 characters late in the official tokenizer, so it does here
    (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F), (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F),
)
# fmt: on


def in_ranges(character: str, ranges: tuple) -> bool:
    """Return whether the character's code point lies in one of the (first, last) ranges."""
    return any(first <= ord(character) <= last for first, last in ranges)


@cache
def character_category(character: str) -> str:
    """Return the Unicode 8.0 general category, such as "Ll" or "Mn"; "Cn" (not assigned) for later characters."""
    if in_ranges(character, LATER_CHARACTERS):
        return "Cn"
    return EARLIER_CATEGORY.get(character) or unicodedata.category(character)


@cache
def clean_character(character: str) -> str:
    """Return a cleaned character: a space for white space, "" for control characters, spaces around a CJK ideograph."""
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or character_category(character) in ("Cc", "Cf", "Co", "Cs"):
        return ""
    if character.isspace():
        return " "
    return f" {character} " if in_ranges(character, CJK_RANGES) else character


def replace_unprintable() -> None:
    """Let the program print ? for what its output cannot encode, such as most letters in a file on Windows."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # None if it is closed
        sys.stdout.reconfigure(errors="replace")


def drop_surrogates(text: str) -> str:
    """Return the text without lone surrogates, which no other library accepts."""
    return text.encode("utf-8", "ignore").decode("utf-8")
