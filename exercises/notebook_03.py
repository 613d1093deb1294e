"""Checks for the exercises of notebook 03."""

import torch

from exercises import Hint, close, exercise, expect, expect_tensor
from utils.attention import scaled_dot_product_attention


@exercise("3.1")
def shapes_of_attention(answer):
    """The answer is the shape of the attention weights and of the context, as lists, tuples or torch.Size."""
    weights, context = (as_numbers(shape, "a shape such as (2, 7)") for shape in pair_of(answer))
    hint = "query @ keyᵀ with (2, 7, 64) and (2, 5, 64) sums the 64 away. Which sizes are left?"
    expect(
        weights != [2, 5, 7], "The weights have a row for each query and a column for each key: (B, S, T)."
    )
    expect(weights != [2, 7, 7], "The keys are 5, not 7: each query has one weight a key.")
    expect(weights == [2, 7, 5], f"The shape of the weights is not right. {hint}")
    expect(context != [2, 7, 64], "The context averages values, so it is as wide as a value, not as a key.")
    expect(context != [2, 5, 32], "The context has one vector for each query, not for each key.")
    expect(
        context == [2, 7, 32], "The context is weights @ value: (2, 7, 5) times (2, 5, 32) has which shape?"
    )
    return "The size of query and key is summed away."


@exercise("3.2")
def spread_of_dot_products(answer):
    """The answer is the standard deviation of the dot product for D = 64 before and after scaling: 8 and 1."""
    before, after = as_numbers(pair_of(answer), "numbers")
    expect(not close(before, 64.0), "64 is the variance; its square root is the standard deviation.")
    expect(close(before, 8.0), "Each of the 64 products has variance 1, and variances add up. And the root?")
    expect(not close(after, 8.0), "Dividing a number by √D divides its standard deviation by √D as well.")
    expect(close(after, 1.0), "Divide the standard deviation by √64: what is left of it?")
    return "The scores have the same spread for every D."


@exercise("3.3")
def softmax_over_keys(answer):
    """The answer turns scores (…, S, T) into rows that sum to 1, and does not overflow."""
    expect(callable(answer), "Write a function of the scores.")
    generator = torch.Generator().manual_seed(3)
    for shape in ((4, 4), (2, 3, 5)):
        scores = torch.randn(shape, generator=generator)
        result = expect_tensor(answer(scores.clone()), shape)
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
    large = torch.tensor([[1000.0, 999.0], [-1000.0, 0.0]])
    result = expect_tensor(answer(large.clone()), (2, 2))
    expect(
        result.isfinite().all(),
        "Right for small scores, but a score of 1,000 gives nan: subtract the row's largest score first.",
    )
    expect(
        close(result, large.softmax(-1), 1e-3),
        "Right for small scores, but not for scores of 1,000 and −1,000.",
    )
    return "Subtracting the largest score changes nothing but the overflow."


@exercise("3.4")
def attention_with_two_masks(answer):
    """The answer returns context and weights of attention in which a query sees unmasked keys up to itself."""
    expect(callable(answer), "Write a function of query, key, value and attention_mask.")
    B, S, D = 2, 5, 8
    query, key, value = torch.randn(3, B, S, D, generator=torch.Generator().manual_seed(3))
    attention_mask = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 1, 0]])
    result = answer(query.clone(), key.clone(), value.clone(), attention_mask.clone())
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise Hint("Return two tensors: the context and the attention weights.")
    context = expect_tensor(result[0], (B, S, D), "The context, returned first,")
    weights = expect_tensor(result[1], (B, S, S), "The attention weights, returned second,")
    real = attention_mask == 1  # a masked token's own row is free
    for hint, wrong in wrong_masked_weights(query, key, attention_mask):
        expect(not close(weights[real].nan_to_num(), wrong[real].nan_to_num()), hint)
    mask = attention_mask[:, None, :].bool() & causal_mask(S)
    wanted_context, wanted = scaled_dot_product_attention(query, key, value, mask)
    expect(
        not weights[real].isnan().any(), "There are nan in the weights: does some query see no key at all?"
    )
    expect(
        close(weights[real], wanted[real]),
        "The weights are not right: scores / √D, both masks, then softmax.",
    )
    expect(
        close(context[real], wanted_context[real]), "The weights are right. The context is weights @ value."
    )
    return "Each query sees what both masks leave it."


def wrong_masked_weights(query, key, attention_mask):
    """Pairs of a hint and the weights (B, S, S) of a typical mistake."""
    scores = query @ key.transpose(1, 2) * query.size(-1) ** -0.5
    padding, causal = attention_mask[:, None, :].bool(), causal_mask(scores.size(-1))
    mask, hidden = padding & causal, -torch.inf
    unscaled = (scores * query.size(-1) ** 0.5).masked_fill(~mask, hidden).softmax(-1)
    yield "The scores are not scaled: divide them by √D before the softmax.", unscaled
    yield "No mask shows in the weights.", scores.softmax(-1)
    yield (
        "A query still sees later tokens: add the causal mask.",
        scores.masked_fill(~padding, hidden).softmax(-1),
    )
    yield (
        "A query still sees tokens where attention_mask is 0: use it too.",
        scores.masked_fill(~causal, hidden).softmax(-1),
    )
    backwards = scores.masked_fill(~(padding & causal.T), hidden).softmax(-1)
    yield "Each query sees the tokens from itself on: the causal mask is a lower triangle, tril().", backwards
    yield (
        "A row sees what either mask allows: it takes both masks, with & or a product.",
        scores.masked_fill(~(padding | causal), hidden).softmax(-1),
    )
    yield (
        "The weights are set to 0 after the softmax, so the rows do not sum to 1: mask the scores.",
        (scores.softmax(-1) * mask),
    )
    yield "A masked score of 0 still gets a weight, e⁰ = 1: use −inf.", (scores * mask).softmax(-1)
    over_queries = scores.masked_fill(~mask, hidden).softmax(-2)
    yield "Softmax runs over the queries: the keys are the last dimension, dim=-1.", over_queries


def causal_mask(size: int) -> torch.Tensor:
    """(S, S), True where a key is not later than the query."""
    return torch.ones(size, size, dtype=torch.bool).tril()


def pair_of(answer):
    """The two parts of an answer; a `Hint` if there are not two."""
    if not isinstance(answer, (tuple, list, torch.Tensor)) or len(answer) != 2:
        raise Hint("Give two answers, one for each name.")
    return answer


def as_numbers(values, wanted: str) -> list[float]:
    """The values (a tuple, list, torch.Size or tensor) as numbers; a `Hint` if they are none."""
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise Hint(f"Both answers should be {wanted}.") from None
