"""Checks for the exercises of notebook 03."""

import torch
from torch.overrides import TorchFunctionMode

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
from utils.attention import scaled_dot_product_attention
from utils.checkpoint import load_reference_model


@exercise("3.1")
def shapes_of_attention(answer):
    """The answer is the shape of the attention weights and of the context, as lists, tuples or torch.Size."""
    weights, context = (as_shape(shape, "Each answer") for shape in pair_of(answer))
    hint = "query @ keyᵀ with (2, 7, 64) and (2, 5, 64) sums the 64 away. Which sizes are left?"
    expect(
        weights != (2, 5, 7), "The weights have a row for each query and a column for each key: (B, S, T)."
    )
    expect(weights != (2, 7, 7), "The keys are 5, not 7: each query has one weight a key.")
    expect(weights == (2, 7, 5), f"The shape of the weights is not right. {hint}")
    expect(context != (2, 7, 64), "The context averages values, so it is as wide as a value, not as a key.")
    expect(context != (2, 5, 32), "The context has one vector for each query, not for each key.")
    expect(
        context == (2, 7, 32), "The context is weights @ value: (2, 7, 5) times (2, 5, 32) has which shape?"
    )
    return "The size of query and key is summed away."


@exercise("3.2")
def spread_of_dot_products(answer):
    """The answer is the standard deviation of the dot product for D = 64 before and after scaling: 8 and 1."""
    before, after = (as_number(number, "Each answer") for number in pair_of(answer))
    expect(not close(before, 64.0), "64 is the variance; its square root is the standard deviation.")
    expect(close(before, 8.0), "Each of the 64 products has variance 1, and variances add up. And the root?")
    expect(not close(after, 8.0), "Dividing a number by √D divides its standard deviation by √D as well.")
    expect(close(after, 1.0), "Divide the standard deviation by √64: what is left of it?")
    return "The scores have the same spread for every D."


@exercise("3.3", points=3)
def write_the_head(answer):
    """The answer is the class: with pretrained weights it gives the official weights and context, padding included."""
    expect(
        isinstance(answer, type) and issubclass(answer, torch.nn.Module),
        "Give check the class itself, a subclass of nn.Module, without brackets after its name.",
    )
    reference = load_reference_model()
    config = reference.config
    H, D = config.hidden_size, config.hidden_size // config.num_attention_heads
    head = call(answer, H, D)
    if not list(head.parameters()):
        call(head, torch.zeros(1, 2, H))  # a stub says so itself
        raise Hint(
            "The head has no parameters: __init__ makes three layers, self.query, self.key and self.value."
        )
    load_head(head, reference, 0, 0, D)
    climb(head_rungs(head, reference, D), HEAD_HINTS)
    return "It is the official head, in every layer that was tried, padding included."


HEAD_HINTS = {
    "weights": "They are the softmax over the keys of query · keyᵀ / √D, with D the size of the head.",
    "context": "The weights are right. The context is the weights times the values.",
    "padded weights": "The mask (B, S) hides keys, for every query alike: give it the shape (B, 1, S), and mask the "
    "scores before the softmax. Every query keeps its row.",
    "padded context": "The weights are right. The context is the weights times the values.",
    "weights of another layer": "Does the head keep something of an earlier call?",
}


def head_rungs(head, reference, D: int):
    """For two layers: (name, what the reader's head gives, what the official model gives)."""
    ids = torch.tensor([[101, 2051, 10029, 2066, 2019, 8612, 102], [101, 5909, 102, 0, 0, 0, 0]])
    ids = ids.clamp(max=reference.config.vocab_size - 1)
    padded = (ids != 0).long()
    layers = (0, reference.config.num_hidden_layers - 1)
    for number, (layer, index) in enumerate(zip(layers, (1, 0), strict=True)):
        where = "" if number == 0 else " of another layer"
        load_head(head, reference, layer, index, D)
        for prefix, rows, mask in (("", slice(0, 1), None), ("padded ", slice(0, 2), padded)):
            stream, weights, context = official_head(reference, ids[rows], mask, layer, index, D)
            result = call(head, stream) if mask is None else call(head, stream, mask)
            if not isinstance(result, (tuple, list)) or len(result) != 2:
                raise Hint("forward returns two tensors: the context and the attention weights.")
            expect_tensor(result[1], weights.shape, "The attention weights, returned second,")
            yield f"{prefix}weights{where}", result[1], weights
            yield f"{prefix}context{where}", result[0], context


def load_head(head, reference, layer: int, index: int, D: int) -> None:
    """Copy an official head's weights into the reader's head; a `Hint` where names or shapes do not fit."""
    official = reference.encoder.layer[layer].attention.self
    rows = slice(index * D, (index + 1) * D)
    for role in ("query", "key", "value"):
        theirs, ours = getattr(official, role), getattr(head, role, None)
        expect(isinstance(ours, torch.nn.Linear), f"self.{role} should be an nn.Linear, made in __init__.")
        wanted, shape = tuple(theirs.weight[rows].shape), tuple(ours.weight.shape)
        expect(
            shape == wanted,
            f"self.{role} should map hidden_size to head_size: its weight has the shape {shape}, not {wanted}.",
        )
        expect(ours.bias is not None, f"self.{role} has no bias, and BERT's layers have one.")
        with torch.no_grad():
            ours.weight.copy_(theirs.weight[rows])
            ours.bias.copy_(theirs.bias[rows])
    head.eval()


@torch.no_grad()
def official_head(reference, ids, mask, layer: int, index: int, D: int):
    """What goes into a head of the official model, its weights and its context."""
    caught = []
    module = reference.encoder.layer[layer].attention.self
    hook = module.register_forward_hook(lambda module, arguments, output: caught.append(output[0]))
    output = reference(ids, mask, output_attentions=True, output_hidden_states=True)
    hook.remove()
    context = caught[0][..., index * D : (index + 1) * D]
    return output.hidden_states[layer], output.attentions[layer][:, index], context


@exercise("3.4", points=2)
def softmax_over_keys(answer):
    """The answer turns scores (…, S, T) into rows that sum to 1, does not overflow, and is built from exp and sum."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(3)
    for shape in ((4, 4), (2, 3, 5), (2, 2, 3, 4)):
        scores = torch.randn(shape, generator=generator)
        with NoSoftmax():
            result = expect_tensor(run_on_copies(answer, scores), shape)
        exponentials = scores.exp()
        expect(not close(result, exponentials), "These are the exponentials. Divide each row by its sum.")
        expect(not close(result, scores.softmax(-2)), "These are softmax over the columns: sum over dim=-1.")
        expect(
            not close(result, exponentials / exponentials.sum()),
            "All weights together sum to 1, but each row should: sum over dim=-1 only.",
        )
        expect(
            scores.dim() != 2 or not close(result, exponentials / exponentials.sum(-1)),
            "Each column is divided by the sum of a row: keep the dimension, with keepdim=True.",
        )
        expect(
            close(result, scores.softmax(-1)),
            "The rows are not right: e to the score, divided by the row's sum.",
        )
    for scores, name in EXTREMES.items():
        large = torch.tensor(scores)
        result = expect_tensor(run_on_copies(answer, large), tuple(large.shape))
        expect(
            result.isfinite().all(),
            f"Right for small scores, but {name} give nan: subtract each row's own largest score, always.",
        )
        expect(close(result, large.softmax(-1), 1e-3), f"Right for small scores, but not for {name}.")
    return "Subtracting the largest score changes nothing but the overflow."


EXTREMES = {
    ((1000.0, 999.0), (-3.0, 2.0)): "scores of 1,000",
    ((-1000.0, -1001.0), (0.0, 1.0)): "scores of −1,000",
    ((1000.0, 999.0), (-1000.0, -1001.0)): "rows of 1,000 and of −1,000 together",
    ((88.5, 88.5, 88.5), (0.0, 0.0, 1.0)): "scores of 88, whose exponentials sum to more than a float holds,",
    ((1000.0, -1000.0, 0.0), (0.0, -1000.0, 1000.0)): "scores of 1,000 and of −1,000 in one row",
    ((2.0, -torch.inf, 1.0), (-torch.inf, 0.0, -torch.inf)): "masked scores, −∞,",
}


class NoSoftmax(TorchFunctionMode):
    """While this is on, torch's own softmax, in attention too, answers with a `Hint`."""

    def __torch_function__(self, function, types, arguments=(), options=None):
        name = getattr(function, "__name__", "")
        if "softmax" in name or name == "scaled_dot_product_attention":
            raise Hint("This calls torch's softmax: write it yourself, from exp and sum.")
        return function(*arguments, **(options or {}))


@exercise("3.5", points=3)
def attention_through_a_window(answer):
    """The answer returns context and weights of attention to unmasked keys at most `reach` places away."""
    expect_function(answer)
    first, second = ((1, 1, 1, 0, 1), (1, 0, 1, 1, 0)), ((1, 0, 1, 1, 0, 1, 1),) * 3
    check_window(answer, torch.tensor(first), D=8, reach=1)
    try:
        check_window(answer, torch.tensor(second), D=4, reach=2)
    except (Hint, RuntimeError) as error:
        raise Hint(
            "Right for S = 5, D = 8 and reach = 1, but not for S = 7, D = 4 and reach = 2: take every size from the "
            f"arguments ({error})"
        ) from error
    return "Its cost grows with S × reach, if one leaves out what is masked."


def check_window(answer, attention_mask, D: int, reach: int) -> None:
    """Compare an answer to 3.5 with the right context and weights, after the typical wrong ones."""
    B, S = attention_mask.shape
    query, key, value = torch.randn(3, B, S, D, generator=torch.Generator().manual_seed(3))
    result = run_on_copies(answer, query, key, value, attention_mask, reach)
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint("Return two tensors: the context and the attention weights.")
    context = expect_tensor(result[0], (B, S, D), "The context, returned first,")
    weights = expect_tensor(result[1], (B, S, S), "The attention weights, returned second,")
    for hint, wrong in wrong_masked_weights(query, key, attention_mask, reach):
        expect(not close(weights.nan_to_num(), wrong.nan_to_num()), hint)
    mask = attention_mask[:, None, :].bool() & window(S, reach)
    wanted_context, wanted = scaled_dot_product_attention(query, key, value, mask)
    expect(
        not weights.isnan().any(),
        "There are nan in the weights: does some query see no key at all? Here each has one within reach.",
    )
    expect(close(weights, wanted), "The weights are not right: scores / √D, both masks, then softmax.")
    expect(close(context, wanted_context), "The weights are right. The context is weights @ value.")


def wrong_masked_weights(query, key, attention_mask, reach):
    """Pairs of a hint and the weights (B, S, S) of a typical mistake."""
    scores = query @ key.transpose(1, 2) * query.size(-1) ** -0.5
    S = scores.size(-1)
    padding, near = attention_mask[:, None, :].bool(), window(S, reach)
    mask, hidden = padding & near, -torch.inf

    def masked(allowed):
        return scores.masked_fill(~allowed, hidden).softmax(-1)

    unscaled = (scores * query.size(-1) ** 0.5).masked_fill(~mask, hidden).softmax(-1)
    yield "The scores are not scaled: divide them by √D before the softmax.", unscaled
    yield "No mask shows in the weights.", scores.softmax(-1)
    yield "A query still sees tokens beyond its reach: add the window.", masked(padding.expand_as(scores))
    yield "A query still sees tokens where attention_mask is 0: use it too.", masked(near.expand_as(scores))
    yield "The window looks back only: keys after the query are within reach too.", masked(mask & near.tril())
    yield (
        "The window looks ahead only: keys before the query are within reach too.",
        masked(mask & near.triu()),
    )
    yield (
        "The window is too narrow by one: a key exactly `reach` places away is seen.",
        masked(padding & window(S, reach - 1)),
    )
    yield (
        "The window is too wide by one: a key `reach` + 1 places away is not seen.",
        masked(padding & window(S, reach + 1)),
    )
    yield "A row sees what either mask allows: it takes both, with & or a product.", masked(padding | near)
    yield (
        "The weights are set to 0 after the softmax, so the rows do not sum to 1: mask the scores.",
        scores.softmax(-1) * mask,
    )
    yield "A masked score of 0 still gets a weight, e⁰ = 1: use −inf.", (scores * mask).softmax(-1)
    over_queries = scores.masked_fill(~mask, hidden).softmax(-2)
    yield "Softmax runs over the queries: the keys are the last dimension, dim=-1.", over_queries
    yield (
        "The rows of masked tokens are 0: a mask takes keys away, and every query keeps its row.",
        masked(mask) * attention_mask[..., None],
    )
    both = mask & attention_mask[..., None].bool()
    yield (
        "The rows of masked tokens are empty: a mask takes keys away, and every query keeps its row.",
        masked(both),
    )


def window(size: int, reach: int) -> torch.Tensor:
    """(S, S), True where key and query are at most `reach` places apart."""
    places = torch.arange(size)
    return (places[:, None] - places).abs() <= reach


def pair_of(answer):
    """The two parts of an answer; a `Hint` if there are not two."""
    if not isinstance(answer, (tuple, list, torch.Tensor)) or len(answer) != 2:
        raise Hint("Give two answers, one for each name.")
    return answer
