"""Figures that can be dragged: one function each, plain numbers in, a `View` out, which shows itself without a kernel.

The numbers that a figure draws are worked out in its page and equal torch's; a still picture of its beginning stands
where scripts do not run. Used from notebook 00 on.
"""

import html
import io
from collections.abc import Callable, Sequence
from string import Template

import torch
from matplotlib.figure import Figure
from torch import Tensor

from utils.checks import check_size
from utils.plots import heatmap, plain
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


# HERE sharpness


# HERE next_token


# HERE sum_and_scale


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
        heatmap(
            weights, labels, columns, annotate=True, limits=(0, 1), colorbar="attention weight", ax=ax,
            title=f"{mask} mask", xlabel="who is seen (value)", ylabel="who looks",
        )  # fmt: skip

    return make_figure(
        "mask_painter",
        {
            "names": names,
            "rows": rows,
            "values": values,
            "mask": mask,
            "masks": {name: one.int().tolist() for name, one in masks.items()},
        },
        summary=f"Who may see whom: a {mask} mask for {told(names)}",
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
    H = A · D up to 24. The matrix holds 0, 1, 2 …, coloured by head. ValueError for other sizes.
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

    def still(ax) -> None:
        head_of = (torch.arange(H) // head_size).expand(S, H)
        ax.imshow(head_of.numpy(), cmap="Set2", vmin=0, vmax=7, alpha=0.5, aspect="auto")
        for number in range(S * H):
            ax.text(number % H, number // H, number, ha="center", va="center")
        places = [head_size * (head + 0.5) - 0.5 for head in range(heads)]
        ax.set_xticks(places, [f"head {head}" for head in range(heads)])
        ax.set_yticks(range(S), [plain(f"{name:.20}") for name in names])
        ax.set_title(f"x ({S}, {H}): each head gets {head_size} columns")

    return make_figure(
        "split_and_merge",
        {"names": names, "heads": int(heads), "size": int(head_size)},
        summary=f"Split into {heads} heads and merge: the vectors of {told(names)}, {H} numbers each",
        help="Go through the steps and follow one number (click it). Then choose a wrong order: every shape is right, "
        "and the numbers are not. In a model a batch stands in front, so there it is transpose(1, 2).",
        still=still,
        size=(2 + 0.4 * H, 1 + 0.4 * S),
    )


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


def as_tokens(argument: str, tokens: Sequence[str], least: int, most: int) -> list[str]:
    """Turn a list of tokens into texts; TypeError for what is no list, ValueError for too few or too many."""
    if isinstance(tokens, str) or not isinstance(tokens, Sequence):
        raise TypeError(f"{argument}={tokens!r:.60} is no list of tokens: pass a list of texts")
    check_size(f"the number of {argument}", len(tokens), least, most)
    return [
        str(token).encode(errors="replace").decode() for token in tokens
    ]  # half a character cannot be drawn


def plain_numbers(value):
    """Turn a tensor into lists, which JSON can hold, and leave everything else as it is."""
    return value.tolist() if isinstance(value, Tensor) else value


def told(names: Sequence[str]) -> str:
    """Write names one after the other, each in quotation marks."""
    return ", ".join(f"“{name}”" for name in names)
