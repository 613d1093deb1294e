"""Checks for the exercises of notebook 05."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache, partial
from unittest import mock

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exercises.arrays import expect_trainable
from exercises.attention import official_model
from exercises.comparison import compare_answer, comparison, copies
from exercises.framework import Hint, as_letter, as_positions, close, compare_stages, exercise, expect, expect_function
from exercises.heads import models
from exercises.mistakes import functions
from exercises.prediction import prediction
from utils.encoder import TransformerEncoder
from utils.encoder_layer import FeedForward, TransformerEncoderLayer  # noqa: F401 - in tables
from utils.support.checkpoint import load_tokenizer


class Mixing(nn.Sequential):
    """A sublayer in which each token reads all tokens of its text, as in attention."""

    def forward(self, stream: Tensor) -> Tensor:
        """Return the change of a stream (…, S, H)."""
        return super().forward(stream + stream.mean(dim=-2, keepdim=True))


def stream_inputs(*shape: int) -> tuple:
    """Return a stream, a sublayer and a LayerNorm with a random gain and shift."""
    size = shape[-1]
    norm = nn.LayerNorm(size)
    nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)
    return torch.randn(shape) * 3 + 1, Mixing(nn.Linear(size, size), nn.Tanh()), norm


comparison(
    "5.1",
    "x, f, norm",
    "norm(x + f(x))",
    """
    norm(f(x)) | The residual connection is missing: add the stream to what the sublayer made.
    x + norm(f(x)) | Only the change is normalised: LayerNorm has to see the sum, stream + change.
    x + f(x) | LayerNorm is missing: the sum has to be normalised.
    x + f(norm(x)) | LayerNorm comes before the sublayer here. Normalise the sum, and nothing else.
    norm(x + f(norm(x))) | LayerNorm also comes before the sublayer here. The sublayer reads the stream as it is.
    norm(norm(x) + f(x)) | The stream is normalised before the sum. Add the stream as it is.
    norm(x - f(x)) | The change is added to the stream, not subtracted.
    norm(f(x) - x) | The stream is added to the change, not subtracted.
    norm(x * f(x)) | The change is added to the stream, not multiplied.
    norm(norm(x + f(x))) | The sum is normalised twice: once is enough.
    F.layer_norm(x + f(x), x.shape[-1:]) | This is a new LayerNorm. Call the argument `norm`, which has a learned weight
        and bias.
    norm(x + torch.stack([f(token[..., None, :])[..., 0, :] for token in x.unbind(-2)], dim=-2))
    norm(x + torch.stack([f(token) for token in x.unbind(-2)], dim=-2)) | The sublayer gets one token at a time here.
        Call it once, on the whole stream: in attention a token reads the others.
    norm(2 * x + f(x)) | Add stream and change first, then apply LayerNorm.
    """,
    inputs=stream_inputs,
    sizes={f"a stream of the shape {shape}": shape for shape in ((2, 3, 8), (5, 6), (3, 1, 5))},
    later="It is LN(x + f(x)).",
    remark="Both halves of BERT's layer are this step.",
    points=1,
)

comparison(
    "5.2",
    "x",
    "F.gelu(x)",
    """
    x.relu() | This is ReLU, which has a corner at 0. GELU is smooth there.
    F.gelu(x, approximate="tanh") | This is the tanh form, off by up to 0.0005: use torch.erf.
    x * torch.sigmoid(1.702 * x) | This is the approximation with a sigmoid: use torch.erf.
    F.silu(x) | This is SiLU: the sigmoid is not the normal distribution's share below x.
    x / 2 * (1 + torch.erf(x)) | Divide by √2 inside erf: it is defined for a variance of 1/2.
    x / 2 * (1 + torch.erf(x / 2)) | Inside erf, divide by √2, not by 2.
    x / 2 * (1 + torch.erf(x / 1.41)) | √2 needs more digits than 1.41: write 2**0.5.
    x / 2 * (1 + torch.erf(x / 1.414)) | √2 needs more digits than 1.414: write 2**0.5.
    (1 + torch.erf(x / 2**0.5)) / 2 | This is Φ(x), the share below x. Multiply it by x.
    x * (1 + torch.erf(x / 2**0.5)) | Twice too large: Φ(x) is half of 1 + erf.
    x / 2 * torch.erf(x / 2**0.5) | The 1 in 1 + erf(…) is missing.
    x.tanh() | GELU is x times Φ(x), the share of the normal distribution below x.
    """,
    inputs=lambda x: (x,),
    sizes={
        "the shape (2, 3, 5)": (torch.linspace(-4, 4, 30).view(2, 3, 5),),
        "the shape (3,)": (torch.tensor([-2.0, 0.3, 9.0]),),
        "a single number, of the shape ()": (torch.tensor(2.0),),
        "a single negative number": (torch.tensor(-2.0),),
    },
    later="GELU(x) is x · Φ(x), and Φ(x) = (1 + erf(x / √2)) / 2.",
    forbidden=("This calls torch's own GELU. Write it with torch.erf.", "gelu"),
    points=1,
)


class Network(nn.Module):
    """What the reader's forward gets: the parts of a feed-forward network, without a forward of its own."""

    def __init__(self, hidden_size: int, width: int, activation: type):
        super().__init__()
        self.intermediate, self.output = nn.Linear(hidden_size, width), nn.Linear(width, hidden_size)
        self.activation = activation()


comparison(
    "5.3",
    "net, x",
    "FeedForward.forward(net, x)",
    """
    net.output(x) | The sizes do not fit: first self.intermediate, H to I, then self.output, I to H.
    net.activation(net.intermediate(x)) | These are the I numbers in the middle. Map them back to H with self.output.
    net.output(net.intermediate(x)) | The activation is missing. Without it, two matrices do no more than one.
    net.activation(net.output(net.intermediate(x))) | The activation is at the end. It belongs between the two layers.
    net.activation(FeedForward.forward(net, x)) | There is a second activation at the end. Apply it only to the numbers
        in the middle.
    net.output(net.intermediate(net.activation(x))) | The activation is at the beginning. It belongs between the two
        layers.
    x + FeedForward.forward(net, x) | This adds the input. The network returns only the change, and the layer adds it.
    net.output(F.gelu(net.intermediate(x))) | This calls GELU by name. The configuration may choose another activation,
        so call self.activation.
    F.linear(net.activation(net.intermediate(x)), net.output.weight) | The bias of self.output is missing. Call
        self.output(…), which adds it.
    net.output(net.activation(F.linear(x, net.intermediate.weight))) | The bias of self.intermediate is missing. Call
        self.intermediate(…), which adds it.
    F.linear(net.activation(F.linear(x, net.intermediate.weight)), net.output.weight) | Both biases are missing. Call
        self.intermediate(…) and self.output(…), which add them.
    net.output(net.intermediate(x).relu()) | Apply self.intermediate, then self.activation, then self.output.
    """,
    inputs=lambda H, width, activation: (Network(H, width, activation), 2 * torch.randn(2, 3, H)),
    sizes={
        "H = 6, I = 10 and GELU": (6, 10, nn.GELU),
        "H = 4, I = 7 and ReLU": (4, 7, nn.ReLU),
        "H = 5, I = 20 and tanh": (5, 20, nn.Tanh),
    },
    remark="Wide, activated, and narrow again.",
    points=1,
    part="feed_forward",
)

prediction(
    "5.4",
    [partial(as_positions, count=6)] * 2,
    """
    = [3]
    [0, 1, 2, 3, 4, 5] | The feed-forward network is applied to each position alone: does position 0 read position 3 in
        it?
    [4] | Positions count from 0 here, so position 3 is the fourth token.
    [2] | For the feed-forward network: which positions read position 3?
    = [0, 1, 2, 3, 4, 5]
    [3] | A whole layer contains attention, in which every position reads every other one.
    [1, 2, 3, 4, 5, 6] | Six positions that count from 0 end with 5.
    [0, 1, 2, 4, 5] | Position 3 itself changes, too: it reads itself, and the residual connection carries it on.
    [3, 4, 5] | Earlier positions look at later ones, too, because an encoder has no causal mask.
    [0, 1, 2, 3, 4] | For the layer: which positions attend to position 3?
    """,
    ask="Give two lists: (feed-forward, whole layer).",
    remark="Information moves between tokens in attention only.",
)


def a_layer(residual=(1, 1), norms=("attention_norm", "feed_forward_norm"), reads="middle") -> Callable:
    """Return a layer's forward that can go wrong in each of its places."""

    def forward(layer, states, mask):
        first, second = (getattr(layer, name) if name else lambda x: x for name in norms)
        middle = first(residual[0] * states + layer.attention(states, mask)[0])
        start = states if reads == "adds to the input" else middle
        return second(residual[1] * start + layer.feed_forward(states if reads == "input" else middle))

    return with_weights(forward)


def with_weights(new_states: Callable) -> Callable:
    """Return the forward that returns attention's weights with the states that a function gives."""
    return lambda layer, states, mask=None: (new_states(layer, states, mask), layer.attention(states, mask, True)[1])


def pre_ln(layer, states, mask):
    """Return the layer of Xiong et al. 2020."""
    states = states + layer.attention(layer.attention_norm(states), mask)[0]
    return states + layer.feed_forward(layer.feed_forward_norm(states))


WRONG_LAYERS = [
    (hint, lambda *given, change=change: change(*given)[0])
    for hint, change in functions(
        "5.5",
        "layer, states, mask=None",
        """
        with_weights(pre_ln)(layer, states, mask) | This is pre-LN, and BERT is post-LN: normalise after each sum.
        a_layer(residual=(0, 1))(layer, states, mask) | The residual connection around attention is missing.
        a_layer(residual=(1, 0))(layer, states, mask) | The residual connection around the feed-forward network is
            missing.
        a_layer(residual=(0, 0))(layer, states, mask) | Both residual connections are missing.
        a_layer(norms=(None, None))(layer, states, mask) | Both LayerNorms are missing.
        a_layer(norms=(None, "feed_forward_norm"))(layer, states, mask) | The LayerNorm after attention is missing:
            self.attention_norm.
        a_layer(norms=("attention_norm", None))(layer, states, mask) | The LayerNorm at the end is missing:
            self.feed_forward_norm.
        a_layer(norms=("feed_forward_norm", "attention_norm"))(layer, states, mask) | The two LayerNorms are swapped.
        a_layer(norms=("attention_norm", "attention_norm"))(layer, states, mask) | The same LayerNorm is used twice. The
            second one is self.feed_forward_norm.
        a_layer(reads="input")(layer, states, mask) | The feed-forward network has to read the stream after attention.
        a_layer(reads="adds to the input")(layer, states, mask) | Add the network's change to what it read, not to the
            layer's input.
        with_weights(lambda layer, x, m: layer.attention_norm(x + layer.attention(x, m)[0]))(layer, states, mask) |
            This is only the attention half. The feed-forward network is missing.
        with_weights(lambda layer, x, mask: layer.feed_forward_norm(x + layer.feed_forward(x)))(layer, states, mask) |
            Attention is missing.
        (states + layer.attention(states, mask), None) | self.attention returns a pair, its output and the weights.
            Unpack the two.
        (layer.dropout(layer.attention(states, mask)), None) | self.attention returns a pair, its output and the
            weights. Use the first of them.
        """,
        globals(),
    )
]
LAYERS = {"the pretrained layers": (), "H = 18 and 3 heads": (18, 3), "H = 20 and 5 heads": (20, 5)}


@exercise("5.5", points=3, sizes=LAYERS, part="encoder_layer")
def write_the_layer(answer, hidden_size: int = 0, num_heads: int = 0):
    """Check that the answer is a post-LN layer's forward that agrees with all official layers."""
    expect_function(answer)
    answer = states_of(answer)
    # an answer may alter them
    layers, single, batch, mask = deepcopy(official_layers(hidden_size, num_heads))
    first = layers[0], single[0], torch.ones(single[0].shape[:2], dtype=torch.long)
    with torch.no_grad():
        compare_answer(without_the_finished_layer(answer), right_layer, first, WRONG_LAYERS)
        hints = {
            "layer 0, padded batch": "Pass attention_mask to self.attention, so that padding is not read.",
            "all layers in a row": "Each layer was right on its own. Does yours remember anything between calls?",
            "in training, with dropout": "Apply dropout to the outputs of attention and the feed-forward network, "
            "each time before the sum: self.dropout(…).",
        }
        compare_stages(layer_stages(answer, layers, single, batch, mask), hints)
    expect_trainable(answer, right_layer, *first)
    return f"It equals all {len(layers)} pretrained layers, and drops where BERT drops."


def right_layer(layer, states, mask):
    """Return the new hidden states alone."""
    return layer(states, mask)[0]


@cache
def official_layers(hidden_size: int, num_heads: int) -> tuple[nn.ModuleList, tuple[Tensor, ...], tuple, Tensor]:
    """Return an official model's layers, its hidden states of a sentence and of a batch, and the mask."""
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
    """Return the reader's forward without the weights, which are checked."""

    def forward(layer, states, mask):
        result = answer(layer, states, mask)
        pair = isinstance(result, (tuple, list)) and len(result) == 2
        expect(pair, "Return two things: the new hidden states, and the attention weights.")
        states, weights = result
        asked = "The attention weights are None. self.attention returns them if its third argument is True."
        expect(weights is not None, asked)
        swapped = getattr(states, "ndim", 0) == 4
        expect(not swapped, "The two are swapped: the new hidden states (B, S, H) come first, then the weights.")
        expect(getattr(weights, "ndim", 0) == 4, "The attention weights, returned second, are (B, A, S, S).")
        return states

    return forward


def layer_stages(answer: Callable, layers, single, batch, mask) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield (name, the reader's tensor, the official one): each layer, all in a row, and in training."""
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
    drops = []
    hook = training.dropout.register_forward_hook(lambda *_: drops.append(1))
    found = of_real(answer(training, batch[0].clone(), mask), real)
    hook.remove()
    expect(
        len(drops) < 3 or close(found, wanted, 1e-4),
        f"self.dropout runs {len(drops)} times in one layer, but BERT drops twice. Is the first half computed again? "
        "Store its result.",
    )
    yield "in training, with dropout", found, wanted


def of_real(states, real: Tensor) -> Tensor:
    """Return the vectors at real positions; a `Hint` for anything but hidden states (B, S, H)."""
    expect(getattr(states, "shape", ())[:2] == real.shape, "Return hidden states of the input's shape, (B, S, H).")
    return states[real]


def without_the_finished_layer(answer: Callable) -> Callable:
    """Return the answer, but raise `Hint` if it calls our layer or two calls give different results."""

    def forward(*given):
        with mock.patch.object(TransformerEncoderLayer, "forward", refuse):
            again, result = answer(*copies(given)), answer(*given)
        expect(
            close(result, again),
            "Your function drops values in evaluation mode, as F.dropout does by default. Use self.dropout(…).",
        )
        return result

    return forward


def refuse(*arguments, **options):
    """Raise `Hint` in place of the finished forward."""
    raise Hint("This calls the finished layer. Write what it does, with its parts.")


FRAMES = "we saw the {} yesterday", "they talk about a {} in this place"


@exercise("5.6", points=1)
def words_that_break_our_title(answer):
    """Check words of which fewer than 95 % are read back from attention's change alone, and what survives."""
    try:
        words, title = answer
        words = [word.strip() for word in words]
    except (TypeError, ValueError, AttributeError):
        raise Hint("Give two things: a list of words, and the letter of a title.") from None
    vocabulary = models()[1].vocab
    unknown = [word for word in words if word not in vocabulary or not word.isalnum()]
    expect(not unknown, f"{', '.join(unknown[:3])}: take words that are one token. The list `whole` has them.")
    expect(len(set(words)) == len(words), "A word appears twice in your list, so its neighbour may be itself.")
    expect(100 <= len(words) <= 5000, f"Give 100 to 5,000 words, not {len(words)}.")
    share = share_read_back(words)
    found = f"Of your {len(words):,} words, {share:.1%} are read back from the change alone."
    expect(share < 0.95, f"{found} Find words of which fewer than 95 % are. Which did our 200 leave out?")
    title = as_letter(title, "abc")
    expect(title != "b", "Title b falls with the most frequent words: try whole[:1000].")
    expect(title == "a", "Title c falls with our 200 words, which are rarer: all are read back.")
    return f"{found} What was counted is true; the claim about every word was not."


@torch.inference_mode()
def share_read_back(words: list[str]) -> float:
    """Return the share of words that are nearest to themselves in another sentence, by layer 0's change alone."""
    encoder, tokenizer = models()
    changes = []
    for frame in FRAMES:
        rows = [tokenizer.encode(frame.format(word)) for word in words]
        place, attention = frame.split().index("{}") + 1, encoder.layers[0].attention
        found = [attention(encoder.embeddings(ids))[0][:, place] for ids in torch.tensor(rows).split(500)]
        changes.append(torch.cat(found))
    here, there = (F.normalize(each - each.mean(dim=0), dim=-1) for each in changes)
    return ((here @ there.T).argmax(dim=-1) == torch.arange(len(words))).float().mean().item()
