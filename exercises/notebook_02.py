"""Checks for the exercises of notebook 02."""

import numbers

import torch
from torch.nn import functional as F

from exercises import Hint, close, exercise, expect, expect_tensor
from utils.checkpoints import load_config


def as_number(answer) -> float:
    """The answer as a float, whether Python's, numpy's or a tensor with one element; else a `Hint`."""
    if isinstance(answer, numbers.Number) and not isinstance(answer, (bool, complex)):
        return float(answer)
    if getattr(answer, "shape", None) is not None and hasattr(answer, "item"):
        expect(answer.shape in ((), (1,)), f"One number is asked for, and this has the shape {answer.shape}.")
        return float(answer.item())
    raise Hint(f"One number is asked for, and this is a {type(answer).__name__}.")


def as_shape(answer) -> tuple:
    """The answer as a tuple of sizes, from a tuple, list, torch.Size, array or tensor; else a `Hint`."""
    if hasattr(answer, "tolist"):
        answer = answer.tolist()
    if not isinstance(answer, (tuple, list)):
        raise Hint(f"A shape is a tuple such as (2, 3), and this is a {type(answer).__name__}.")
    return tuple(as_number(size) for size in answer)


@exercise("2.1")
def shape_of_hidden_states(answer):
    """The answer is the shape of the embeddings of 4 sentences of 9 tokens."""
    config, shape = load_config(), as_shape(answer)
    H, V = config.hidden_size, config.vocab_size
    expect(shape != (4, 9), "That is the shape of the ids; what does each id become?")
    expect(shape not in ((9, H), (36, H)), "The batch axis is missing: (B, S, H).")
    expect(shape != (9, 4, H), "The batch comes first here: (B, S, H).")
    expect(shape != (4, 9, V), "V is the length of a one-hot vector; the look-up gives dense ones.")
    expect(shape != (4, 9, 3 * H), "The three tables are added, not put one after the other.")
    expect(len(shape) == 3, f"Three sizes are asked for, (B, S, H), and this has {len(shape)}.")
    expect(
        shape[:2] == (4, 9), "The first two sizes are those of the ids: B sentences, S tokens with padding."
    )
    expect(shape[2] == H, "The last size is the length of a vector: config.hidden_size.")


@exercise("2.2")
def parameters_of_embeddings(answer):
    """The answer counts the parameters in the embeddings of bert-base-uncased."""
    H, words, positions, types = 768, 30_522 * 768, 512 * 768, 2 * 768
    count, wanted = as_number(answer), words + positions + types + 2 * H
    hints = {
        wanted
        - 2 * H: "2 · 768 are missing: either LayerNorm's scale and shift, or the two rows of token types.",
        wanted - H: "LayerNorm has two vectors of H numbers, a scale and a shift.",
        words: "These are the word vectors; the other two tables and LayerNorm are missing.",
        wanted - positions: "The position table is missing.",
        wanted - positions - 2 * H: "The position table is missing, and LayerNorm.",
        wanted - types - 2 * H: "The token-type table is missing, and LayerNorm.",
        wanted
        - 2 * H
        + 2: "LayerNorm scales and shifts each of the H numbers, so it has 2 · H parameters, not 2.",
        wanted / 1e6: "Write the whole number, not millions.",
    }
    for wrong, hint in hints.items():
        expect(abs(count - wrong) > 0.01, hint)
    expect(
        count == wanted,
        "Add the rows of the three tables, times H, and two vectors of H numbers for LayerNorm.",
    )
    return "That is a fifth of bert-base's 110 million parameters."


@exercise("2.3")
def scale_of_survivors(answer):
    """The answer is 1 / (1 - 0.2)."""
    factor = as_number(answer)
    expect(
        not close(factor, 0.8), "0.8 is the share that survives; times 0.8, the sum would shrink even more."
    )
    expect(not close(factor, 0.2), "0.2 is the share that is set to zero.")
    expect(
        not close(factor, 1.0), "Then the mean would fall to 80 % in training, and rise again in evaluation."
    )
    expect(not close(factor, 1.2), "0.8 of the entries times 1.2 add up to 0.96: a little more is needed.")
    expect(not close(factor, 5.0), "1 / p it is not: think of the share that survives, 1 - p.")
    expect(close(factor, 1.25), "The mean must stay: the surviving share times this number is 1.")


@exercise("2.4")
def layer_norm(answer):
    """The answer normalises the last axis, then scales and shifts."""
    expect(callable(answer), "A function is asked for.")
    generator = torch.Generator().manual_seed(2)
    x = 0.01 * (1 + torch.randn(2, 3, 4, generator=generator))
    weight, bias, eps = torch.tensor([1.0, 2, 3, 4]), torch.tensor([5.0, 6, 7, 8]), 1e-5
    given = x.clone(), weight.clone(), bias.clone(), eps
    result = expect_tensor(answer(*given), (2, 3, 4))
    for hint, normalised in wrong_layer_norms(x, eps).items():
        wrong = normalised if hint.startswith("Scale and shift") else normalised * weight + bias
        expect(not close(result, wrong), hint)
    right = F.layer_norm(x, [4], eps=eps)
    expect(not close(result, right * weight), "The shift is missing: add the bias at the end.")
    expect(not close(result, right + bias), "The scale is missing: multiply by the weight.")
    expect(
        close(result, right * weight + bias, 1e-4),
        "For each token: subtract the mean, divide by the root of (variance + eps), times weight, plus bias.",
    )
    return "Torch's gives the same."


def wrong_layer_norms(x, eps) -> dict[str, torch.Tensor]:
    """Hints for the usual mistakes, each with what it gives for x before scale and shift."""
    centred, variance = x - x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
    first_axis = (x - x.mean(0)) / (x.var(0, unbiased=False) + eps).sqrt()
    tokens = (x - x.mean(1, keepdim=True)) / (x.var(1, unbiased=False, keepdim=True) + eps).sqrt()
    whole = (x - x.mean()) / (x.var(unbiased=False) + eps).sqrt()
    return {
        "Scale and shift are missing: times weight, plus bias.": F.layer_norm(x, [4], eps=eps),
        "This divides by the variance; it is the standard deviation, its root.": centred / (variance + eps),
        "This divides by H - 1, as torch does by default: use unbiased=False.": centred
        / (x.var(-1, keepdim=True) + eps).sqrt(),
        "This divides by H - 1, and eps stands outside the root.": centred / (x.std(-1, keepdim=True) + eps),
        "eps stands outside the root; it belongs to the variance, inside.": centred / (variance.sqrt() + eps),
        "eps is missing: add it to the variance, inside the root.": centred / variance.sqrt(),
        "The mean is not subtracted.": x / (variance + eps).sqrt(),
        "This normalises over the tokens; each token is to be normalised on its own, dim=-1.": tokens,
        "This normalises over the batch; each token is to be normalised on its own, dim=-1.": first_axis,
        "This takes one mean for the whole tensor; use dim=-1 and keepdim=True.": whole,
    }


@exercise("2.5")
def add_position_vectors(answer):
    """The answer adds row s of the table to token s of every sentence."""
    expect(callable(answer), "A function is asked for.")
    generator = torch.Generator().manual_seed(3)
    B, S, P, H = 3, 5, 8, 4
    words, table = (torch.randn(*shape, generator=generator) for shape in ((B, S, H), (P, H)))
    try:
        result = answer(words.clone(), table.clone())
    except RuntimeError as error:
        expect("must match" not in str(error), f"{error}: take the rows of the table that S tokens need.")
        raise
    expect(
        not close(result, table[:S]), "These are the position vectors alone: add them to the word vectors."
    )
    result = expect_tensor(result, (B, S, H))
    expect(not close(result, words), "The positions are missing: this is what went in.")
    expect(
        not close(result, table[:S].expand(B, S, H)), "These are the position vectors alone: add the words."
    )
    expect(
        not close(result, words + table[:B, None]),
        "This goes by the place in the batch; positions count tokens.",
    )
    expect(not close(result, words + table[1 : S + 1]), "The first position is 0, and this starts with 1.")
    expect(not close(result, words + table[:S].flip(0)), "The rows are in reverse order.")
    expect(not close(result, words + table[-S:]), "These are the last rows of the table; take the first S.")
    same = result - words
    expect(
        (same - same[:, :1]).abs().max() > 1e-5, "Each token gets the same vector; token s should get row s."
    )
    expect(close(result, words + table[:S]), "Token s of every sentence should get row s of the table.")
    return "Broadcasting over the batch is all it takes."
