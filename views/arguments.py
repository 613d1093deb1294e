"""What a view is called with: a model and its text, or attentions and their tokens, as bertviz is called."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

from torch import Tensor, nn

from utils.support.checks import is_integer
from views.any_model import has_two_sides
from views.inputs import USAGE, Panel, check_indices, read_panel, without_tensors
from views.models import name_of, read_heads, read_two_sides, unwrap
from views.page import View


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
MAX_TEXTS = 6  # to exchange, including the first
# the tokens that attend, and those that are attended to, of each attention of an encoder–decoder
SIDES = {
    "encoder": ("encoder_tokens", "encoder_tokens"),
    "decoder": ("decoder_tokens", "decoder_tokens"),
    "cross": ("decoder_tokens", "encoder_tokens"),
}
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


@dataclass(frozen=True)
class Call:
    """The arguments of a view: either a model, its tokenizer and one or two texts, or attentions by bertviz's names."""

    model: nn.Module | None
    tokenizer: Callable | None
    texts: tuple[str, ...]
    attentions: dict[str, Sequence | int]
    name: str | None  # of the model
    include_layers: Sequence[int] | None
    prettify_tokens: bool
    whole: bool  # whether whole words are shown at first


def read_call(
    view: str,
    positional: tuple,
    *,
    include_layers: Sequence[int] | None = None,
    prettify_tokens: bool = True,
    name: str | None = None,
    words: bool = False,
    **named: Sequence | int | None,
) -> Call:
    """Decide what a view is called with; TypeError for a mixture, and for arguments that it does not take."""
    refuse(view, named, ViewArguments.__annotations__)
    if not isinstance(words, bool):
        raise TypeError(f"words must be True, for whole words, or False, for their pieces, got {words!r:.60}")
    named = {argument: value for argument, value in named.items() if value is not None}
    options = include_layers, prettify_tokens, words
    model, tokenizer, sentence_a, *texts = positional
    if isinstance(model := unwrap(model), nn.Module):
        if named:
            raise TypeError(f"{min(named)} cannot be combined with a model and its text: {USAGE}")
        texts = (sentence_a, *(text for text in texts if text is not None))
        return Call(model, tokenizer, texts, {}, name or name_of(model), *options)
    *given, sentence_b = positional
    if sentence_b is not None:
        raise TypeError(f"sentence_b={sentence_b!r:.60} goes with an encoder, not with attentions: {USAGE}")
    placed = {argument: value for argument, value in zip(SELF_ATTENTION, given, strict=True) if value is not None}
    if twice := placed.keys() & named:
        raise TypeError(f"{view}() got multiple values for argument '{min(twice)}'")
    attentions = placed | named
    if 0 < len(attentions.keys() - SELF_ATTENTION) < len(attentions):
        raise TypeError(f"the attentions of an encoder–decoder model cannot be combined with other arguments: {USAGE}")
    return Call(None, None, (), attentions, name, *options)


def exchange(call: Call, other) -> list[Call]:
    """Return the call with what `other` exchanges: its attentions, its model, or its last text by each of several."""
    if other is None:
        return []
    second = other if isinstance(other, tuple) else (other, call.tokenizer)
    is_model = len(second) == 2 and isinstance(unwrap(second[0]), nn.Module)
    if call.model is None:
        if is_model:
            raise TypeError("with attentions, other must be (attention, tokens), not a model: pass two models, or none")
        if not isinstance(other, tuple) or len(other) != 2:
            raise TypeError(
                "with attentions, other must be a tuple (attention, tokens) of the second text, got "
                f"{type(other).__name__}: pass a model and its tokenizer to exchange words by text"
            )
        return [replace(call, attentions=dict(zip(("attention", "tokens"), other, strict=True)), name=None)]
    if is_model:
        model = unwrap(second[0])
        return [replace(call, model=model, tokenizer=second[1], name=name_of(model))]
    texts = [other] if isinstance(other, str) else other
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise TypeError(
            f"other must be a text, or a list of texts, of at least one word, or a second model, got {other!r:.60}"
        )
    if not 1 <= len(texts) < MAX_TEXTS:
        raise ValueError(f"other must hold 1 to {MAX_TEXTS - 1} texts, got {len(texts)}")
    return [replace(call, texts=(*call.texts[:-1], text)) for text in texts]


class ViewInput(NamedTuple):
    """Everything that a view draws."""

    panels: dict[str, Panel]  # by name in the attention drop-down
    layers: list[int]  # drawn layers of each panel
    A: int  # heads of each panel
    sentence_b_start: int | None
    name: str | None  # of the model
    whole: bool  # whether whole words are shown at first


def read_input(call: Call) -> ViewInput:
    """Read what a view draws; ValueError or TypeError for arguments that cannot be drawn."""
    panels, start = read_attentions(call) if call.model is None else read_model(call)
    L, A = count_layers_and_heads(panels, may_differ=call.include_layers is not None)
    layers = check_indices("include_layers", call.include_layers, L)
    return ViewInput(panels, layers, A, start, call.name, call.whole)


def read_model(call: Call) -> tuple[dict[str, Panel], int | None]:
    """Read the attention of a model to a text: its panels, and the index of sentence B's first token."""
    if has_two_sides(call.model):
        given = read_two_sides(call.model, call.tokenizer, *call.texts)
        return read_sides(given, prettify_tokens=False), None  # these tokens are already readable
    read = read_heads(call.model, call.tokenizer, *call.texts, neurons=False)
    sides = {"prettify_tokens": False, "word_ids": [read.words] * 2}
    return {"all": read_panel(read.weights.split(1), read.tokens, read.tokens, **sides)}, read.sentence_b_start


def read_attentions(call: Call) -> tuple[dict[str, Panel], int | None]:
    """Read attentions and their tokens: their panels, and the index of sentence B's first token."""
    if call.attentions.keys() - SELF_ATTENTION:
        return read_sides(call.attentions, prettify_tokens=call.prettify_tokens), None
    attention, tokens, start = map(call.attentions.get, SELF_ATTENTION)
    panel = read_panel(attention, tokens, tokens, prettify_tokens=call.prettify_tokens)
    S, start = len(panel.left_tokens), without_tensors(start)
    if start is not None and (not is_integer(start) or not 0 < start < S):
        raise ValueError(
            f"sentence_b_start must be an integer from 1 to {S - 1}, the index of the first token after the first "
            f"[SEP], got {start!r:.80}"
        )
    return {"all": panel}, None if start is None else int(start)


def read_sides(given: dict, *, prettify_tokens: bool) -> dict[str, Panel]:
    """Read the attentions of an encoder–decoder model, by bertviz's names: a panel for each of them.

    `given["words"]` holds the word of each token, by the name of the tokens, if it is known.
    """
    panels, words = {}, given.get("words")
    for kind, sides in SIDES.items():
        if (argument := f"{kind}_attention") in given:
            panels[kind] = read_panel(
                given[argument],
                *map(given.get, sides),
                argument=argument,
                prettify_tokens=prettify_tokens,
                word_ids=words and [words[side] for side in sides],
            )
    if not panels:
        raise TypeError(f"{', '.join(given)} without an attention: {USAGE}")
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


def refuse(view: str, given: Collection[str], known: Collection[str] = ()) -> None:
    """Raise TypeError for arguments that a view does not take, with what to use instead."""
    if unknown := sorted(set(given) - set(known)):
        reason = REFUSED[view].get(unknown[0], "")
        raise TypeError(f"{view}() got an unexpected keyword argument '{unknown[0]}'" + (reason and f": {reason}"))


def act(view: View, html_action: str | None) -> View | None:
    """Return a view, or display it immediately if `html_action` is "view", as bertviz does; ValueError for others."""
    if html_action not in (None, "view", "return"):
        raise ValueError(f'html_action must be "view", "return" or None, like "return", got {html_action!r:.60}')
    if html_action != "view":
        return view
    from IPython.display import display  # needed in a notebook alone

    display(view)
    return None
