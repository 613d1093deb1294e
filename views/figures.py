"""Interactive figures: each function takes plain numbers and returns a `View` that works without a kernel.

A figure's page computes all numbers itself; they agree with torch's. Used from notebook 00 on.
"""

import base64
from collections.abc import Mapping, Sequence
from itertools import chain

import torch
from torch import Tensor

from utils.support.characters import CJK_RANGES, EARLIER_CATEGORY, LATER_CHARACTERS
from utils.support.checks import SPECIAL_TOKENS, as_texts, check_between, check_size
from utils.support.vocabulary import read_vocabulary
from utils.tokenization import (
    MAX_CHARACTERS_PER_WORD,
    WordPieceTokenizer,
    normalize,
    pre_tokenize,
    split_special_tokens,
)
from views.page import FOLDER as VIEWS
from views.page import View, build_page, sheets, writable
from views.scripts import join

FOLDER = VIEWS / "draggable"  # what all figures share, and the code and style sheet of each
MAX_CHARACTERS = 200  # of a text in longest_match


def attention_in_the_plane(
    query: Sequence[float],
    keys: Sequence[Sequence[float]],
    values: Sequence[Sequence[float]] | None = None,
    tokens: Sequence[str] | None = None,
    *,
    asking: int = 0,
) -> View:
    """Draw attention in two dimensions, with draggable arrows for query, keys, values and their average.

    `query` is (2,), `keys` and `values` are (N, 2) for 2 to 6 `tokens`; without values, the keys are averaged. `asking`
    is the index of the token that the query belongs to. ValueError for other shapes, nan and inf.
    """
    query, keys = as_numbers("query", query, 2), as_numbers("keys", keys, range(2, 7), 2)
    values = None if values is None else as_numbers("values", values, len(keys), 2)
    names = as_names(tokens, len(keys))
    check_size("asking", asking, 0, len(names) - 1)

    return make_figure(
        "attention_in_the_plane",
        {"query": query, "keys": keys, "values": values, "names": names, "asking": asking},
        title="The larger a key's product with the query, the more attention it gets",
        details=f"the query of “{names[asking]}” and the keys of {quote(names)}",
    )


def sharpness(scores: Sequence[float], *, head_size: int = 64, tokens: Sequence[str] | None = None) -> View:
    """Draw how multiplying a query's scores by a factor changes their softmax, and whether it answers a nudge.

    `scores` (N,) are the products q · k of 2 to 12 `tokens`; the factor ranges from 1/√D to D, where D is the
    `head_size`, 2 to 1,024. ValueError for other shapes, nan and inf.
    """
    scores = as_numbers("scores", scores, range(2, 13))
    names = as_names(tokens, len(scores))
    check_size("head_size", head_size, 2, 1024)

    return make_figure(
        "sharpness",
        {"scores": scores, "names": names, "size": head_size},
        title="The nudge is answered: the weight moves",
        details=f"softmax of {len(names)} products q · k (D = {head_size}) times a factor; one score is nudged by ±0.5",
    )


def next_token(logits: Sequence[float], tokens: Sequence[str]) -> View:
    """Draw a decoder's probabilities as a ruler of tokens, cut by temperature, top-k and top-p, and throw darts at it.

    `logits` (V,) are a decoder's logits for 2 to 500 `tokens`. Top-p is 0.8 at first. ValueError for other shapes, nan
    and inf, and for more tokens; shares among the best 500 are slightly larger than among all.
    """
    logits = torch.as_tensor(logits)
    if logits.dim() == 1 and len(logits) > 500:
        remedy = "pass the largest with their tokens, best = logits.topk(500)"
        raise ValueError(f"logits has {len(logits):,} tokens, but this figure draws at most 500: {remedy}")
    logits = as_numbers("logits", logits, range(2, 501))
    names = as_names(tokens, len(logits))

    return make_figure(
        "next_token",
        {"logits": logits, "names": names},
        title="Temperature, top-k and top-p decide which tokens can be drawn",
        details=f"a decoder's shares for {len(names)} tokens",
    )


def sum_and_scale(
    word: Tensor,
    position: Tensor,
    token_type: Tensor,
    names: Sequence[str] | None = None,
    *,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
) -> View:
    """Draw the sum of word, position and token-type vectors, and LayerNorm of the sum.

    `word` (W, H) contains the vectors of 1 to 20 words with `names`, `position` (P, H) of up to 512 positions, and
    `token_type` (T, H) of up to 4 token types; H is 2 to 1,024. `weight` and `bias` (H,), both or none, are LayerNorm's
    trained γ and β. ValueError for other shapes, nan and inf.
    """
    word = as_numbers("word", word, range(1, 21), range(2, 1025))
    H = word.size(1)
    position = as_numbers("position", position, range(1, 513), H)
    token_type = as_numbers("token_type", token_type, range(1, 5), H)
    if (weight is None) != (bias is None):
        raise ValueError("pass both weight and bias, the trained γ and β, or neither")
    trained = None if weight is None else (as_numbers("weight", weight, H), as_numbers("bias", bias, H))
    names = as_names(names, len(word), "names")

    tables = {"word": word, "position": position, "type": token_type}
    tables |= {"weight": trained[0], "bias": trained[1]} if trained else {}
    return make_figure(
        "sum_and_scale",
        {"tables": {key: pack(table) for key, table in tables.items()}, "names": names, "size": H},
        title="Word, position and token type are added up, number by number",
        details=f"word, position and token type, {H} numbers each, and LayerNorm of their sum",
    )


def mask_painter(
    tokens: Sequence[str],
    values: Sequence[float] | None = None,
    rows: Sequence[str] | None = None,
    mask: str = "bidirectional",
) -> View:
    """Draw an editable mask: which token (row) may see which (column), and the average of the values that it sees.

    There are 2 to 12 `tokens`, with one number each in `values` (1, 3, 5 … by default). `rows` are 1 to 12 tokens of a
    second text, which look at `tokens` in cross attention. `mask` is shown first: bidirectional, causal, padding,
    window or, with `rows`, cross. ValueError for another mask, other sizes, nan and inf.
    """
    names = as_tokens("tokens", tokens, 2, 12)
    odd = torch.arange(len(names)) * 2 + 1
    values = as_numbers("values", odd if values is None else values, len(names))
    if values.abs().max() > 1000:
        raise ValueError(f"values must be between -1000 and 1000, got {values.flatten()[values.abs().argmax()]:g}")
    masks = make_masks(names)
    if rows is not None:
        rows = as_tokens("rows", rows, 1, 12)
        masks["cross"] = torch.ones(len(rows), len(names))
    if mask not in masks:
        remedy = "pass rows, the tokens that look" if mask == "cross" else f"use one of {', '.join(masks)}"
        raise ValueError(f"mask={mask!r:.60} cannot be drawn: {remedy}")

    return make_figure(
        "mask_painter",
        {
            "names": names,
            "rows": rows,
            "values": values,
            "mask": mask,
            "masks": {name: one.int().tolist() for name, one in masks.items()},
        },
        title="A mask decides which values reach which average",
        details=f"who may see whom among {quote(names)}",
    )


def make_masks(names: Sequence[str]) -> dict[str, Tensor]:
    """Make masks (T, T), 1 where a row may see a column; without a [PAD], the last token counts as padding."""
    T, is_real = len(names), torch.tensor([name != "[PAD]" for name in names])
    is_real[-1] &= not is_real.all()
    ones, position = torch.ones(T, T), torch.arange(T)
    return {
        "bidirectional": ones,
        "causal": ones.tril(),
        "padding": ones * is_real,
        "window": ones * ((position[:, None] - position).abs() <= 1),
    }


def split_and_merge(sequence: int | Sequence[str], heads: int, head_size: int) -> View:
    """Draw how a matrix (S, H) is split into heads (A, S, D) and merged again, step by step, with common mistakes.

    `sequence` is a list of 2 to 6 tokens, or their number S; `heads` A and `head_size` D are 1 to 6 each, with
    H = A · D up to 24. The digits of each number give its position: 213 is token 2, head 1, coordinate 3. ValueError
    for other sizes.
    """
    if not isinstance(sequence, Sequence):  # the number of tokens
        check_size("sequence", sequence, 2, 6)
        sequence = as_names(None, sequence)
    names = as_tokens("tokens", sequence, 2, 6)
    check_size("heads", heads, 1, 6)
    check_size("head_size", head_size, 1, 6)
    H = heads * head_size
    if H > 24:
        raise ValueError(
            f"heads={heads} of head_size={head_size} are {H} numbers per token: this figure draws up to 24"
        )

    return make_figure(
        "split_and_merge",
        {"names": names, "heads": int(heads), "size": int(head_size)},
        title="Splitting into heads moves numbers and changes none",
        details="from (S, H) to (A, S, D) and back: S tokens, A heads, D numbers per head, H = A · D",
    )


def longest_match(tokenizer, text: str) -> View:
    """Draw how WordPiece splits a word of any text into pieces, try by try.

    `tokenizer` is a WordPieceTokenizer or transformers' own for BERT; the page contains its whole vocabulary. `text` is
    the initial text of the box, and its first word is split. ValueError for a text without words or of more than 200
    characters; TypeError if `text` is not a string or `tokenizer` not a tokenizer.
    """
    if not isinstance(tokenizer, WordPieceTokenizer):
        if not hasattr(tokenizer, "backend_tokenizer"):
            kind = type(tokenizer).__name__
            raise TypeError(f"tokenizer must be a WordPieceTokenizer or transformers' own, got {kind}")
        tokenizer = WordPieceTokenizer(*read_vocabulary(tokenizer))
    words = split_words(text, tokenizer.lowercase)
    if not words or len(text) > MAX_CHARACTERS:
        raise ValueError(f"text must contain a word and at most {MAX_CHARACTERS} characters, got {text!r:.60}")

    return make_figure(
        "longest_match",
        {
            "text": text,
            "most": MAX_CHARACTERS,
            "vocabulary": vocabulary_lines(tokenizer.vocab),
            "rules": splitting_rules(tokenizer.lowercase),
        },
        title="WordPiece takes the longest piece that fits, then goes on with the rest",
        details=f"try by try, with {len(tokenizer.vocab):,} tokens in the vocabulary",
    )


def merges(texts: Sequence[str], steps: int = 12) -> View:
    """Draw how a vocabulary is learned from texts: each merge joins the most frequent pair of neighbouring pieces.

    `texts` appear in a box in which they can be edited; words made of letters are lower-cased and counted. There are
    at most `steps` merges. ValueError for texts without such words or of more than 2,000 characters in total, and for
    `steps` outside 1 to 60; TypeError unless `texts` is a list of strings.
    """
    texts = as_texts(texts)
    check_size("steps", steps, 1, 60)
    text = "\n".join(texts)
    if len(text) > 2000:
        raise ValueError(
            f"the texts have {len(text):,} characters, but this figure takes at most 2,000: pass fewer of them"
        )
    if not any(word.isalpha() for word in split_words(text)):
        raise ValueError(f"the texts must contain at least one word of letters, got {text!r:.60}")

    return make_figure(
        "merges",
        {"text": text, "most": 2000, "steps": steps, "rules": splitting_rules(lowercase=True)},
        title="The most frequent pair of pieces becomes one piece, again and again",
        details="how a vocabulary is learned from words that are cut into characters",
    )


def rotary_turn(
    query: Sequence[float] = (1.05, 0.1),
    key: Sequence[float] = (0.9, 0.5),
    tokens: Sequence[str] | None = None,
    *,
    pair: int = 4,
    pairs: int = 32,
    base: float = 10_000,
) -> View:
    """Draw rotary positions: query and key are rotated by position, so their product depends on the distance only.

    `query` and `key` (2,) are one pair of a head's dimensions. There are 2 to 16 `tokens`, or 12 positions without
    words. Each position rotates pair `pair` of `pairs`, half the head size, by `base` ** (-`pair` / `pairs`) radians
    (Su et al. 2021, section 3.2). ValueError for other shapes, nan and inf.
    """
    arrows = torch.stack([as_numbers("query", query, 2), as_numbers("key", key, 2)])
    names = [""] * 12 if tokens is None else as_tokens("tokens", tokens, 2, 16)
    check_size("pairs", pairs, 1, 512)
    check_size("pair", pair, 0, pairs - 1)
    check_between("base", base, 1, 1e9, "it is 10,000 in the paper")

    return make_figure(
        "rotary_turn",
        {"query": arrows[0], "key": arrows[1], "names": names, "at": [len(names) // 2, len(names) // 4]}
        | {"pair": pair, "pairs": pairs, "base": base},
        title="Positions turn a query and a key, and only their distance changes the product",
        details=f"{pairs} pairs of dimensions, base {base:,}",
    )


def make_figure(name: str, data: dict, *, title: str, details: str) -> View:
    """Make the page of draggable/NAME.js with this data; `title` states the finding, `details` what is drawn."""
    title, details = writable(title), writable(details)
    script = FOLDER / f"{name}.js"
    page = build_page(name, data, title=title, details=details, code=[join(script)], css=sheets(script))
    return View(f"{title}: {details}", page)


def as_numbers(argument: str, values, *sizes: int | range) -> Tensor:
    """Return tensors, arrays or lists as a float64 tensor of these sizes; ValueError for other sizes, nan and inf."""
    numbers = torch.as_tensor(values).detach().cpu().double()
    allowed = [size if isinstance(size, range) else range(size, size + 1) for size in sizes]
    if numbers.dim() != len(sizes) or any(n not in ns for n, ns in zip(numbers.shape, allowed, strict=True)):
        wanted = " × ".join(f"{ns[0]}" if len(ns) == 1 else f"{ns[0]} to {ns[-1]}" for ns in allowed)
        raise ValueError(f"{argument} has the shape {tuple(numbers.shape)}: this figure draws {wanted} numbers")
    if not numbers.isfinite().all():
        raise ValueError(f"{argument} must not contain nan or inf, got {numbers.flatten()[:8].tolist()}")
    return numbers


def as_names(names: Sequence[str] | None, count: int, argument: str = "tokens") -> list[str]:
    """Return `count` names as strings, "token 0" and so on for None; ValueError for another number of names."""
    if isinstance(names, str):
        raise TypeError(f"{argument} must be a list of {count} strings, got the string {names!r:.60}")
    names = [f"token {index}" for index in range(count)] if names is None else list(map(str, names))
    if len(names) != count:
        raise ValueError(f"{argument} must be a list of {count} names, got {len(names)}")
    return [writable(name) for name in names]


def as_tokens(argument: str, tokens: Sequence[str], minimum: int, maximum: int) -> list[str]:
    """Return tokens as strings; TypeError unless they are a list, ValueError for too few or too many."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise TypeError(f"{argument} must be a list of tokens, got {tokens!r:.60}")
    check_size(f"the number of {argument}", len(tokens), minimum, maximum)
    return as_names(tokens, len(tokens), argument)


def split_words(text: str, lowercase: bool = True) -> list[str]:
    """Split a text into BERT's words, including special tokens and punctuation; TypeError unless it is a string."""
    parts = split_special_tokens(text)
    words = ([part] if part in SPECIAL_TOKENS else pre_tokenize(normalize(part, lowercase)) for part in parts)
    return list(chain.from_iterable(words))


def splitting_rules(lowercase: bool) -> dict:
    """Return the constants with which tokenizer.js splits a text into words exactly as Python's tokenizer does."""
    return {
        "lowercase": lowercase,
        "later": LATER_CHARACTERS,
        "earlier": EARLIER_CATEGORY,
        "ideographs": CJK_RANGES,
        "longest": MAX_CHARACTERS_PER_WORD,
    }


def vocabulary_lines(vocab: Mapping[str, int]) -> str:
    """Write the tokens in the order of their ids, one per line; ValueError for gaps in the ids or line breaks."""
    if set(vocab.values()) != set(range(len(vocab))):
        raise ValueError(f"{len(vocab)} tokens have ids up to {max(vocab.values())}: number them from 0, without gaps")
    if broken := [token for token in vocab if "\n" in token]:
        raise ValueError(f"the token {broken[0]!r:.60} contains a line break, which vocab.txt cannot store: remove it")
    return "\n".join(sorted(vocab, key=vocab.get))


def pack(numbers: Tensor, dtype: str = "<f4") -> str:
    """Encode numbers as base64 of float32 (`dtype` "<f4") or float16 ("<f2"), a quarter of the size of JSON."""
    return base64.b64encode(numbers.numpy().astype(dtype).tobytes()).decode()


def quote(names: Sequence[str]) -> str:
    """Return names in quotation marks, separated by commas."""
    return ", ".join(f"“{name}”" for name in names)
