"""`sentence_view`: where one token of a sentence looks, in one head, and what all other heads give from it."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import NamedTuple, Unpack

import torch
from torch import Tensor, nn

from utils.support.checks import is_integer
from views.draw import ViewArguments, read_arguments
from views.figures import make_figure, pack
from views.inputs import check_indices, check_page_size, describe, without_tensors
from views.models import unwrap
from views.page import View, writable

MAX_TOKENS = 128
MAX_TEXTS = 6  # to exchange, including the first


def sentence_view(
    attention_or_encoder: Sequence[Tensor] | nn.Module | None = None,
    tokens_or_tokenizer: Sequence[str] | Callable | None = None,
    start_or_sentence_a: int | str | None = None,
    sentence_b: str | None = None,
    *,
    token: str | int | None = None,
    layer: int | None = None,
    head: int = 0,
    other: str | Sequence[str] | tuple[Sequence[Tensor], Sequence[str]] | None = None,
    **named: Unpack[ViewArguments],
) -> View:
    """Draw a sentence with a ribbon from one token to every token, as wide as its attention weight.

    Of a model and its text:  sentence_view(encoder, tokenizer, "It was too tired.", token="it", layer=3, head=1)
    Of any model's attentions, as bertviz is called:  sentence_view(attention, tokens, token="it")

    The widths of the ribbons add up to 1. A map shows what each head gives from this token to another one. `token`, a
    word or its index, `layer` and `head` are selected at first: by default the first word, and the first head of the
    first layer. `other` exchanges words: a text with as many tokens, or a list of up to 5, in the place of the last
    text, or, with attentions, (attention, tokens). The remaining arguments are the same as for `head_view`. ValueError
    or TypeError names the wrong argument and the remedy.
    """
    positional = attention_or_encoder, tokens_or_tokenizer, start_or_sentence_a, sentence_b
    first = read_sentence(positional, named)
    sentences = [first]
    options = {"prettify_tokens": named.get("prettify_tokens", True), "include_layers": named.get("include_layers")}
    for arguments in other_arguments(positional, other):
        sentences.append(check_other(read_sentence(arguments, options), sentences))
    layer = first.layers[0] if (layer := without_tensors(layer)) is None else layer
    if not is_integer(layer) or layer not in first.layers:
        raise ValueError(f"layer must be one of the layers shown, {first.layers}, got {layer!r}")
    L, A, S, _ = first.weights.shape
    [head] = check_indices("head", [without_tensors(head)], A)
    check_page_size(torch.empty(len(sentences), L, A, S, S, device="meta"))
    index, row = index_of_token(token, first.tokens), first.layers.index(int(layer))
    weights = torch.stack([sentence.weights for sentence in sentences])
    return make_figure(
        "sentence_view",
        {
            "texts": [sentence.tokens for sentence in sentences],
            "weights": pack(weights),
            "heads": A,
            "layers": first.layers,
            "first": {"token": index, "layer": row, "head": head},
        },
        title=title_of(first, index, row, head),
        details=describe(first.name, L, A, [first.tokens]),
    )


class Sentence(NamedTuple):
    """The attention weights (L, A, S, S) of the layers shown, and the S tokens."""

    weights: Tensor
    tokens: list[str]
    layers: list[int]
    name: str | None  # of the model


def read_sentence(positional: tuple, named: dict) -> Sentence:
    """Read a sentence from the arguments of a view; ValueError unless it is one text whose weights add up to 1."""
    read = read_arguments("sentence_view", positional, **named)
    panel = next(iter(read.panels.values()))
    if len(read.panels) > 1 or panel.left_tokens != panel.right_tokens:
        kinds = " and ".join(f"{kind}_attention" for kind in read.panels)
        raise ValueError(
            f"a sentence view shows the attention of one text to itself, got {kinds}: pass encoder_attention or "
            "decoder_attention alone, or one side of the model, model.get_encoder() or model.get_decoder()"
        )
    if len(panel.left_tokens) > MAX_TOKENS:
        raise ValueError(
            f"the text has {len(panel.left_tokens)} tokens, but a sentence view draws at most {MAX_TOKENS}: "
            "shorten it, or use head_view"
        )
    weights = panel.weights[read.layers]
    sums = weights.sum(dim=-1)
    if (wrong := (sums - 1).abs() > 0.02).any():  # half precision rounds
        place = wrong.nonzero()[0].tolist()
        where = f"token {place[2]} in layer {read.layers[place[0]]}, head {place[1]}"
        raise ValueError(
            f"the weights of {where} add up to {sums[tuple(place)]:.2f}, and the ribbons of a sentence view need 1: "
            "pass the output of softmax, from a model after model.eval(), or use head_view"
        )
    return Sentence(weights, [writable(token) for token in panel.left_tokens], read.layers, read.name)


def other_arguments(positional: tuple, other) -> list[tuple]:
    """Return the positional arguments of each sentence that `other` passes."""
    source, tokenizer, sentence_a, sentence_b = positional
    if other is None:
        return []
    if not isinstance(unwrap(source), nn.Module):
        if not isinstance(other, tuple) or len(other) != 2:
            raise TypeError(
                "with attentions, other must be a tuple (attention, tokens) of the second text, got "
                f"{type(other).__name__}: pass a model and its tokenizer to exchange words by text"
            )
        return [(*other, None, None)]
    texts = [other] if isinstance(other, str) else other
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) and text.strip() for text in texts):
        raise TypeError(f"other must be a text, or a list of texts, of at least one word, got {other!r:.60}")
    if not 1 <= len(texts) < MAX_TEXTS:
        raise ValueError(f"other must hold 1 to {MAX_TEXTS - 1} texts, got {len(texts)}")
    return [
        (source, tokenizer, text, None) if sentence_b is None else (source, tokenizer, sentence_a, text)
        for text in texts
    ]


def check_other(sentence: Sentence, before: Sequence[Sentence]) -> Sentence:
    """Return a sentence that can take the place of the first; ValueError if it is too different or the same."""
    first = before[0]
    if len(sentence.tokens) != len(first.tokens):
        raise ValueError(
            f"other must have as many tokens as the text, {len(first.tokens)}, got {len(sentence.tokens)}, "
            f"{' '.join(sentence.tokens)!r:.80}: exchange a word for one of as many tokens"
        )
    if sentence.weights.shape != first.weights.shape:
        sizes = (f"{len(each.layers)} layers × {each.weights.size(1)} heads" for each in (first, sentence))
        raise ValueError(f"other must come from the same model, {next(sizes)}, got {next(sizes)}")
    if any(sentence.tokens == earlier.tokens for earlier in before):
        raise ValueError(f"other repeats the tokens {' '.join(sentence.tokens)!r:.80}: exchange a word for another")
    return sentence


def title_of(sentence: Sentence, token: int, layer: int, head: int) -> str:
    """Return the title of a view, which the page changes with the reader's choices."""
    most = int(sentence.weights[layer, head, token].argmax())
    return f"“{sentence.tokens[token]}” looks most at {'itself' if most == token else f'“{sentence.tokens[most]}”'}"


def index_of_token(token: str | int | None, tokens: Sequence[str]) -> int:
    """Return the index of a token, by default of the first word; ValueError if the text does not contain it."""
    if token is None:
        words = (index for index, name in enumerate(tokens) if name[:1] != "[" and any(map(str.isalnum, name)))
        return next(words, 0)
    if isinstance(token, str):
        names = [name.strip() for name in tokens]
        if token.strip() not in names:
            shown = ", ".join(chain(names[:20], ["…"] if len(names) > 20 else []))
            raise ValueError(f"token={token!r:.60} is not among the tokens of the text: use one of {shown}")
        return names.index(token.strip())
    return check_indices("token", [without_tensors(token)], len(tokens))[0]
