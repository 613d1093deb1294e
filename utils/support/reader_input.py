"""Read what readers type: check it, print what is used in its place, and find their words among the tokens."""

import os
import sys
from collections.abc import Sequence
from numbers import Real

from IPython import get_ipython

from utils.support.checkpoint import DEFAULT_CHECKPOINT, checkpoint_name, load_tokenizer


def text_or_pair(text) -> tuple[str, ...]:
    """Return a reader's text, or the first two of several, as a tuple; of long ones the beginning, and print a notice.

    At most 500 characters together, so never more than the 512 tokens that an encoder reads.
    """
    parts = validated("the text", text, ["I called Ian."])
    if len(parts) > 2:
        print(f"The views are for a text or two, so this reads the first two of {len(parts)}.")
    parts = tuple(parts[:2])
    most = 500 // len(parts)
    if any(len(part) > most for part in parts):
        print(f"The views are for sentences, so this reads the first {most} characters.")
    return tuple(part[:most] for part in parts)


def index_of(word: str, tokens: Sequence[str]) -> int:
    """Return the first position of a token, ignoring case; if it is missing, print a notice and use the first word.

    A cell that follows one word of a sentence then still runs when a reader types another sentence. ValueError if
    there are no tokens.
    """
    lower, wanted = [token.lower() for token in tokens], str(word).strip().lower()
    if wanted in lower:
        return lower.index(wanted)
    special = ("[CLS]", "[SEP]", "[PAD]")
    position = next((position for position, token in enumerate(tokens) if token not in special), 0)
    if not tokens:
        raise ValueError("there are no tokens to look at: type at least one word")
    print_once(f"“{word}” is not among these tokens, so this cell follows “{tokens[position]}”")
    return position


def as_token(word: str, tokenizer) -> str:
    """Return the token that the tokenizer makes of a word such as "José"; a word of several pieces in lower case."""
    pieces = tokenizer.tokenize(word)
    return pieces[0] if len(pieces) == 1 else word.lower()


def first_piece(word: str, tokenizer) -> int:
    """Return a word's id; if it is not in the vocabulary, print a notice and use its first piece."""
    pieces = tokenizer.tokenize(word) or ["[UNK]"]
    if len(pieces) > 1 or pieces == ["[UNK]"]:
        print_once(f"“{word}” is not in this vocabulary, so this cell follows “{pieces[0]}”")
    return tokenizer.vocab[pieces[0]]


notified_cell = []  # the execution count of the last cell that printed a notice


def print_once(line: str) -> None:
    """Print a line unless this run of the cell has printed one: a cell may follow a hundred words."""
    cell = getattr(get_ipython(), "execution_count", None)
    if cell is None or cell not in notified_cell:
        print(line)
    notified_cell[:] = [cell]


def validated(name: str, value, default, count: int | None = None):
    """Return a reader's value if it has the same type as the default; otherwise print a message, return the default.

    The type is a text, a list of texts or a list of numbers. A list may be a tuple, or a single text or number. Empty
    texts are dropped from a list; a single empty text is valid only if the default is empty. With a `count`, the list
    must have so many items, and none is dropped.
    """
    if isinstance(default, str):
        expected = "one text in quotation marks"
        valid = [value] if isinstance(value, str) and (value.strip() or not default) else []
    else:
        item_type = str if isinstance(default[0], str) else Real
        expected, valid = f"a list of {count or ''} {'texts' if item_type is str else 'numbers'}".replace("  ", " "), []
        items = [value] if isinstance(value, item_type) else value
        if isinstance(items, list | tuple) and all(isinstance(item, item_type) for item in items):
            valid = [item for item in items if (item.strip() if item_type is str else abs(item) <= sys.float_info.max)]
            if count is not None and not len(valid) == len(items) == count:
                valid = []
    if valid:
        return valid[0] if isinstance(default, str) else valid
    print(f"{name} must be {expected}, not {value!r:.60}: this cell uses {default!r:.80}")
    return default


def first_words(text: str, count: int) -> list[str]:
    """Return the words of a reader's text; of a long one, with a notice, the first `count`, at most 500 characters."""
    words = text.strip()[:500].split()[:count]
    if words != text.split():
        print(f"This text is long, so only its beginning is read: {len(words)} words, up to “{words[-1]:.20}”.")
    return words


def clamp(name: str, value: int, count: int, minimum: int = 0) -> int:
    """Return an integer typed by a reader, such as a layer; outside minimum … count - 1 the nearest one, with a notice.

    A value that is not an integer becomes `minimum`.
    """
    number = value if isinstance(value, int) and not isinstance(value, bool) else minimum
    nearest = min(max(number, minimum), count - 1)
    if nearest != value:
        print(f"{name} must be an integer from {minimum} to {count - 1}, not {value!r}: this cell uses {nearest}")
    return nearest


def require_tokens(words: str) -> None:
    """Switch to the embedded checkpoint, with a message, if the chosen one lacks one of these words as a token.

    For a notebook about certain words: a model of another language has no heads for English pronouns.
    """
    vocab = load_tokenizer().get_vocab()
    if missing := [word for word in words.split() if word not in vocab]:
        print(
            f"“{missing[0]}” is not a token of {checkpoint_name()}, and this notebook is about such words, "
            f"so it uses {DEFAULT_CHECKPOINT} instead."
        )
        os.environ["CHECKPOINT"] = DEFAULT_CHECKPOINT
