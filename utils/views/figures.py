"""Figures that can be dragged: one function each, plain numbers in, a `View` out, which shows itself without a kernel.

The numbers that a figure draws are worked out in its page and equal torch's; a still picture of its beginning stands
where scripts do not run. Used from notebook 00 on.
"""

import base64
import html
import io
import math
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations, pairwise, product
from string import Template

import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from torch import Tensor
from torch.nn.functional import layer_norm

from utils.checks import SPECIAL_TOKENS, check_between, check_size, check_texts
from utils.plots import NEGATIVE, POSITIVE, SIGNED, bars, plain, to_numpy
from utils.tokenization import (
    CJK_RANGES,
    EARLIER_CATEGORY,
    LATER_CHARACTERS,
    MAX_CHARACTERS_PER_WORD,
    WordPieceTokenizer,
    normalize,
    pre_tokenize,
    read_vocabulary,
    split_special_tokens,
    word_pieces,
)
from utils.views.page import FOLDER as VIEWS
from utils.views.page import POLICY, View, data_uri, json_for_html, own_text, writable

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
    carried = keys if values is None else values
    average = weights @ carried

    def still(ax) -> None:
        left, right = GridSpec(1, 2, width_ratios=(3, 1), figure=ax.figure)
        ax.set_subplotspec(left)
        reach = 1.3 * max(1, float(torch.cat([keys, carried, query[None]]).abs().max()))
        for corners in combinations(carried.tolist(), 3):  # together they fill what averages can reach
            ax.fill(*zip(*corners, strict=True), color="C2", alpha=0.1, lw=0)
        told_apart = {
            f"query of {short(names, 12)[asking]}": (query, "C4"),
            "average of the values": (average, "C2"),
        }
        arrows = [*((key, "C0") for key in keys), *told_apart.values()]
        for (x, y), colour in arrows:
            ax.annotate("", (x, y), (0, 0), arrowprops={"arrowstyle": "->", "color": colour, "lw": 2})
        for name, (x, y) in zip(short(names, 12), keys, strict=True):
            where = {"ha": "center", "va": "top" if y < 0 else "bottom", "color": "C0", "parse_math": False}
            ax.text(x, y + reach * (0.02 if y > 0 else -0.02), f"key of {name}", **where)
        ax.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        lines = [
            Line2D([], [], color=colour, lw=2, label=plain(name)) for name, (_, colour) in told_apart.items()
        ]
        ax.legend(handles=lines, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.08), ncols=2)
        beside = ax.figure.add_subplot(right, box_aspect=1.5)
        beside.bar_label(beside.barh(range(len(names)), weights.tolist()), fmt="%.2f", padding=3)
        beside.set_yticks(range(len(names)), map(plain, short(names, 12)))
        beside.invert_yaxis()
        beside.set(xlim=(0, 1.4), xticks=[], xlabel="attention weight")

    return make_figure(
        "attention_in_the_plane",
        {"query": query, "keys": keys, "values": values, "names": names, "asking": asking},
        summary=f"Attention in the plane: the query of “{names[asking]}” and the keys of {told(names)}",
        help="Drag an arrow's head, or move to it with Tab and use the arrow keys. Turn the query towards a key, "
        "and the score of that key grows; make the query longer, and the largest weight grows.",
        still=still,
        size=(7, 4),
    )


def sharpness(scores: Sequence[float], *, head_size: int = 64, tokens: Sequence[str] | None = None) -> View:
    """Draw softmax of one query's scores, which are multiplied by a factor: attention weights and gradients left.

    `scores` (N,) are the products q · k of 2 to 12 `tokens`; the factor goes from 1/√D to D, the `head_size`, which is
    2 to 1,024. ValueError for other shapes, nan and inf.
    """
    scores = as_numbers("scores", scores, range(2, 13))
    names = as_names(tokens, len(scores))
    check_size("head_size", head_size, 2, 1024)
    factors = {"÷ √D": head_size**-0.5, "× 1": 1, "× D": head_size}

    def still(ax) -> None:
        weights = torch.stack([(scores * factor).softmax(dim=0) for factor in factors.values()])
        left = (weights * (1 - weights)).amax(dim=1)  # the largest gradient of a weight by its own score
        ax.imshow(to_numpy(weights), aspect="auto", cmap="Blues", vmin=0, vmax=1.2)
        for row, column in product(range(len(weights)), range(len(names))):
            dark, shown = weights[row, column] > 0.7, f"{weights[row, column]:.2f}"
            ax.text(column, row, shown, ha="center", va="center", color="white" if dark else "black")
        ax.set_xticks(range(len(names)), map(plain, short(names)), rotation=45)
        ax.set_yticks(range(len(factors)), [f"scores {name}" for name in factors])
        ax.set_title("Attention weights (in blue), and the gradient that is left")
        gradients = ax.secondary_yaxis("right")
        gradients.set_yticks(range(len(left)), [f"gradient {slope:.2f}" for slope in left])
        gradients.tick_params(length=0)

    return make_figure(
        "sharpness",
        {"scores": scores, "names": names, "size": head_size},
        summary=f"Sharpness: softmax of the scores of {told(names)}, times a factor",
        help="Move the factor, or the score of one token. Watch the bars: once one token has more than half of "
        "the attention, the gradient that is left shrinks with each further bit.",
        still=still,
        size=(6, 3.6),
    )


def next_token(logits: Sequence[float], tokens: Sequence[str]) -> View:
    """Draw the shares of the next token, from which to draw: with a temperature, top-k and top-p to be moved.

    `logits` (V,) are a decoder's for 2 to 500 `tokens`; the 12 most likely get a bar each. ValueError for other shapes,
    nan and inf, and for more tokens: shares among the best 500 are a little larger than among all.
    """
    logits = torch.as_tensor(logits)
    if logits.dim() == 1 and len(logits) > 500:
        remedy = "pass the largest and their tokens, best = logits.topk(500)"
        raise ValueError(f"logits of {len(logits):,} tokens: this figure draws at most 500; {remedy}")
    logits = as_numbers("logits", logits, range(2, 501))
    names = as_names(tokens, len(logits))

    def still(ax) -> None:
        best = logits.softmax(dim=0).topk(min(12, len(logits)))
        rows = range(len(best.values))  # not by name: two tokens may have the same
        ax.barh(rows, best.values.tolist())
        ax.set_yticks(rows, map(plain, short([names[i] for i in best.indices])))
        ax.invert_yaxis()
        ax.set(title="The most likely next tokens", xlabel="share")

    return make_figure(
        "next_token",
        {"logits": logits, "names": names},
        summary=f"The next token: its shares among {len(names)}, with temperature, top-k and top-p",
        help="Move the temperature, top-k or top-p. The outline is the share that the model gives; the bar is what is "
        "left of it. Then draw tokens and compare.",
        still=still,
        size=(6, 4),
    )


def sum_and_scale(
    word: Tensor,
    position: Tensor,
    token_type: Tensor,
    names: Sequence[str] | None = None,
    *,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-12,
    number: int | None = None,
) -> View:
    """Draw how word, position and token-type vectors are added, and what LayerNorm makes of their sum.

    `word` (W, H) are the vectors of 1 to 20 words with `names`, `position` (P, H) those of up to 512 positions,
    `token_type` (T, H) of up to 4; H is 2 to 1,024. `weight` and `bias` (H,), both or none, are LayerNorm's trained γ
    and β. `number` is the index of the number that is marked first, by default one whose positions differ much.
    ValueError for other shapes, nan and inf.
    """
    word = as_numbers("word", word, range(1, 21), range(2, 1025))
    H = word.size(1)
    position = as_numbers("position", position, range(1, 513), H)
    token_type = as_numbers("token_type", token_type, range(1, 5), H)
    if (weight is None) != (bias is None):
        raise ValueError("weight and bias, the trained γ and β, belong together: pass both or none")
    trained = None if weight is None else (as_numbers("weight", weight, H), as_numbers("bias", bias, H))
    names = as_names(names, len(word), "names")
    if number is None:  # the first position is [CLS]'s, and often unlike all others
        others = position[1:] if len(position) > 1 else position
        number = int(others.var(dim=0, correction=0).argmax())
    check_size("number", number, 0, H - 1)
    check_between("eps", eps, 0, 1, "BERT's is 1e-12")
    reach = float(torch.cat([word, token_type]).abs().quantile(0.99)) or 1.0

    def still(ax) -> None:
        at = min(1, len(position) - 1)
        strips = {"word": word[0], f"+ position {at}": position[at], "+ token type": token_type[0]}
        strips["= sum"] = total = sum(strips.values())
        most = quantile_of(torch.stack(list(strips.values())))
        scales = [most] * len(strips)
        strips["normalised"] = normed = layer_norm(total, [H], eps=eps)
        if trained:
            strips["· γ + β"] = normed * trained[0] + trained[1]
        scales += [quantile_of(strip) for strip in list(strips.values())[len(scales) :]]  # each its own
        rows = to_numpy(
            torch.stack([strip / scale for strip, scale in zip(strips.values(), scales, strict=True)])
        )
        ax.imshow(rows, aspect="auto", cmap=SIGNED, vmin=-1, vmax=1, interpolation="nearest")
        ax.set_yticks(range(len(rows)), strips)
        before, after = (f"{strip.std(correction=0):.2f}" for strip in (total, normed))
        ax.set(
            title=plain(f"{told(short(names[:1]))}: normalising takes the spread from {before} to {after}"),
            xlabel="number (blue above zero, orange below)",
        )
        ends = ax.secondary_yaxis("right")
        told_ends = [
            f"spread {strip.std(correction=0):.2f}, scale ±{scale:.2f}"
            for strip, scale in zip(strips.values(), scales, strict=True)
        ]
        ends.set_yticks(range(len(rows)), told_ends)
        ends.tick_params(length=0)

    tables = {"word": word, "position": position, "type": token_type}
    tables |= {"weight": trained[0], "bias": trained[1]} if trained else {}
    return make_figure(
        "sum_and_scale",
        {"tables": {key: packed(table) for key, table in tables.items()}, "names": names, "size": H}
        | {"reach": reach, "first": number, "eps": eps},
        summary=f"Word + position + token type, {H} numbers each, and LayerNorm of their sum",
        help="Choose a word, a position and a token type, and watch the sum. Blue numbers are above zero, orange ones "
        "below. Click into a strip, or move the slider, to follow one number.",
        still=still,
        size=(7.6, 3.2),
    )


def quantile_of(numbers: Tensor) -> float:
    """Where a colour scale ends: a single large number would pale all others."""
    return numbers.abs().quantile(0.98).item() or 1.0


def mask_painter(
    tokens: Sequence[str],
    values: Sequence[float] | None = None,
    rows: Sequence[str] | None = None,
    mask: str = "bidirectional",
) -> View:
    """Draw a mask as a grid to be painted: which token (row) may see which (column), and the average of what it sees.

    `tokens` are 2 to 12, `values` one number for each (1, 3, 5 … if not given). `rows` are the tokens of a second text,
    1 to 12, which look at `tokens` in cross attention. `mask` is the one to begin with: bidirectional, causal, padding,
    window or, with `rows`, cross. ValueError for another, for other sizes, nan and inf.
    """
    names = as_tokens("tokens", tokens, 2, 12)
    odd = torch.arange(len(names)) * 2 + 1
    values = as_numbers("values", odd if values is None else values, len(names))
    if values.abs().max() > 1000:
        raise ValueError(
            f"values reach {values.abs().max():g}, which is too large to be drawn: use -1000 to 1000"
        )
    masks = masks_of(names)
    if rows is not None:
        rows = as_tokens("rows", rows, 1, 12)
        masks["cross"] = torch.ones(len(rows), len(names))
    if mask not in masks:
        remedy = "pass rows, the tokens that look" if mask == "cross" else f"use one of {', '.join(masks)}"
        raise ValueError(f"mask={mask!r:.60} cannot be drawn: {remedy}")
    looking = rows if mask == "cross" else names
    weights = masks[mask] / masks[mask].sum(dim=1, keepdim=True)  # softmax of equal scores

    def still(ax) -> None:
        labels = [
            f"{name:.20} (average {average:.2f})"
            for name, average in zip(looking, weights.double() @ values, strict=True)
        ]
        columns = [f"{name:.20} ({value:g})" for name, value in zip(names, values.tolist(), strict=True)]
        tints = to_numpy(
            masks[mask] * (0.25 + 0.6 * weights)
        )  # white: closed; the darker, the larger the weight
        ax.imshow(tints, aspect="auto", cmap="Blues", vmin=0, vmax=1)
        for row, column in product(range(len(looking)), range(len(names))):
            if masks[mask][row, column]:
                color = "white" if tints[row, column] > 0.55 else "black"
                number = f"{weights[row, column]:.2f}"
                ax.text(column, row, number, ha="center", va="center", color=color, fontsize=8)
        ax.set_xticks(range(len(columns)), map(plain, columns), rotation=45)
        ax.set_yticks(range(len(labels)), map(plain, labels))
        ax.set_xticks([column + 0.5 for column in range(len(columns) - 1)], minor=True)
        ax.set_yticks([row + 0.5 for row in range(len(labels) - 1)], minor=True)
        ax.grid(which="minor", color="0.6")
        ax.tick_params(which="both", length=0)
        title = f"{mask} mask: blue may be seen, with this attention weight"
        ax.set(title=title, xlabel="who is seen (value)", ylabel="who looks")

    return make_figure(
        "mask_painter",
        {
            "names": names,
            "rows": rows,
            "values": values,
            "mask": mask,
            "masks": {name: one.int().tolist() for name, one in masks.items()},
        },
        summary=f"Who may see whom among {told(names)}",
        help="Press a cell to close or open it, and drag on to paint (with keys: arrows, Space). Change a value and "
        "watch whose average moves. All scores are equal here, so a row that may see n tokens gives each the attention "
        "weight 1/n.",
        still=still,
        size=(3.6 + 0.6 * len(names), 1.8 + 0.4 * len(looking)),
    )


def masks_of(names: Sequence[str]) -> dict[str, Tensor]:
    """Make masks (T, T) of these tokens, 1 where a row may see a column. Without [PAD], the last one is the padding."""
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
    """Draw how a matrix (S, H) is split into heads (A, S, D) and merged again, step by step, and what goes wrong.

    `sequence` is the number of tokens S or a list of them, 2 to 6; `heads` A and `head_size` D are 1 to 6 each, with
    H = A · D up to 24. Each number says where it belongs (`numbers_that_say_where`). ValueError for other sizes.
    """
    if not isinstance(sequence, Sequence):  # a count
        check_size("sequence", sequence, 2, 6)
        sequence = as_names(None, sequence)
    names = as_tokens("tokens", sequence, 2, 6)
    check_size("heads", heads, 1, 6)
    check_size("head_size", head_size, 1, 6)
    S, H = len(names), heads * head_size
    if H > 24:
        raise ValueError(
            f"heads={heads} of head_size={head_size} are {H} numbers per token: this figure draws up to 24"
        )
    gap, below = 3.2, 1.4  # cells between two steps, and from one table to the next
    height = max(S * (heads + below), heads * (S + below))

    def still(ax) -> None:
        def table(x: float, y: float, numbers: Tensor, title: str) -> None:
            rows, columns = numbers.shape
            colours = {"cmap": "Set2", "vmin": 0, "vmax": 7, "alpha": 0.5}
            ax.imshow(to_numpy(numbers // 10 % 10), extent=(x, x + columns, y + rows, y), **colours)
            ax.text(x + columns / 2, y - 0.15, plain(title), ha="center", va="bottom")
            for place, number in enumerate(numbers.flatten().tolist()):
                row, column = divmod(place, columns)
                ax.text(x + column + 0.5, y + row + 0.5, number, ha="center", va="center", fontsize="small")

        named, by_token, by_head = (
            numbers_that_say_where(S, heads, head_size),
            H + gap,
            H + head_size + 2 * gap,
        )
        table(0, 0, named.view(S, H), f"q ({S}, {H})")
        for row, name in enumerate(names):
            ax.text(-0.2, row + 0.5, plain(f"{name:.20}"), ha="right", va="center")
            table(by_token, row * (heads + below), named[row], f"{name:.20} ({heads}, {head_size})")
        for head in range(heads):
            table(by_head, head * (S + below), named[:, head], f"head {head} ({S}, {head_size})")
        for x, there, back in ((H, "view", "reshape"), (by_token + head_size, "transpose", "transpose")):
            ends = [(x + 0.3, S / 2 - 0.3), (x + gap - 0.3, S / 2 - 0.3)]
            ax.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "->", "lw": 2})
            ax.text(x + gap / 2, S / 2 - 0.45, there, ha="center", va="bottom")
            ends = [(x + gap - 0.3, S / 2 + 0.3), (x + 0.3, S / 2 + 0.3)]
            ax.annotate("", ends[1], ends[0], arrowprops={"arrowstyle": "->", "lw": 2, "ls": "--"})
            ax.text(x + gap / 2, S / 2 + 0.45, back, ha="center", va="top")
        title = "Split the heads (→), and merge them by the same way back (⇠)"
        ax.set(xlim=(-2, by_head + head_size), ylim=(height - 1, -1.2), aspect="equal", title=title)
        ax.axis("off")

    return make_figure(
        "split_and_merge",
        {"names": names, "heads": int(heads), "size": int(head_size)},
        summary=f"Split into {heads} heads and merge: the vectors of {told(names)}, {H} numbers each",
        help="Go through the steps and follow one number (click it): 213 is token 2, head 1, place 3. Then choose a "
        "wrong order: every shape is right, and the numbers are not. In a model a batch stands in front: there it is "
        "transpose(1, 2).",
        still=still,
        size=(0.4 + 0.3 * (2 + H + 2 * (head_size + gap)), 0.6 + 0.3 * height),
    )


def numbers_that_say_where(tokens: int, heads: int, head_size: int) -> Tensor:
    """Numbers (S, A, D): the hundreds name the token, from 1, the tens the head and the ones the place, from 0."""
    token, head, place = torch.arange(1, tokens + 1), torch.arange(heads), torch.arange(head_size)
    return 100 * token[:, None, None] + 10 * head[:, None] + place


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
        summary=f"Longest match, try by try, beginning with “{words[0]:.40}”",
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
        summary="Merges: how a vocabulary is learned from texts, pair by pair",
        help="Press “next”: the framed pair becomes one piece in every word, and the pairs are counted again. Change "
        "the texts, and it begins anew.",
        still=still,
        before=["tokenizer"],
    )


def graph_walk(
    index,
    vectors: Tensor,
    query: Tensor,
    names: Sequence[str],
    *,
    query_name: str = "the query",
    k: int = 3,
) -> View:
    """Draw a search in a faiss HNSW index as a walk from text to text, for any number of candidates kept in view.

    `index` is an IndexHNSWFlat of unit `vectors` (N, H) with 2 to 1,000 `names`, and `query` is (H,). The plane shows
    the vectors' two principal components, so what is near there is not always near. ValueError for what does not fit.
    """
    vectors = as_numbers("vectors", vectors, range(2, 1001), range(1, 10_000))
    N, H = vectors.shape
    query, names = as_numbers("query", query, H), as_names(names, N, "names")
    check_size("k", k, most=min(N, 10))
    if not hasattr(index, "hnsw") or index.ntotal != N or index.d != H:
        raise ValueError(
            f"index {index!r:.60} is no HNSW graph of these {N} vectors of {H} numbers: hnsw_index(vectors)"
        )
    scores = vectors @ query
    centred = vectors - vectors.mean(dim=0)
    _, _, directions = torch.linalg.svd(centred, full_matrices=False)
    places = centred @ directions[:2].T
    places = places / places.abs().amax(dim=0) * torch.tensor([104, 66])
    nearest, layers = scores.topk(k).indices, layers_of(index.hnsw, N)

    ef = max(k, min(index.hnsw.efSearch, N, 64))
    walked = search_steps(layers, scores.tolist(), index.hnsw.entry_point, ef)
    compared = {node for _, here, met in walked for node in (here, *met)}

    def still(ax) -> None:
        links = [(places[here], places[node]) for _, here, met in walked for node in met]
        ax.add_collection(LineCollection(links, colors="C4", linewidths=0.6, alpha=0.5))
        ax.scatter(*places.T, s=8, color="0.75", zorder=2, label="a text")
        ax.scatter(*places[sorted(compared)].T, s=10, color="C4", zorder=2, label="compared with the query")
        start = {"s": 60, "marker": "s", "facecolors": "none", "edgecolors": "black", "zorder": 2}
        ax.scatter(*places[index.hnsw.entry_point], **start, label="begins here")
        ring = {"s": 40, "facecolors": "none", "edgecolors": "C2", "linewidths": 2, "zorder": 2}
        ax.scatter(*places[nearest].T, **ring, label="truly nearest")
        ax.legend(frameon=False, fontsize="small", ncols=2, loc="upper center", bbox_to_anchor=(0.5, 0))
        stops = dict.fromkeys(here for _, here, _ in walked)  # each once, in order
        for node in {*list(stops)[:8], *nearest.tolist()}:
            side = "right" if places[node, 0] > 40 else "left"
            colour = "C2" if node in nearest else "black"
            name = f"  {names[node]}  "
            ax.text(*places[node].tolist(), name, fontsize="small", color=colour, ha=side, parse_math=False)
        found = len(compared & {*nearest.tolist()})
        ax.set_title(
            f"{ef} candidates in view: {found} of the {k} nearest met, {len(compared)} of {N} compared"
        )
        ax.set(xticks=[], yticks=[])

    return make_figure(
        "graph_walk",
        {
            "names": names,
            "places": places.mul(torch.tensor([1, -1])).round(decimals=2),
            "scores": scores,
            "links": layers,
            "entry": index.hnsw.entry_point,
            "query": query_name,
            "k": k,
            "ef": ef,
        },
        summary=f"A search for {query_name} in a graph of {N} texts",
        help="Each point is a text, each line a link that the search has followed. Purple points are "
        "compared in this step, rings mark the texts that are truly nearest. Move the number of candidates, and step "
        "through the walk. The plane flattens many dimensions into two, so near in the picture is not always near.",
        still=still,
        size=(6, 4),
    )


def search_steps(
    layers: Sequence, scores: Sequence[float], entry: int, ef: int
) -> list[tuple[int, int, list[int]]]:
    """List the steps of a search in `layers_of` an HNSW graph: (layer, text whose links it follows, texts met there).

    They are those of graph_walk.js, with `ef` candidates in view. In the bottom layer a text is met once.
    """
    steps, best = [], entry
    for layer in range(len(layers) - 1, 0, -1):
        last = None
        while last != best:
            last = best
            steps.append((layer, last, layers[layer][last]))
            best = max([best, *layers[layer][last]], key=scores.__getitem__)
    seen, kept, followed = {best}, [best], set()
    while waiting := [node for node in kept if node not in followed]:
        here = max(waiting, key=scores.__getitem__)
        met = [node for node in layers[0][here] if node not in seen]
        followed.add(here)
        seen.update(met)
        kept = sorted([*kept, *met], key=scores.__getitem__, reverse=True)[:ef]
        steps.append((0, here, met))
    return steps


def layers_of(hnsw, count: int) -> list[list[list[int]]]:
    """Read each layer's links out of faiss's arrays: for every node the nodes that it is linked to."""
    import faiss

    arrays = hnsw.neighbors, hnsw.offsets, hnsw.cum_nneighbor_per_level, hnsw.levels
    neighbours, offsets, starts, levels = (faiss.vector_to_array(array).astype(int) for array in arrays)
    layers = []
    for layer in range(hnsw.max_level + 1):
        rows = [
            neighbours[offsets[node] + starts[layer] : offsets[node] + starts[layer + 1]]
            if levels[node] > layer  # else it is not in this layer
            else neighbours[:0]
            for node in range(count)
        ]
        layers.append([[int(other) for other in row if other >= 0] for row in rows])
    return layers


def rotary_turn(
    query: Sequence[float] = (1.0, 0.3),
    key: Sequence[float] = (0.6, 0.5),
    tokens: Sequence[str] | None = None,
    *,
    pair: int = 4,
    pairs: int = 32,
    base: float = 10_000,
) -> View:
    """Draw rotary positions: a query and a key turn by their positions, and their product depends on the distance only.

    `query` and `key` (2,) are one pair of a head's dimensions; `tokens` are 2 to 16, or 12 positions without words. A
    position turns pair `pair` of `pairs`, half the head size, by `base` ** (-`pair` / `pairs`) radians (Su et al. 2021,
    section 3.2). ValueError for other shapes, nan and inf.
    """
    arrows = torch.stack([as_numbers("query", query, 2), as_numbers("key", key, 2)])
    names = [""] * 12 if tokens is None else as_tokens("tokens", tokens, 2, 16)
    check_size("pairs", pairs, 1, 512)
    check_size("pair", pair, 0, pairs - 1)
    check_between("base", base, 1, 1e9, "it is 10,000 in the paper")
    N, angle = len(names), base ** (-pair / pairs)
    i, j = N // 2, N // 4

    def still(ax) -> None:
        before, distances = torch.view_as_complex(arrows), torch.arange(1 - N, N)
        after = before * torch.exp(1j * angle * torch.tensor([i, j]))  # to multiply by e^iφ is to turn by φ
        products = (before[0] * before[1].conj() * torch.exp(1j * angle * distances)).real
        ends, figure = to_numpy(torch.view_as_real(torch.cat([before, after]))), ax.figure
        figure.clear()
        left, right = figure.subplots(1, 2)
        style = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.014}
        left.quiver([0] * 4, [0] * 4, *ends.T, color=["C4", "C0"] * 2, alpha=[0.3, 0.3, 1, 1], **style)
        for end, name in zip(1.2 * ends[2:], (f"query at {i}", f"key at {j}"), strict=True):
            left.text(*end, name, ha="center", va="center", fontsize="small")
        reach = 1.4 * (before.abs().max().item() or 1)
        left.set(title=f"{math.degrees(angle):.3g}° per position", aspect="equal")
        left.set(xlim=(-reach, reach), ylim=(-reach, reach), xticks=[], yticks=[])
        colours = [POSITIVE if one > 0 else NEGATIVE for one in products]
        right.scatter(*map(to_numpy, (distances, products, 20 + 100 * (distances == i - j))), colours)
        title = f"query at {i} · key at {j} = {products[N - 1 + i - j]:.2f}"
        right.set(title=title, xlabel="distance", ylabel="product")

    return make_figure(
        "rotary_turn",
        {"query": arrows[0], "key": arrows[1], "names": names, "at": [i, j]}
        | {"pair": pair, "pairs": pairs, "base": base},
        summary="Two positions turn a query and a key: their product depends on the distance only",
        help="Move the position of the query or the key, with the pointer or the arrow keys: its arrow turns, and the "
        "product changes. Then tick “move both together”: both arrows turn, and the product stands still. Drag the "
        "arrows' heads to try others; the last pairs of a head's dimensions hardly turn at all.",
        still=still,
        size=(7, 3.4),
    )


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
    title = writable(summary)
    page = Template(own_text("draggable/figure.html")).substitute(
        policy=POLICY,
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
    figure, file = Figure(size, dpi=180, layout="constrained"), io.BytesIO()
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
    names = [f"token {index}" for index in range(count)] if names is None else list(map(str, names))
    if len(names) != count:
        raise ValueError(f"there are {len(names)} {argument}, but {count} to be named: pass as many")
    return [writable(name) for name in names]


def as_tokens(argument: str, tokens: Sequence[str], least: int, most: int) -> list[str]:
    """Turn a list of tokens into texts; TypeError for what is no list, ValueError for too few or too many."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise TypeError(f"{argument}={tokens!r:.60} is no list of tokens: pass a list of texts")
    check_size(f"the number of {argument}", len(tokens), least, most)
    return as_names(tokens, len(tokens), argument)


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


def packed(numbers: Tensor) -> str:
    """Write numbers as base64 of float32, a quarter of the length that JSON takes; `unpack` in figure.js reads them."""
    return base64.b64encode(numbers.float().numpy().astype("<f4").tobytes()).decode()


def short(names: Sequence[str], most: int = 20) -> list[str]:
    """Cut long names, for which a still picture has no room."""
    return [name if len(name) <= most else f"{name[: most - 1]}…" for name in names]


def told(names: Sequence[str]) -> str:
    """Write names one after the other, each in quotation marks."""
    return ", ".join(f"“{name}”" for name in names)
