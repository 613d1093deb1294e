"""Checks for the exercises of notebook 09."""

import ast
import contextlib
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from exercises.comparison import comparison, expect_own, name_the_mistake
from exercises.framework import (
    Hint,
    as_number,
    as_tensor,
    close,
    compare_stages,
    exercise,
    expect,
    expect_function,
    expect_tensor,
)
from exercises.mistakes import functions
from exercises.prediction import prediction
from utils.encoder import TransformerEncoder
from utils.support.checkpoint import load_reference_model, load_tokenizer
from utils.support.sentence_settings import sentence_length
from utils.tokenization import WordPieceTokenizer


def as_numbers(answer) -> Tensor:
    """Return the answer as a tensor of two numbers, brackets around it or a text of them allowed; else a `Hint`."""
    if isinstance(answer, str):
        with contextlib.suppress(ValueError, SyntaxError):
            answer = ast.literal_eval(answer.strip())
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
    masked(states, mask).sum(1) / mask.sum() | All texts are divided by the number of real tokens in the whole batch.
        Divide each by its own.
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
    own=("mean_pooling", "write the mean yourself, under a name of your own."),
    remark="From here on, `embed` takes your mean.",
)


@exercise("9.3", points=2)
def nearest_of_all(answer):
    """Check the k largest cosines of each query, and their row numbers."""
    expect_function(answer)
    expect_own(answer, "search", "write the search yourself, under a name of your own.")
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


SENTENCE = "a film that nobody who sat through it will forget although many of them have tried"
EMBED_HINTS = {
    "one short text": "Tokenize the text, run the encoder, take the mean of all tokens, including [CLS] and [SEP], and "
    "divide it by its length.",
    "texts of different lengths": "The shorter texts are padded, so use the mask to exclude padding from the mean. "
    "Each vector belongs in the row of its own text.",
    "more texts than a batch holds": "Each vector belongs in the row of its own text, whichever batch it was in.",
    "one text a batch": "The result is wrong with batch_size=1.",
    "an encoder in training mode": "Dropout is on. Switch it off with encoder.eval() first.",
    "a text longer than the positions": (
        "Truncate it: tokenizer(texts, max_length=encoder.config.max_position_embeddings), or at the checkpoint's own "
        "limit, as `embed` does."
    ),
}


@exercise("9.4", points=3)
def embed_written(answer):
    """Check a function from texts to unit vectors against the official model, case by case."""
    expect_function(answer)
    finished = "write its steps yourself, from encoder(**batch) to unit vectors."
    for name in ("embed", "embed_plainly"):
        expect_own(answer, name, finished)
    encoder, tokenizer = deepcopy(finished_model())  # an answer may alter them
    texts = [" ".join(SENTENCE.split()[:length]) for length in (3, 1, 9, 2, 16, 4, 5)]
    first = run_embed(answer, texts[:1], encoder, tokenizer)
    expect_no_known_mistake(first, texts[:1])
    compare_stages(embed_stages(answer, texts, encoder, tokenizer), EMBED_HINTS)
    for mode in (False, True):
        encoder.train(mode)
        run_embed(answer, texts[:2], encoder, tokenizer)
        wanted = "training" if mode else "evaluation"
        hint = f"The encoder was in {wanted} mode before, and is not afterwards. Restore its mode."
        expect(encoder.training is mode, hint)
    expect(not first.requires_grad, "The vectors require gradients. Run the encoder under torch.no_grad().")
    return "Equal to the official model, whatever the batch."


def embed_stages(answer, texts: list[str], encoder, tokenizer) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield the reader's vectors and the official ones for ever harder cases."""
    wanted = official_vectors(tuple(texts))
    yield "one short text", run_embed(answer, texts[:1], encoder, tokenizer), wanted[:1]
    yield "texts of different lengths", run_embed(answer, texts, encoder, tokenizer), wanted
    yield "more texts than a batch holds", run_embed(answer, texts, encoder, tokenizer, 3), wanted
    yield "one text a batch", run_embed(answer, texts, encoder, tokenizer, 1), wanted
    encoder.train()
    yield "an encoder in training mode", run_embed(answer, texts[:3], encoder, tokenizer), wanted[:3]
    encoder.eval()
    longest = ("word " * 600,)
    vectors = run_embed(answer, list(longest), encoder, tokenizer)
    limits = (encoder.config.max_position_embeddings, sentence_length(encoder))  # embed takes the second
    wanted = [official_vectors(longest, limit) for limit in limits if limit]
    yield "a text longer than the positions", vectors, min(wanted, key=lambda each: (each - vectors).norm())


def run_embed(answer, texts: list[str], encoder, tokenizer, *batch_size: int) -> Tensor:
    """Return the function's vectors on the CPU; `Hint` if it changed the texts or used larger batches."""
    given, sizes, calls = list(texts), [0], []
    hooks = [
        encoder.embeddings.word_embeddings.register_forward_pre_hook(lambda _, ids: sizes.append(len(ids[0]))),
        encoder.register_forward_pre_hook(lambda *_: calls.append(1)),
    ]
    try:
        result = answer(given, encoder, tokenizer, *batch_size)
    finally:
        for hook in hooks:
            hook.remove()
    elsewhere = isinstance(result, (Tensor, np.ndarray)) and not calls
    expect(not elsewhere, "Your function never calls encoder(**batch). Write that step yourself.")
    expect(given == texts, "Your function changes the list of texts. Sort a copy, or their indices.")
    for size in batch_size:
        expect(max(sizes) <= size, f"With batch_size={size} it passes the encoder {max(sizes)} texts at a time.")
    return expect_tensor(as_tensor(result), (len(texts), encoder.config.hidden_size)).cpu()


@cache
def finished_model() -> tuple[TransformerEncoder, WordPieceTokenizer]:
    """Return the encoder and the tokenizer that the reader's function uses, read once."""
    return TransformerEncoder.from_checkpoint(), WordPieceTokenizer.from_checkpoint()


@cache
def official() -> tuple:
    """Return the official model and tokenizer, read once for all the cases."""
    return load_reference_model(), load_tokenizer()


@cache
@torch.no_grad()
def official_vectors(texts: tuple[str, ...], limit: int | None = None) -> Tensor:
    """Return normalised means of the official model's token vectors, one text of at most `limit` tokens at a time."""
    model, tokenizer = official()
    limit, vectors = limit or model.config.max_position_embeddings, []
    for text in texts:
        batch = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        vectors.append(model(**batch).last_hidden_state[0].mean(dim=0))
    return F.normalize(torch.stack(vectors), dim=-1)


@torch.no_grad()
def expect_no_known_mistake(found: Tensor, texts: list[str]) -> None:
    """Raise `Hint` that names the mistake in the vector of one text, if it is one that readers make."""
    model, tokenizer = official()
    output = model(**tokenizer(texts, return_tensors="pt"))
    states = output.last_hidden_state
    hints = [
        (states.mean(dim=1), "The direction is right, but the length is not 1. Divide each vector by its length."),
        (states[:, 0], "This is the vector of [CLS]. Take the mean of all real tokens."),
        (output.pooler_output, "This is the pooled [CLS]. Take the mean of all real tokens."),
        (states[:, 1:-1].mean(dim=1), "[CLS] and [SEP] are left out. They are real tokens, so include them."),
        (states[:, -1], "This is the vector of the last token. Take the mean of all real tokens."),
        (
            F.normalize(states, dim=-1).mean(dim=1),
            "Each token was normalised before the mean. Take the mean first, then divide by its length.",
        ),
        (states.amax(dim=1), "This is the largest number of each column. Take the mean."),
    ]
    for wrong, hint in hints:
        for made in (wrong, F.normalize(wrong, dim=-1)):
            correct = close(made, F.normalize(states.mean(dim=1), dim=-1), 1e-4)
            expect(correct or not close(found, made, 1e-4), hint)


def normalized(states: Tensor) -> Tensor:
    """Return vectors of length 1."""
    return F.normalize(states, dim=-1)


def shares(a: Tensor, b: Tensor) -> Tensor:
    """Return what exercise 9.5 asks for: the parts of the cosine of two means, (S, T)."""
    return a @ b.T / (len(a) * len(b) * a.mean(0).norm() * b.mean(0).norm())


comparison(
    "9.5",
    "a, b",
    "shares(a, b)",
    """
    shares(a, b).T | The rows should be the tokens of the first text, and the columns those of the second.
    a @ b.T | These are the products of the vectors. Divide by the numbers of tokens and the lengths of the means.
    a @ b.T / (len(a) * len(b)) | Divide by the lengths of the two means, too: the cosine is divided by both.
    shares(a, b) * len(a) * len(b) | Divide by the numbers of tokens, too: a mean is a sum divided by the number of
        vectors.
    shares(a, b) * len(a)
    shares(a, b) * len(b) | Only one of the two means is divided by its number of tokens.
    normalized(a) @ normalized(b).T | These are the cosines of the tokens. Divide by the lengths of the *means*.
    normalized(a) @ normalized(b).T / (len(a) * len(b)) | These are the cosines of the tokens, divided by their number.
        Divide by the lengths of the *means*.
    a @ b.T / (a @ b.T).sum()
    (a @ b.T).softmax(-1)
    (a @ b.T).flatten().softmax(0).view(len(a), -1) | Softmax or a division by the sum makes them add up to 1. They
        should add up to the cosine.
    if not close(answer.sum(), F.cosine_similarity(a.mean(0), b.mean(0), dim=0), 1e-4)
    2 * shares(a, b) | They add up to something else than the cosine of the two means.
    shares(a, b).mean().expand(len(a), len(b)) | They add up to the cosine, but they are wrong. Each is the product of
        two vectors, divided by the same number.
    """,
    inputs=lambda S, T, H: (torch.randn(S, H) + 0.5, torch.randn(T, H) + 0.5),
    sizes={"3 and 5 tokens": (3, 5, 4), "6 and 4 tokens": (6, 4, 2), "7 and 1 tokens": (7, 1, 3)},
    own=("shares_of_cosine", "write it yourself, under a name of your own."),
    lists=True,
    remark="This is why two texts are near, to the last digit.",
)


def hits(found: Tensor, exact: Tensor) -> Tensor:
    """Return whether each exact number is in its own row of `found`, (Q, k)."""
    return (exact[:, :, None] == found[:, None, :]).any(dim=-1)


WRONG_RECALLS = functions(
    "9.6",
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


@exercise("9.6", points=2)
def share_that_was_found(answer):
    """Check the recall of found row numbers, query by query, in any order."""
    expect_function(answer)
    expect_own(answer, "recall", "write the measure yourself, under a name of your own.")
    found = torch.tensor([[7, 2, 5], [5, 3, -1], [0, 9, 8], [4, 6, 1]])
    exact = torch.tensor([[2, 7, 1], [3, 4, 7], [9, 0, 8], [2, 0, 3]])
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
