"""`sentence_view`: where one token of a sentence looks, in one head, alone or next to a second sentence or model."""

import base64
import zlib
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from itertools import chain
from typing import NamedTuple, Unpack, overload

import torch
from torch import Tensor, nn

from utils.tokenization import normalize
from views.arguments import Call, ViewArguments, act, exchange, read_call, read_input
from views.cuts import measure_cuts
from views.figures import make_figure, pack
from views.inputs import check_indices, check_layer, check_page_size, describe, without_tensors
from views.page import View, writable
from views.words import Words, merge

LONG = 128  # tokens; the weights of longer texts are rounded
STEPS, LARGE = 250, 63  # of the square root of a weight


@overload
def sentence_view(
    model: nn.Module, tokenizer: Callable, sentence_a: str, sentence_b: str | None = None, **options
) -> View: ...
@overload
def sentence_view(attention: Sequence[Tensor], tokens: Sequence[str], **options) -> View | None: ...
def sentence_view(
    model=None,
    tokenizer=None,
    sentence_a=None,
    sentence_b: str | None = None,
    *,
    token: str | int | None = None,
    layer: int | None = None,
    head: int | str | None = None,
    other: str | Sequence[str] | nn.Module | tuple | None = None,
    labels: Sequence[str] | None = None,
    cuts: bool | str = False,
    html_action: str | None = None,
    **options: Unpack[ViewArguments],
) -> View | None:
    """Draw a sentence with a ribbon from one token to every token, as wide as its attention weight.

    Of a model and its text:  sentence_view(model, tokenizer, "It was too tired.", token="it", layer=3, head=1)
    Of any model's attentions, as bertviz is called:  sentence_view(attention, tokens, token="it")

    The widths of the ribbons add up to 1. A map shows what each head gives from this token to another one. Of a text
    of more than 128 tokens, those around the selected token are drawn, and weights are rounded to within 0.001. The
    ribbons of `other` are drawn below the words, aligned on words, and the map shows how much of the attention of each
    head moves. ValueError or TypeError names the wrong argument and the remedy.

    Parameters:
        model, tokenizer, sentence_a, sentence_b, attention, tokens: as for `head_view`.
        token: a word or its index; by default the first word or, with `other`, the one whose attention moves most.
        layer, head: what is selected at first; by default the first head of the first layer or, with `other`, the head
            whose attention moves most. The head "mean" is the mean of the layer's heads or, without a layer, of all.
        other: what the sentence is compared with. A second text takes the place of the last one; a second model, or
            (model, tokenizer), reads the same text; with attentions, it is (attention, tokens). A list of up to 5 texts
            exchanges words instead, one after the other.
        labels: names of the two sides.
        cuts: measure how far the token's vector turns after each layer without each link, for 16 tokens in about five
            seconds, and fill each ribbon by that angle: the link left out or, by a switch, its weight shared among the
            others. It needs a model, and one text of at most 64 tokens. "last" measures the last vector, of the first
            token alone, in about ten seconds.
        html_action, options: as for `head_view`.
    """
    call = read_call("sentence_view", (model, tokenizer, sentence_a, sentence_b), **options)
    compared_calls = exchange(call, other)
    sentences = read_sentences([call, *compared_calls])
    first, is_list = sentences[0], isinstance(other, list) or (isinstance(other, tuple) and len(sentences) > 2)
    L, A, S, _ = first.weights.shape
    check_page_size(torch.empty(len(sentences), L, A, S, S, device="meta"))
    drawn = {mode: align(sentences, mode) for mode in ("pieces", "words")}
    mode = "words" if call.whole else "pieces"
    compared = compare(sentences, drawn[mode]) if len(sentences) > 1 and not is_list else None
    start = find_start(first, compared, drawn[mode], token, layer, head)
    last_of = index_of_token(token, first.tokens) if cuts == "last" else None
    turns = measure_turns(call, other, last_of) if cuts else None
    cut = None if turns is None or mode == "words" or start["head"] == A else turns[:, first.layers]
    title = title_of(sentences, compared, drawn[mode], start, cut, "the last" if cuts == "last" else "its")
    labels = check_labels(labels, sentences)
    details = describe(first.name, L, A, [first.tokens])
    view = make_figure(
        "sentence_view",
        {
            "labels": labels,
            "weights": [pack_weights(sentence.weights) for sentence in sentences],
            "sizes": [len(sentence.tokens) for sentence in sentences],
            "drawn": {mode: columns._asdict() for mode, columns in drawn.items()},
            "heads": A,
            "layers": first.layers,
            "turns": None if turns is None else pack_turns(turns[:, first.layers]),
            "last": cuts == "last",
            "first": start | {"mode": mode, "both": compared is not None} | ({} if turns is None else {"cut": 0}),
            "models": have_same_words(sentences),
        },
        title=title,
        details=details if compared is None else f"{details}; above: {labels[0]}, below: {labels[1]}",
    )
    return act(view, html_action)


def pack_weights(weights: Tensor) -> str | dict[str, str]:
    """Encode weights (L, A, S, S) for the page: in float32 or, of a long text, in a compressed byte each.

    A byte is the weight's square root in steps of 1/250, which is right to within 0.001. From 1/16 on it is LARGE, and
    the weight itself is listed in float16.
    """
    if weights.size(-1) <= LONG:
        return pack(weights)
    steps = (weights.sqrt() * STEPS).round().clamp(max=LARGE)
    small = base64.b64encode(zlib.compress(steps.byte().numpy().tobytes())).decode()
    return {"small": small, "large": pack(weights[steps == LARGE], "<f2")}


def measure_turns(call: Call, other, last_of: int | None) -> Tensor:
    """Return the turns (2, L, A, S, S) of `measure_cuts`; ValueError unless they are those of one text in a model."""
    if call.model is None or other is not None:
        what = "attentions hold no vectors" if call.model is None else "it draws one text"
        raise ValueError(f"cuts=True measures a model on one text, but {what}: leave out cuts, or pass model and text")
    return measure_cuts(call.model, call.tokenizer, call.texts, last_of)


def pack_turns(turns: Tensor) -> str:
    """Encode turns for the page, compressed: in hundredths of a degree, two bytes each; 65535 for nan."""
    steps = (turns * 100).round().nan_to_num(65535)
    return base64.b64encode(zlib.compress(steps.numpy().astype("<u2").tobytes(), 9)).decode()


class Sentence(NamedTuple):
    """The attention weights (L, A, S, S) of the layers shown, the S tokens, and their words."""

    weights: Tensor
    tokens: list[str]
    words: Words
    layers: list[int]
    name: str | None  # of the model
    model: nn.Module | None  # None for attentions


class Columns(NamedTuple):
    """The columns in which sentences are drawn, and compared.

    For each sentence, `ids` (S,) is the column of each token, and `names` holds the name of each column, empty where
    the sentence has no such word.
    """

    ids: list[list[int]]
    names: list[list[str]]


def read_sentences(calls: Sequence[Call]) -> list[Sentence]:
    """Read the sentences that are compared; ValueError if they are too different or the same."""
    sentences = []
    for call in calls:
        sentence = read_sentence(call)
        check_other(sentence, sentences)
        sentences.append(sentence)
    return sentences


def read_sentence(call: Call) -> Sentence:
    """Read a sentence; ValueError unless it is one text whose weights add up to 1."""
    read = read_input(call)
    panel = next(iter(read.panels.values()))
    if len(read.panels) > 1 or panel.left_tokens != panel.right_tokens:
        kinds = " and ".join(f"{kind}_attention" for kind in read.panels)
        raise ValueError(
            f"a sentence view shows the attention of one text to itself, got {kinds}: pass encoder_attention or "
            "decoder_attention alone, or one side of the model, model.get_encoder() or model.get_decoder()"
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
    ids, names = panel.words[0]
    words = Words(ids, [writable(name) for name in names])
    return Sentence(
        weights, [writable(token) for token in panel.left_tokens], words, read.layers, read.name, call.model
    )


def check_other(sentence: Sentence, before: Sequence[Sentence]) -> None:
    """Raise ValueError for a sentence that cannot be compared with those before: too different or the same."""
    first = before[0] if before else sentence
    if sentence.weights.shape[:2] != first.weights.shape[:2]:
        sizes = (f"{len(each.layers)} layers × {each.weights.size(1)} heads" for each in (first, sentence))
        raise ValueError(f"other must have as many layers and heads, {next(sizes)}, got {next(sizes)}")
    for earlier in before:
        same = sentence.model is earlier.model and sentence.tokens == earlier.tokens  # two models may agree
        if same and torch.equal(sentence.weights, earlier.weights):
            text = f"{' '.join(sentence.tokens)!r:.80}"
            raise ValueError(f"other repeats the tokens {text}, with the same weights: exchange a word, or the model")


def check_labels(labels: Sequence[str] | None, sentences: Sequence[Sentence]) -> list[str]:
    """Return a label for each sentence: by default the names of two models, or the words in which texts differ."""
    if labels is not None:
        if isinstance(labels, str) or len(labels) != len(sentences):
            raise ValueError(f"labels must be a list of {len(sentences)} names, got {labels!r:.60}")
        return [writable(str(label)) for label in labels]
    if have_same_words(sentences):
        names = [sentence.name for sentence in sentences]
        return names if all(names) and len(set(names)) == len(names) else ["first", "second"][: len(names)]
    columns = zip(*align(sentences, "words").names, strict=True)
    varied = zip(*(column for column in columns if len(set(column)) > 1), strict=True)
    found = [" ".join(filter(None, map(str.strip, names))) or "–" for names in varied]
    return [label if len(label) <= 40 else f"{label[:39]}…" for label in found]


def have_same_words(sentences: Sequence[Sentence]) -> bool:
    """Return whether several sentences are the same text, as two models read it."""
    models = {sentence.model for sentence in sentences}
    return len(models) > 1 or (len(sentences) > 1 and len({tuple(each.words.names) for each in sentences}) == 1)


def align(sentences: Sequence[Sentence], mode: str) -> Columns:
    """Align sentences on their words: `mode` "words" gives each word a column, "pieces" each piece where they match.

    Words between two that all sentences have in common are paired in their order.
    """
    keys = [[(number, 0) for number in range(len(sentences[0].words.names))]]
    for sentence in sentences[1:]:
        keys.append(pair_words(sentences[0].words.names, sentence.words.names))
    pieces = [count_pieces(sentence.words.ids) for sentence in sentences]
    columns = {}  # key: the number of columns of a word
    for own, counts in zip(keys, pieces, strict=True):
        for key, count in zip(own, counts, strict=True):
            columns[key] = count if mode == "pieces" and columns.get(key, count) == count else 1
    order, total = {}, 0
    for key in sorted(columns):
        order[key], total = total, total + columns[key]
    ids, names = [], []
    for sentence, own, counts in zip(sentences, keys, pieces, strict=True):
        ids.append([])
        names.append([""] * total)
        for word, (key, count) in enumerate(zip(own, counts, strict=True)):
            split = columns[key] == count
            start = len(ids[-1])
            ids[-1] += [order[key] + (piece if split else 0) for piece in range(count)]
            shown = sentence.tokens[start : start + count] if split else [sentence.words.names[word]]
            names[-1][order[key] : order[key] + len(shown)] = shown
    return Columns(ids, names)


def pair_words(first: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Return a key for each word of `other`: the index of a word of `first`, and how many words after it to draw it.

    The second is 0 for the partner of that word.
    """
    keys = []
    for _, start, end, own_start, own_end in SequenceMatcher(None, first, other, autojunk=False).get_opcodes():
        for number in range(own_end - own_start):
            keys.append((min(start + number, end - 1), max(0, start + number - end + 1)))
    return keys


def count_pieces(word_ids: Sequence[int]) -> list[int]:
    """Return the number of pieces of each word."""
    return torch.tensor(word_ids).bincount().tolist()


def compare(sentences: Sequence[Sentence], drawn: Columns) -> tuple[Tensor, Tensor]:
    """Return the weights between columns, (L, A, columns, columns), of the two sentences; 0 where one has no word."""
    count = len(drawn.names[0])
    return tuple(merge(each.weights, ids, ids, count) for each, ids in zip(sentences, drawn.ids, strict=True))


def find_start(
    first: Sentence,
    compared: tuple | None,
    drawn: Columns,
    token: str | int | None,
    layer: int | None,
    head: int | str | None,
) -> dict[str, int]:
    """Return the column, the layer's row and the head at which the view begins; ValueError for those not drawn."""
    layer = check_layer(layer, first.layers)
    row = None if layer is None else first.layers.index(layer)
    column = drawn.ids[0][index_of_token(token, first.tokens)]
    if head == "mean":
        every = len(first.layers) * (len(first.layers) > 1)
        return {"token": column, "layer": every if row is None else row, "head": first.weights.size(1)}
    if head is not None:
        [head] = check_indices("head", [without_tensors(head)], first.weights.size(1))
    if compared is None:
        return {"token": column, "layer": row or 0, "head": head or 0}
    names = drawn.names[0]
    words = [index for index, name in enumerate(names) if name[:1] not in "[<" and any(map(str.isalnum, name))]
    choices = (
        [*range(len(first.layers))] if row is None else [row],
        [*range(first.weights.size(1))] if head is None else [head],
        [column] if token is not None or not words else words,
    )
    moved = share_moved(*compared)[choices[0]][:, choices[1]][:, :, choices[2]]
    most = torch.unravel_index(moved.argmax(), moved.shape)
    row, head, column = (own[int(index)] for own, index in zip(choices, most, strict=True))
    return {"token": column, "layer": row, "head": head}


def share_moved(first: Tensor, second: Tensor) -> Tensor:
    """Return how much of the attention of each column moves, (L, A, columns), from 0 to 1."""
    both = (first.sum(dim=-1) > 0.5) & (second.sum(dim=-1) > 0.5)
    return (first - second).abs().sum(dim=-1) / 2 * both


def title_of(
    sentences: Sequence[Sentence],
    compared: tuple[Tensor, Tensor] | None,
    drawn: Columns,
    start: dict,
    turns: Tensor | None = None,
    which: str = "its",
) -> str:
    """Return the title of a view, which the page changes with the reader's choices; `turns` are of `which` vector."""
    token, layer, head = start["token"], start["layer"], start["head"]
    names = drawn.names[0]
    if compared is None:
        row = merge(drawn_weights(sentences[0].weights, layer, head), drawn.ids[0], drawn.ids[0], len(names))[token]
        most = int(row.argmax())
        goal = "itself" if most == token else quoted(names[most])
        if turns is None:
            alike = float(row.max() - row.min()) < 1e-6
            return f"{quoted(names[token])} looks {'at all tokens alike' if alike else f'most at {goal}'}"
        both = turns[:, layer, head, drawn.ids[0].index(token), drawn.ids[0].index(most)].tolist()
        left, shared = ("–" if turn != turn else f"{round(turn, 2):.1f}°" for turn in both)  # as they are packed
        link = f"Head {sentences[0].layers[layer]}-{head}, link of {quoted(names[token])} to {goal} ({row[most]:.2f})"
        return f"{link}: left out, {which} vector turns by {left}; shared, by {shared}"
    if token not in drawn.ids[1]:
        return f"{quoted(names[token])} is in one text only"
    first, second = (drawn_weights(weights, layer, head)[token] for weights in compared)
    change = second - first
    if f"{float(change.abs().sum()) / 2:.2f}" == "0.00":
        return f"{quoted(names[token])} gives the same in both"
    lost, won = int(change.argmin()), int(change.argmax())
    source, goal = names[lost] or drawn.names[1][lost], drawn.names[1][won] or names[won]
    moved = f"{float(change.abs().sum()) / 2:.2f} of the attention of {quoted(names[token])} moves"
    return f"{moved}, mainly from {quoted(source)} to {quoted(goal)}"


def drawn_weights(weights: Tensor, layer: int, head: int) -> Tensor:
    """Return the weights (S, S) of a head; head A is the mean of a layer's heads, and layer L that of all heads."""
    some = weights if layer == len(weights) else weights[layer, None]
    return (some.mean(dim=1) if head == weights.size(1) else some[:, head]).mean(dim=0)


def quoted(name: str) -> str:
    """Return a name in quotation marks; letters from right to left are isolated, as in <bdi>."""
    is_foreign = any("\u0590" <= letter <= "\u08ff" or "\ufb1d" <= letter <= "\ufefc" for letter in name)
    return f"“\u2068{name.strip()}\u2069”" if is_foreign else f"“{name}”"


def index_of_token(token: str | int | None, tokens: Sequence[str]) -> int:
    """Return the index of a token, by default of the first word; ValueError if the text does not contain it."""
    if token is None:
        words = (index for index, name in enumerate(tokens) if name[:1] != "[" and any(map(str.isalnum, name)))
        return next(words, 0)
    if isinstance(token, str):
        names, token = [name.strip() for name in tokens], token.strip()
        if token not in names and (alike := [name for name in names if normalize(name) == normalize(token)]):
            token = alike[0]  # typed with a capital or an accent, which the tokenizer removes
        if token not in names:
            shown = ", ".join(chain(names[:20], ["…"] if len(names) > 20 else []))
            raise ValueError(f"token={token!r:.60} is not among the tokens of the text: use one of {shown}")
        return names.index(token)
    return check_indices("token", [without_tensors(token)], len(tokens))[0]
