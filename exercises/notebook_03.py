"""Checks for the exercises of notebook 03."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from exercises.arrays import expect_trainable, run_on_copies, run_once
from exercises.attention import (
    NARROW_MASK,
    batch_for,
    describes_sizes,
    expect_nothing_on_padding,
    hides_padding,
    low_scores,
    official_model,
    wrong_scale,
    wrong_weights,
)
from exercises.comparison import name_the_mistake, without_ours
from exercises.framework import (
    CUT_OFF,
    Hint,
    Without,
    as_shape,
    call,
    close,
    compare_stages,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
)
from exercises.mistakes import functions
from exercises.prediction import prediction
from utils.attention import compute_attention_weights, scaled_dot_product_attention

SCORES = {"scores (4, 4)": ((4, 4),), "scores (2, 3, 5)": ((2, 3, 5),), "scores (2, 2, 3, 4)": ((2, 2, 3, 4),)}


@exercise("3.4", points=2, sizes=SCORES)
def softmax_over_keys(answer, shape: tuple[int, ...]):
    """Check that the answer is a softmax over the keys, written with exp and sum, that does not overflow."""
    expect_function(answer)
    scores = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    with Without("This calls torch's softmax. Write it yourself, with exp and sum.", "softmax", "scaled_dot"):
        result = expect_tensor(run_on_copies(answer, scores), shape, dtype=scores.dtype)
    name_the_mistake(result, scores.softmax(-1), WRONG_SUMS, (scores,))
    expect(
        close(result, scores.softmax(-1)),
        "The rows are not right. Each weight is e to the score, divided by the row's sum.",
    )
    for rows, name in EXTREMES.items():
        large = torch.tensor(rows).repeat(*shape[:-2], 1, 1)
        result = expect_tensor(run_on_copies(answer, large), tuple(large.shape))
        expect(
            result.isfinite().all(),
            f"Right for small scores, but {name} give nan. Always subtract each row's own largest score.",
        )
        expect(close(result, large.softmax(-1), 1e-3), f"Right for small scores, but not for {name}.")
    expect_trainable(answer, lambda scores: scores.softmax(-1), scores)
    return "Subtracting the largest score changes nothing but the overflow."


def without_keeping(sums: bool = True, largest: bool = True) -> Callable[[Tensor], Tensor]:
    """Return a softmax that forgets keepdim=True in its sum, in its maximum, or in both."""

    def softmax(scores: Tensor) -> Tensor:
        shifted = (scores - scores.amax(-1, keepdim=not largest)).exp()
        return shifted / shifted.sum(-1, keepdim=not sums)

    return softmax


WRONG_SUMS = functions(
    "3.4",
    "scores",
    """
    scores.exp() | These are the exponentials. Divide each row by its sum.
    scores.exp() / scores.exp().sum(-2, keepdim=True) | These are softmax over the columns: sum over dim=-1.
    scores.exp() / scores.exp().sum() | All weights together sum to 1, but each row should: sum over dim=-1 only.
    scores.exp() / scores.exp().sum(-1) | Each column is divided by the sum of a row. Keep the dimension, with
        keepdim=True.
    without_keeping(largest=False)(scores) | Each column is divided by the sum of a row. Keep the dimension, with
        keepdim=True. Your maximum already does.
    without_keeping(sums=False)(scores) | Each column subtracts the largest score of a row. Use keepdim=True for the
        maximum, too.
    without_keeping()(scores) | Each column subtracts the largest score of a row. Use keepdim=True for the maximum, too.
        The sum needs it, too.
    """,
    globals(),
)
EXTREMES = {
    ((1000.0, 999.0), (-3.0, 2.0)): "scores of 1,000",
    ((-1000.0, -1001.0), (0.0, 1.0)): "scores of −1,000",
    ((1000.0, 999.0), (-1000.0, -1001.0)): "rows of 1,000 and of −1,000 together",
    ((88.5, 88.5, 88.5), (0.0, 0.0, 1.0)): "scores of 88, whose exponentials sum to more than a float holds,",
    ((1000.0, -1000.0, 0.0), (0.0, -1000.0, 1000.0)): "scores of 1,000 and of −1,000 in one row",
    ((2.0, -torch.inf, 1.0), (-torch.inf, 0.0, -torch.inf)): "masked scores, −∞,",
}


prediction(
    "3.1",
    [partial(as_shape, question=name) for name in ("Each answer", "Each answer")],
    """
    = (2, 7, 5)
    (2, 5, 7) | The weights have a row for each query and a column for each key: (B, S, T).
    (2, 7, 7) | There are 5 keys, not 7, and each query has one weight per key.
    (2, 64, 64) | The shape of the weights is not right. query @ keyᵀ with (2, 7, 64) and (2, 5, 64) sums the 64 away.
        Which sizes are left?
    = (2, 7, 32)
    (2, 7, 64) | The context averages values, so it is as wide as a value, not as a key.
    (2, 5, 32) | The context has one vector for each query, not for each key.
    (7, 32) | The context is weights @ value: (2, 7, 5) times (2, 5, 32) has which shape?
    """,
    ask="Give two answers, one for each name.",
    remark="The size of query and key is summed away.",
)


QUERIES = {  # shapes of query and key, and one in which a mask of keys fits the scores
    "D = 32 and a batch of 2": ((2, 4, 32), (2, 4, 32), (2, 1, 4)),
    "D = 5 and 6 keys": ((2, 4, 5), (2, 6, 5), (2, 1, 6)),
    "one text, without a batch": ((3, 8), (3, 8), (1, 3)),
    "a batch of 2 with 3 heads": ((2, 3, 4, 6), (2, 3, 4, 6), (2, 1, 1, 4)),
}


@exercise("3.2", points=6, sizes=QUERIES, part="attention_weights")
def write_attention_weights(answer, queries: tuple, keys: tuple, masks: tuple):
    """Check that the answer gives the attention weights (…, S, T) of query and key, with or without a mask."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(3)
    query, key = (2 * torch.randn(shape, generator=generator) for shape in (queries, keys))
    mask = torch.ones(masks, dtype=torch.long)
    mask[..., 1] = 0  # hides one key of every text, and of the first text another one
    mask[(0,) * (len(masks) - 1)][-1] = 0
    shape = (*queries[:-1], keys[-2])
    alone = partial(without_ours, "write the four steps yourself: scores, √D, mask, softmax.")
    try:
        with alone():
            result = run_once(answer, (query, key), torch.clone)
    except RuntimeError as error:
        sums = "at non-singleton dimension 1" in str(error) and len(queries) == 3
        expect(not sums, f"{error}: a sum over the keys drops their dimension. Keep it, with keepdim=True.")
        sizes = "must match" in str(error) or "Expected size" in str(error)
        expect(not sizes, f"{error}: exchange the last two dimensions of the key, and no others.")
        raise
    result = expect_tensor(result, shape, "The attention weights", query.dtype)
    right = compute_attention_weights(query, key)
    for hint, wrong in wrong_weights(query, key, 384, 12):
        expect(close(wrong, right) or not close(result, wrong, 1e-4), hint)
    if not close(result, right, 1e-4):
        if scale := wrong_scale(result, query @ key.transpose(-2, -1), query.size(-1)):
            raise Hint(scale)
        raise Hint(
            "The weights are the softmax, over the keys, of query · keyᵀ / √D. Which of your steps differs?",
            "Print each step for the query [[2., 0., 0., 0.]] and the keys [[1., 0., 0., 0.], [0., 5., 0., 0.]]: the "
            "scores are [[2, 0]], divided by √4 they are [[1, 0]], and softmax turns them into [[0.73, 0.27]].",
        )
    fits = f"With a mask of shape {masks}, which fits the scores as it is, the result"
    with alone():
        result = run_once(answer, (query, key, mask), torch.clone)
    result = expect_tensor(result, shape, fits, query.dtype)
    for hint, wrong in wrong_masks(query, key, mask):
        expect(not close(result, wrong.nan_to_num(), 1e-4), hint)
    expect(not result.isnan().any(), "With a mask, some weights are nan, which 0 × ∞ and ∞ − ∞ give.")
    expect(
        close(result, compute_attention_weights(query, key, mask), 1e-4),
        "Right without a mask. With a mask, set the scores to −∞ where it is 0, before the softmax.",
    )
    for other in (2 * mask, -mask):
        expect(
            close(run_once(answer, (query, key, other), torch.clone), result, 1e-4),
            f"A mask of {other.unique().tolist()} gives another result. Hide a key where the mask is 0, "
            "and show it wherever it is not, also where it is 2 or −1.",
        )
    states, padded = low_scores(queries[-1], queries[-1])
    hides_padding(answer(torch.ones_like(states), states, padded[:, None, :]))
    expect_trainable(answer, compute_attention_weights, query, key)
    return "It is the formula, for one head and for twelve."


def wrong_masks(query, key, mask):
    """Yield pairs of a hint and the attention weights of a typical mistake with the mask."""
    scores = query @ key.transpose(-2, -1) / query.size(-1) ** 0.5
    yield "The mask has no effect on the weights.", scores.softmax(-1)
    yield (
        "Your function hides the visible keys: 1 means visible, 0 means hidden.",
        scores.masked_fill(mask != 0, -torch.inf).softmax(-1),
    )
    yield (
        "The weights are set to 0 after the softmax, so the rows do not sum to 1: mask the scores.",
        scores.softmax(-1) * mask,
    )
    yield "A masked score of 0 still gets a weight, e⁰ = 1: use −inf.", (scores * mask).softmax(-1)
    yield (
        "The mask is added to the scores, which makes a key 2.7 times as likely and hides none. Use −inf.",
        (scores + mask).softmax(-1),
    )


HEADS = {"the pretrained head": (), "H = 18 and D = 6": (18, 3), "H = 20 and D = 4": (20, 5)}


@exercise("3.3", points=6, sizes=HEADS)
def write_the_head(answer, hidden_size: int = 0, num_heads: int = 0):
    """Check that the answer is a class that agrees with official heads, given their parameters."""
    expect(
        isinstance(answer, type) and issubclass(answer, torch.nn.Module),
        "Pass check the class itself, a subclass of nn.Module, without parentheses after its name.",
    )
    reference = official_model(hidden_size, num_heads)
    config = reference.config
    H, D = config.hidden_size, config.hidden_size // config.num_attention_heads
    head = made_by(answer, H, D)
    if not list(head.parameters()):
        call(head, torch.zeros(1, 2, H))  # a stub says so itself
        raise Hint("The head has no parameters. Create three layers in __init__: self.query, self.key and self.value.")
    load_head(head, reference, 0, 0, D)
    compare_stages(head_stages(head, reference, D), HEAD_HINTS)
    states = official_model_input(reference).requires_grad_()
    layers = head.query, head.key, head.value
    wanted, _ = scaled_dot_product_attention(*(layer(states) for layer in layers))
    expect_gradients(call(head, states)[0], wanted, [states, *(layer.weight for layer in layers)], CUT_OFF)
    return "It is the official head, in every layer that was tried, padding included."


def made_by(answer: type, hidden_size: int, head_size: int):
    """Return a head that the reader's class makes; `Hint` for an __init__ that does not begin with its parent's."""
    try:
        return call(answer, hidden_size, head_size)
    except AttributeError as error:
        expect("before Module.__init__() call" not in str(error), "__init__ has to begin with super().__init__().")
        raise


HEAD_HINTS = {
    "weights": "The weights are the softmax over the keys of query · keyᵀ / √D, where D is the size of the head.",
    "context": "The weights are right. The context is the weights times the values.",
    "padded weights": "The mask (B, S) hides keys from all queries. Give it the shape (B, 1, S), and mask the "
    "scores before the softmax. Every query keeps its row.",
    "padded context": "The weights are right. The context is the weights times the values.",
    "weights of another layer": "Does the head remember anything from an earlier call?",
}


def head_stages(head, reference, D: int):
    """Yield (name, the reader's tensor, the official one) for two layers."""
    ids, padded = batch_for(reference)
    layers = (0, reference.config.num_hidden_layers - 1)
    for number, (layer, index) in enumerate(zip(layers, (1, 0), strict=True)):
        where = "" if number == 0 else " of another layer"
        for prefix, rows, mask in (("", slice(0, 1), None), ("padded ", slice(0, 2), padded)):
            load_head(head, reference, layer, index, D)
            stream, weights, context = official_head(reference, ids[rows], mask, layer, index, D)
            found_context, found = run_head(head, stream, mask)
            expect_tensor(found, weights.shape, "The attention weights, returned second,", stream.dtype)
            if mask is None:
                wrong = wrong_weights(head.query(stream), head.key(stream), stream.size(-1))
                for hint, values in wrong:
                    expect(close(values, weights) or not close(found, values, 1e-4), hint)
            yield f"{prefix}weights{where}", found, weights
            if mask is not None:
                expect_nothing_on_padding(lambda *given: run_head(head, *given)[1], head, stream.size(-1), D)
            expect_tensor(found_context, context.shape, "The context, returned first,", stream.dtype)
            yield f"{prefix}context{where}", found_context, context


def run_head(head, stream, mask):
    """Return the context and the weights that the reader's head returns; a `Hint` if there are not two."""
    arguments = (stream,) if mask is None else (stream, mask)
    try:
        result = run_once(lambda *given: call(head, *given), arguments, torch.clone)
    except RuntimeError as error:
        expect(mask is None or not describes_sizes(error), NARROW_MASK.format(scores="(B, S, S)", fit="(B, 1, S)"))
        raise
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint("forward returns two tensors: the context and the attention weights.")
    return result


@torch.no_grad()
def official_model_input(reference):
    """Return what goes into the first layer of the official model, for one text."""
    return reference(batch_for(reference)[0][:1], output_hidden_states=True).hidden_states[0]


def load_head(head, reference, layer: int, index: int, D: int) -> None:
    """Copy an official head's weights into the reader's head; a `Hint` where names or shapes do not fit."""
    official = reference.encoder.layer[layer].attention.self
    rows = slice(index * D, (index + 1) * D)
    for role in ("query", "key", "value"):
        theirs, ours = getattr(official, role), getattr(head, role, None)
        expect(isinstance(ours, torch.nn.Linear), f"self.{role} should be an nn.Linear, created in __init__.")
        wanted, shape = tuple(theirs.weight[rows].shape), tuple(ours.weight.shape)
        expect(
            shape == wanted,
            f"self.{role} should map hidden_size to head_size: its weight has the shape {shape}, not {wanted}.",
        )
        expect(ours.bias is not None, f"self.{role} has no bias, but BERT's layers have one.")
        with torch.no_grad():
            ours.weight.copy_(theirs.weight[rows])
            ours.bias.copy_(theirs.bias[rows])
    head.eval()


@torch.no_grad()
def official_head(reference, ids, mask, layer: int, index: int, D: int):
    """Return what goes into a head of the official model, its weights and its context."""
    caught = []
    module = reference.encoder.layer[layer].attention.self
    hook = module.register_forward_hook(lambda module, arguments, output: caught.append(output[0]))
    output = reference(ids, mask, output_attentions=True, output_hidden_states=True)
    hook.remove()
    context = caught[0][..., index * D : (index + 1) * D]
    return output.hidden_states[layer], output.attentions[layer][:, index], context
