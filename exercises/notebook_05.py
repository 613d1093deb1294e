"""Checks for the exercises of notebook 05."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exercises import (
    CUT_OFF,
    Hint,
    Without,
    as_positions,
    climb,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
)
from exercises.arrays import expect_trainable
from exercises.attention import official_model
from utils.checkpoint import load_tokenizer
from utils.encoder import TransformerEncoder
from utils.encoder_layer import TransformerEncoderLayer

STREAMS = {f"a stream of the shape {shape}": (shape,) for shape in ((2, 3, 8), (5, 6), (3, 1, 5))}


@exercise("5.1", points=2, sizes=STREAMS)
def residual_step(answer, shape: tuple[int, ...]):
    """The answer adds a sublayer's change to the stream, and normalises the sum."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(4)
    size = shape[-1]
    stream = (torch.randn(shape, generator=generator) * 3 + 1).requires_grad_()
    weight, gain, shift = learned = [
        torch.randn(*sizes, generator=generator).requires_grad_() for sizes in ((size, size), (size,), (size,))
    ]

    def sublayer(x: Tensor) -> Tensor:
        return torch.tanh(x @ weight)

    def norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (size,), gain, shift)

    post, given = norm(stream + sublayer(stream)), stream.detach().clone()
    result = expect_tensor(answer(given, sublayer, norm), shape, dtype=stream.dtype)
    wrong = {
        "The residual connection is missing: add the stream to what the sublayer made.": norm(sublayer(stream)),
        "Only the change is normalised: LayerNorm has to see the sum, stream + change.": stream
        + norm(sublayer(stream)),
        "LayerNorm is missing: the sum has to be normalised.": stream + sublayer(stream),
        "LayerNorm stands before the sublayer: normalise the sum, and nothing else.": stream + sublayer(norm(stream)),
        "LayerNorm stands before the sublayer, too: the sublayer reads the stream as it is.": norm(
            stream + sublayer(norm(stream))
        ),
        "The stream is normalised before the sum: add the stream as it is.": norm(norm(stream) + sublayer(stream)),
        "The sum is normalised twice: once is enough.": norm(post),
        "This is a LayerNorm of its own: call the `norm` that is given, which has learned a weight and a bias.": (
            F.layer_norm(stream + sublayer(stream), (size,))
        ),
    }
    for hint, values in wrong.items():
        expect(not close(result, values), hint)
    expect(close(result, post), "First the sum of stream and change, then LayerNorm.", "It is LN(x + f(x)).")
    expect(torch.equal(given, stream), "It writes into the stream it was given: use x + f(x), not x += f(x).")
    expect_gradients(answer(stream, sublayer, norm), post, [stream, *learned], CUT_OFF)
    return "Both halves of BERT's layer are this step."


NUMBERS = {
    "the shape (2, 3, 5)": (torch.linspace(-4, 4, 30).view(2, 3, 5),),
    "the shape (3,)": (torch.tensor([-2.0, 0.3, 9.0]),),
    "a single number, of the shape ()": (torch.tensor(2.0),),
    "a single negative number": (torch.tensor(-2.0),),
}


@exercise("5.2", points=2, sizes=NUMBERS)
def gelu_by_hand(answer, x: Tensor):
    """The answer is the exact GELU, for a tensor of any shape."""
    expect_function(answer)
    given = x.clone()
    result = expect_tensor(answer(given), x.shape, dtype=x.dtype)
    expect(torch.equal(given, x), "It writes into its input: make a new tensor (x * …, not x *= …).")
    erf = torch.erf(x / 2**0.5)
    wrong = {
        "This is ReLU, with its corner at 0; GELU is smooth there.": x.relu(),
        "This is the tanh form, off by up to 0.0005: use torch.erf.": F.gelu(x, approximate="tanh"),
        "This is the approximation with a sigmoid: use torch.erf.": x * torch.sigmoid(1.702 * x),
        "This is SiLU: the sigmoid is not the normal distribution's share below x.": F.silu(x),
        "Divide by √2 inside erf: it is defined for a variance of 1/2.": x / 2 * (1 + torch.erf(x)),
        "Inside erf, divide by √2, not by 2.": x / 2 * (1 + torch.erf(x / 2)),
        "This is Φ(x), the share below x: multiply it by x.": (1 + erf) / 2,
        "Twice too large: Φ(x) is half of 1 + erf.": x * (1 + erf),
        "The 1 in 1 + erf(…) is missing.": x / 2 * erf,
    }
    for hint, values in wrong.items():
        expect(not close(result, values), hint)
    expect(
        close(result, F.gelu(x)),
        "x times the share Φ(x) of the normal distribution that lies below x.",
        "GELU(x) is x · Φ(x), and Φ(x) = (1 + erf(x / √2)) / 2.",
    )
    with Without("This calls torch's own GELU: write it with torch.erf.", "gelu"):
        answer(given)
    expect_trainable(answer, F.gelu, x)


NETWORKS = {
    "H = 6, I = 10 and GELU": (6, 10, nn.GELU),
    "H = 4, I = 7 and ReLU": (4, 7, nn.ReLU),
    "H = 5, I = 20 and tanh": (5, 20, nn.Tanh),
}


class Network(nn.Module):
    """What the reader's forward gets: the parts of a feed-forward network, without a forward of its own."""

    def __init__(self, hidden_size: int, width: int, activation: type):
        super().__init__()
        self.intermediate, self.output = nn.Linear(hidden_size, width), nn.Linear(width, hidden_size)
        self.activation = activation()


@exercise("5.3", points=3, sizes=NETWORKS, part="feed_forward")
def write_the_network(answer, hidden_size: int, width: int, activation: type):
    """The answer widens each vector, applies the activation, and maps the result back."""
    expect_function(answer)
    network = Network(hidden_size, width, activation)
    states = 2 * torch.randn(2, 3, hidden_size)
    given = states.clone()
    try:
        result = answer(network, given)
    except RuntimeError as error:
        order = f"The sizes do not fit ({error}): first self.intermediate, H to I, then self.output, I to H."
        expect("cannot be multiplied" not in str(error), order)
        raise
    wide = network.intermediate(states)
    shape = tuple(getattr(result, "shape", ()))
    expect(shape != (2, 3, width), "These are the I numbers in the middle: map them back to H with self.output.")
    result = expect_tensor(result, states.shape, dtype=states.dtype)
    expect(torch.equal(given, states), "It writes into the hidden states it was given: work on new tensors.")
    right = network.output(network.activation(wide))
    wrong = {
        "The activation is missing: without it, the two matrices are the same as one.": network.output(wide),
        "The activation stands at the end: it belongs between the two maps.": network.activation(network.output(wide)),
        "There is a second activation at the end: only the numbers in the middle go through it.": network.activation(
            right
        ),
        "The activation stands at the beginning: it belongs between the two maps.": network.output(
            network.intermediate(network.activation(states))
        ),
        "This returns the sum with what came in: the network gives the change alone, and the layer adds it.": states
        + right,
    }
    for hint, values in wrong.items():
        expect(not close(result, values), hint)
    if activation is not nn.GELU:
        named = close(result, network.output(F.gelu(wide)))
        expect(not named, "This calls GELU by its name: the configuration may say another, so call self.activation.")
    expect(close(result, right), "Widen with self.intermediate, then self.activation, then back with self.output.")
    ours = states.clone().requires_grad_()
    expect_gradients(
        answer(network, ours),
        network.output(network.activation(network.intermediate(ours))),
        [ours, *network.parameters()],
        CUT_OFF,
    )
    return "Each token went through it alone."


@exercise("5.4")
def who_notices(answer):
    """The answer is a pair of position lists: what changes after a FeedForward and after a whole layer."""
    expect(isinstance(answer, (tuple, list)) and len(answer) == 2, "Give two lists: (feed-forward, whole layer).")
    network, layer = (as_positions(positions, 6) for positions in answer)
    expect(
        network != list(range(6)),
        "The feed-forward network is applied to each position alone: does position 0 read position 3 in it?",
    )
    expect(network != [4], "Positions count from 0 here, so position 3 is the fourth token.")
    expect(network == [3], "For the feed-forward network: which positions read position 3?")
    expect(layer != [3], "A whole layer has attention in it, and there every position reads every other one.")
    expect(layer != list(range(1, 7)), "Six positions that count from 0 end with 5.")
    expect(layer != [0, 1, 2, 4, 5], "Position 3 itself changes too: it reads itself, and is carried on as well.")
    expect(layer != [3, 4, 5], "Earlier positions look at later ones too: an encoder has no causal mask.")
    expect(layer == list(range(6)), "For the layer: which positions attend to position 3?")
    return "Information moves between tokens in attention only."


LAYERS = {"the pretrained layers": (), "H = 18 and 3 heads": (18, 3), "H = 20 and 5 heads": (20, 5)}


@exercise("5.5", points=3, sizes=LAYERS, part="encoder_layer")
def write_the_layer(answer, hidden_size: int = 0, num_heads: int = 0):
    """The answer is a post-LN layer's forward, written with the parts of a layer; it climbs the official layers."""
    expect_function(answer)
    answer = states_of(answer)
    layers, single, batch, mask = deepcopy(official_layers(hidden_size, num_heads))  # an answer may alter them
    with torch.no_grad():
        name_the_mistake(answer, layers[0], single[0])
        hints = {
            "layer 0, padded batch": "Hand the attention_mask to attention: padding must not be read.",
            "all layers in a row": "Each layer alone was right: does yours remember anything between calls?",
            "in training, with dropout": "Dropout belongs on what attention and feed-forward network add, "
            "each time before the sum: self.dropout(…).",
        }
        climb(rungs(answer, layers, single, batch, mask), hints)
    states = single[0].clone().requires_grad_()
    ones = torch.ones(states.shape[:2], dtype=torch.long)
    sources = [states, *layers[0].parameters()]
    expect_gradients(answer(layers[0], states, ones), layers[0](states, ones)[0], sources, CUT_OFF)
    return f"It equals all {len(layers)} pretrained layers, and drops where BERT drops."


@cache
def official_layers(hidden_size: int, num_heads: int) -> tuple[nn.ModuleList, tuple[Tensor, ...], tuple, Tensor]:
    """An official model's layers, its hidden states of one sentence and of a padded batch, and the batch's mask."""
    reference, tokenizer = official_model(hidden_size, num_heads), load_tokenizer()
    texts = ["the bark of a palm tree is very rough", "time flies", "I got his answering machine."]
    single = tokenizer(texts[:1], return_tensors="pt")
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    for inputs in (single, batch):
        inputs["input_ids"] %= reference.config.vocab_size
    encoder = TransformerEncoder(reference.config)
    encoder.load_bert_weights(reference.state_dict())
    with torch.no_grad():
        states = [reference(**inputs, output_hidden_states=True).hidden_states for inputs in (single, batch)]
    return encoder.eval().layers, *states, batch["attention_mask"]


def states_of(answer: Callable) -> Callable:
    """The reader's forward with the new hidden states alone, once it has returned a pair whose weights are right."""

    def forward(layer, states, mask):
        result = answer(layer, states, mask)
        pair = isinstance(result, (tuple, list)) and len(result) == 2
        expect(pair, "Return two things: the new hidden states, and the attention weights.")
        states, weights = result
        asked = "The attention weights are None: attention gives them if it is asked, with True as its third argument."
        expect(weights is not None, asked)
        swapped = getattr(states, "ndim", 0) == 4
        expect(not swapped, "The two are exchanged: first the new hidden states (B, S, H), then the weights.")
        expect(getattr(weights, "ndim", 0) == 4, "The attention weights, returned second, are (B, A, S, S).")
        return states

    return forward


def rungs(answer: Callable, layers, single, batch, mask) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Name, the reader's tensor and the official one: layer by layer, then all in a row, then in training."""
    real = mask.bool()
    ones = torch.ones(single[0].shape[:2], dtype=torch.long)
    yield "layer 0, one sentence", answer(layers[0], single[0].clone(), ones), single[1]
    for number, layer in enumerate(layers):
        name = f"layer {number}" + ", padded batch" * (number == 0)
        yield name, of_real(answer(layer, batch[number].clone(), mask), real), batch[number + 1][real]
    stream = batch[0]
    for layer in layers:
        stream = answer(layer, stream, mask)
    yield "all layers in a row", of_real(stream, real), batch[-1][real]
    training = deepcopy(layers[0]).train()
    training.dropout.p, training.attention.dropout_p = 0.5, 0.0
    torch.manual_seed(5)
    wanted = training(batch[0], mask)[0][real]
    torch.manual_seed(5)
    yield "in training, with dropout", of_real(answer(training, batch[0].clone(), mask), real), wanted


def of_real(states, real: Tensor) -> Tensor:
    """The vectors at real positions; a `Hint` for anything but hidden states (B, S, H)."""
    expect(getattr(states, "shape", ())[:2] == real.shape, "Return hidden states of the input's shape, (B, S, H).")
    return states[real]


def name_the_mistake(answer: Callable, layer: nn.Module, states: Tensor) -> None:
    """Raise a `Hint` that names it if the answer is one of the usual wrong layers."""
    given, mask = states.clone(), torch.ones(states.shape[:2], dtype=torch.long)
    with mock.patch.object(TransformerEncoderLayer, "forward", refuse):
        try:
            result, again = answer(layer, given, mask), answer(layer, states.clone(), mask)
        except TypeError as error:
            pair = "self.attention returns a pair, what it adds and the weights: take the two apart"
            expect("tuple" not in str(error), f"{pair} ({error}).")
            raise
    result = expect_tensor(result, states.shape, "The new hidden states")
    expect(
        close(result, again),
        "It drops in evaluation mode too, as F.dropout does unless told otherwise: use self.dropout(…).",
    )
    expect(torch.equal(given, states), "It writes into the hidden states it was given: use x + …, not x += ….")
    attend, norm1, network, norm2 = (
        lambda x: layer.attention(x, mask)[0],
        layer.attention_norm,
        layer.feed_forward,
        layer.feed_forward_norm,
    )
    attended = attend(states)
    middle = norm1(states + attended)
    before, summed = states + attend(norm1(states)), states + attended
    bare, swapped, again = norm1(attended), norm2(states + attended), norm1(middle + network(middle))
    wrong = {
        "This is pre-LN, and BERT is post-LN: normalise after each sum.": before + network(norm2(before)),
        "The residual connection around attention is missing.": norm2(bare + network(bare)),
        "The residual connection around the feed-forward network is missing.": norm2(network(middle)),
        "Both residual connections are missing.": norm2(network(bare)),
        "Both LayerNorms are missing.": summed + network(summed),
        "The LayerNorm after attention is missing: self.attention_norm.": norm2(summed + network(summed)),
        "The LayerNorm at the end is missing: self.feed_forward_norm.": middle + network(middle),
        "The two LayerNorms have changed places.": norm1(swapped + network(swapped)),
        "The same LayerNorm stands in both places: the second one is self.feed_forward_norm.": again,
        "The feed-forward network has to read what attention made of the stream.": norm2(middle + network(states)),
        "Add the network's change to what it read, not to the layer's input.": norm2(states + network(middle)),
        "This is attention's half alone: the feed-forward network is missing.": middle,
        "Attention is missing.": norm2(states + network(states)),
    }
    for hint, values in wrong.items():
        expect(not close(result, values, 1e-4), hint)


def refuse(*arguments, **options):
    """What stands in the place of the finished forward: a `Hint`."""
    raise Hint("This calls the finished layer: write what it does, with its parts.")
