"""Checks for the exercises of notebook 06."""

from collections.abc import Callable, Iterable, Iterator
from copy import deepcopy
from functools import cache
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from transformers import BertConfig, BertModel

from exercises.diagnosis.broken import RIGHT, gap_between, kind_of, shown_by, suspects
from exercises.framework import (
    CHANGES_INPUT,
    CUT_OFF,
    Hint,
    NotAttempted,
    as_number,
    close,
    compare_stages,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
    is_stub,
)
from exercises.prediction import prediction
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.weights import rename_weight

OLD_IDS = (
    "position_ids",
    "token_type_ids",
)  # further entries of old checkpoints, next to the weights of the embeddings
TOY_INPUT = (
    torch.tensor([[2, 5, 7, 3, 4], [2, 6, 3, 0, 0]]),
    torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]),
    torch.tensor([[0, 0, 0, 1, 1], [0] * 5]),
)  # ids, mask, token types


def toy_encoder(layers: int = 3) -> TransformerEncoder:
    """Return a small encoder with seeded weights, in training mode, without dropout."""
    torch.manual_seed(6)
    sizes = {"vocab_size": 12, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return TransformerEncoder(BertConfig(num_hidden_layers=layers, max_position_embeddings=8, **sizes, **dropout))


@exercise("6.1", points=3, part="encoder")
def loop_through_the_layers(answer):
    """Check that the answer is the forward of an encoder: all hidden states, and all attention weights."""
    expect_function(answer)
    name_the_mistake_in_states(lambda *given: pair_of(answer(*given))[0])
    name_the_mistake_in_weights(answer)
    encoder, inputs = deepcopy(official_states())  # an answer may alter the encoder
    with torch.no_grad():
        compare_stages(encoder_stages(lambda *given: pair_of(answer(*given))[0], encoder, inputs), {})
    return "One text, a pair and a padded batch: equal to the official model after every layer."


def pair_of(value) -> tuple:
    """Return the hidden states and attention weights of a forward's result; `Hint` unless it is such a pair."""
    hint = "Return two lists: first the hidden states, then the attention weights."
    expect(isinstance(value, tuple | list) and len(value) == 2, hint)
    states, attentions = value
    expect(not any(isinstance(item, Tensor) and item.ndim < 4 for item in value), hint)
    swapped = len(states) + 1 == len(attentions) and [getattr(of[0], "ndim", 0) for of in value] == [4, 3]
    expect(not swapped, "The two are swapped: the hidden states come first, then the attention weights.")
    return states, attentions


def name_the_mistake_in_weights(answer: Callable) -> None:
    """Raise `Hint` unless the second of what a right forward returns is each layer's attention weights, on a toy."""
    ids, mask, types = TOY_INPUT
    encoder = toy_encoder()
    wanted = encoder(ids, mask, types, output_attentions=True).attentions
    attentions = as_states(pair_of(answer(encoder, ids, mask, types))[1], 3)
    expect(
        not any(weights is None for weights in attentions),
        "The attention weights are None. A layer returns them for layer(state, attention_mask, True).",
    )
    many = f"There are {len(attentions)} tensors of attention weights for 3 layers. Return one per layer."
    expect(len(attentions) == len(wanted), many)
    for number, (weights, right) in enumerate(zip(attentions, wanted, strict=True)):
        weights = expect_tensor(weights, right.shape, f"The attention weights of layer {number}")
        hint = f"The attention weights of layer {number} are wrong. Keep the second result of each layer."
        expect(close(weights, right), hint)


TABLES, ATTENTION, FEED_FORWARD, NORM = 1220, 4 * 110, 330 + 310, 20  # numbers of parameters
LAYER = ATTENTION + FEED_FORWARD + 2 * NORM
TOTAL, BIASES = TABLES + NORM + 3 * LAYER, 3 * (40 + 40)
prediction(
    "6.2",
    as_number,
    """
    = TOTAL
    LAYER | This is one layer. Add the other two, and the embeddings.
    3 * LAYER | These are only the layers. Add the embeddings.
    TABLES + NORM + LAYER | Each of the three layers has parameters of its own.
    TOTAL - 200 | The positions have a table, too: P rows of H numbers.
    TOTAL - NORM | Twenty are missing: the table of token types, or the LayerNorm of the embeddings.
    TOTAL - 6 * NORM | The LayerNorms of the layers are missing: two in each, 2·H numbers.
    TOTAL - 7 * NORM | The LayerNorms are missing: each has a gain and a shift, 2·H.
    TOTAL - 3 * NORM | A layer has two LayerNorms, one after each of its parts.
    TOTAL - BIASES
    TOTAL - BIASES - 7 * NORM // 2 | The biases are missing.
    TOTAL - BIASES - 7 * NORM | These are only the matrices. Add biases and LayerNorms.
    TOTAL - 3 * 110 | Attention has four H × H maps: query, key, value and the output layer.
    TOTAL + 3 * ATTENTION
    TABLES + NORM + 6 * LAYER | The heads share one H × H matrix per projection: the number of heads does not matter.
    TOTAL + 110 | This encoder has no pooler. Count embeddings and layers.
    4601 | Count the embeddings (three tables and a LayerNorm) and one layer separately, then add three layers.
    """,
    later="Three tables, (V + P + T)·H, and 2·H; then per layer 4·(H² + H), 2·H·I + I + H, and 2·2·H.",
    names=lambda: globals(),
    remark="The number of heads plays no part.",
    points=2,
)


@exercise("6.3", points=3, part="rename_weight")
def rename_the_official_weights(answer):
    """Check our name for each of a `BertModel`'s weights, None for those that our encoder does not have."""
    expect_function(answer)
    rename = getattr(answer, "itself", answer)  # a guarded function may not return None
    wanted = {name: rename_weight(name) for name in official_names()}
    homes = set(wanted.values())
    for theirs, ours in wanted.items():
        name = rename(theirs)
        if is_stub(name):
            raise NotAttempted
        if ours is None:
            expect(name is None, f"{theirs} became {name!r}, but our encoder has no such weight. Return None.")
            continue
        kind = type(name).__name__
        expect(name is not None, f"For {theirs} your function returns None. Does it end with `return`?")
        expect(isinstance(name, str), f"It should return a string, but it returns something of type {kind}.")
        expect(
            "attention.feed_forward" not in name,
            f"{theirs} became {name}: “output.dense” and “output.LayerNorm” are also the ends of longer names, "
            "so replace the longer ones first.",
        )
        expect(name == ours or name != theirs, f"{theirs} is returned unchanged.")
        expect(name == ours or name not in homes, f"{theirs} became {name}, which is the name of another weight.")
        expect(name == ours, f"{theirs} became {name}, but our encoder has no such weight.")
    return "Every name of a model of twelve layers finds its place."


@cache
def official_names() -> list[str]:
    """Return the names of a `BertModel` of twelve layers, and the further ones of old checkpoints."""
    with torch.device("meta"):
        return [*BertModel(BertConfig()).state_dict(), *(f"embeddings.{name}" for name in OLD_IDS)]


@exercise("6.4", points=3)
def name_broken_berts(answer):
    """Check the mistakes of four BERTs, and that each shows more in the first of two texts than in the second."""
    numbered = isinstance(answer, dict) and {*answer} == {1, 2, 3, 4}
    expect(numbered, "Give a dictionary with an entry for each of 1 to 4.")
    shown = []
    for number, entry in answer.items():
        name, *texts = entry if isinstance(entry, tuple | list) and entry else [entry]
        expect(name in suspects(), f"BERT {number}: {name!r:.40} is not a name that suspects() lists.")
        expect(
            name == kind_of(number),
            f"BERT {number} is not “{name}”: with that, numbers would differ from its own by "
            f"{gap_between(name, number):.0%}. Recompute the first rung that differs with another change.",
        )
        if name != RIGHT:
            expect(
                all(isinstance(text, str) and text.strip() for text in texts) and len({*texts}) == 2,
                f"BERT {number} is named. Now give two different texts: one that shows its mistake most, one least.",
            )
            most, least = shown_by(name, *texts)  # in this order, the reader's prediction
            expect(
                most > max(0.01, 1.2 * least),
                f"BERT {number} is named. Its mistake changes the vectors of your first text by {most:.0%}, and of the "
                f"second by {least:.0%}. What does a text need so that it shows?",
            )
            shown.append(f"BERT {number}: {most:.0%} and {least:.0%}")
    return f"The mistakes change the vectors of your texts. {'; '.join(shown)}."


def as_states(value, layers: int) -> list[Tensor]:
    """Return what a forward returned, a list, tuple, generator or stacked tensor of states, as a list of tensors."""
    if isinstance(value, Tensor | np.ndarray):
        expect(
            value.ndim in (4, 5) and len(value) in (layers, layers + 1),
            "Return all hidden states as a list or tuple, not only the last one.",
        )
    expect(
        isinstance(value, Iterable) and not isinstance(value, str | dict),
        "Return all hidden states as a list or tuple.",
    )
    states = list(value)
    pairs = any(isinstance(state, tuple | list) for state in states)
    expect(not pairs, "A layer returns a pair, hidden states and weights. Keep the first of them.")
    return states


def name_the_mistake_in_states(answer: Callable) -> None:
    """Raise `Hint` that names it if the answer is one of the usual wrong forwards, on two toys."""
    ids, mask, types = TOY_INPUT
    encoder = toy_encoder()
    untouched = deepcopy(encoder)
    for layer in encoder.layers:
        layer.register_forward_pre_hook(expect_no_pair)
    with mock.patch.object(TransformerEncoder, "forward", refuse):
        given = [ids.clone(), mask.clone(), types.clone()]
        states = as_states(answer(encoder, *given), len(encoder.layers))
    expect(all(map(torch.equal, given, TOY_INPUT)), CHANGES_INPUT)
    expect(encoder.training, "Your function switches the encoder to evaluation mode. Leave that to the caller.")
    expect_untouched(encoder, untouched)
    start, (wanted, variants) = (encoder.embeddings(ids, types), reference_states(encoder, ids, mask, types))
    if len(states) == len(wanted) - 1:
        first_kept = close(states[0], start)
        missing = "The last round's result is missing." if first_kept else "The embeddings come first."
        raise Hint(f"There are {len(states)} states for 3 layers. {missing}")
    expect(len(states) == len(wanted), f"3 layers give 4 hidden states, but you return {len(states)}.")
    tensors = [expect_tensor(state, (2, 5, 8), f"State {number}", start.dtype) for number, state in enumerate(states)]
    for hint, wrong in variants.items():
        expect(not all(map(close, tensors, wrong)), hint)
    for number, (state, right) in enumerate(zip(tensors, wanted, strict=True)):
        place = "The first state is not the embeddings" if number == 0 else f"The state after round {number} is off"
        hint = f"{place}: call each layer on the result of the round before, with the mask."
        expect(close(state, right), hint)
    for state, right in zip(tensors, wanted, strict=True):
        expect_gradients(state, right, list(encoder.parameters()), CUT_OFF)
    found = as_states(answer(toy_encoder(25), ids, mask, types), 25)  # each part is tried with two layers, too
    expect(len(found) == 26, "Right for three layers, but 25 layers give 26 states. Use len(encoder.layers).")


def expect_no_pair(layer, arguments: tuple) -> None:
    """Raise `Hint` where a layer is called with the pair that the one before returned."""
    pair = "A layer returns a pair, hidden states and weights. Pass on the first of them, layer(…)[0]."
    expect(not arguments or not isinstance(arguments[0], (tuple, list)), pair)


def refuse(*arguments, **options):
    """Raise `Hint` in place of the finished forward."""
    raise Hint("This calls the finished encoder. Write what it does, with its embeddings and layers.")


def reference_states(encoder, ids, mask, types) -> tuple[list[Tensor], dict[str, list[Tensor]]]:
    """Return an encoder's right hidden states, and the states of common mistakes by hint."""
    own = range(len(encoder.layers))
    first, last = [0] * len(own), [len(own) - 1] * len(own)
    start, untyped = encoder.embeddings(ids, types), encoder.embeddings(ids)

    def states(start, layers=own, mask=mask) -> list[Tensor]:
        found = [start]
        for number in layers:
            found.append(encoder.layers[number](found[-1], mask)[0])
        return found

    wanted = states(start)
    return wanted, {
        "Padding is not masked. Pass the attention mask in every round.": states(start, mask=None),
        "Every round got the embeddings. Pass each round the result of the one before.": [
            start,
            *(encoder.layers[number](start, mask)[0] for number in own),
        ],
        "The order is reversed: the embeddings come first, and the last round's result last.": wanted[::-1],
        "The token types are missing. Call encoder.embeddings(input_ids, token_type_ids).": states(untyped),
        "These are only word vectors. Call encoder.embeddings, which adds positions and token types.": states(
            encoder.embeddings.word_embeddings(ids)
        ),
        "This uses the first layer in every round. Call each layer in turn.": states(start, first),
        "This uses the last layer in every round. Call each layer in turn.": states(start, last),
        "The layers are in the wrong order. Begin with layer 0.": states(start, own[::-1]),
    }


@cache
def official_states() -> tuple[TransformerEncoder, list[tuple[dict[str, Tensor], tuple[Tensor, ...]]]]:
    """Return a pretrained encoder; and one text, a pair, a padded batch, each with the states of the official model."""
    official, tokenizer = load_reference_model(), load_tokenizer()
    texts = ["time flies like an arrow", "the bark of a palm tree is very rough", "I called Ian."]
    three = [(texts[0],), (texts[2], "I got his answering machine."), (texts,)]
    inputs = [dict(tokenizer(*given, padding=True, return_tensors="pt")) for given in three]
    inputs[0], inputs[1] = ({name: values.view(1, -1) for name, values in each.items()} for each in inputs[:2])
    encoder = TransformerEncoder(official.config)
    encoder.load_bert_weights(official.state_dict())
    with torch.no_grad():
        states = [official(**each, output_hidden_states=True).hidden_states for each in inputs]
    return encoder.eval(), list(zip(inputs, states, strict=True))


def encoder_stages(answer: Callable, encoder, ladder) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield (name, the reader's states, the official ones) of the real tokens of all inputs."""
    ours, kept = [], [each["attention_mask"].bool() for each, _ in ladder]
    for each, official in ladder:
        arguments = (each["input_ids"], each["attention_mask"], each["token_type_ids"])
        states = as_states(answer(encoder, *arguments), len(official) - 1)
        expect(len(states) == len(official), f"There are {len(official) - 1} rounds, but {len(states)} states.")
        ours.append(states)
    for number in range(len(encoder.layers) + 1):
        name = "embeddings" if number == 0 else f"round {number}"
        found = [torch.as_tensor(states[number])[real] for states, real in zip(ours, kept, strict=True)]
        wanted = [states[number][real] for (_, states), real in zip(ladder, kept, strict=True)]
        yield name, torch.cat(found), torch.cat(wanted)


# last layers, of how many, and whether all were frozen before
THAWED = (1, 3, 0), (2, 3, 0), (3, 3, 0), (0, 3, 0), (2, 5, 0), (2, 4, 1), (10, 12, 0)


@exercise("6.5", points=2)
def thaw_last_layers(answer):
    """Check that all but the last layers are frozen, and the number of trainable parameters is returned."""
    expect_function(answer)
    for number, layers, frozen_before in THAWED:
        encoder = toy_encoder(layers).requires_grad_(not frozen_before).train(number != 3)
        layer_size = sum(parameter.numel() for parameter in encoder.layers[0].parameters())
        given = deepcopy(encoder)
        result = answer(encoder, number)
        expect_untouched(encoder, given)
        learning = [all(p.requires_grad for p in layer.parameters()) for layer in encoder.layers]
        frozen = [not any(p.requires_grad for p in layer.parameters()) for layer in encoder.layers]
        tables = any(parameter.requires_grad for parameter in encoder.embeddings.parameters())
        expect(not tables, "The embeddings can still learn. Freeze them, too.")
        if number == 0:
            expect(all(frozen), "With number = 0 nothing should learn: layers[-0:] is every layer.")
        check_thawed(learning, frozen, number)
        expect(not isinstance(result, str), "Your function returns text. Return only the number.")
        count = as_number(result, "What it returns")
        expect(count != 16 * number or number == 0, "This counts tensors. Add up their elements with numel().")
        total = sum(parameter.numel() for parameter in encoder.parameters())
        expect(count not in (total, total - number * layer_size), "Count only the parameters that can learn.")
        hint = f"With number = {number} it returns {count:.0f}, but {number * layer_size} parameters can learn."
        expect(count == number * layer_size, hint)
    return ""


def expect_untouched(encoder: TransformerEncoder, given: TransformerEncoder) -> None:
    """Raise `Hint` if anything but requires_grad is other than it was."""
    ours, theirs = encoder.state_dict(), given.state_dict()
    same = ours.keys() == theirs.keys() and all(ours[name].equal(theirs[name]) for name in theirs)
    expect(same, "Your function changes the encoder's parameters or modules. Change only requires_grad.")
    modes = [[module.training for module in each.modules()] for each in (encoder, given)]
    expect(
        modes[0] == modes[1],
        "Your function calls eval() or train(). Freezing only needs requires_grad, and keeps dropout.",
    )


def check_thawed(learning: list[bool], frozen: list[bool], number: int) -> None:
    """Raise `Hint` unless the last `number` layers can learn and the others cannot."""
    expected = [layer >= len(learning) - number for layer in range(len(learning))]
    expect(number == 0 or not all(frozen), "Every layer is frozen. Set requires_grad of the last ones to True.")
    expect(
        number == len(learning) or not all(learning),
        "Every layer can learn. Freeze the whole encoder first, with requires_grad_(False).",
    )
    prefix = learning[2:10] == expected[2:10] and not any(learning[10:]) and len(learning) > 10
    expect(not prefix, "layers.1 is also the beginning of layers.10 and layers.11. Compare numbers, not text.")
    hint = f"With number = {number} the wrong layers can learn: only the last ones should."
    expect(learning == expected and frozen == [not learns for learns in expected], hint)
