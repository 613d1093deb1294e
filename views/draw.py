"""The head, model and neuron views of attention, which bertviz introduced.

Each function returns a `View`: Jupyter displays it, and its `.save(path)` writes a page that any browser opens.
Each view has its own frame with all libraries and data, so that it fetches nothing and cannot affect other views.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, TypedDict, Unpack, overload

from torch import Tensor, nn

from utils.support.checks import is_integer
from views.any_model import has_two_sides
from views.inputs import USAGE, Panel, check_indices, describe, pack_numbers, read_panel, token_index, without_tensors
from views.models import name_of, read_heads, read_two_sides, unwrap
from views.page import HEAD_VIEW, MODEL_VIEW, NEURON_VIEW, Kind, View, make_view
from views.words import words_for_page


class ViewArguments(TypedDict, total=False):
    """Arguments that head, model and sentence views take by name, as in bertviz.

    The attentions and tokens of an encoder–decoder model replace `attention` and `tokens`.
    """

    attention: Sequence[Tensor]
    tokens: Sequence[str]
    sentence_b_start: int
    encoder_attention: Sequence[Tensor]
    decoder_attention: Sequence[Tensor]
    cross_attention: Sequence[Tensor]
    encoder_tokens: Sequence[str]
    decoder_tokens: Sequence[str]
    include_layers: Sequence[int]  # the others are omitted
    prettify_tokens: bool
    name: str  # of the model, for the title; by default the checkpoint of the model
    words: bool  # show whole words at first, not their pieces


SELF_ATTENTION = ("attention", "tokens", "sentence_b_start")  # as bertviz names them, in its order
# arguments of bertviz that mean nothing in a view: the view's name, and what to use instead
REFUSED = {
    "head_view": {"include_heads": "heads=[…] selects the heads shown at first"},
    "model_view": {
        "layer": "include_layers=[…] draws these layers alone",
        "heads": "include_heads=[…] draws these heads alone",
    },
    "neuron_view": {
        "attention": "attentions hold no queries and keys",
        "tokens": "the tokenizer splits the text",
        "sentence_b_start": "sentence_b is the second text",
        "model_type": "the model knows its own type",
        "include_layers": "layer=… is shown first",
        "include_heads": "head=… is shown first",
        "heads": "head=… is shown first",
        "words": "a query and a key belong to a piece of a word; the other views add up the weights of whole words",
    },
    "sentence_view": {
        "heads": "head=… is shown first",
        "include_heads": "head=… is shown first",
        "display_mode": "the view follows the theme around it",
    },
}


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
    read = read_arguments("head_view", (model, tokenizer, sentence_a, sentence_b), **options)
    layer = without_tensors(layer)
    if layer is not None and (not is_integer(layer) or layer not in read.layers):
        raise ValueError(f"layer must be one of the layers shown, {read.layers}, got {layer!r}")
    view = draw_input(
        HEAD_VIEW,
        read,
        list(range(read.A)),
        display_mode=display_mode,
        layer=None if layer is None else int(layer),
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
    read = read_arguments("model_view", (model, tokenizer, sentence_a, sentence_b), **options)
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


def act(view: View, html_action: str | None) -> View | None:
    """Return a view, or display it immediately if `html_action` is "view", as bertviz does; ValueError for others."""
    if html_action not in (None, "view", "return"):
        raise ValueError(f'html_action must be "view", "return" or None, like "return", got {html_action!r:.60}')
    if html_action != "view":
        return view
    from IPython.display import display  # needed in a notebook alone

    display(view)
    return None


def refuse(view: str, given: Collection[str], known: Collection[str] = ()) -> None:
    """Raise TypeError for arguments that a view does not take, with what to use instead."""
    if unknown := sorted(set(given) - set(known)):
        reason = REFUSED[view].get(unknown[0], "")
        raise TypeError(f"{view}() got an unexpected keyword argument '{unknown[0]}'" + (reason and f": {reason}"))


class ViewInput(NamedTuple):
    """Everything that a head or model view draws."""

    panels: dict[str, Panel]  # by name in the attention drop-down
    layers: list[int]  # drawn layers of each panel
    A: int  # heads of each panel
    sentence_b_start: int | None
    name: str | None  # of the model
    whole: bool  # whether whole words are shown at first


def read_arguments(
    view: str,
    positional: tuple,
    *,
    include_layers: Sequence[int] | None = None,
    prettify_tokens: bool = True,
    name: str | None = None,
    words: bool = False,
    **named: Sequence | int | None,
) -> ViewInput:
    """Read the arguments of a view: a model and its text, attentions and their tokens, or those of two sides by name.

    TypeError for a mixture of them; ValueError or TypeError for arguments that cannot be drawn.
    """
    refuse(view, named, ViewArguments.__annotations__)
    if not isinstance(words, bool):
        raise TypeError(f"words must be True, for whole words, or False, for their pieces, got {words!r:.60}")
    named = {argument: value for argument, value in named.items() if value is not None}
    start, source = None, unwrap(positional[0])
    if not isinstance(source, nn.Module):
        *given, sentence_b = positional
        named |= by_name(view, given, named)
    sides = named.keys() - SELF_ATTENTION
    if sides and (named.keys() != sides or any(part is not None for part in positional)):
        raise TypeError(f"the attentions of an encoder–decoder model cannot be combined with other arguments: {USAGE}")
    if isinstance(source, nn.Module):
        if named:
            raise TypeError(f"{min(named)} cannot be combined with a model and its text: {USAGE}")
        panels, start = read_model(source, *positional[1:])
        name = name or name_of(source)
    elif sides:
        panels = read_named_attentions(named, prettify_tokens)
    else:
        panels, start = read_attentions(*map(named.get, SELF_ATTENTION), sentence_b, prettify_tokens)
    L, A = count_layers_and_heads(panels, may_differ=include_layers is not None)
    return ViewInput(panels, check_indices("include_layers", include_layers, L), A, start, name, words)


def by_name(view: str, given: Sequence, named: Collection[str]) -> dict:
    """Return positional arguments under bertviz's names; TypeError if one of them is also passed by name."""
    placed = {name: value for name, value in zip(SELF_ATTENTION, given, strict=True) if value is not None}
    if twice := placed.keys() & named:
        raise TypeError(f"{view}() got multiple values for argument '{min(twice)}'")
    return placed


def read_model(
    model: nn.Module, tokenizer: Callable, sentence_a: str, sentence_b: str | None
) -> tuple[dict[str, Panel], int | None]:
    """Read the attention of a model to a text: its panels, and the index of sentence B's first token."""
    if has_two_sides(model):
        named = read_two_sides(model, tokenizer, sentence_a, sentence_b)
        return read_named_attentions(named, False, named.pop("words")), None  # these tokens are already readable
    read = read_heads(model, tokenizer, sentence_a, sentence_b, neurons=False)
    tokens, words = [read.tokens] * 2, [read.words] * 2
    panel = read_panel(read.weights.split(1), *tokens, prettify_tokens=False, word_ids=words)
    return {"all": panel}, read.sentence_b_start


def read_attentions(
    attention: Sequence[Tensor], tokens: Sequence[str], start: int | None, sentence_b: None, prettify_tokens: bool
) -> tuple[dict[str, Panel], int | None]:
    """Read attentions to one sequence of tokens: their panel, and the index of sentence B's first token."""
    if sentence_b is not None:
        raise TypeError(f"sentence_b={sentence_b!r:.60} goes with an encoder, not with attentions: {USAGE}")
    panel = read_panel(attention, tokens, tokens, prettify_tokens=prettify_tokens)
    S = len(panel.left_tokens)
    start = without_tensors(start)
    if start is not None and (not is_integer(start) or not 0 < start < S):
        raise ValueError(
            f"sentence_b_start must be an integer from 1 to {S - 1}, the index of the first token after the first "
            f"[SEP], got {start!r:.80}"
        )
    return {"all": panel}, None if start is None else int(start)


def read_named_attentions(
    named: dict[str, Sequence], prettify_tokens: bool, words: dict[str, list[int]] | None = None
) -> dict[str, Panel]:
    """Read the attentions of an encoder–decoder model, which are passed by name: a panel for each of them.

    `words` holds the word of each token of the encoder and of the decoder, if it is known.
    """
    panels = {}
    for kind, *sides in (("encoder",) * 3, ("decoder",) * 3, ("cross", "decoder", "encoder")):
        if (argument := f"{kind}_attention") in named:
            texts = (named.get(f"{side}_tokens") for side in sides)
            options = {"argument": argument, "prettify_tokens": prettify_tokens}
            ids = words and [words[side] for side in sides]
            panels[kind] = read_panel(named[argument], *texts, **options, word_ids=ids)
    if not panels:
        raise TypeError(f"{', '.join(named)} without an attention: {USAGE}")
    return panels


def count_layers_and_heads(panels: dict[str, Panel], *, may_differ: bool) -> tuple[int, int]:
    """Return the numbers of layers and heads that all panels have; ValueError if they differ.

    With `may_differ`, the numbers of layers may, since a choice of layers follows.
    """
    sizes = {key: tuple(panel.weights.shape[:2]) for key, panel in panels.items()}
    L, A = min(layers for layers, _ in sizes.values()), min(heads for _, heads in sizes.values())
    if any(heads > A or (layers > L and not may_differ) for layers, heads in sizes.values()):
        raise ValueError(
            f"the numbers of layers or heads differ, {sizes}, but a view has one set of both: show one at a time, or "
            f"leave layers out with include_layers=range({L})"
        )
    return L, A


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
