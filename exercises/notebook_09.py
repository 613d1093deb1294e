"""Checks for the exercises of notebook 09."""

import random
from collections.abc import Callable
from functools import cache
from unittest import mock

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from exercises.comparison import comparison, expect_own, name_the_mistake
from exercises.framework import (
    Hint,
    as_letter,
    as_number,
    close,
    exercise,
    expect,
    expect_function,
    expect_tensor,
    from_text,
    two_things,
)
from exercises.mistakes import functions
from exercises.prediction import prediction
from utils.encoder_layer import TransformerEncoderLayer
from utils.support.datasets import imdb_reviews


def as_numbers(answer) -> Tensor:
    """Return the answer as a tensor of two numbers, brackets around it or a text of them allowed; else a `Hint`."""
    answer = from_text(answer)
    if isinstance(answer, (tuple, list)) and any(isinstance(one, str) for one in answer):
        answer = [as_number(one, "Each number") for one in answer]
    try:
        numbers = torch.as_tensor(answer).detach().cpu().double().squeeze()
    except (TypeError, ValueError, RuntimeError):
        raise Hint("Give two numbers, such as (1.0, 2.0).") from None
    if numbers.shape != (2,):
        raise Hint("Give two numbers, such as (1.0, 2.0): the vector has H = 2.")
    return numbers.float()


prediction(
    "9.1",
    as_numbers,
    """
    = (2.0, 3.0)
    (3.0, 3.0) | Padding is included in the mean. The mask excludes (6, 3).
    (1.5, 2.25) | The sum is right, but only three tokens are real. Divide by 3, not by 4.
    (6.0, 9.0) | This is the sum of the real tokens. Divide it by their number.
    (12.0, 12.0) | This is the sum with padding. Leave out padding, then divide.
    (4.0, 4.0) | The sum includes padding, and is divided by 3. Leave (6, 3) out of the sum, too.
    (2.0, 1.0) | This is the first token's vector, as in [CLS] pooling. Average all real tokens.
    (4.0, 7.0) | This is the largest number of each column. Take the mean.
    (3.0, 2.0) | The two numbers are swapped. The first is the mean of 2, 4 and 0.
    (2.0, 4.0) | Add the three real vectors, and divide by three.
    """,
    near=close,
    remark="Padding is neither added nor counted.",
)


def answer_for(answer: Callable, **inputs):
    """Return what the function returns for these tensors, by position; a `Hint` if it altered one of them."""
    given = {name: value.clone() if isinstance(value, Tensor) else value for name, value in inputs.items()}
    result = answer(*given.values())
    for name, value in inputs.items():
        if isinstance(value, Tensor):
            expect(given[name].equal(value), f"Your function changes {name} in place. Make a new tensor instead.")
    return result


MASKS = {
    "B = 3, S = 4 and H = 6": [[1, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]],
    "B = 2 and S = 7": [[1, 1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 1, 0, 0]],
    "padding that comes first": [[0, 0, 1, 1, 1], [1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [0, 1, 1, 1, 0]],
}


def states_and_mask(mask: list) -> tuple[Tensor, Tensor]:
    """Return hidden states (B, S, H) for a mask (B, S), and the mask."""
    return torch.randn(len(mask), len(mask[0]), 3 + len(mask)), torch.tensor(mask)


def masked(states: Tensor, mask: Tensor) -> Tensor:
    """Return states (B, S, H) with zeros for padding."""
    return states * mask[..., None]


def inverted(states: Tensor, mask: Tensor) -> Tensor:
    """Return the mean of each text's padding, nan where there is none."""
    return masked(states, 1 - mask).sum(1) / (1 - mask).sum(1, keepdim=True)


comparison(
    "9.2",
    "states, mask",
    "masked(states, mask).sum(1) / mask.sum(1, keepdim=True)",
    """
    states.mean(1) | Padding is included in the mean. Multiply each vector by its mask, 1 or 0, before you add them up.
    masked(states, mask).mean(1) | The sum is right, but it is divided by S. Divide by the number of real tokens, the
        sum of the mask.
    masked(states, mask).sum(1) | This is the sum of the real tokens. Divide it by their number.
    states.sum(1) / mask.sum(1, keepdim=True) | The sum includes padding. Multiply each vector by its mask first.
    masked(states, mask).sum(1) / mask.sum()
    masked(states, mask).sum(1) / mask.sum(1).float().mean() | All texts are divided by the same number. Divide each by
        its own number of real tokens.
    states[:, 0] | This is the first token's vector, as in [CLS] pooling. Average all real tokens.
    (states - 1e9 * (1 - mask[..., None])).amax(1) | This is the largest number of each column. Take the mean.
    masked(states, mask).amax(1) | This is the largest number of each column, or 0 of padding. Take the mean.
    states.amax(1) | This is the largest number of each column, padding included. Take the mean.
    F.normalize(masked(states, mask).sum(1), dim=-1) | These vectors have length 1. Return the mean itself; `embed`
        divides it by its length.
    if close(answer.nan_to_num(7), inverted(states, mask).nan_to_num(7))
    inverted(states, mask) | The mask is inverted: 1 is a real token, 0 is padding.
    torch.stack([text[:end].mean(0) for text, end in zip(states, mask.sum(1).tolist())]) | Padding may come first, too.
        Use the tokens whose mask is 1, not the first ones.
    (masked(states, mask).sum((0, 1)) / mask.sum()).expand(len(mask), -1) | All texts are averaged together. Sum over S,
        dim=1, which gives (B, H).
    2 * masked(states, mask).sum(1) / mask.sum(1, keepdim=True) | Multiply each vector by its mask, add them up along S,
        and divide by the sum of the mask.
    """,
    inputs=states_and_mask,
    sizes={name: (mask,) for name, mask in MASKS.items()},
    own=("mean_pooling", "write the mean yourself."),
    remark="From here on, `to_vectors` takes your mean.",
    points=3,
)


@exercise("9.3", points=2)
def nearest_of_all(answer):
    """Check the k largest cosines of each query, and their row numbers."""
    expect_function(answer)
    expect_own(answer, "search", "write the search yourself.")
    generator = torch.Generator().manual_seed(2)
    for Q, N, H, k in ((4, 30, 6, 3), (2, 12, 9, 5), (5, 7, 4, 1), (3, 3, 5, 3)):
        queries = F.normalize(torch.randn(Q, H, generator=generator), dim=-1)
        vectors = F.normalize(torch.randn(N, H, generator=generator), dim=-1)
        cosines, rows = as_pair(answer_for(answer, queries=queries, vectors=vectors, k=k))
        size = f"For {Q} queries, {N} vectors and k = {k}"
        every = queries @ vectors.T
        wanted = every.topk(k)
        along_queries = k != Q and tuple(cosines.shape) in ((k, Q), (k, N))
        expect(
            not along_queries,
            "Return a row for each query, (Q, k): take topk of the (Q, N) cosines along the last dimension.",
        )
        cosines = expect_tensor(cosines, (Q, k), f"{size}, the first result")
        rows = expect_tensor(rows, (Q, k), f"{size}, the second result")
        expect(
            not (rows.is_floating_point() and not cosines.is_floating_point()),
            "The two are swapped: the cosines come first, then the row numbers.",
        )
        expect(not rows.is_floating_point(), "The second result should be row numbers, which are integers.")
        hints = [
            (every.topk(k, largest=False).indices, "These are the farthest vectors. Take the largest cosines."),
            (wanted.indices.flip(1), "The order is reversed. The best comes first."),
            (wanted.indices.sort().values, "These are sorted by row number. The best comes first."),
            (every.abs().topk(k).indices, "A negative cosine counts as near here. Keep its sign."),
            (wanted.indices[:1].expand(Q, k), "All queries have the first one's result. Each query needs its own row."),
            (wanted.indices + 1, "Rows are counted from 0."),
        ]
        for wrong, hint in hints:
            expect(not torch.equal(rows, wrong) or torch.equal(wanted.indices, wrong), hint)
        right = torch.equal(rows, wanted.indices)
        expect(
            right, f"{size}, some row numbers are wrong. Compare every query with every vector, then choose the best."
        )
        scores = [
            (1 - wanted.values, "The row numbers are right, but these are distances, 1 − cosine."),
            (torch.cdist(queries, vectors).gather(1, rows), "The row numbers are right, but these are distances."),
            (wanted.values.acos(), "The row numbers are right, but these are angles."),
        ]
        for wrong, hint in scores:
            expect(not close(cosines, wrong), hint)
        expect(close(cosines, wanted.values), "The row numbers are right, but the cosines are not.")
    return "From here on, `search` is yours."


def as_pair(value) -> tuple[Tensor, Tensor]:
    """Return the two results, as tensors; else a `Hint`."""
    one = isinstance(value, (Tensor, np.ndarray))
    expect(not one, "Return two tensors, the cosines and the row numbers. You return one.")
    pair = isinstance(value, (tuple, list)) and len(value) == 2
    expect(pair, f"Return two tensors, the cosines and the row numbers, not something of type {type(value).__name__}.")
    for part in value:
        kind = type(part).__name__
        expect(isinstance(part, Tensor), f"Return torch tensors, which later cells need, not a {kind}.")
    return tuple(value)


def hits(found: Tensor, exact: Tensor) -> Tensor:
    """Return whether each exact number is in its own row of `found`, (Q, k)."""
    return (exact[:, :, None] == found[:, None, :]).any(dim=-1)


WRONG_RECALLS = functions(
    "9.4",
    "found, exact",
    """
    (found == exact).float().mean() | Only numbers at the same index count here. The order should not matter.
    torch.isin(exact, found).float().mean() | A number that another query found is not a hit. Compare each query's row
        with its own.
    hits(found, exact).any(1).float().mean() | This is the share of queries with at least one hit. Count every exact
        neighbour.
    hits(found, exact).all(1).float().mean() | This counts only first neighbours, or only queries with all neighbours
        found. Count every neighbour.
    (hits(found, exact).sum(1) / (found >= 0).sum(1)).mean() | Divide by k even if fewer were found: a missing neighbour
        (-1) is a miss.
    hits(found, exact).sum() / (found >= 0).sum() | Divide by all exact neighbours: a missing one (-1) counts as a miss.
    hits(found, exact).sum() | This is the number of hits. Divide it by the number of possible hits.
    100 * hits(found, exact).float().mean() | This is a percentage. Return a share between 0 and 1.
    (found[:, :, None] == exact[:, None]).float().mean() | This divides by all k · k comparisons of a query. A neighbour
        is found if *any* of them is equal.
    sum(len(set(a) & set(b)) for a, b in zip(found, exact)) | Your function finds no hits at all. In a set, elements of
        tensors never agree: use .tolist() first.
    hits(found, exact).sum() / len(found) | This is the number of hits per query. Divide by k, too.
    sum(len(set(a) & set(b)) / len(set(a) | set(b)) for a, b in zip(found.tolist(), exact.tolist())) / len(found) |
        This divides by all numbers of both rows together. Divide by k.
    """,
    globals(),
)


@exercise("9.4", points=3)
def share_that_was_found(answer):
    """Check the recall of found row numbers, query by query, in any order."""
    expect_function(answer)
    expect_own(answer, "recall", "write the measure yourself.")
    found = torch.tensor([[7, 2, 5], [5, 3, -1], [0, 9, 8], [4, 6, 1]])
    exact = torch.tensor(
        [[2, 7, 9], [3, 4, 7], [9, 0, 8], [2, 0, 3]]
    )  # −1 of the second row is 9 of the first, plus 10
    share = "The share, one number for all queries,"
    result = as_number(answer_for(answer, found=found, exact=exact), share)
    wanted = 6 / 12
    name_the_mistake(result, wanted, WRONG_RECALLS, (found, exact))
    expect(
        close(result, wanted),
        "Count the exact numbers that are in their own row of `found`, then divide by all of them.",
    )
    first = torch.tensor([[1, 2], [7, 8]]), torch.tensor([[9, 1], [3, 4]])
    result = as_number(answer(*first), share)
    shown = f"For found {first[0].tolist()} and exact {first[1].tolist()} it should be 0.25, not {result:.3g}"
    expect(close(result, 1 / 4), f"{shown}: does each exact number count once? Is a size fixed?")
    perfect = as_number(answer(exact.flip(1), exact.clone()), share)
    expect(close(perfect, 1.0), "If all are found in another order, the recall should be 1.")
    other = as_number(answer(found[:3, :2].clone(), exact[:3, :2].clone()), share)
    expect(close(other, 5 / 6), "For 3 queries and k = 2 the result is wrong. Is a size fixed?")
    return ""


MEAN_VECTOR = 172  # queries of the second thousand for which it puts the right text first, by utils/data/search.json


@cache
def second_thousand() -> tuple[list[str], list[str]]:
    """Return the first 30 words, and the next 30, of the second 1,000 reviews that are long enough."""
    long = [words for text in imdb_reviews("test") if len(words := text.split()) >= 60][1000:2000]
    return tuple([" ".join(words[start : start + 30]) for words in long] for start in (0, 30))


def refuse(*arguments, **options):
    """Raise `Hint` in place of a layer's forward."""
    raise Hint("Your search runs the encoder's layers. The title says that you need them: do without.")


@exercise("9.5", points=2)
def rival_without_layers(answer):
    """Check a search without layers that finds as many texts as the mean vector, and the title that survives."""
    score, title = two_things(answer, "your function, and the letter of the title")
    title = as_letter(title, "abc")
    queries, texts = second_thousand()
    places = random.Random(0).sample(range(len(texts)), len(texts))
    with mock.patch.object(TransformerEncoderLayer, "forward", refuse):
        scores = score(list(queries), [texts[place] for place in places])
    expect(not hasattr(scores, "toarray"), "Your scores are a sparse matrix. Return scores.toarray().")
    scores = expect_tensor(scores, (len(queries), len(texts)), "Your scores").double()
    expect(not scores.isnan().any(), "A score is NaN. Is something divided by 0?")
    right = scores.gather(1, torch.tensor(places).argsort()[:, None])  # (Q, 1)
    first = int(((scores >= right).sum(dim=1) == 1).sum())
    found = f"Your search has the right text first for {first} of 1,000 queries, the mean vector for {MEAN_VECTOR}."
    more = "Thirty words show little of how rare a word is. Learn that from whole reviews."
    expect(first >= MEAN_VECTOR, found, more)
    expect(title != "b", f"{found} So title b falls, too.")
    expect(title == "a", "Title c falls: counted words find 144 of this thousand, and with the mean vector added 188.")
    return found
