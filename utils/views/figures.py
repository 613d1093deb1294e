"""Figures that can be dragged: one function each, plain numbers in, a `View` out, which shows itself without a kernel.

The numbers that a figure draws are worked out in its page and equal torch's; a still picture of its beginning stands
where scripts do not run. Used from notebook 00 on.
"""

import html
import io
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise
from string import Template

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.checkpoint import read_vocabulary
from utils.checks import SPECIAL_TOKENS, check_size, check_texts
from utils.plots import bars, plain
from utils.tokenization import (
    CJK_RANGES,
    EARLIER_CATEGORY,
    LATER_CHARACTERS,
    MAX_CHARACTERS_PER_WORD,
    WordPieceTokenizer,
    normalize,
    pre_tokenize,
    split_special_tokens,
    word_pieces,
)
from utils.views.page import FOLDER as VIEWS
from utils.views.page import View, data_uri, json_for_html, own_text

FOLDER = VIEWS / "draggable"  # a page, a style sheet, what the figures share, and a file per figure
MOST_CHARACTERS = 200  # of a text that a reader types


def attention_in_the_plane(
    query: Sequence[float],
    keys: Sequence[Sequence[float]],
    values: Sequence[Sequence[float]] | None = None,
    tokens: Sequence[str] | None = None,
    *,
    asking: int = 0,
) -> View:
    """Draw attention in two dimensions: a query, keys and values as arrows to be dragged, and the values' average.

    `query` is (2,), `keys` and `values` are (N, 2) for 2 to 6 `tokens`; without values, the keys are averaged. `asking`
    is the index of the token whose query it is. ValueError for other shapes, nan and inf.
    """
    query, keys = as_numbers("query", query, 2), as_numbers("keys", keys, range(2, 7), 2)
    values = None if values is None else as_numbers("values", values, len(keys), 2)
    names = as_names(tokens, len(keys))
    check_size("asking", asking, 0, len(names) - 1)
    weights = (keys @ query / 2**0.5).softmax(dim=0)
    average = weights @ (keys if values is None else values)

    def still(ax) -> None:
        arrows = [(f"key of {name}", key, "C0") for name, key in zip(names, keys, strict=True)]
        arrows += [(f"query of {names[asking]}", query, "C4"), ("average of the values", average, "C2")]
        for name, (x, y), colour in arrows:
            ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": colour, "lw": 2})
            ax.text(x, y, name, ha="center", va="top" if y < 0 else "bottom", color=colour, parse_math=False)
        reach = 1.3 * max(1, float(torch.stack([end for _, end, _ in arrows]).abs().max()))
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")

    return make_figure(
        "attention_in_the_plane",
        {"query": query, "keys": keys, "values": values, "names": names, "asking": asking},
        summary=f"Attention in the plane: the query of “{names[asking]}” and the keys of {told(names)}",
        help="Drag an arrow's head, or move to it with Tab and use the arrow keys. Pull the query towards a key, and "
        "that token's weight grows.",
        still=still,
    )


# HERE sharpness


# HERE next_token


# HERE sum_and_scale


# HERE mask_painter


# HERE split_and_merge


def longest_match(tokenizer, text: str) -> View:
    """Cut a word into WordPiece's pieces, one try after the other; the reader types any text.

    `tokenizer` is a WordPieceTokenizer or transformers' own for BERT, whose whole vocabulary goes into the page; `text`
    stands in the box at first, and its first word is cut. ValueError for a text without words or of more than 200
    characters; TypeError for what is no text or no tokenizer.
    """
    if not isinstance(tokenizer, WordPieceTokenizer):
        if not hasattr(tokenizer, "backend_tokenizer"):
            kind = type(tokenizer).__name__
            raise TypeError(f"tokenizer must be a WordPieceTokenizer or transformers' own, got {kind}")
        tokenizer = WordPieceTokenizer(*read_vocabulary(tokenizer))
    words = words_of(text, tokenizer.lowercase)
    if not words or len(text) > MOST_CHARACTERS:
        raise ValueError(f"text={text!r:.60} must hold a word, and at most {MOST_CHARACTERS} characters")
    pieces = " ".join(word_pieces(words[0], tokenizer.vocab))
    result = f"“{words[0]:.40}” is cut into {pieces:.60}"

    def still(ax) -> None:
        for number, (start, end, piece) in enumerate(find_tries(words[0], tokenizer.vocab)[:40], start=1):
            mark, colour = ("✓", "C2") if piece in tokenizer.vocab else ("✗", "C1")
            ax.barh(number, end - start, left=start, color=colour)
            ax.text(end + 0.1, number, f"{mark} {piece}", va="center", clip_on=True, parse_math=False)
        letters = words[0][:30]
        ax.set_xticks([index + 0.5 for index in range(len(letters))], map(plain, letters))
        ax.set(xlim=(0, 1.6 * len(letters)), ylabel="try", title=plain(f"{words[0]:.20} → {pieces:.40}"))
        ax.invert_yaxis()

    return make_figure(
        "longest_match",
        {
            "text": text,
            "most": MOST_CHARACTERS,
            "vocabulary": vocabulary_lines(tokenizer.vocab),
            "rules": splitting_rules(tokenizer.lowercase),
        },
        summary=f"Longest match: {result}",
        help="Type any text and choose one of its words. Then step back and forth through the tries: the longest piece "
        "comes first, and one character less each time, until a piece is in the vocabulary.",
        still=still,
        before=["tokenizer"],
    )


def find_tries(word: str, vocab: Mapping[str, int]) -> list[tuple[int, int, str]]:
    """Find the pieces of a word that longest match tries: where each starts and ends, and the piece itself."""
    tries, start, end = [], 0, len(word) if len(word) <= MAX_CHARACTERS_PER_WORD else 0
    while start < end:
        piece = ("##" if start else "") + word[start:end]
        tries.append((start, end, piece))
        start, end = (end, len(word)) if piece in vocab else (start, end - 1)
    return tries


def merges(texts: Sequence[str], steps: int = 12) -> View:
    """Learn a vocabulary from texts, merge by merge: the most frequent pair of neighbouring pieces becomes one piece.

    `texts` stand in a box, where the reader changes them; their words of letters are counted, lower-cased. At most
    `steps` merges are made. ValueError for texts without such words or of more than 2,000 characters together, and for
    `steps` outside 1 to 60; TypeError for what is no list of strings.
    """
    check_texts(texts)
    check_size("steps", steps, 1, 60)
    text = "\n".join(texts)
    if len(text) > 2000:
        raise ValueError(
            f"the texts have {len(text):,} characters: pass some of them, 2,000 characters at most"
        )
    counts = Counter(word for word in words_of(text) if word.isalpha())
    if not counts:
        raise ValueError(f"the texts {text!r:.60} hold no word of letters: pass one at least")

    def still(ax) -> None:
        pairs = Counter()
        for word, count in counts.items():
            pieces = [word[0], *(f"##{character}" for character in word[1:])]
            for left, right in pairwise(pieces):
                pairs[f"{left} + {right}"] += count
        best = sorted(pairs, key=lambda pair: (-pairs[pair], pair))[:8]
        bars({pair: pairs[pair] for pair in best}, title="The most frequent pairs", xlabel="times", ax=ax)

    return make_figure(
        "merges",
        {"text": text, "most": 2000, "steps": steps, "rules": splitting_rules(lowercase=True)},
        summary=f"Merges: a vocabulary is learned from {len(counts)} words, such as “{next(iter(counts)):.40}”",
        help="Press “next”: the framed pair becomes one piece in every word, and the pairs are counted again. Change "
        "the texts, and it begins anew.",
        still=still,
        before=["tokenizer"],
    )


# HERE graph_walk


def make_figure(
    name: str,
    data: dict,
    *,
    summary: str,
    help: str,
    still: Callable,
    size: tuple[float, float] = (5, 4),
    before: Sequence[str] = (),
) -> View:
    """Make the page of draggable/NAME.js with this data, and a still picture: `still` draws on matplotlib axes.

    `before` names other files that the drawing builds on.
    """
    picture = draw_still(still, size)
    title = summary.encode(errors="replace").decode()  # half a character, which no file holds
    page = Template(own_text("draggable/figure.html")).substitute(
        title=html.escape(title),
        help=html.escape(help),
        css=own_text("draggable/figure.css"),
        still=data_uri(picture),
        data=json_for_html({key: plain_numbers(value) for key, value in data.items()}),
        frame=own_text("frame.js"),
        shared=own_text("draggable/figure.js"),
        drawing="\n".join(own_text(f"draggable/{part}.js") for part in (*before, name)),
    )
    return View(title, page, picture)


def draw_still(draw: Callable, size: tuple[float, float]) -> bytes:
    """Draw on the axes of a figure of this size in inches, and return the PNG, the same on every computer."""
    figure, file = Figure(size, layout="constrained"), io.BytesIO()
    draw(figure.add_subplot())
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Glyph .* missing from font"
        )  # such as Chinese: an empty box stands there
        figure.savefig(file, format="png", metadata={"Software": None})
    return file.getvalue()


def as_numbers(argument: str, values, *sizes: int | range) -> Tensor:
    """Turn tensors, arrays or lists into float64 of these sizes; ValueError, naming the argument, if they are not."""
    numbers = torch.as_tensor(values).detach().cpu().double()
    allowed = [size if isinstance(size, range) else range(size, size + 1) for size in sizes]
    if numbers.dim() != len(sizes) or any(n not in ns for n, ns in zip(numbers.shape, allowed, strict=True)):
        wanted = " × ".join(f"{ns[0]}" if len(ns) == 1 else f"{ns[0]} to {ns[-1]}" for ns in allowed)
        raise ValueError(
            f"{argument} has the shape {tuple(numbers.shape)}: this figure draws {wanted} numbers"
        )
    if not numbers.isfinite().all():
        raise ValueError(
            f"{argument} holds nan or inf, which cannot be drawn: {numbers.flatten()[:8].tolist()}"
        )
    return numbers


def as_names(names: Sequence[str] | None, count: int, argument: str = "tokens") -> list[str]:
    """Return the names as texts, or 0, 1, 2 … for none; ValueError if they are not as many as what they name."""
    if isinstance(names, str):
        raise TypeError(f"{argument}={names!r:.60} is one text: pass a list of {count}")
    names = [f"token {index}" for index in range(count)] if names is None else [str(name) for name in names]
    if len(names) != count:
        raise ValueError(f"there are {len(names)} {argument}, but {count} to be named: pass as many")
    return names


def words_of(text: str, lowercase: bool = True) -> list[str]:
    """Split a text into BERT's words, special tokens and punctuation among them. TypeError if it is no string."""
    parts = split_special_tokens(text)
    words = ([part] if part in SPECIAL_TOKENS else pre_tokenize(normalize(part, lowercase)) for part in parts)
    return list(chain.from_iterable(words))


def splitting_rules(lowercase: bool) -> dict:
    """Return what tokenizer.js needs to split a text into BERT's words, from where Python's tokenizer has it."""
    return {
        "lowercase": lowercase,
        "later": LATER_CHARACTERS,
        "earlier": EARLIER_CATEGORY,
        "ideographs": CJK_RANGES,
        "longest": MAX_CHARACTERS_PER_WORD,
    }


def vocabulary_lines(vocab: Mapping[str, int]) -> str:
    """Write the tokens in the order of their ids, a line each; ValueError for ids with gaps, or a line break."""
    if set(vocab.values()) != set(range(len(vocab))):
        raise ValueError(
            f"{len(vocab)} tokens have ids up to {max(vocab.values())}: number them from 0, without gaps"
        )
    if broken := [token for token in vocab if "\n" in token]:
        raise ValueError(f"the token {broken[0]!r:.60} holds a line break, which no vocab.txt can: remove it")
    return "\n".join(sorted(vocab, key=vocab.get))


def plain_numbers(value):
    """Turn a tensor into lists, which JSON can hold, and leave everything else as it is."""
    return value.tolist() if isinstance(value, Tensor) else value


def told(names: Sequence[str]) -> str:
    """Write names one after the other, each in quotation marks."""
    return ", ".join(f"“{name}”" for name in names)
