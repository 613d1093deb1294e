"""Checks for the exercises of notebook 04."""

import numpy as np
import torch

from exercises import Hint, as_shape, call, close, compare_stages, exercise, expect, expect_function, expect_tensor
from exercises.arrays import expect_trainable, run_on_copies, run_once
from exercises.attention import (
    NARROW_MASK,
    batch_for,
    describes_sizes,
    expect_nothing_on_padding,
    official_model,
    wrong_weights,
)
from utils.attention import compute_attention_weights

NO_VIEW = "view fails because transpose leaves the numbers apart in memory. Use reshape."


def run(function, *arguments):
    """Return the function's result; `Hint` if it changes its input, view fails, or it is not a function."""
    expect_function(function)
    try:
        return run_on_copies(function, *arguments)
    except RuntimeError as error:
        expect("view size is not compatible" not in str(error), NO_VIEW)
        fixed = f"The numbers do not fit these sizes ({error}): compute a head's size, D = H / A, from the arguments."
        expect("is invalid for input of size" not in str(error), fixed)
        raise


def expect_no_shape(result, hints: dict[tuple[int, ...], str]) -> None:
    """Raise the `Hint` that belongs to a typical wrong shape of a tensor."""
    shape = tuple(result.shape) if isinstance(result, (torch.Tensor, np.ndarray)) else None
    expect(shape not in hints, hints.get(shape))


ROWS = {"H = 18 and 3 heads": (18, 3, 1), "H = 20 and 5 heads": (20, 5, 3), "H = 12 and 6 heads": (12, 6, 4)}


@exercise("4.1", points=2, sizes=ROWS)
def head_weight(answer, H: int, A: int, index: int):
    """Check for the rows of a weight (H, H) that belong to one head."""
    D, weight = H // A, torch.arange(H * H).reshape(H, H) / 4
    result = run(answer, weight, index, A)
    hints = {
        (A, H): "These are A rows. A head owns D = H / A rows.",
        (D - 1, H): "One row is missing at the end: in Python, a slice ends before its second number.",
        (D + 1, H): "That is one row too many: in Python, a slice ends before its second number.",
        (H, D): "These are columns: nn.Linear stores (out, in), so a head owns rows.",
        (D, D): "This slices the input, too. A head reads all H inputs.",
        (H,): "This is one row. A head owns D = H / A rows.",
    }
    expect_no_shape(result, hints)
    expect_tensor(result, (D, H), dtype=weight.dtype)
    expect(not close(result, weight[index::A]), "These are every A-th row. A head's rows are next to each other.")
    expect(not close(result, weight[index : index + D]), "The rows of head index start at index · D.")
    before = weight[(index - 1) * D : index * D]
    expect(not close(result, before), "These rows belong to the head before. Heads are counted from 0.")
    right = weight[index * D : (index + 1) * D]
    expect(not close(result, right.flip(0)), "These are the right rows, but in reverse order.")
    expect(close(result, right), "Head i owns the rows i·D … (i+1)·D − 1.")
    expect_trainable(answer, lambda weight, index, A: weight[index * D : (index + 1) * D], weight, index, A)
    return "Together the heads' parts make up the whole matrix."


BLOCKS = {  # (B, S, A, D)
    "H = 18 and 3 heads": (2, 4, 3, 6),
    "H = 20 and 5 heads": (3, 2, 5, 4),
    "H = 14 and 2 heads": (1, 5, 2, 7),
}


def named_tensor(B: int, S: int, H: int) -> torch.Tensor:
    """Return a tensor (B, S, H) of different numbers, so that a wrong position shows."""
    return torch.arange(B * S * H).reshape(B, S, H) / 4


@exercise("4.2", points=2, sizes=BLOCKS, part="split_heads")
def split_heads(answer, B: int, S: int, A: int, D: int):
    """Split (B, S, H) into heads, (B, A, S, D)."""
    x = named_tensor(B, S, A * D)
    result = run(answer, x, A)
    exchanged = f"Head size and number of heads are swapped: there should be {A} heads of {D}"
    hints = {
        (B, S, A, D): "The heads are split, but tokens still come first. Use transpose(1, 2).",
        (B, D, S, A): f"{exchanged}.",
        (B, S, D, A): f"{exchanged}, and tokens still come first.",
    }
    expect_no_shape(result, hints)
    expect_tensor(result, (B, A, S, D), dtype=x.dtype)
    mixed, strided = x.reshape(B, A, S, D), x.view(B, S, D, A).permute(0, 3, 1, 2)
    expect(
        not close(result, mixed),
        "The shape is right, but tokens and heads are mixed up, because view keeps the order in memory.",
    )
    expect(
        not close(result, strided),
        f"Head i got the coordinates i, i + {A}, i + {2 * A} …; its coordinates should be next to each other.",
    )
    wanted = torch.stack(x.split(D, dim=-1), dim=1)
    expect(close(result, wanted), "Head i should hold coordinates i·D … (i+1)·D − 1 of each token.")
    return "Each head now has its own (S, D) matrix."


@exercise("4.3", points=2, sizes=BLOCKS)
def merge_heads(answer, B: int, S: int, A: int, D: int):
    """Check that heads (B, A, S, D) are joined to (B, S, H)."""
    x = named_tensor(B, S, A * D)
    heads = torch.stack(x.split(D, dim=-1), dim=1)  # contiguous, like a result of attention
    result = run(answer, heads)
    hints = {
        (B, S, A, D): "Tokens come first again. Now join the last two dimensions, A and D.",
        (B, A, S * D): "Tokens and coordinates were joined: move the tokens before the heads first.",
    }
    expect_no_shape(result, hints)
    expect_tensor(result, (B, S, A * D), dtype=x.dtype)
    mixed, strided = heads.reshape(B, S, A * D), heads.permute(0, 2, 3, 1).reshape(B, S, A * D)
    expect(
        not close(result, mixed), "The shape is right, but tokens and heads are mixed up. Use transpose(1, 2) first."
    )
    expect(not close(result, strided), "The heads' coordinates alternate. Keep each head's D coordinates together.")
    expect(close(result, x), "Each token should have head 0's D coordinates, then head 1's, and so on.")
    expect_trainable(answer, lambda heads: heads.transpose(1, 2).flatten(2), heads)
    return "It undoes split_heads."


@exercise("4.4")
def predict_shapes(answer):
    """Check the shapes of query, attention weights and output for B=2, S=7, H=48, A=6."""
    expect(isinstance(answer, (tuple, list)) and len(answer) == 3, "Give three shapes.")
    names = ("query_shape", "weights_shape", "output_shape")
    query, weights, output = (as_shape(value, name) for value, name in zip(answer, names, strict=True))
    expect(48 not in query, "After splitting, no head has all 48 coordinates: a head's size is D = H / A.")
    expect(
        query != (2, 7, 6, 8),
        "query: that is the shape after view. The transpose then moves the heads in front of the tokens.",
    )
    expect(query != (2, 8, 7, 6), "query: 6 is the number of heads, and 8 = 48 / 6 is the head size. Swap them.")
    expect(query == (2, 6, 7, 8), "The query has the dimensions (B, A, S, D) with D = H / A.")
    expect(weights != (2, 7, 7), "weights: every head has its own matrix, so there is a dimension for heads.")
    expect(8 not in weights, "weights: the product of query and key sums over D, so D is gone here.")
    expect(weights == (2, 6, 7, 7), "The weights have one row per query and one column per key, in every head.")
    expect(output != (2, 7, 8), "output: that is one head's context. The output joins all heads.")
    expect(output == (2, 7, 48), "The output has the shape of the input, (B, S, H): blocks can be stacked.")
    return "Only the weights have S twice: they grow with the square of the length."


MODELS = {"the pretrained model": (), "H = 18 and 3 heads": (18, 3), "H = 20 and 5 heads": (20, 5)}


@exercise("4.5", points=3, sizes=MODELS, part="multi_head_attention")
def write_the_forward_pass(answer, hidden_size: int = 0, num_heads: int = 0):
    """Check that the answer computes output and weights of every layer of an official model, padding included."""
    expect_function(answer)
    reference = official_model(hidden_size, num_heads)
    H, A = reference.config.hidden_size, reference.config.num_attention_heads
    parts, layers = Parts(H, A), reference.encoder.layer
    ids, mask = batch_for(reference)
    plain, padded = official_blocks(reference, ids[:1], None), official_blocks(reference, ids, mask)
    parts.load(layers[0])
    stream, weights, _ = plain[0]
    _, found = run_block(answer, parts, stream)
    expect_tensor(found, weights.shape, "The attention weights, returned second,", stream.dtype)
    for hint, wrong in wrong_block_weights(parts, stream):
        expect(not close(found, wrong), hint)
    compare_stages(block_stages(answer, parts, layers, plain, padded, mask), FORWARD_HINTS)
    expect_trainable(lambda stream: call(answer, parts, stream), lambda stream: attend(parts, stream), stream)
    return f"Every head of all {len(layers)} layers is the official one, padding included."


def run_block(answer, parts, *arguments):
    """Return the output and the weights that the reader's forward returns for copies of the arguments, or a `Hint`."""
    try:
        return returned_pair(run_once(lambda *given: call(answer, parts, *given), arguments, torch.clone))
    except RuntimeError as error:
        expect("view size is not compatible" not in str(error), NO_VIEW)
        narrow = len(arguments) > 1 and describes_sizes(error)
        expect(not narrow, NARROW_MASK.format(scores="(B, A, S, S)", fit="(B, 1, 1, S)"))
        raise


FORWARD_HINTS = {
    "weights of layer 0": (
        "The weights are softmax(query · keyᵀ / √D) in each head. Split queries and keys into heads first."
    ),
    "output of layer 0": "The weights are right. Multiply them by the values, swap heads and tokens again, "
    "join the heads with reshape, and apply self.output.",
    "weights of layer 0, padded": "The mask (B, S) hides keys in every head and from every query. Give it the shape "
    "(B, 1, 1, S), and set hidden scores to −inf before the softmax.",
    "output of layer 0, padded": "The padded weights are right. What happens to them on the way to the output?",
}


class Parts(torch.nn.Module):
    """What the reader's forward gets: all of a MultiHeadAttention that a part may use, without a forward of its own."""

    compute_attention_weights = staticmethod(compute_attention_weights)

    def __init__(self, hidden_size: int, num_heads: int):
        super().__init__()
        self.query, self.key, self.value, self.output = (torch.nn.Linear(hidden_size, hidden_size) for _ in range(4))
        self.num_heads = num_heads
        self.requires_grad_(False)

    def split_heads(self, x: torch.Tensor) -> torch.Tensor:
        """Split (B, S, H) into heads, (B, A, S, D)."""
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def load(self, layer) -> None:
        """Copy the parameters of an official layer's attention."""
        for name in ("query", "key", "value"):
            getattr(self, name).load_state_dict(getattr(layer.attention.self, name).state_dict())
        self.output.load_state_dict(layer.attention.output.dense.state_dict())


@torch.no_grad()
def official_blocks(reference, ids, mask) -> list[tuple]:
    """Return the input, attention weights and output of each official layer's attention."""
    outputs = []
    hooks = [
        layer.attention.output.dense.register_forward_hook(lambda *seen: outputs.append(seen[2]))
        for layer in reference.encoder.layer
    ]
    result = reference(ids, mask, output_attentions=True, output_hidden_states=True)
    for hook in hooks:
        hook.remove()
    return list(zip(result.hidden_states[:-1], result.attentions, outputs, strict=True))


def block_stages(answer, parts, layers, plain, padded, mask):
    """Yield (name, the reader's tensor, the official one) for each layer, without and with a mask."""
    H, D = parts.query.in_features, parts.query.in_features // parts.num_heads
    for number, layer in enumerate(layers):
        for where, results, options in (("", plain, ()), (", padded", padded, (mask,))):
            parts.load(layer)
            stream, weights, output = results[number]
            found_output, found = run_block(answer, parts, stream, *options)
            yield f"weights of layer {number}{where}", found, weights
            if options:
                expect_nothing_on_padding(lambda *given: run_block(answer, parts, *given)[1], parts, H, D)
            expect_tensor(found_output, output.shape, "The output, returned first,", stream.dtype)
            for hint, wrong in () if options else wrong_outputs(parts, stream, weights):
                expect(not close(found_output, wrong, 1e-4), f"The weights are right. {hint}")
            yield f"output of layer {number}{where}", found_output, output


def wrong_outputs(parts, stream, weights):
    """Yield pairs of a hint and the output (B, S, H) of a typical mistake after the right weights."""
    heads = {name: parts.split_heads(getattr(parts, name)(stream)) for name in ("query", "key", "value")}

    def joined(vectors):
        return (weights @ vectors).transpose(1, 2).flatten(2)

    right = parts.output(joined(heads["value"]))
    yield (
        "The output includes the input, which is the residual connection. The encoder layer adds it later.",
        right + stream,
    )
    yield "They are multiplied by the keys. Use the values.", parts.output(joined(heads["key"]))
    yield "They are multiplied by the queries. Use the values.", parts.output(joined(heads["query"]))
    yield "self.output is missing. Apply it to the joined heads.", joined(heads["value"])
    mixed = (weights @ heads["value"]).reshape(stream.shape)
    yield "Swap heads and tokens again, transpose(1, 2), before you join the heads.", parts.output(mixed)


def returned_pair(result):
    """Return the output and the weights; a `Hint` if there are not two."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint("Return two tensors: the output and the attention weights.")
    return result


def attend(parts, stream):
    """Return what exercise 4.5 asks for, without a mask: the output."""
    A = parts.num_heads
    query, key, value = (
        linear(stream).unflatten(-1, (A, -1)).transpose(1, 2) for linear in (parts.query, parts.key, parts.value)
    )
    context = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    return parts.output(context.transpose(1, 2).flatten(2))


def wrong_block_weights(parts, stream):
    """Yield pairs of a hint and the weights (B, A, S, S) of a typical mistake."""
    (B, S, H), A = stream.shape, parts.num_heads
    query, key = (linear(stream).view(B, S, A, -1).transpose(1, 2) for linear in (parts.query, parts.key))
    yield from wrong_weights(query, key, H, A)
    scores = query @ key.transpose(-2, -1) / (H / A) ** 0.5
    yield "Softmax runs over the heads: the keys are the last dimension, dim=-1.", scores.softmax(1)
    query, key = (linear(stream).view(B, A, S, -1) for linear in (parts.query, parts.key))
    mixed = (query @ key.transpose(-2, -1) / (H / A) ** 0.5).softmax(-1)
    yield "The shape is right, but tokens and heads are mixed up. Use view(B, S, A, D), then transpose(1, 2).", mixed
    query, key = (linear(stream).view(B, S, -1, A).permute(0, 3, 1, 2) for linear in (parts.query, parts.key))
    strided = (query @ key.transpose(-2, -1) / (H / A) ** 0.5).softmax(-1)
    yield "A head got every A-th coordinate. Keep its coordinates together, with view(B, S, A, D).", strided
