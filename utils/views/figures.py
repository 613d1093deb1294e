"""Figures that can be dragged: one function each, plain numbers in, a `View` out, which shows itself without a kernel.

The numbers that a figure draws are worked out in its page and equal torch's; a still picture of its beginning stands
where scripts do not run. Used from notebook 00 on.
"""

import base64
import html
import io
from collections.abc import Callable, Sequence
from string import Template

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import layer_norm

from utils.checks import check_between, check_size
from utils.plots import curves, heatmap, plain
from utils.views.page import FOLDER as VIEWS
from utils.views.page import View, data_uri, json_for_html, own_text

FOLDER = VIEWS / "draggable"  # a page, a style sheet, what the figures share, and a file per figure


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
        title, limits = "Attention weights", (0, 1)
        heatmap(weights, list(factors), short(names), title=title, annotate=True, limits=limits, ax=ax)

    return make_figure(
        "sharpness",
        {"scores": scores, "names": names, "size": head_size},
        summary=f"Sharpness: softmax of the scores of {told(names)}, times a factor",
        help="Move the factor, or the score of one token. Watch the bars: the more attention goes to one token, the "
        "smaller is the gradient that is left.",
        still=still,
        size=(6, 2.6),
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
        total = word[0] + position[min(1, len(position) - 1)] + token_type[0]
        lines = {"sum": total, "LayerNorm of the sum": layer_norm(total, [H], eps=eps)}
        lines = {name: line[:48] for name, line in lines.items()}
        curves(lines, title=f"The vector of {told(short(names[:1]))}", xlabel="number", marker="", ax=ax)

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
        size=(7, 3),
    )


# HERE mask_painter


# HERE split_and_merge


# HERE longest_match


# HERE merges


# HERE graph_walk


def make_figure(
    name: str, data: dict, *, summary: str, help: str, still: Callable, size: tuple[float, float] = (5, 4)
) -> View:
    """Make the page of draggable/NAME.js with this data, and a still picture: `still` draws on matplotlib axes."""
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
        drawing=own_text(f"draggable/{name}.js"),
    )
    return View(title, page, picture)


def draw_still(draw: Callable, size: tuple[float, float]) -> bytes:
    """Draw on the axes of a figure of this size in inches, and return the PNG, the same on every computer."""
    figure, file = Figure(size, layout="constrained"), io.BytesIO()
    draw(figure.add_subplot())
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
