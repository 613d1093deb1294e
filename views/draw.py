"""The head, model and neuron view, each as a function of attentions or of a model and its text.

Each function returns a `View`: Jupyter displays it, and its `.save(path)` writes a page that any browser opens.
bertviz's templates get their libraries and data inside one frame, so that nothing is fetched and views do not meet.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypedDict, Unpack

from torch import Tensor, nn

from utils.support.checks import is_integer
from views.any_model import has_two_sides
from views.inputs import (
    DIGITS,
    WAYS,
    Panel,
    check_indices,
    check_size_of,
    describe,
    in_ten_thousandths,
    read_panel,
    row_of,
)
from views.models import name_of, read_heads, read_two_sides, unwrap
from views.page import HEAD_VIEW, MODEL_VIEW, NEURON_VIEW, Kind, View, make_view


class Given(TypedDict, total=False):
    """What a head or model view takes by name, as bertviz does; an encoder–decoder model's attentions go alone."""

    encoder_attention: Sequence[Tensor]
    decoder_attention: Sequence[Tensor]
    cross_attention: Sequence[Tensor]
    encoder_tokens: Sequence[str]
    decoder_tokens: Sequence[str]
    include_layers: Sequence[int]  # all others are left out
    prettify_tokens: bool
    name: str  # what the title calls the model: by default the checkpoint of an encoder that is passed


def head_view(
    attention_or_encoder: Sequence[Tensor] | nn.Module | None = None,
    tokens_or_tokenizer: Sequence[str] | Callable | None = None,
    start_or_sentence_a: int | str | None = None,
    sentence_b: str | None = None,
    *,
    layer: int | None = None,
    heads: Sequence[int] | None = None,
    token: str | int | None = None,
    display_mode: str | None = None,
    **given: Unpack[Given],
) -> View:
    """Draw lines between two columns of tokens, one colour per head: all heads of one layer at a time.

    Of a model and its text:  head_view(encoder, tokenizer, "I called Ian.", "I got his answering machine.")
    Of any model's attentions, as bertviz is called:  head_view(attention, tokens, sentence_b_start)

    The encoder is any model of this series or of transformers that returns its attention weights, with its tokenizer;
    `sentence_b` can be left out. Of an encoder–decoder it is the text that the decoder writes, and of an image model
    `sentence_a` holds its pixel_values (1, C, height, width), with None as tokenizer. `attention` holds one
    tensor (1, A, S, S) per layer and `tokens` the S tokens; `sentence_b_start`, the index of a second sentence's first
    token, adds a drop-down for the attention within and between the sentences. `layer` and `heads` are shown at first.
    A photograph of the view points at `token`, a word or its index. What else is given is told in `Given`. ValueError
    or TypeError names what does not fit and the remedy.
    """
    text = attention_or_encoder, tokens_or_tokenizer, start_or_sentence_a, sentence_b
    read = read_arguments("head_view", *text, **given)
    if layer is not None and (not is_integer(layer) or layer not in read.layers):
        raise ValueError(f"layer={layer!r} is not among the layers shown, {read.layers}: use one of them")
    return draw_input(
        HEAD_VIEW,
        read,
        list(range(read.A)),
        display_mode=display_mode,
        width=max(HEAD_VIEW.width, 26 * read.A),  # a tile per head
        layer=None if layer is None else int(layer),
        heads=check_indices("heads", heads, read.A),
        token=row_of(token, next(iter(read.panels.values())).left_tokens),
    )


def model_view(
    attention_or_encoder: Sequence[Tensor] | nn.Module | None = None,
    tokens_or_tokenizer: Sequence[str] | Callable | None = None,
    start_or_sentence_a: int | str | None = None,
    sentence_b: str | None = None,
    *,
    include_heads: Sequence[int] | None = None,
    display_mode: str | None = None,
    **given: Unpack[Given],
) -> View:
    """Draw every head of every layer small, in a grid; a click enlarges one.

    Of a model and its text:  model_view(encoder, tokenizer, "I called Ian.", "I got his answering machine.")
    Of any model's attentions, as bertviz is called:  model_view(attention, tokens, sentence_b_start)

    The arguments are those of `head_view`. `include_layers` and `include_heads` leave the others out.
    """
    text = attention_or_encoder, tokens_or_tokenizer, start_or_sentence_a, sentence_b
    read = read_arguments("model_view", *text, **given)
    heads = check_indices("include_heads", include_heads, read.A)
    options = {"display_mode": display_mode, "include_heads": heads, "total_heads": read.A}
    return draw_input(MODEL_VIEW, read, heads, **options)


def neuron_view(
    encoder: nn.Module,
    tokenizer: Callable,
    sentence_a: str,
    sentence_b: str | None = None,
    *,
    layer: int = 0,
    head: int = 0,
    token: str | int | None = None,
    display_mode: str | None = None,
    name: str | None = None,
) -> View:
    """Draw how one head's query and keys, neuron by neuron, make its attention: softmax(q · k / √D).

    For example:  neuron_view(encoder, tokenizer, "I called Ian.", "I got his answering machine.", layer=5, head=5)

    `encoder` is a model of this series or of transformers, with any attention implementation, and `tokenizer` ours or
    one of transformers', of the same checkpoint. Queries and keys are those that the model compares, after rotation
    and times its own scale; what a mask hides is marked. `layer` and `head` are shown at first. A photograph
    of the view opens the row of `token`, a word or its index. ValueError for a model whose weights are not the softmax
    of its queries and keys, a layer or head that does not exist, and a text that the model cannot take.
    """
    encoder = unwrap(encoder)
    heads_read = read_heads(encoder, tokenizer, sentence_a, sentence_b)
    L, A, _, _ = heads_read.weights.shape
    [layer], [head] = check_indices("layer", [layer], L), check_indices("head", [head], A)
    tokens = heads_read.tokens
    panel = {
        "attn": with_masked(heads_read.weights, heads_read.hidden),
        "queries": in_ten_thousandths(heads_read.queries),
        "keys": in_ten_thousandths(heads_read.keys),
        "left_text": tokens,
        "right_text": tokens,
    }
    return make_view(
        NEURON_VIEW,
        {"all": panel},
        display_mode=display_mode,
        summary=describe(name or name_of(encoder), L, A, [tokens]),
        sentence_b_start=heads_read.sentence_b_start,
        bidirectional=True,
        layer=layer,
        head=head,
        token=row_of(token, tokens),
    )


def with_masked(weights: Tensor, hidden: Tensor | None) -> list:
    """Turn weights (L, A, S, S) into ten-thousandths, with −0 where a mask hides a token.

    Without a mask, it is where all heads of a layer have the weight 0.
    """
    if hidden is None:
        hidden = (weights == 0).all(dim=1, keepdim=True).expand_as(weights)
    if not hidden.any():
        return in_ten_thousandths(weights)
    check_size_of(weights)
    return (weights.double() * 10**DIGITS).round().masked_fill(hidden & (weights == 0), -0.0).tolist()


class Input(NamedTuple):
    """What a head or model view is drawn of."""

    panels: dict[str, Panel]  # by their names in the drop-down for attention
    layers: list[int]  # to be drawn, of each panel
    A: int  # heads of each panel
    sentence_b_start: int | None
    name: str | None  # of the model


def read_arguments(
    view: str,
    source: Sequence[Tensor] | nn.Module | None,
    tokens: Sequence[str] | Callable | None,
    start: int | str | None,
    sentence_b: str | None,
    *,
    include_layers: Sequence[int] | None = None,
    prettify_tokens: bool = True,
    name: str | None = None,
    **two_texts: Sequence | None,
) -> Input:
    """Read a model's text, an attention, or an encoder–decoder model's attentions, whichever is passed.

    TypeError for two of them at once; ValueError or TypeError for what cannot be drawn.
    """
    if unknown := two_texts.keys() - Given.__annotations__.keys():
        raise TypeError(f"{view}() got an unexpected keyword argument '{min(unknown)}'")
    source = unwrap(source)
    if has_two_sides(source):
        name, two_texts = name or name_of(source), read_two_sides(source, tokens, start, sentence_b)
        prettify_tokens = False  # they are readable
        source = tokens = start = sentence_b = None
    one_text = (source, tokens, start, sentence_b)
    given = {argument: value for argument, value in two_texts.items() if value is not None}
    if given and any(value is not None for value in one_text):
        raise TypeError(f"an encoder–decoder model's attentions go alone: {WAYS}")
    panels = {}
    for kind, left, right in (("encoder",) * 3, ("decoder",) * 3, ("cross", "decoder", "encoder")):
        if (argument := f"{kind}_attention") in given:
            texts = (given.get(f"{side}_tokens") for side in (left, right))
            panels[kind] = read_panel(given[argument], *texts, argument=argument, prettify_tokens=prettify_tokens)
    if not panels:
        panels["all"], start, read_name = read_one_text(source, tokens, start, sentence_b, prettify_tokens)
        name = name or read_name
    sizes = {key: tuple(panel.weights.shape[:2]) for key, panel in panels.items()}
    L, A = min(layers for layers, _ in sizes.values()), min(heads for _, heads in sizes.values())
    if any(heads > A or (layers > L and include_layers is None) for layers, heads in sizes.values()):
        raise ValueError(
            f"the numbers of layers or heads differ, {sizes}, but a view has one set of both: show one at a time, or "
            f"leave layers out with include_layers=range({L})"
        )
    return Input(panels, check_indices("include_layers", include_layers, L), A, start, name)


def read_one_text(
    source: Sequence[Tensor] | nn.Module | None,
    tokens: Sequence[str] | Callable | None,
    start: int | str | None,
    sentence_b: str | None,
    prettify_tokens: bool,
) -> tuple[Panel, int | None, str | None]:
    """Read a model's text or an attention: its panel, the index of sentence B's first token and the model's name."""
    name = None
    if isinstance(source, nn.Module):
        heads_read, name = read_heads(source, tokens, start, sentence_b, neurons=False), name_of(source)
        source, tokens, start = heads_read.weights.split(1), heads_read.tokens, heads_read.sentence_b_start
        prettify_tokens = False  # they are readable
    elif sentence_b is not None:
        raise TypeError(f"sentence_b={sentence_b!r:.60} goes with an encoder, not with attentions: {WAYS}")
    panel = read_panel(source, tokens, tokens, prettify_tokens=prettify_tokens)
    S = len(panel.left_tokens)
    if start is not None and (not is_integer(start) or not 0 < start < S):
        raise ValueError(
            f"sentence_b_start={start!r} does not leave both sentences some of the {S} tokens: use 1 to {S - 1}, the "
            "index of the first token after the first [SEP]"
        )
    return panel, None if start is None else int(start), name


def draw_input(kind: Kind, given: Input, drawn_heads: list[int], **params) -> View:
    """Draw these heads of what was read; `params` are what this kind of view has alone."""
    panels = {
        name: {
            "attn": in_ten_thousandths(panel.weights[given.layers][:, drawn_heads]),
            "left_text": panel.left_tokens,
            "right_text": panel.right_tokens,
        }
        for name, panel in given.panels.items()
    }
    texts = [panel.left_tokens for panel in given.panels.values()]
    return make_view(
        kind,
        panels,
        summary=describe(given.name, len(given.layers), len(drawn_heads), texts),
        sentence_b_start=given.sentence_b_start,
        include_layers=given.layers,
        **params,
    )
