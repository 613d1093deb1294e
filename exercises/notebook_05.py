"""Checks for the exercises of notebook 05."""

import contextlib
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
    as_number,
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

NUMBERS = {
    "the shape (2, 3, 5)": (torch.linspace(-4, 4, 30).view(2, 3, 5),),
    "the shape (3,)": (torch.tensor([-2.0, 0.3, 9.0]),),
    "a single number, of the shape ()": (torch.tensor(2.0),),
    "a single negative number": (torch.tensor(-2.0),),
}


@exercise("5.1", points=2, sizes=NUMBERS)
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


@exercise("5.2")
def who_notices(answer):
    """The answer is a pair of position lists: what changes after a FeedForward and after a whole layer."""
    expect(
        isinstance(answer, (tuple, list)) and len(answer) == 2, "Give two lists: (feed-forward, whole layer)."
    )
    network, layer = (as_positions(positions, 6) for positions in answer)
    expect(
        network != list(range(6)),
        "The feed-forward network is applied to each position alone: does position 0 read position 3 in it?",
    )
    expect(network != [4], "Positions count from 0 here, so position 3 is the fourth token.")
    expect(network == [3], "For the feed-forward network: which positions read position 3?")
    expect(layer != [3], "A whole layer has attention in it, and there every position reads every other one.")
    expect(layer != list(range(1, 7)), "Six positions that count from 0 end with 5.")
    expect(
        layer != [0, 1, 2, 4, 5], "Position 3 itself changes too: it reads itself, and is carried on as well."
    )
    expect(layer != [3, 4, 5], "Earlier positions look at later ones too: an encoder has no causal mask.")
    expect(layer == list(range(6)), "For the layer: which positions attend to position 3?")
    return "Information moves between tokens in attention only."


LAYERS = {"the pretrained layers": (), "H = 18 and 3 heads": (18, 3), "H = 20 and 5 heads": (20, 5)}


@exercise("5.3", points=2, sizes=LAYERS)
def write_the_layer(answer, hidden_size: int = 0, num_heads: int = 0):
    """The answer is a post-LN layer's forward, written with the parts of a layer; it climbs the official layers."""
    expect_function(answer)
    layers, single, batch, mask = deepcopy(
        official_layers(hidden_size, num_heads)
    )  # an answer may alter them
    with torch.no_grad():
        name_the_mistake(answer, layers[0], single[0])
        hints = {
            "layer 0, padded batch": "Hand the attention_mask to attention: padding must not be read.",
            "all layers in a row": "Each layer alone was right: does yours remember anything between calls?",
            "in training, with dropout": "Dropout belongs on what attention and feed-forward network add, "
            "each time before the sum: layer.dropout(…).",
        }
        climb(rungs(answer, layers, single, batch, mask), hints)
    states = single[0].clone().requires_grad_()
    ones = torch.ones(states.shape[:2], dtype=torch.long)
    sources = [states, *layers[0].parameters()]
    expect_gradients(answer(layers[0], states, ones), layers[0](states, ones)[0], sources, CUT_OFF)
    return f"It equals all {len(layers)} pretrained layers, and drops where BERT drops."


@cache
def official_layers(
    hidden_size: int, num_heads: int
) -> tuple[nn.ModuleList, tuple[Tensor, ...], tuple, Tensor]:
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
    expect(
        getattr(states, "shape", ())[:2] == real.shape,
        "Return hidden states of the input's shape, (B, S, H).",
    )
    return states[real]


def name_the_mistake(answer: Callable, layer: nn.Module, states: Tensor) -> None:
    """Raise a `Hint` that names it if the answer is one of the usual wrong layers."""
    given, mask = states.clone(), torch.ones(states.shape[:2], dtype=torch.long)
    with mock.patch.object(TransformerEncoderLayer, "forward", refuse):
        try:
            result, again = answer(layer, given, mask), answer(layer, states.clone(), mask)
        except TypeError as error:
            pair = "layer.attention returns a pair, what it adds and the weights: go on with the first of it"
            expect("tuple" not in str(error), f"{pair} ({error}).")
            raise
    expect(
        not isinstance(result, (tuple, list)),
        "It returns several things: return the new hidden states alone.",
    )
    result = expect_tensor(result, states.shape, "The new hidden states")
    expect(
        close(result, again),
        "It drops in evaluation mode too, as F.dropout does unless told otherwise: use layer.dropout(…).",
    )
    expect(
        torch.equal(given, states), "It writes into the hidden states it was given: use x + …, not x += …."
    )
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
        "The LayerNorm after attention is missing: layer.attention_norm.": norm2(summed + network(summed)),
        "The LayerNorm at the end is missing: layer.feed_forward_norm.": middle + network(middle),
        "The two LayerNorms have changed places.": norm1(swapped + network(swapped)),
        "The same LayerNorm stands in both places: the second one is layer.feed_forward_norm.": again,
        "The feed-forward network has to read what attention made of the stream.": norm2(
            middle + network(states)
        ),
        "Add the network's change to what it read, not to the layer's input.": norm2(
            states + network(middle)
        ),
        "This is attention's half alone: the feed-forward network is missing.": middle,
        "Attention is missing.": norm2(states + network(states)),
    }
    for hint, values in wrong.items():
        expect(not close(result, values, 1e-4), hint)


def refuse(*arguments, **options):
    """What stands in the place of the finished forward: a `Hint`."""
    raise Hint("This calls the finished layer: write what it does, with its parts.")


@exercise("5.4")
def parameters_of_a_layer(answer):
    """The answer is the number of parameters of one bert-base layer."""
    H, A, width = 768, 12, 3072
    attention, network, norms = 4 * (H * H + H), (H * width + width) + (width * H + H), 2 * 2 * H
    biases = 4 * H + width + H + 2 * H  # the LayerNorms' biases too
    wrong = {
        attention + network: "The two LayerNorms are missing: each has a weight and a bias of size H.",
        attention + network + norms // 2: "Almost: there are two LayerNorms, each with a weight and a bias.",
        attention + network + norms - biases: "The biases are missing.",
        attention + network + norms - biases + 2 * H: "The biases of the linear maps are missing.",
        attention + network - biases + 2 * H: "Biases and LayerNorms are missing.",
        A * attention + network + norms: "The heads share the four H × H maps; do not count these 12 times.",
        attention
        + norms
        + H * width
        + width: "The feed-forward network has two maps: the way back is missing.",
        attention - H * H - H + network + norms: "Attention has four maps: query, key, value and output.",
        attention + norms + 2 * H * A + A + H: "The width is I = 3072, not the number of heads.",
        attention: "That is attention alone.",
        network: "That is the feed-forward network alone.",
        12 * (attention + network + norms): "That is twelve layers: count one.",
        1_774_464: "That is a layer of our checkpoint, with H = 384 and I = 1536. bert-base has H = 768, I = 3072.",
    }
    value = as_number(answer, "The count")
    if value in wrong:
        raise Hint(wrong[value])
    expect(
        value == attention + network + norms,
        "Which six linear maps has the layer, and which two LayerNorms? Write down what each holds, and add.",
        "Count 4 maps H → H, one H → I, one I → H, each with a bias as long as its output, and 2 LayerNorms.",
    )
    return "Two thirds of them are in the feed-forward network."


STREAMS = {f"a stream of the shape {shape}": (shape,) for shape in ((2, 3, 8), (5, 6), (3, 1, 5))}


@exercise("5.5", points=2, sizes=STREAMS)
def residual_step(answer, shape: tuple[int, ...]):
    """The answer adds a sublayer's change to the stream, with LayerNorm after it or before the sublayer."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(4)
    size = shape[-1]
    stream = (torch.randn(shape, generator=generator) * 3 + 1).requires_grad_()
    weight, gain, shift = learned = [
        torch.randn(*sizes, generator=generator).requires_grad_()
        for sizes in ((size, size), (size,), (size,))
    ]

    def sublayer(x: Tensor) -> Tensor:
        return torch.tanh(x @ weight)

    def norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (size,), gain, shift)

    post, pre = norm(stream + sublayer(stream)), stream + sublayer(norm(stream))
    given = stream.detach().clone()
    result = expect_tensor(answer(given, sublayer, norm, False), shape, "The post-LN result", stream.dtype)
    normalised = norm(stream)
    expect(
        not close(result, pre),
        "With norm_first=False it is post-LN: normalise the sum. You have pre-LN there.",
    )
    wrong = {
        "The residual connection is missing: add the stream to what the sublayer made.": norm(
            sublayer(stream)
        ),
        "Only the change is normalised: LayerNorm has to see the sum, stream + change.": stream
        + norm(sublayer(stream)),
        "LayerNorm is missing in the post-LN branch.": stream + sublayer(stream),
        "Post-LN normalises once, after the sum: the sublayer reads the stream as it is.": norm(pre),
        "The sum is normalised twice: once is enough.": norm(post),
        "This is a LayerNorm of its own: call the `norm` that is given, which has learned a weight and a bias.": (
            F.layer_norm(stream + sublayer(stream), (size,))
        ),
    }
    for hint, values in wrong.items():
        expect(not close(result, values), hint)
    expect(close(result, post), "In post-LN the sum comes first, then LayerNorm.", "Post-LN is LN(x + f(x)).")
    first = expect_tensor(answer(given, sublayer, norm, True), shape, "The pre-LN result", stream.dtype)
    wrong = {
        "norm_first=True makes no difference in yours: it should give pre-LN.": post,
        "In pre-LN the residual connection is missing: add the stream.": sublayer(normalised),
        "In pre-LN the stream itself stays untouched: only what the sublayer reads is normalised.": normalised
        + sublayer(normalised),
        "In pre-LN LayerNorm stands before the sublayer, and not after the sum again.": norm(pre),
        "In pre-LN LayerNorm comes before the sublayer: f(LN(x)), not LN(f(x)).": stream
        + norm(sublayer(stream)),
        "In pre-LN the stream is normalised twice before the sublayer: once is enough.": stream
        + sublayer(norm(normalised)),
        "In pre-LN, too, call the `norm` that is given, which has learned a weight and a bias.": stream
        + sublayer(F.layer_norm(stream, (size,))),
    }
    for hint, values in wrong.items():
        expect(not close(first, values), hint)
    expect(torch.equal(given, stream), "It writes into the stream it was given: use x + f(x), not x += f(x).")
    unnormalised = (
        "In pre-LN the sublayer reads the normalised stream, and its change is added to the stream."
    )
    expect(close(first, pre), unnormalised, "Pre-LN is x + f(LN(x)).")
    with contextlib.suppress(
        TypeError
    ):  # a function that has to be told, norm_first without a default, will do
        unsaid = answer(given, sublayer, norm)
        expect(close(unsaid, post), "Called without norm_first it should be post-LN: the default is False.")
    for norm_first, right in ((False, post), (True, pre)):
        expect_gradients(answer(stream, sublayer, norm, norm_first), right, [stream, *learned], CUT_OFF)
    return "Two lines that decide whether BERT's weights mean anything."
