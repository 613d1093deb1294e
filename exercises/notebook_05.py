"""Checks for the exercises of notebook 05."""

import torch
from torch import Tensor
from torch.nn import functional as F

from exercises import Hint, close, exercise, expect, expect_tensor


@exercise("5.1")
def who_notices(answer):
    """The answer is a pair of position lists: what changes after a FeedForward and after a whole layer."""
    expect(
        isinstance(answer, (tuple, list)) and len(answer) == 2, "Give two lists: (feed-forward, whole layer)."
    )
    network, layer = (as_positions(positions) for positions in answer)
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


def as_positions(value) -> list[int]:
    """Positions given as a list, tuple, set, range, array, tensor or one number, in order; else a `Hint`."""
    try:
        values = value.tolist() if hasattr(value, "tolist") else value
        values = [values] if isinstance(values, (int, float)) else list(values)
        return sorted({int(position) for position in values})
    except (TypeError, ValueError):
        raise Hint(f"Write the positions as a list of numbers such as [0, 1], not {value!r}.") from None


@exercise("5.2")
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
    }
    value = answer.item() if hasattr(answer, "item") else answer
    expect(
        isinstance(value, (int, float)), f"Give one whole number, not {value!r} (a {type(value).__name__})."
    )
    if value in wrong:
        raise Hint(wrong[value])
    expect(
        value == attention + network + norms,
        "Count 4 maps H → H, one H → I, one I → H, each with a bias as long as its output, and 2 LayerNorms.",
    )
    return "Two thirds of them are in the feed-forward network."


@exercise("5.3")
def gelu_by_hand(answer):
    """The answer is the exact GELU, for a tensor of any shape."""
    x = torch.linspace(-4, 4, 30).view(2, 3, 5)
    result = expect_tensor(answer(x.clone()), (2, 3, 5))
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
    expect(close(result, F.gelu(x)), "GELU(x) is x · Φ(x), and Φ(x) = (1 + erf(x / √2)) / 2.")


@exercise("5.4")
def residual_step(answer):
    """The answer adds a sublayer's change to the stream, with LayerNorm after it or before the sublayer."""
    generator = torch.Generator().manual_seed(4)
    stream = torch.randn(2, 3, 8, generator=generator) * 3 + 1
    weight = torch.randn(8, 8, generator=generator)

    def sublayer(x: Tensor) -> Tensor:
        return torch.tanh(x @ weight)

    def norm(x: Tensor) -> Tensor:
        return F.layer_norm(x, (8,))

    post, pre = norm(stream + sublayer(stream)), stream + sublayer(norm(stream))
    without = answer(stream.clone(), sublayer, norm)
    result = expect_tensor(without, (2, 3, 8), "The post-LN result")
    normalised = norm(stream)
    expect(
        not close(result, pre), "Without norm_first it is post-LN: normalise the sum. You have pre-LN there."
    )
    wrong = {
        "The residual connection is missing: add the stream to what the sublayer made.": norm(
            sublayer(stream)
        ),
        "Only the change is normalised: LayerNorm has to see the sum, stream + change.": stream
        + norm(sublayer(stream)),
        "LayerNorm is missing in the post-LN branch.": stream + sublayer(stream),
        "Post-LN normalises once, after the sum: the sublayer reads the stream as it is.": norm(pre),
    }
    for hint, values in wrong.items():
        expect(not close(result, values), hint)
    expect(close(result, post), "Post-LN is LN(x + f(x)).")
    first = expect_tensor(
        answer(stream.clone(), sublayer, norm, norm_first=True), (2, 3, 8), "The pre-LN result"
    )
    wrong = {
        "norm_first=True makes no difference in yours: it should give pre-LN.": post,
        "In pre-LN the residual connection is missing: add the stream.": sublayer(normalised),
        "In pre-LN the stream itself stays untouched: only what the sublayer reads is normalised.": normalised
        + sublayer(normalised),
        "In pre-LN LayerNorm stands before the sublayer, and not after the sum again.": norm(pre),
        "In pre-LN LayerNorm comes before the sublayer: f(LN(x)), not LN(f(x)).": stream
        + norm(sublayer(stream)),
    }
    for hint, values in wrong.items():
        expect(not close(first, values), hint)
    expect(close(first, pre), "Pre-LN is x + f(LN(x)).")
    return "Two lines that decide whether BERT's weights mean anything."
