"""Checks for the exercises of notebook 04."""

import math

import torch

from exercises.arrays import expect_trainable, run_once
from exercises.attention import (
    NARROW_MASK,
    Parts,
    batch_for,
    describes_sizes,
    expect_nothing_on_padding,
    official_model,
    returned_pair,
    wrong_weights,
)
from exercises.comparison import comparison
from exercises.framework import call, close, compare_stages, exercise, expect, expect_function, expect_tensor

NO_VIEW = "view fails because transpose leaves the numbers apart in memory. Use reshape."
ERRORS = {
    "view size is not compatible": NO_VIEW,
    "is invalid for input of size": "The numbers do not fit these sizes ({error}): compute a head's size, D = H / A, "
    "from the arguments.",
}
SIZES = {  # H, A, B and S
    "H = 18 and 3 heads": (18, 3, 2, 4),
    "H = 20 and 5 heads": (20, 5, 3, 2),
    "H = 14 and 2 heads": (14, 2, 1, 5),
}


def different_numbers(*shape: int) -> torch.Tensor:
    """Return a tensor of different numbers, so that a wrong position shows."""
    return torch.arange(math.prod(shape)).reshape(shape) / 4


comparison(
    "4.1",
    "weight, index, A",
    "weight.chunk(A)[index]",
    """
    weight[index * A : (index + 1) * A] | These are A rows. A head owns D = H / A rows.
    weight.chunk(A)[index][:-1] | One row is missing at the end: in Python, a slice ends before its second number.
    weight[index * (len(weight) // A) : (index + 1) * (len(weight) // A) + 1] | That is one row too many: in Python, a
        slice ends before its second number.
    weight.chunk(A, dim=1)[index] | These are columns: nn.Linear stores (out, in), so a head owns rows.
    weight.chunk(A)[index].chunk(A, dim=1)[index] | This slices the input, too. A head reads all H inputs.
    weight[index] | This is one row. A head owns D = H / A rows.
    weight[index::A] | These are every A-th row. A head's rows are next to each other.
    weight[index : index + len(weight) // A] | The rows of head index start at index · D.
    weight.chunk(A)[index - 1] | These rows belong to the head before. Heads are counted from 0.
    weight.chunk(A)[index].flip(0) | These are the right rows, but in reverse order.
    weight.chunk(A)[-1] | Head i owns the rows i·D … (i+1)·D − 1.
    """,
    inputs=lambda H, A, index: (different_numbers(H, H), index, A),
    sizes={"H = 18 and 3 heads": (18, 3, 1), "H = 20 and 5 heads": (20, 5, 3), "H = 12 and 6 heads": (12, 6, 4)},
    errors=ERRORS,
    remark="Together the heads' parts make up the whole matrix.",
    points=1,
)

comparison(
    "4.2",
    "x, A",
    "x.unflatten(-1, (A, -1)).transpose(1, 2)",
    """
    x.unflatten(-1, (A, -1)) | The heads are split, but tokens still come first. Use transpose(1, 2).
    x.unflatten(-1, (-1, A)).transpose(1, 2) | Head size and number of heads are swapped: there should be A heads of D.
    x.unflatten(-1, (-1, A)) | Head size and number of heads are swapped: there should be A heads of D, and tokens still
        come first.
    x.view(len(x), A, x.size(1), -1) | The shape is right, but tokens and heads are mixed up, because view keeps the
        order in memory.
    x.unflatten(-1, (-1, A)).permute(0, 3, 1, 2) | Head i got the coordinates i, i + A, i + 2A …; its coordinates should
        be next to each other.
    x.unflatten(-1, (A, -1)).transpose(1, 2).flip(-1) | Head i should hold coordinates i·D … (i+1)·D − 1 of each token.
    """,
    inputs=lambda H, A, B, S: (different_numbers(B, S, H), A),
    sizes=SIZES,
    errors=ERRORS,
    remark="Each head now has its own (S, D) matrix.",
    part="split_heads",
    points=3,
)

comparison(
    "4.3",
    "x",
    "x.transpose(1, 2).flatten(2)",
    """
    x.transpose(1, 2) | Tokens come first again. Now join the last two dimensions, A and D.
    x.flatten(2) | Tokens and coordinates were joined: move the tokens before the heads first.
    x.reshape(len(x), x.size(2), -1) | The shape is right, but tokens and heads are mixed up. Use transpose(1, 2) first.
    x.permute(0, 2, 3, 1).flatten(2) | The heads' coordinates alternate. Keep each head's D coordinates together.
    x.transpose(1, 2).flatten(2).flip(2) | Each token should have head 0's D coordinates, then head 1's, and so on.
    """,
    inputs=lambda H, A, B, S: (different_numbers(B, A, S, H // A),),  # contiguous, like a result of attention
    sizes=SIZES,
    errors=ERRORS,
    remark="It undoes split_heads.",
    points=1,
)


MODELS = {"the pretrained model": (), "H = 18 and 3 heads": (18, 3), "H = 20 and 5 heads": (20, 5)}


@exercise("4.5", points=6, sizes=MODELS, part="multi_head_attention")
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
