"""Checks for the exercises of notebook 06."""

import torch
from transformers import BertConfig

from exercises import Hint, as_number, as_shape, call, close, exercise, expect, expect_function, expect_tensor
from utils.encoder import TransformerEncoder

DISTILBERT_LAYER = {
    "attention.q_lin": "attention.query",
    "attention.k_lin": "attention.key",
    "attention.v_lin": "attention.value",
    "attention.out_lin": "attention.output",
    "sa_layer_norm": "attention_norm",
    "ffn.lin1": "feed_forward.intermediate",
    "ffn.lin2": "feed_forward.output",
    "output_layer_norm": "feed_forward_norm",
}


def toy_encoder(layers: int = 3) -> TransformerEncoder:
    """A small encoder with seeded weights, in evaluation mode."""
    torch.manual_seed(6)
    sizes = {"vocab_size": 12, "hidden_size": 8, "num_attention_heads": 2, "intermediate_size": 16}
    return TransformerEncoder(BertConfig(num_hidden_layers=layers, max_position_embeddings=8, **sizes)).eval()


@exercise("6.1")
def parameters_of_a_layer(answer):
    """How many parameters a layer with H = 10, A = 2, I = 30 has."""
    number = as_number(answer, "The answer")
    attention, feed_forward, norms = 4 * 110, 330 + 310, 2 * 20
    total, biases = attention + feed_forward + norms, 40 + 40
    expect(number != total - norms, "The two LayerNorms are missing: each has a gain and a shift, 2·H.")
    expect(number != total - norms / 2, "A layer has two LayerNorms, one after each of its parts.")
    expect(number not in (total - biases, total - biases - 20), "The biases are missing.")
    expect(number != total - biases - norms, "These are the matrices alone: add biases and LayerNorms.")
    expect(
        number != total - 110, "Attention has four H × H maps: query, key, value and the output projection."
    )
    expect(
        number not in (2 * attention + feed_forward + norms, 2 * total),
        "The heads share one H × H matrix a projection: the number of heads does not matter.",
    )
    expect(number != attention, "This is attention alone: add the feed-forward network and the LayerNorms.")
    hint = "Add attention, 4·(H² + H), the feed-forward network, 2·H·I + I + H, and two LayerNorms, 2·2·H."
    expect(number == total, hint)
    return "The number of heads plays no part."


@exercise("6.2")
def what_the_encoder_returns(answer):
    """How many hidden states 4 layers return, and the shape of the attention weights of one."""
    two = isinstance(answer, (tuple, list)) and len(answer) == 2
    expect(two, "Give the number of hidden states and the shape of attentions[0].")
    number, shape = as_number(answer[0], "The number of states"), as_shape(answer[1], "The shape")
    expect(number != 4, "One more than there are layers: what enters the first layer is kept too.")
    expect(number == 5, "hidden_states holds the embeddings and the result of each layer.")
    wrong = {
        (3, 5, 16): "This is the shape of a hidden state; attention weights are token by token.",
        (3, 8, 5, 2): "This is the shape of a query or key; the weights are (B, A, S, S).",
        (4, 3, 8, 5, 5): "These are the weights of all layers stacked; attentions[0] is one layer's.",
        (8, 5, 5): "Where are the three texts? The batch comes first.",
        (3, 5, 5): "Each head has weights of its own: put the heads after the batch.",
        (8, 3, 5, 5): "Batch first, then heads.",
        (3, 4, 5, 5): "The second size is the number of heads, not of layers.",
        (3, 16, 5, 5): "The second size is the number of heads, not H.",
    }
    expect(shape not in wrong, wrong.get(shape, ""))
    expect(shape == (3, 8, 5, 5), "For each text and head, one weight for each pair of tokens: (B, A, S, S).")
    return ""


@exercise("6.3")
def rename_distilbert(answer):
    """A DistilBERT weight's name under our names."""
    expect_function(answer)
    tables = ("word_embeddings.weight", "position_embeddings.weight")
    wanted = {f"embeddings.{name}": f"embeddings.{name}" for name in tables}
    wanted |= {f"embeddings.LayerNorm.{kind}": f"embeddings.layer_norm.{kind}" for kind in ("weight", "bias")}
    for layer in (0, 1, 11):
        for theirs, ours in DISTILBERT_LAYER.items():
            for kind in ("weight", "bias"):
                wanted[f"transformer.layer.{layer}.{theirs}.{kind}"] = f"layers.{layer}.{ours}.{kind}"
    homes = set(wanted.values())
    for theirs, ours in wanted.items():
        name = answer(theirs)
        expect(
            isinstance(name, str),
            f"It should return a string, but it returns something of type {type(name).__name__}.",
        )
        expect(name == ours or name != theirs, f"{theirs} is returned unchanged.")
        expect(name == ours or name not in homes, f"{theirs} became {name}, which is another weight's place.")
        expect(name == ours, f"{theirs} became {name}, and our encoder has no such weight.")
    return "DistilBERT's weights fit our encoder; only token types are missing, which it does without."


@exercise("6.4")
def layer_loop(answer):
    """All hidden states of a stack, the input first."""
    expect_function(answer)
    encoder, generator = toy_encoder(), torch.Generator().manual_seed(1)
    start = torch.randn(2, 5, 8, generator=generator)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.no_grad():
        states = answer(encoder.layers, start.clone(), mask)
        wanted, unmasked, parallel, backwards = [start], [start], [start], [start]
        for layer, other in zip(encoder.layers, reversed(encoder.layers), strict=True):
            wanted.append(call(layer, wanted[-1], mask)[0])
            unmasked.append(layer(unmasked[-1])[0])
            parallel.append(layer(start, mask)[0])
            backwards.append(other(backwards[-1], mask)[0])
    expect(
        isinstance(states, (tuple, list)) or getattr(states, "shape", ()) == (4, 2, 5, 8),
        "Return all hidden states as a list or tuple, not the last one alone.",
    )
    states = list(states)
    pairs = any(isinstance(state, (tuple, list)) for state in states)
    expect(not pairs, "A layer returns a pair, hidden states and weights: keep the first of it.")
    if len(states) == len(wanted) - 1:
        first_kept = close(states[0], start)
        missing = "The last layer's result is missing." if first_kept else "The input belongs in front."
        raise Hint(f"There are {len(states)} states for 3 layers. {missing}")
    expect(len(states) == len(wanted), f"3 layers give 4 hidden states, but you return {len(states)}.")
    hints = {
        "Padding is not masked: give the attention mask to every layer.": unmasked,
        "Every layer got the embeddings: give each what the one before returned.": parallel,
        "The layers ran from the last to the first.": backwards,
        "The order is turned: the input comes first, the last layer's result last.": wanted[::-1],
    }
    tensors = [expect_tensor(state, (2, 5, 8), f"State {number}") for number, state in enumerate(states)]
    for hint, wrong in hints.items():
        expect(not all(map(close, tensors, wrong)), hint)
    for number, (state, right) in enumerate(zip(tensors, wanted, strict=True)):
        place = (
            "The first state is not the input"
            if number == 0
            else f"The state after layer {number - 1} is off"
        )
        expect(
            close(state, right), f"{place}: call each layer on what the one before returned, with the mask."
        )
    return ""


@exercise("6.5")
def thaw_last_layers(answer):
    """All frozen but the last layers; returns the number of trainable parameters."""
    expect_function(answer)
    for number in (1, 2, 3, 0):
        encoder = toy_encoder()
        layer_size = sum(parameter.numel() for parameter in encoder.layers[0].parameters())
        result = answer(encoder, number)
        learning = [all(p.requires_grad for p in layer.parameters()) for layer in encoder.layers]
        frozen = [not any(p.requires_grad for p in layer.parameters()) for layer in encoder.layers]
        tables = any(parameter.requires_grad for parameter in encoder.embeddings.parameters())
        expect(not tables, "The embeddings can still learn: freeze them too.")
        if number == 0:
            expect(all(frozen), "With number = 0 nothing should learn: layers[-0:] is every layer.")
        check_thawed(learning, frozen, number)
        count = as_number(result, "What it returns")
        expect(count != 16 * number or number == 0, "It counts tensors: add up their numbers with numel().")
        total = sum(parameter.numel() for parameter in encoder.parameters())
        expect(count not in (total, total - number * layer_size), "Count what can learn, and nothing else.")
        hint = (
            f"With number = {number} it returns {count:.0f}, but {number * layer_size} parameters can learn."
        )
        expect(count == number * layer_size, hint)
    return ""


def check_thawed(learning: list[bool], frozen: list[bool], number: int) -> None:
    """Raise `Hint` unless the last `number` layers can learn and the others cannot."""
    expected = [layer >= len(learning) - number for layer in range(len(learning))]
    expect(
        number == 0 or not all(frozen), "Every layer is frozen: set requires_grad of the last ones to True."
    )
    expect(
        number == len(learning) or not all(learning),
        "Every layer can learn: freeze the whole encoder first, with requires_grad_(False).",
    )
    hint = f"With number = {number} the wrong layers can learn: it should be the last ones, and only them."
    expect(learning == expected and frozen == [not learns for learns in expected], hint)
