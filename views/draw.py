"""The head, model and neuron views of attention, which bertviz introduced.

Each function returns a `View`: Jupyter displays it, and its `.save(path)` writes a page that any browser opens.
Each view has its own frame with all libraries and data, so that it fetches nothing and cannot affect other views.
"""

from collections.abc import Callable, Sequence
from typing import Unpack, overload

from torch import Tensor, nn

from views.arguments import REFUSED, ViewArguments, ViewInput, act, read_call, read_input, refuse
from views.inputs import check_indices, check_layer, describe, pack_numbers, token_index
from views.models import name_of, read_heads, unwrap
from views.page import HEAD_VIEW, MODEL_VIEW, NEURON_VIEW, Kind, View, make_view
from views.words import words_for_page


@overload
def head_view(
    model: nn.Module, tokenizer: Callable, sentence_a: str, sentence_b: str | None = None, **options
) -> View: ...
@overload
def head_view(
    attention: Sequence[Tensor], tokens: Sequence[str], sentence_b_start: int | None = None, **options
) -> View | None: ...
def head_view(
    model=None,
    tokenizer=None,
    sentence_a=None,
    sentence_b: str | None = None,
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    token: str | int | None = None,
    display_mode: str | None = None,
    html_action: str | None = None,
    **options: Unpack[ViewArguments],
) -> View | None:
    """Draw what each token gives to each as a flow between two columns: of one head, or of the mean of several.

    Of a model and its text:  head_view(model, tokenizer, "I called Ian.", "I got his answering machine.")
    Of any model's attentions, as bertviz is called:  head_view(attention, tokens, sentence_b_start)

    ValueError or TypeError names the wrong argument and the remedy.

    Parameters:
        model: one of this series, or of transformers, that returns its attention weights.
        tokenizer: its tokenizer, or None for an image model.
        sentence_a: the text; for an image model its pixel_values (1, C, height, width).
        sentence_b: a second text; for an encoder–decoder, the text that the decoder writes.
        attention: one tensor (1, A, S, S) per layer.
        tokens: the S tokens.
        sentence_b_start: index of the second sentence's first token, for a drop-down of the attention within and
            between the sentences.
        layer, heads: what is drawn at first; by default the head that gives most to words.
        token: a word or its index, at which a screenshot of the view points.
        display_mode: "light" or "dark", as in bertviz; by default the theme around the view.
        html_action: "view", to display the view immediately, or "return", as in bertviz.
        options: the remaining arguments; see `ViewArguments`.
    """
    call = read_call("head_view", (model, tokenizer, sentence_a, sentence_b), **options)
    read = read_input(call)
    view = draw_input(
        HEAD_VIEW,
        read,
        list(range(read.A)),
        display_mode=display_mode,
        layer=check_layer(layer, read.layers),
        heads=None if heads is None else check_indices("heads", heads, read.A),
        total_heads=read.A,
        token=token_index(token, next(iter(read.panels.values())).left_tokens),
    )
    return act(view, html_action)


@overload
def model_view(
    model: nn.Module, tokenizer: Callable, sentence_a: str, sentence_b: str | None = None, **options
) -> View: ...
@overload
def model_view(
    attention: Sequence[Tensor], tokens: Sequence[str], sentence_b_start: int | None = None, **options
) -> View | None: ...
def model_view(
    model=None,
    tokenizer=None,
    sentence_a=None,
    sentence_b: str | None = None,
    *,
    include_heads: Sequence[int] | None = None,
    display_mode: str | None = None,
    html_action: str | None = None,
    **options: Unpack[ViewArguments],
) -> View | None:
    """Draw every head of every layer in a grid of thumbnails; a click enlarges a head.

    Of a model and its text:  model_view(model, tokenizer, "I called Ian.", "I got his answering machine.")
    Of any model's attentions, as bertviz is called:  model_view(attention, tokens, sentence_b_start)

    Parameters:
        model, tokenizer, sentence_a, sentence_b, attention, tokens, sentence_b_start: as for `head_view`.
        include_layers, include_heads: the only ones that are drawn.
        display_mode, html_action, options: as for `head_view`.
    """
    call = read_call("model_view", (model, tokenizer, sentence_a, sentence_b), **options)
    read = read_input(call)
    heads = check_indices("include_heads", include_heads, read.A)
    sizes = {"include_heads": heads, "total_heads": read.A}
    return act(draw_input(MODEL_VIEW, read, heads, display_mode=display_mode, **sizes), html_action)


def neuron_view(
    model: nn.Module | None = None,
    tokenizer: Callable | None = None,
    sentence_a: str | None = None,
    sentence_b: str | None = None,
    *others,
    layer: int | None = None,
    head: int | None = None,
    token: str | int | None = None,
    display_mode: str | None = None,
    name: str | None = None,
    html_action: str | None = None,
    **refused,
) -> View | None:
    """Draw how a head computes its attention from query and keys, neuron by neuron: softmax(q · k / √D).

    For example:  neuron_view(model, tokenizer, "I called Ian.", "I got his answering machine.", layer=5, head=5)

    The queries and keys are the ones that the model compares, after rotation and multiplied by its own scale; masked
    tokens are marked. ValueError if the model's weights are not the softmax of its queries and keys, if a layer or
    head does not exist, or if the model cannot read the text.

    Parameters:
        model: one of this series or of transformers, with any attention implementation.
        tokenizer: ours or one of transformers', of the same checkpoint.
        sentence_a, sentence_b: a text, and optionally a second one.
        layer, head: what is selected at first.
        token: a word or its index, whose row a screenshot of the view opens.
        display_mode, html_action: as for `head_view`.
        name: of the model, for the title; by default its checkpoint.
    """
    if isinstance(tokenizer, str) and tokenizer in ("bert", "gpt2", "roberta", "xlnet"):  # of bertviz
        raise TypeError(f"neuron_view takes no model type, got {tokenizer!r}: {REFUSED['neuron_view']['model_type']}")
    if others:
        raise TypeError(f"neuron_view takes a model, its tokenizer and one or two texts, got {4 + len(others)}")
    refuse("neuron_view", refused)
    model = unwrap(model)
    heads_read = read_heads(model, tokenizer, sentence_a, sentence_b)
    L, A, _, _ = heads_read.weights.shape
    [layer], [head] = check_indices("layer", [layer or 0], L), check_indices("head", [head or 0], A)
    tokens = heads_read.tokens
    panel = {
        "attn": pack_numbers(heads_read.weights, heads_read.hidden & (heads_read.weights == 0)),
        "queries": pack_numbers(heads_read.queries),
        "keys": pack_numbers(heads_read.keys),
        "left_text": tokens,
        "right_text": tokens,
    }
    view = make_view(
        NEURON_VIEW,
        {"all": panel},
        display_mode=display_mode,
        summary=describe(name or name_of(model), L, A, [tokens]),
        sentence_b_start=heads_read.sentence_b_start,
        bidirectional=True,
        layer=layer,
        head=head,
        token=token_index(token, tokens),
    )
    return act(view, html_action)


def draw_input(kind: Kind, read: ViewInput, drawn_heads: list[int], **params) -> View:
    """Draw these heads of the input; `params` are the parameters of this kind of view."""
    panels = {
        name: {
            "attn": pack_numbers(panel.weights[read.layers][:, drawn_heads]),
            "left_text": panel.left_tokens,
            "right_text": panel.right_tokens,
            "words": words_for_page(*panel.words),
        }
        for name, panel in read.panels.items()
    }
    texts = [panel.left_tokens for panel in read.panels.values()]
    return make_view(
        kind,
        panels,
        summary=describe(read.name, len(read.layers), len(drawn_heads), texts),
        sentence_b_start=read.sentence_b_start,
        include_layers=read.layers,
        whole=read.whole,
        **params,
    )
