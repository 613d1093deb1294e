"""Checks for the exercises of notebook 04."""

import numpy as np
import torch

from exercises import (
    Hint,
    as_number,
    as_shape,
    call,
    climb,
    close,
    exercise,
    expect,
    expect_function,
    expect_tensor,
)
from exercises.arrays import run_on_copies
from utils.checkpoint import load_reference_model


def run(function, *arguments, hint: str = "torch refuses"):
    """What the reader's function returns; a `Hint` if it is no function, alters its input or torch refuses."""
    expect(callable(function), "Pass the function itself, without brackets after its name.")
    try:
        return run_on_copies(function, *arguments)
    except RuntimeError as error:
        if "view size is not compatible" in str(error):
            raise Hint(
                "view refuses, since transpose left the numbers apart in memory: use reshape."
            ) from error
        raise Hint(f"{hint} ({error}).") from error


def named_tensor() -> torch.Tensor:
    """(2, 3, 20) in which each number is different, so that a wrong place shows; 5 heads of size 4."""
    return torch.arange(2 * 3 * 20, dtype=torch.float32).reshape(2, 3, 20)


def expect_no_shape(result, hints: dict[tuple[int, ...], str]) -> None:
    """Raise the `Hint` that belongs to a typical wrong shape of a tensor."""
    shape = tuple(result.shape) if isinstance(result, (torch.Tensor, np.ndarray)) else None
    expect(shape not in hints, hints.get(shape))


@exercise("4.1", points=2)
def head_weight(answer):
    """Rows of a (H, H) weight that belong to one of the heads."""
    weight = torch.arange(144.0).reshape(12, 12)
    result = run(answer, weight, 1, 3)
    hints = {
        (12, 4): "These are columns: nn.Linear stores (out, in), so a head owns rows.",
        (4, 4): "That is a slice of the input too; a head reads all H inputs.",
        (3, 12): "These are A rows; a head owns D = H / A of them.",
        (12,): "That is one row; a head owns D = H / A of them.",
    }
    expect_no_shape(result, hints)
    expect_tensor(result, (4, 12))
    expect(not close(result, weight[1::3]), "These are every A-th row; a head's rows are neighbours.")
    expect(not close(result, weight[1:5]), "The rows of head index start at index · D.")
    expect(not close(result, weight[:4]), "These rows belong to head 0; heads are counted from 0.")
    expect(close(result, weight[4:8]), "Head i owns the rows i·D … (i+1)·D − 1.")
    other = run(answer, weight, 5, 6)
    expect(close(other, weight[10:]), "It fails for other sizes: D is H // num_heads.")
    return "Together the heads' parts make up the whole matrix."


@exercise("4.2", points=2)
def split_heads(answer):
    """(B, S, H) to (B, A, S, D)."""
    x = named_tensor()
    result = run(answer, x, 5)
    hints = {
        (2, 3, 5, 4): "The heads are cut, but tokens still come first: transpose(1, 2).",
        (2, 4, 3, 5): "Head size and number of heads are exchanged: there should be 5 heads of 4.",
        (2, 3, 4, 5): "Head size and number of heads are exchanged, and tokens still come first.",
    }
    expect_no_shape(result, hints)
    expect_tensor(result, (2, 5, 3, 4))
    mixed, strided = x.reshape(2, 5, 3, 4), x.view(2, 3, 4, 5).permute(0, 3, 1, 2)
    expect(
        not close(result, mixed), "The shape is right, but tokens and heads are mixed: view keeps the order."
    )
    expect(
        not close(result, strided), "Head i got every 5th coordinate; its coordinates should be neighbours."
    )
    wanted = torch.stack(x.split(4, dim=-1), dim=1)
    expect(close(result, wanted), "Head i should hold coordinates i·D … (i+1)·D − 1 of each token.")
    other = torch.arange(12.0).reshape(1, 1, 12)
    hint = "It fails for other sizes: take B, S and H from x.shape and the heads from num_heads"
    expect(close(run(answer, other, 3, hint=hint), other.view(1, 3, 1, 4)), f"{hint}.")
    return "Each head now has its own (S, D) matrix."


@exercise("4.3", points=2)
def merge_heads(answer):
    """(B, A, S, D) to (B, S, H)."""
    x = named_tensor()
    heads = torch.stack(x.split(4, dim=-1), dim=1)  # contiguous, like a result of attention
    result = run(answer, heads)
    hints = {
        (2, 3, 5, 4): "Tokens come first again; now join the last two dimensions, A and D.",
        (2, 5, 12): "Tokens and coordinates were joined: move the tokens before the heads first.",
    }
    expect_no_shape(result, hints)
    expect_tensor(result, (2, 3, 20))
    mixed, strided = heads.reshape(2, 3, 20), heads.permute(0, 2, 3, 1).reshape(2, 3, 20)
    expect(
        not close(result, mixed), "The shape is right, but tokens and heads are mixed: transpose(1, 2) first."
    )
    expect(
        not close(result, strided), "The heads' coordinates alternate: each head's D should stay together."
    )
    expect(close(result, x), "Each token should hold head 0's D coordinates, then head 1's, and so on.")
    other = torch.arange(12.0).reshape(1, 3, 1, 4)
    hint = "It fails for other sizes: take them from x.shape"
    expect(close(run(answer, other, hint=hint), other.view(1, 1, 12)), f"{hint}.")
    return "It undoes split_heads."


@exercise("4.4")
def predict_shapes(answer):
    """Shapes of query, attention weights and output for B=2, S=7, H=48, A=6."""
    expect(isinstance(answer, (tuple, list)) and len(answer) == 3, "Give three shapes.")
    names = ("query_shape", "weights_shape", "output_shape")
    query, weights, output = (as_shape(value, name) for value, name in zip(answer, names, strict=True))
    expect(48 not in query, "After splitting no head holds all 48 coordinates: a head's size is D = H / A.")
    expect(query != (2, 7, 6, 8), "query: that is after view; the transpose then brings the heads in front.")
    expect(query != (2, 8, 7, 6), "query: 6 is the number of heads, 8 = 48 / 6 the head size; exchange them.")
    expect(query == (2, 6, 7, 8), "The query has the dimensions (B, A, S, D) with D = H / A.")
    expect(weights != (2, 7, 7), "weights: every head has its own matrix, so there is a dimension for heads.")
    expect(8 not in weights, "weights: D is summed over in the product of query and key; it is gone here.")
    expect(weights == (2, 6, 7, 7), "The weights have one row a query and one column a key, in every head.")
    expect(output != (2, 7, 8), "output: that is one head's context; all heads are joined in the output.")
    expect(output == (2, 7, 48), "The output has the shape of the input, (B, S, H): blocks can be stacked.")
    return "Only the weights have S twice: they grow with the square of the length."


@exercise("4.5", points=3)
def write_the_forward_pass(answer):
    """The answer computes output and weights of every layer of the official model, padding included."""
    expect_function(answer)
    reference = load_reference_model()
    config = reference.config
    H, A = config.hidden_size, config.num_attention_heads
    parts, layers = Parts(H, A), reference.encoder.layer
    ids = torch.tensor([[101, 2051, 10029, 2066, 2019, 8612, 102], [101, 5909, 102, 0, 0, 0, 0]])
    ids = ids.clamp(max=config.vocab_size - 1)
    plain = official_blocks(reference, ids[:1], None)
    parts.load(layers[0])
    stream, weights, _ = plain[0]
    given = stream.clone()
    found = returned_pair(call(answer, parts, given))
    expect(torch.equal(given, stream), "It alters the hidden_states it is given: work on new tensors.")
    found_weights = expect_tensor(found[1], weights.shape, "The attention weights, returned second,")
    for hint, wrong in wrong_weights(parts, stream):
        expect(not close(found_weights, wrong), hint)
    padded = official_blocks(reference, ids, (ids != 0).long())
    climb(block_rungs(answer, parts, layers, plain, padded, (ids != 0).long()), FORWARD_HINTS)
    small = Parts(12, 3)
    output, weights = returned_pair(call(answer, small, torch.randn(2, 5, 12)))
    expect_tensor(
        weights, (2, 3, 5, 5), "For a block of H = 12 with 3 heads the weights, taken from num_heads,"
    )
    expect_tensor(output, (2, 5, 12), "For a block of H = 12 the output")
    return f"Every head of all {len(layers)} layers is the official one, padding included."


FORWARD_HINTS = {
    "weights of layer 0": "They are softmax(query · keyᵀ / √D) in each head: view(B, S, A, D), then transpose(1, 2).",
    "output of layer 0": "The weights are right. Multiply them with the values, exchange heads and tokens again, "
    "join the heads with reshape, and apply attention.output.",
    "weights of layer 0, padded": "The mask (B, S) hides keys, in every head and from every query: give it the shape "
    "(B, 1, 1, S), and set hidden scores to −inf before the softmax.",
    "output of layer 0, padded": "The padded weights are right; what happens to them on the way to the output?",
}


class Parts(torch.nn.Module):
    """What the reader's forward gets: four layers and the number of heads, without a forward of its own."""

    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.query, self.key, self.value, self.output = (
            torch.nn.Linear(hidden_size, hidden_size) for _ in range(4)
        )
        self.num_heads = num_heads
        self.requires_grad_(False)

    def load(self, layer) -> None:
        """Take over the weights of an official layer's attention."""
        for name in ("query", "key", "value"):
            getattr(self, name).load_state_dict(getattr(layer.attention.self, name).state_dict())
        self.output.load_state_dict(layer.attention.output.dense.state_dict())


@torch.no_grad()
def official_blocks(reference, ids, mask) -> list[tuple]:
    """For each layer of the official model: what goes into its attention, the weights, what comes out."""
    outputs = []
    hooks = [
        layer.attention.output.dense.register_forward_hook(lambda *seen: outputs.append(seen[2]))
        for layer in reference.encoder.layer
    ]
    result = reference(ids, mask, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    return list(zip(result.hidden_states[:-1], result.attentions, outputs, strict=True))


def block_rungs(answer, parts, layers, plain, padded, mask):
    """(name, the reader's tensor, the official one): layer by layer, without a mask and with one."""
    for number, layer in enumerate(layers):
        parts.load(layer)
        for where, results, options in (("", plain, ()), (", padded", padded, (mask,))):
            stream, weights, output = results[number]
            found = returned_pair(call(answer, parts, stream.clone(), *options))
            yield f"weights of layer {number}{where}", found[1], weights
            yield f"output of layer {number}{where}", found[0], output


def returned_pair(result):
    """The output and the weights; a `Hint` if there are not two."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint("Return two tensors: the output and the attention weights.")
    return result


def wrong_weights(parts, stream):
    """Pairs of a hint and the weights (B, A, S, S) of a typical mistake."""
    (B, S, H), A = stream.shape, parts.num_heads
    query, key = (linear(stream).view(B, S, A, -1).transpose(1, 2) for linear in (parts.query, parts.key))
    products = query @ key.transpose(-2, -1)
    yield "The scores are not scaled: divide them by √D.", products.softmax(-1)
    yield (
        "The scores are divided by √H: a head's products are D, so divide by √D.",
        (products / H**0.5).softmax(-1),
    )
    yield (
        "The scores are divided by √A: D is the size of a head, not their number.",
        (products / A**0.5).softmax(-1),
    )
    scores = products / (H / A) ** 0.5
    yield "These are the scores: softmax over the keys is missing.", scores
    yield "Softmax runs over the queries: the keys are the last dimension, dim=-1.", scores.softmax(-2)
    yield (
        "Query and key are exchanged: a row of the scores belongs to a query.",
        scores.transpose(-2, -1).softmax(-1),
    )
    query, key = (linear(stream).view(B, A, S, -1) for linear in (parts.query, parts.key))
    mixed = (query @ key.transpose(-2, -1) / (H / A) ** 0.5).softmax(-1)
    yield "The shape is right, but tokens and heads are mixed: view(B, S, A, D), then transpose(1, 2).", mixed
    query, key = (linear(stream).view(B, S, -1, A).permute(0, 3, 1, 2) for linear in (parts.query, parts.key))
    strided = (query @ key.transpose(-2, -1) / (H / A) ** 0.5).softmax(-1)
    yield "A head got every A-th coordinate; its coordinates should be neighbours: view(B, S, A, D).", strided


@exercise("4.6")
def count_parameters(answer):
    """Parameters of one attention block of BERT-base: 4 (H² + H)."""
    count = as_number(answer)
    H, A = 768, 12
    D, right = H // A, 4 * (H * H + H)
    hints = {
        4 * H * H: "The biases are missing: each of the four linear maps has one of 768 numbers.",
        3 * (H * H + H): "The output projection is missing: it is a linear map from H to H too.",
        3 * H * H: "The biases and the output projection are missing.",
        3 * (H * H + H) + H * H: "The output projection has a bias too.",
        A * right: "The heads share the four matrices out among themselves: do not multiply by their number.",
        A * 3 * (H * H + H) + H * H + H: "Each head projects to D = H / A numbers, not to H.",
        3 * (H * D + D) + H * H + H: "These are the projections of one head; there are twelve.",
        3 * (H * D + D): "That is one head; count all twelve and the output projection.",
    }
    expect(count not in hints, hints.get(count))
    expect(count == right, "Four linear maps from H to H: how many weights and biases has one of them?")
    return "The number of heads does not matter."
