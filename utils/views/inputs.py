"""The attentions that a view is given, checked and packed."""

import warnings
from collections.abc import Callable, Container, Iterable, Sequence
from functools import wraps
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor

from utils.checks import is_whole

DIGITS = 4  # after the decimal point, in what a view draws
MOST_WEIGHTS = 20_000_000  # a page of about 120 MB
# Lines beyond which a page takes Chromium about ten seconds. The model view paints all of them; the others leave out
# what nobody can see, so that a row of the head view has 20 lines at most (weights of 0.05 among 12 heads).
MOST_LINES = {"head view": 6_000_000, "model view": 1_500_000, "neuron view": 2_000_000}
NO_WEIGHTS = (
    "call the model with output_attentions=True; a transformers model returns weights only with the attention "
    'implementation "eager", so load it with from_pretrained(..., attn_implementation="eager")'
)


class Source(NamedTuple):
    """One attention as it was passed: the argument's name, its value, and the tokens that attend and are attended."""

    argument: str
    attention: Sequence[Tensor] | None
    left_tokens: Sequence[str] | None
    right_tokens: Sequence[str] | None


def every_source(
    attention, encoder_attention, decoder_attention, cross_attention, tokens, encoder_tokens, decoder_tokens
) -> tuple[Source, ...]:
    """The four attentions that a view can be of, passed or None, each with its own two texts."""
    return (
        Source("attention", attention, tokens, tokens),
        Source("encoder_attention", encoder_attention, encoder_tokens, encoder_tokens),
        Source("decoder_attention", decoder_attention, decoder_tokens, decoder_tokens),
        Source("cross_attention", cross_attention, decoder_tokens, encoder_tokens),
    )


class Panel(NamedTuple):
    """One attention ready to draw: a choice of the view's attention drop-down."""

    name: str
    weights: Tensor  # (L, A, S, T)
    left_tokens: list[str]  # S
    right_tokens: list[str]  # T


def read_panels(*sources: Source, prettify_tokens: bool) -> list[Panel]:
    """The sources that were passed, checked; ValueError names what is wrong with one and the remedy."""
    given = [source for source in sources if source.attention is not None]
    if not given:
        raise ValueError(f"no attention was passed (attention=None): {NO_WEIGHTS}")
    names = [source.argument for source in given]
    if "attention" in names and len(names) > 1:
        raise ValueError(
            f"attention and {names[1]} exclude each other: attention= is for self-attention alone"
        )
    panels = [read_panel(source, prettify_tokens) for source in given]
    heads = {source.argument: panel.weights.size(1) for source, panel in zip(given, panels, strict=True)}
    if len(set(heads.values())) > 1:
        raise ValueError(
            f"the numbers of heads differ, {heads}, but a view has one set of heads: show one at a time"
        )
    return panels


def read_panel(source: Source, prettify_tokens: bool) -> Panel:
    """One source as a panel; ValueError if its weights are not drawable or its tokens do not fit them."""
    weights = stack_layers(source.argument, source.attention)
    texts = []
    for tokens, size in zip((source.left_tokens, source.right_tokens), weights.shape[2:], strict=True):
        if isinstance(tokens, str):
            raise TypeError(f"tokens must be a list, got the text {tokens!r:.60}: tokenize it first")
        if callable(tokens):
            kind = type(tokens).__name__
            raise TypeError(
                f"tokens must be a list, got a {kind}: with a tokenizer pass the encoder, not its attentions"
            )
        if tokens is None or len(tokens) != size:
            found = "none were passed" if tokens is None else f"there are {len(tokens)} tokens"
            raise ValueError(
                f"{source.argument} has {size} positions, but {found}: pass the tokens of the same input, "
                "special tokens such as [CLS] and [SEP] included"
            )
        texts.append([prettify(str(token)) if prettify_tokens else str(token) for token in tokens])
    name = "all" if source.argument == "attention" else source.argument.removesuffix("_attention")
    return Panel(name, weights, *texts)


def stack_layers(argument: str, attention: Sequence[Tensor]) -> Tensor:
    """L times (1, A, S, T), on any device and in any precision, to (L, A, S, T) float64; ValueError if it is not so."""
    if isinstance(attention, str) or not isinstance(attention, Iterable):
        kind = type(attention).__name__
        raise TypeError(
            f"{argument} must be one tensor a layer, got {kind}: pass the model's attentions and tokens, or "
            "(encoder, tokenizer, sentence_a, sentence_b)"
        )
    layers = list(attention)
    if not layers or any(layer is None for layer in layers):
        raise ValueError(f"{argument} holds no weights, {tuple(layers)!r:.60}: {NO_WEIGHTS}")
    layers = [torch.as_tensor(layer) for layer in layers]
    shapes = [tuple(layer.shape) for layer in layers]
    for index, shape in enumerate(shapes):
        if len(shape) != 4 or shape != shapes[0]:
            raise ValueError(
                f"layer {index} of {argument} has the shape {shape}, layer 0 {shapes[0]}: pass one tensor "
                "(1, heads, tokens, tokens) a layer, all alike"
            )
    if shapes[0][0] != 1:
        raise ValueError(
            f"{argument} is of a batch of {shapes[0][0]}, and a view shows one text: pass "
            f"[layer[i : i + 1] for layer in {argument}] for text i, without its padding"
        )
    weights = torch.cat([layer.detach().cpu().double() for layer in layers])
    if not weights.isfinite().all():
        raise ValueError(f"{argument} holds nan or inf: look for a row of the attention mask that is all 0")
    return weights


def prettify(token: str) -> str:
    """The token without the marks that byte-pair and SentencePiece vocabularies put at word boundaries (as bertviz)."""
    return token.replace("Ġ", " ").replace("▁", " ").replace("</w>", "")


def check_indices(argument: str, indices: int | Iterable[int] | None, count: int) -> list[int]:
    """The indices, or all where they are None; ValueError for an index that does not exist, or for none."""
    if indices is None:
        return list(range(count))
    indices = [indices] if isinstance(indices, (Integral, str)) else list(indices)
    for index in indices:
        if not is_whole(index) or not 0 <= index < count:
            raise ValueError(f"{argument} names {index!r}, but there are {count}: use 0 to {count - 1}")
    if not indices:
        raise ValueError(f"{argument}=[] names none of the {count}: leave it out for all")
    return [int(index) for index in indices]


def check_layers(panels: list[Panel], include_layers: Iterable[int] | None) -> list[int]:
    """The layers to draw, the same of each panel; ValueError for a layer that one of them has not."""
    counts = {panel.name: panel.weights.size(0) for panel in panels}
    fewest = min(counts.values())
    if include_layers is None and len(set(counts.values())) > 1:
        raise ValueError(
            f"the numbers of layers differ, {counts}, but a view has one set of layers: pass "
            f"include_layers=range({fewest}), or show one at a time"
        )
    return check_indices("include_layers", include_layers, fewest)


def check_sentence_b_start(start: int | None, panel: Panel) -> int | None:
    """The index of sentence B's first token, or None; ValueError unless both sentences have a token."""
    if start is None:
        return None
    if panel.name != "all":
        raise ValueError(
            f"sentence_b_start={start} needs attention=: leave it out for an encoder–decoder model"
        )
    count = len(panel.left_tokens)
    if not 0 < start < count:
        raise ValueError(
            f"sentence_b_start={start} leaves a sentence of the {count} tokens empty: use 1 to {count - 1}, "
            "the index of the first token after the first [SEP]"
        )
    return int(start)


def pack(values: Tensor) -> list:
    """Numbers as whole ten-thousandths, which take half the room; page.js divides them again."""
    return (values.detach().cpu().double() * 10**DIGITS).round().long().tolist()


def pack_panels(panels: list[Panel], layers: list[int], heads: list[int] | None = None) -> dict[str, dict]:
    """The chosen layers and heads of each panel, as bertviz's templates read them. ValueError for far too many."""
    for panel in panels:
        A, S, T = panel.weights.shape[1:]
        check_drawable(len(layers), A if heads is None else len(heads), S, T)
    heads = slice(None) if heads is None else heads
    return {
        panel.name: {
            "attn": pack(panel.weights[layers][:, heads]),
            "left_text": panel.left_tokens,
            "right_text": panel.right_tokens,
        }
        for panel in panels
    }


def check_drawable(layers: int, heads: int, S: int, T: int) -> None:
    """ValueError for so many weights that no browser would show the page, which would be hundreds of megabytes."""
    if layers * heads * S * T > MOST_WEIGHTS:
        raise ValueError(
            f"a view of {layers} layers × {heads} heads × {S} × {T} weights is more than a browser can hold "
            f"({MOST_WEIGHTS:,} weights): shorten the text, or pass include_layers=[…] where a view has it"
        )


def describe(name: str | None, layers: int, heads: int, texts: Iterable[list[str]]) -> str:
    """The model's name, if it is known, sizes and the beginning of each text, for a reader who cannot see the view."""
    texts = {" ".join(tokens): len(tokens) for tokens in texts}
    tokens = "; ".join(
        f"{count} tokens, “{text[:60]}{'…' * (len(text) > 60)}”" for text, count in texts.items()
    )
    return f"{name}, " * bool(name) + f"{layers} layers × {heads} heads on {tokens}"


def most_lines(panels: list[Panel]) -> int:
    """Lines of one head, in the panel that has most."""
    return max(S * T for S, T in (panel.weights.shape[2:] for panel in panels))


def warn_if_many(view: str, lines: int, remedy: str) -> None:
    """Warn that a view of so many lines takes a browser long to draw."""
    if lines > (limit := MOST_LINES[view]):
        message = f"a {view} of {lines:,} lines may take a browser above ten seconds (above {limit:,} lines): {remedy}"
        warnings.warn(message, UserWarning, stacklevel=4)  # the caller of the view


def without_html_action(draw: Callable) -> Callable:
    """The view function, answering bertviz's `html_action` in words: a view displays and saves itself."""

    @wraps(draw)
    def view(*arguments, **options):
        refuse_html_action(options)
        return draw(*arguments, **options)

    return view


def refuse_html_action(options: Container[str]) -> None:
    """TypeError if bertviz's `html_action` is among a view's keyword arguments."""
    if "html_action" in options:
        raise TypeError("html_action= is not needed here: the view shows itself, .save(path) writes its page")
