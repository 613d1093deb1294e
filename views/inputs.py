"""Check the attentions passed to a view, and convert them for the page."""

import base64
import zlib
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from typing import NamedTuple

import torch
from torch import Tensor

from utils.support.checks import check_tensor, is_integer
from views.words import Words, guess_word_ids, words_of

DIGITS = 4  # after the decimal point in the data of a page
MAX_NUMBERS = 20_000_000  # per page: about 120 MB
NO_WEIGHTS = (
    "call the model with output_attentions=True; a transformers model returns weights only with the attention "
    'implementation "eager", so load it with from_pretrained(..., attn_implementation="eager")'
)
USAGE = (
    "pass (model, tokenizer, sentence_a, sentence_b=None), or (attention, tokens, sentence_b_start=None), or the "
    "named attentions and tokens of an encoder–decoder model"
)


class Panel(NamedTuple):
    """One attention to draw: an entry of the view's attention drop-down."""

    weights: Tensor  # (L, A, S, T)
    left_tokens: list[str]  # S, which attend
    right_tokens: list[str]  # T, which are attended to
    words: tuple[Words, Words]  # of both


def read_panel(
    attention: Sequence[Tensor],
    left_tokens: Sequence[str],
    right_tokens: Sequence[str],
    *,
    argument: str = "attention",
    prettify_tokens: bool = True,
    word_ids: Sequence[Sequence[int]] | None = None,
) -> Panel:
    """Check an attention, one tensor (1, A, S, T) per layer, with the S tokens that attend and the T attended to.

    `word_ids` holds the word of each token on both sides; by default the marks of the tokens show their words.
    ValueError or TypeError, naming the `argument`, for weights that cannot be drawn or tokens that do not fit.
    """
    weights = stack_layers(attention, argument)
    texts, words = [], []
    for side, (tokens, size) in enumerate(((left_tokens, weights.size(2)), (right_tokens, weights.size(3)))):
        if isinstance(tokens, str) or not isinstance(tokens, Iterable):
            raise TypeError(
                f"tokens must be a list, the {size} tokens of {argument}, got {type(tokens).__name__}: {USAGE}"
            )
        tokens = list(tokens.flatten()) if isinstance(tokens, Tensor) else list(tokens)
        if tokens and all(is_integer(without_tensors(token)) for token in tokens):
            raise TypeError(
                f"tokens must be a list of texts, got the ids {[int(one) for one in tokens[:3]]} …: pass "
                "tokenizer.convert_ids_to_tokens(ids)"
            )
        tokens = [str(token) for token in tokens]
        text = [prettify(token) if prettify_tokens else token for token in tokens]
        if len(text) != size:
            raise ValueError(
                f"{argument} has {size} positions, but there are {len(text)} tokens: pass the tokens of the same "
                "input, special tokens such as [CLS] and [SEP] included"
            )
        texts.append(text)
        words.append(words_of(text, guess_word_ids(tokens) if word_ids is None else word_ids[side]))
    return Panel(weights, *texts, tuple(words))


def stack_layers(attention: Sequence[Tensor], argument: str = "attention") -> Tensor:
    """Stack one tensor (1, A, S, T) per layer, on any device and in any precision, to (L, A, S, T) float64.

    ValueError or TypeError, naming the `argument`, for other shapes and for values that are not attention weights.
    """
    if isinstance(attention, tuple) and not attention:
        raise ValueError(
            f"{argument} is empty, (): the last output of a model of transformers 5 is outputs.cross_attentions; pass "
            f"outputs.attentions. If that is empty, too, {NO_WEIGHTS}"
        )
    if attention is None:  # as a model returns it without output_attentions=True
        attention = ()
    if isinstance(attention, str) or not isinstance(attention, Iterable):
        raise TypeError(f"{argument} must be one tensor per layer, got {type(attention).__name__}: {USAGE}")
    if isinstance(attention, Mapping):
        raise TypeError(f"{argument} is the whole output of a model: pass its attentions, output.attentions")
    layers = list(attention)
    if not layers or any(layer is None for layer in layers):
        raise ValueError(f"{argument} holds no weights, {tuple(layers)!r:.60}: {NO_WEIGHTS}")
    if any(isinstance(layer, (tuple, list)) and any(isinstance(part, Tensor) for part in layer) for layer in layers):
        raise TypeError(
            f"{argument} contains tuples of tensors, as in the output of generate(), or in a whole output with "
            "return_dict=False: pass the attentions of one call, one tensor per layer, or the model itself"
        )
    try:
        layers = [torch.as_tensor(layer) for layer in layers]
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(f"{argument} must be one tensor per layer ({error}): {USAGE}") from error
    if all(layer.dim() == 3 for layer in layers):
        layers = [layer[None] for layer in layers]  # without the axis of the batch
    first = tuple(layers[0].shape)
    if len(first) != 4:
        raise ValueError(
            f"layer 0 of {argument} has the shape {first}: pass one tensor (1, heads, tokens, tokens) per layer, "
            "outputs.attentions"
        )
    for index, layer in enumerate(layers):
        if layer.dim() != 4 or layer.shape != first or not layer.numel():
            raise ValueError(
                f"layer {index} of {argument} has the shape {tuple(layer.shape)}, layer 0 has {first}: pass one tensor "
                "(1, heads, tokens, tokens) per layer, all of the same shape"
            )
    if first[0] != 1:
        raise ValueError(
            f"{argument} is of a batch of {first[0]}, and a view shows one text: pass "
            f"[layer[i : i + 1] for layer in {argument}] for text i, without its padding"
        )
    weights = torch.cat([layer.detach().cpu().double() for layer in layers])
    check_weights(weights, argument)
    return weights


def check_weights(weights: Tensor, argument: str = "attention") -> None:
    """Raise ValueError, naming the `argument`, for numbers that are not attention weights."""
    if not weights.isfinite().all():
        raise ValueError(
            f"{argument} holds nan or inf: look for a row of the attention mask that is all 0, or for nan among the "
            "model's weights"
        )
    if weights.min() < 0 or weights.max() > 1.001:  # half precision rounds
        raise ValueError(
            f"{argument} holds numbers from {weights.min():.2f} to {weights.max():.2f}, but weights are between 0 and "
            "1: pass the output of softmax, from a model after model.eval()"
        )


def prettify(token: str) -> str:
    """Remove the marks for word boundaries in byte-pair and SentencePiece tokens, as bertviz does."""
    return token.replace("Ġ", " ").replace("▁", " ").replace("</w>", "")


def check_indices(argument: str, indices: int | Iterable[int] | None, count: int) -> list[int]:
    """Return the indices, or all for None; ValueError for an index out of range, or for an empty list."""
    if indices is None:
        return list(range(count))
    indices = without_tensors(indices)
    indices = [indices] if isinstance(indices, (Integral, str)) else list(indices)
    for index in indices:
        if not is_integer(index) or not 0 <= index < count:
            raise ValueError(f"{argument} names {index!r}, but there are {count}: use 0 to {count - 1}")
    if not indices:
        raise ValueError(f"{argument}=[] is empty: leave it out for all {count}")
    return [int(index) for index in indices]


def check_layer(layer: int | None, layers: Sequence[int]) -> int | None:
    """Return the layer; ValueError unless it is None or one of the layers shown."""
    layer = without_tensors(layer)
    if layer is not None and (not is_integer(layer) or layer not in layers):
        raise ValueError(f"layer must be one of the layers shown, {layers}, got {layer!r}")
    return None if layer is None else int(layer)


def without_tensors(index):
    """Return a tensor as the number, or the list of numbers, that it holds, and anything else as it is."""
    if not isinstance(index, Tensor):
        return index
    check_tensor("index", index, "ids")
    return index.tolist()


def token_index(token: str | int | None, tokens: Sequence[str]) -> int | None:
    """Return the index of the token that a screenshot points at; None for a word that is not in the text."""
    if isinstance(token, str):
        return tokens.index(token) if token in tokens else None
    return None if token is None else check_indices("token", [token], len(tokens))[0]


def pack_numbers(values: Tensor, masked: Tensor | None = None) -> dict:
    """Pack numbers in units of 1/10,000 for bertviz.js, compressed; a `masked` weight becomes the number before 0."""
    check_page_size(values)
    whole = (values.detach().cpu().double() * 10**DIGITS).round().long()
    if masked is not None:
        whole[masked] = -1
    codes = torch.where(whole < 0, -2 * whole - 1, 2 * whole).flatten().numpy().astype("<u8")
    planes = codes.view("u1").reshape(-1, 8).T  # the low bytes of all numbers first
    used = max([index + 1 for index in range(8) if planes[index].any()], default=1)
    packed = base64.b64encode(zlib.compress(planes[:used].tobytes(), 9)).decode()
    return {"shape": list(values.shape), "data": packed}


def check_page_size(values: Tensor) -> None:
    """Raise ValueError for more numbers than a browser can show."""
    if values.numel() > MAX_NUMBERS:
        sizes = " × ".join(str(size) for size in values.shape)
        raise ValueError(
            f"a view of {sizes} numbers (layers × heads × tokens × tokens) is more than a browser can hold "
            f"({MAX_NUMBERS:,}): shorten the text, or pass include_layers=[…] to head_view or model_view"
        )


def describe(name: str | None, layers: int, heads: int, texts: Iterable[list[str]]) -> str:
    """Describe a view for screen readers: the model's name, if known, its sizes and the beginning of each text."""
    beginnings = {}  # each text once, even if it is on both sides
    for tokens in texts:
        text = " ".join(tokens)
        beginning = (
            text if len(text) <= 60 else f"{text[:60].rpartition(' ')[0] or text[:60]} …"
        )  # only complete tokens
        beginnings[text] = f"{len(tokens)} tokens, “{beginning}”"
    sizes = f"{layers} layer{'s' * (layers > 1)} × {heads} head{'s' * (heads > 1)} on {'; '.join(beginnings.values())}"
    return f"{name}, {sizes}" if name else sizes
