"""Still pictures of the three attention views, for readers on GitHub and on paper. Used from notebook 03 on."""

import math
from collections.abc import Collection, Sequence

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection
from torch import Tensor

from utils.plots import NEGATIVE, POSITIVE, SIGNED, to_numpy
from utils.views.inputs import check_indices, read_panel, stack_layers


def head_lines(
    attention: Sequence[Tensor],
    tokens: Sequence[str],
    key_tokens: Sequence[str] | None = None,
    *,
    layer: int = 0,
    heads: Sequence[int] | None = None,
    numbers_from: float = math.inf,
    title: str = "",
) -> None:
    """Draw the head view: a line from each token to each it attends to, as opaque as the weight, one colour per head.

    `attention` holds one tensor (1, A, S, T) per layer, `key_tokens` the T tokens attended to, if they are another
    text's; all heads are drawn unless `heads` names some. Each weight of `numbers_from` or more is written
    at its line. ValueError as in `head_view`.
    """
    panel = read_panel(attention, tokens, tokens if key_tokens is None else key_tokens)
    check_indices("layer", [layer], panel.weights.size(0))
    heads = check_indices("heads", heads, panel.weights.size(1))
    rows = max(len(panel.left_tokens), len(panel.right_tokens))
    _, ax = plt.subplots(figsize=(4.6, 1.1 + 0.26 * rows), layout="constrained")
    for head in heads:
        weights = to_numpy(panel.weights[layer, head])
        draw_lines(ax, weights, color=f"C{head % 10}", label=f"head {head}")
        for row, column in np.argwhere(weights >= numbers_from):
            style = {"ha": "center", "va": "center", "color": f"C{head % 10}"}
            style["bbox"] = {"facecolor": "white", "edgecolor": "none", "pad": 1}
            ax.text(0.78, row + 0.78 * (column - row), f"{weights[row, column]:.2f}", **style)
    for row, token in enumerate(panel.left_tokens):
        ax.text(-0.03, row, token, ha="right", va="center", parse_math=False)
    for row, token in enumerate(panel.right_tokens):
        ax.text(1.03, row, token, ha="left", va="center", parse_math=False)
    ax.set(xlim=(-0.5, 1.5), ylim=(rows - 0.5, -0.5), xticks=[0, 1], yticks=[])
    ax.set_xticklabels(["token (query)", "attends to (key)"])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.set_title(title, parse_math=False)
    opaque = [plt.Line2D([], [], color=f"C{head % 10}", label=f"head {head}") for head in heads]
    ax.legend(handles=opaque, title=f"layer {layer}", loc="center left", bbox_to_anchor=(1, 0.5))
    plt.show()


def draw_lines(ax, weights: np.ndarray, *, color: str, label: str) -> None:
    """Draw a line for each weight (S, T), from the left column's row to the right column's."""
    lines = [[(0, row), (1, column)] for row, column in np.ndindex(*weights.shape)]
    ax.add_collection(LineCollection(lines, colors=color, alpha=weights.clip(0, 1).ravel(), label=label))


def layer_head_grid(
    attention: Sequence[Tensor],
    *,
    include_layers: Sequence[int] | None = None,
    include_heads: Sequence[int] | None = None,
    framed: Collection[tuple[int, int]] = (),
    title: str = "",
) -> None:
    """Draw the model view: one small map of weights per head, queries from top to bottom and keys from left to right.

    `attention` holds one tensor (1, A, S, T) per layer. All maps share one scale, from 0 to 1. `framed`
    are heads, as (layer, head), that get a red frame.
    """
    weights = stack_layers(attention)
    layers = check_indices("include_layers", include_layers, weights.size(0))
    heads = check_indices("include_heads", include_heads, weights.size(1))
    size = (max(6.4, 1.6 + 0.72 * len(heads)), max(3.2, 1.1 + 0.76 * len(layers)))
    figure, axes = plt.subplots(len(layers), len(heads), figsize=size, layout="constrained", squeeze=False)
    for row, layer in enumerate(layers):
        for column, head in enumerate(heads):
            ax = axes[row, column]
            image = ax.imshow(to_numpy(weights[layer, head]), vmin=0, vmax=1)
            ax.set(xticks=[], yticks=[])
            if (layer, head) in framed:
                ax.spines[:].set(visible=True, color="red", linewidth=2.5)
        axes[row, 0].set_ylabel(layer, rotation=0, ha="right", va="center")
    for column, head in enumerate(heads):
        axes[0, column].set_title(head, fontsize="medium")
    figure.suptitle(title, parse_math=False)
    figure.supxlabel("head (above each column); in each map, keys from left to right", fontsize="medium")
    figure.supylabel("layer; in each map, queries downwards", fontsize="medium")
    figure.colorbar(image, ax=axes, label="attention weight", fraction=0.03)
    plt.show()


def query_key_detail(
    queries: Tensor, keys: Tensor, tokens: Sequence[str], query_index: int, *, title: str = ""
) -> None:
    """Draw the neuron view: how one token's query meets every key in one head, from q and k to softmax(q · k / √D).

    `queries` and `keys` (S, D) are one head's, such as `output.queries[layer][0, head]`. ValueError if they do not fit
    the tokens, or for a `query_index` that does not exist.
    """
    queries, keys = to_numpy(queries), to_numpy(keys)
    S, D = keys.shape[-2:]
    if queries.shape != (S, D) or keys.shape != (S, D) or len(tokens) != S:
        raise ValueError(
            f"queries {queries.shape}, keys {keys.shape} and {len(tokens)} tokens do not fit: pass one head's "
            "vectors, (tokens, head size)"
        )
    check_indices("query_index", [query_index], S)
    query = np.full_like(keys, np.nan)  # only the row of the query is drawn
    query[query_index] = queries[query_index]
    products = queries[query_index] * keys
    scores = products.sum(axis=1) / np.sqrt(D)
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    figure, axes = plt.subplots(
        1,
        5,
        sharey=True,
        figsize=(11, 1.4 + 0.28 * S),
        width_ratios=(3, 3, 3, 1.2, 1.2),
        layout="constrained",
    )
    draw_vectors(axes[0], query, f"query q of “{tokens[query_index]}”")
    draw_vectors(axes[1], keys, "key k")
    draw_vectors(axes[2], products, "q × k, elementwise")
    draw_bars(axes[3], scores, "q · k / √D")
    draw_bars(axes[4], weights, "softmax")
    axes[0].set_yticks(range(S), tokens, parse_math=False)  # a token may be "$"
    axes[0].get_yticklabels()[query_index].set_fontweight("bold")
    figure.suptitle(title, parse_math=False)
    plt.show()


def draw_vectors(ax, vectors: np.ndarray, title: str) -> None:
    """Draw rows (S, D) of blue (positive) and orange (negative) squares, and nothing where they are nan."""
    limit = np.nanmax(np.abs(vectors))
    image = ax.imshow(vectors, aspect="auto", cmap=SIGNED, vmin=-limit, vmax=limit, interpolation="nearest")
    ax.set_title(title, parse_math=False)
    ax.set_xlabel("neuron")
    ax.spines[:].set_visible(False)
    ax.figure.colorbar(image, ax=ax, orientation="horizontal", fraction=0.05, aspect=30)


def draw_bars(ax, values: np.ndarray, title: str) -> None:
    """Draw one bar per token (S), with its value."""
    ax.barh(range(len(values)), values, color=np.where(values < 0, NEGATIVE, POSITIVE))
    for row, value in enumerate(values):
        ax.text(max(value, 0), row, f" {value:.2f}", va="center", fontsize="small")
    ax.margins(x=0.35)
    ax.set(title=title, xticks=[])
    ax.spines[["bottom", "top", "right"]].set_visible(False)
