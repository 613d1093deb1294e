"""Texts on which our tokenizer is compared with the official one: chosen, generated, and characters one by one."""

import random
import sys
import unicodedata

SPECIAL = ["[MASK]", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[mask]", "[ MASK ]", "x[MASK]y", "[[SEP]]"]
WORDS = [
    "time flies like an arrow",
    "Don't!",
    "naïve café",
    "Zoe\u0308 e\u0301te\u0301",
    "ÅNGSTRÖM",
    "İstanbul",
    "ΣΊΣΥΦΟΣ",
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
    "x" * 100,
    "x" * 101,
    "antidisestablishmentarianism",
    "##ing",
    "unused [unused1]",
    "...?!",
    "1,000.50",
]


def characters_by_category() -> dict[str, list[str]]:
    """Every character that is no surrogate, by Unicode category."""
    categories = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        category = unicodedata.category(character)
        if category != "Cs":
            categories.setdefault(category, []).append(character)
    return categories


def telling_characters() -> list[str]:
    """All before the ideographs, every mark, sign, separator and capital; of others the ends of each column of 16.

    There the ranges of ideographs begin and end. Beyond plane 3, where next to nothing stands, every 16th column.
    """
    telling = {"Mn", "Mc", "Me", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Zs", "Zl", "Zp", "Cc", "Cf", "Lu", "Lt"}
    return [
        character
        for category, characters in characters_by_category().items()
        for character in characters
        if category in telling
        or (number := ord(character)) < 0x3400
        or number % (16 if number < 0x40000 else 256) in (0, 15)
    ]


def in_words(characters: list[str]) -> list[str]:
    """Return texts of 50 words, each word with one of the characters in its middle."""
    words = [f"a{character}a" for character in characters]
    return [" ".join(words[start : start + 50]) for start in range(0, len(words), 50)]


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
    return ["".join(pick() for pick in draw.choices(pieces, weights, k=draw.choice(lengths))) for _ in range(count)]


def mismatches(tokenizer, official_tokenizer, texts: list[str]) -> list[str]:
    """The texts that get other ids from us than from the official tokenizer."""
    official = official_tokenizer(texts)["input_ids"]
    return [text for text, ids in zip(texts, official, strict=True) if tokenizer.encode(text) != ids]
