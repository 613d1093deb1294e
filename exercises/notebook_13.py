"""Checks for the exercises of notebook 13."""

import statistics
from functools import partial

import numpy as np
import torch
from torch import Tensor

from exercises.arrays import run_on_copies
from exercises.attention import expect_no_additive
from exercises.framework import (
    Hint,
    as_number,
    as_tensor,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
)
from exercises.mistakes import functions
from exercises.prediction import prediction


@exercise("13.1", points=1)
def mask_of_blocks(answer):
    """Check for a mask that is True where two tokens of a row belong to the same text."""
    expect_function(answer)
    for lengths in ([2, 1], [1, 1, 4], [3, 2, 3], [1]):
        size = sum(lengths)
        given = list(lengths)
        result = expect_tensor(as_tensor(answer(given)), (size, size), f"For lengths {lengths} it")
        expect(given == lengths, "Your function changes the list of lengths. Loop over it without removing anything.")
        wanted = block_mask(lengths)
        expect_no_additive(result, wanted)
        same = result.bool()
        counts = torch.tensor(lengths).repeat_interleave(torch.tensor(lengths))
        hints = {
            "The mask is inverted: True is where a token may look.": ~wanted,
            "Within its text, a token looks ahead as well as back. The blocks are full squares.": wanted.tril(),
            "Each token sees only itself. It may see its whole text.": torch.eye(size).bool(),
            "Texts of equal length see each other. Give each text its own number.": counts[:, None] == counts,
            "Everything is visible. Tokens must not see other texts.": torch.ones(size, size).bool(),
        }
        for hint, wrong in hints.items():
            expect(not torch.equal(same, wrong) or torch.equal(wrong, wanted), hint)
        expect(
            torch.equal(same, wanted),
            "Give each token the number of its text, and compare the numbers of every two tokens.",
        )
        expect(
            result.dtype == torch.bool,
            "The positions are right, but a mask of numbers would be added to the scores. Return booleans.",
        )
    return "Equal to torch.block_diag of squares of ones."


def block_mask(lengths: list[int]) -> Tensor:
    """Return a mask (N, N) that is True where two tokens of a row belong to the same text."""
    return torch.block_diag(*(torch.ones(length, length) for length in lengths)) == 1


prediction(
    "13.2",
    [partial(as_number, question=name) for name in ("padded_scores", "one_row_scores", "packed_scores")],
    """
    = 3 * 8**2
    8**2 | padded_scores: that is for one text. The batch has three.
    3 * 8 | padded_scores: those are the positions. Each looks at 8.
    98 | padded_scores: each text has 8 positions, and each position looks at all 8.
    = (3 + 5 + 8) ** 2
    3**2 + 5**2 + 8**2 | one_row_scores: the mask hides scores, but all of them are computed.
    192 | one_row_scores: 16 tokens in one row, and each is compared with all 16.
    = 3**2 + 5**2 + 8**2
    3 + 5 + 8 | packed_scores: those are the tokens. Each looks at the tokens of its text.
    256 | packed_scores: add up the squared lengths of the texts.
    """,
    ask="Give three numbers.",
    remark="98 of 256: the mask alone saves nothing, and takes more than padding here.",
)


@exercise("13.3", points=2)
def tokens_put_back(answer):
    """Check that packed tokens (N, H) return to their positions (B, S, H), with zeros elsewhere."""
    expect_function(answer)
    masks = ([[1, 1, 0], [1, 1, 1]], [[0, 1, 1, 0], [1, 0, 0, 0], [1, 1, 1, 1]], [[1, 1], [1, 1]], [[1]])
    for rows, H in zip(masks, (2, 3, 1, 5), strict=True):
        mask = torch.tensor(rows)
        tokens = torch.arange(1.0, 1 + H * int(mask.sum())).view(-1, H)
        found = run_on_copies(answer, tokens, mask)
        if isinstance(found, np.ndarray):
            raise Hint("The notebook needs gradients here, which NumPy does not have. Use tensors.")
        result = expect_tensor(as_tensor(found), (*mask.shape, H))
        wanted = unpacked(tokens, mask)
        for hint, wrong in misplaced(tokens, mask).items():
            expect(not close(result, wrong) or close(wrong, wanted), hint)
        expect(not result[mask == 0].any(), "Padding should be all zeros.")
        expect(close(result, wanted), "Row by row, each real position takes the next token: states[mask == 1].")
    expect_type_and_gradients(answer)
    return "Packing and unpacking go through the places in the same order."


def unpacked(tokens: Tensor, mask: Tensor) -> Tensor:
    """Return the tokens (N, H) at the places where the mask (B, S) has a 1, (B, S, H)."""
    return tokens.new_zeros(*mask.shape, tokens.size(-1)).masked_scatter(mask[:, :, None] == 1, tokens)


def expect_type_and_gradients(answer) -> None:
    """Raise `Hint` unless float64 stays float64, and gradients flow back to the tokens."""
    tokens, mask = torch.arange(6.0).view(3, 2), torch.tensor([[1, 0, 1], [0, 1, 0]])
    like = "make the zeros like it, packed.new_zeros(…)"
    try:
        result = answer(tokens.double(), mask)
        expect(isinstance(result, Tensor), "Return a tensor, which the next cells need.")
    except RuntimeError as error:
        raise Hint(f"Right for float32, but `packed` may have another dtype: {like} ({error}).") from error
    expect(result.dtype == torch.float64, f"The result should have the dtype of `packed`: {like}.")
    wanted = unpacked(tokens.double() / 3, mask)
    exact = close(answer(tokens.double() / 3, mask), wanted, 1e-12)
    expect(exact, f"The result loses the precision of float64: {like}.")
    tokens.requires_grad_()
    cut_off = "The numbers are right, but no gradient flows back to `packed`. Remove any detach or .data."
    expect_gradients(answer(tokens, mask), unpacked(tokens, mask), [tokens], cut_off)


def misplaced(tokens: Tensor, mask: Tensor) -> dict[str, Tensor]:
    """Return the results of common mistakes, by hint."""
    B, S = mask.shape
    left, down = tokens.new_zeros(B, S, tokens.size(-1)), tokens.new_zeros(S, B, tokens.size(-1))
    for row, part in zip(left, tokens.split(mask.sum(dim=1).tolist()), strict=True):
        row[: len(part)] = part
    down[mask.T == 1] = tokens
    return {
        "Padding may be anywhere. Use the mask to find it.": left,
        "The tokens are ordered text by text, not position by position.": down.transpose(0, 1),
    }


@exercise("13.4", points=2)
def codes_with_a_sign(answer):
    """Check int8 codes from -127 to 127, with a scale for each row: its largest absolute value / 127."""
    expect_function(answer)
    generator = torch.Generator().manual_seed(4)
    for rows, columns in ((3, 4), (5, 8), (1, 6)):
        weights = torch.randn(rows, columns, generator=generator) * torch.logspace(-2, 1, rows)[:, None]
        compare_codes(run_on_copies(answer, weights), weights)
    weights = torch.tensor([[0.0, 0.0, 0.0], [-2.0, 1.0, 0.5]])
    codes, scales = map(as_tensor, run_on_copies(answer, weights))
    back = expect_tensor(codes, (2, 3), "The first").float() * expect_tensor(scales, (2, 1), "The second").float()
    expect(back.isfinite().all(), "A row of zeros gives 0 / 0. Keep the divisor above zero.")
    expect(close(back, weights, 0.02), "A row of zeros should come back as zeros, and the others as before.")
    return (
        "Many int8 files store their weights like this; `quantize_dynamic` uses one scale for the whole matrix by "
        "default."
    )


def signed_codes(weights: Tensor) -> tuple[Tensor, Tensor]:
    """Return the codes (R, C) and the scales (R, 1) of weights (R, C)."""
    scales = weights.abs().amax(dim=1, keepdim=True) / 127
    return (weights / scales.clamp(min=1e-30)).round(), scales


def compare_codes(answer, weights: Tensor) -> None:
    """Return a hint that names the mistake, unless codes and scales are right."""
    expect(isinstance(answer, (tuple, list)) and len(answer) == 2, "Return two tensors: the codes and the scales.")
    answer = [as_tensor(one) for one in answer]
    turned = (tuple(getattr(one, "shape", ())) for one in answer)
    expect(
        (*turned,) != ((len(weights), 1), tuple(weights.shape)),
        "The two are swapped: the codes come first, then the scales.",
    )
    codes = expect_tensor(answer[0], tuple(weights.shape), "The first")
    largest = weights.abs().amax(dim=1, keepdim=True)
    (R, C), shape = weights.shape, tuple(getattr(answer[1], "shape", ()))
    flat = "The scales lack their second dimension. Keep it with keepdim=True, which gives (R, 1)."
    expect(shape != (R,), flat)
    expect(shape not in ((1, C), (C,)) or R == 1, "Each column has a scale. Each *row* should have one, over dim=1.")
    same, whole = weights.abs().max() / 127, "The whole matrix has one scale. Each row should have its own."
    expect(not close(answer[1], same, 1e-4), whole)
    scales = expect_tensor(answer[1], (R, 1), "The second").detach().float()
    expect(R == 1 or not close(scales, same.expand_as(largest), 1e-4), whole)
    hints = {
        "The scales are inverted: the weight is codes · scales.": 127 / largest,
        "Divide by 127, because 128 would not fit into 8 bits.": largest / 128,
        "The largest *absolute* value counts: a row's lowest number may be further from 0.": weights.amax(
            dim=1, keepdim=True
        )
        / 127,
        "255 steps are for codes from 0: with a sign there are 127 on each side.": largest / 255,
    }
    for hint, wrong in hints.items():
        expect(not close(scales / wrong, torch.ones_like(largest), 1e-3), hint)
    scaled = scales * 127 / largest
    expect(close(scaled, torch.ones_like(largest), 1e-3), "The scale of a row is its largest absolute value / 127.")
    codes, exact = codes.detach().double(), weights.double() / (largest.double() / 127)
    back = "These are the weights again, codes · scales. Return the codes."
    expect(not close(codes, exact.round() * scales.double(), 1e-4), back)
    expect(close(codes, codes.round(), 1e-9), "The codes are not whole numbers. Round them.")
    off = (codes - exact).abs().max()
    expect(
        off <= 1 or not close(codes.abs(), exact.abs().round(), 1e-9),
        "The signs are lost. Negative weights have negative codes.",
    )
    expect(off <= 0.501, "Each code is the *nearest* whole number. Round, rather than truncate.")


ROUNDS = (
    ([9.0, 1.0, 4.0, 1.2], [1.0, 2.0, 5.0, 2.0]),
    ([5.0, 3.0, 3.0, 30.0], [1.0, 1.0, 4.0, 20.0]),
    ([1.0, 2.0, 8.0, 3.0], [1.0, 4.0, 8.0, 2.0]),
    ([9.0, 1.0, 2.0, 4.0, 6.0], [1.0, 7.0, 5.0, 2.0, 1.0]),  # ours rise while theirs fall
    ([2.0, 9.0, 3.0, 8.0], [4.0, 3.0, 2.0, 1.0]),  # the first is not the slowest
    ([3.0, 2.0, 7.0, 6.0, 1.0, 5.0], [1.0, 1.0, 9.0, 1.5, 2.0, 6.0]),
)


@exercise("13.5", points=2)
def ratio_within_rounds(answer):
    """Check the median of the ratios within the rounds, but for the first."""
    expect_function(answer)
    tried = []
    for ours, theirs in ROUNDS:
        given = list(ours), list(theirs)
        result = as_number(answer(*given), "The ratio")
        expect(given == (ours, theirs), "Your function changes the lists. Leave them as they are.")
        tried.append((result, fair_ratio(ours, theirs), (ours, theirs)))
    if not all(close(result, wanted) for result, wanted, _ in tried):
        for hint, wrong in UNFAIR:  # a mistake explains all rounds, not some by coincidence
            expect(not all(close(result, wrong(*given)) for result, _, given in tried), hint)
    for (ours, theirs), (result, wanted, _) in zip(ROUNDS, tried, strict=True):
        expect(
            close(result, wanted),
            f"For ours {ours} and theirs {theirs} it should be {wanted:.4g}, not {result:.4g}. Which rounds count, and "
            "what is the median of theirs?",
        )
    return "Noise that hits a round often hits both, and one bad round decides nothing."


def fair_ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the middle of the ratios within the rounds, without the first round."""
    return median_ratio(ours[1:], theirs[1:])


def median_ratio(ours: list[float], theirs: list[float]) -> float:
    """Return the middle of the ratios within the rounds."""
    if not ours:
        raise Hint("No rounds are left.")
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def ratios(ours: list[float], theirs: list[float]) -> list[float]:
    """Return the ratio of each round but the first."""
    return [mine / other for mine, other in zip(ours[1:], theirs[1:], strict=True)]


def without_slowest(ours: list[float], theirs: list[float]) -> tuple:
    """Return both lists without the round in which ours was the largest."""
    return tuple(zip(*[pair for pair in zip(ours, theirs, strict=True) if pair[0] != max(ours)], strict=True))


UNFAIR = functions(
    "13.5",
    "ours, theirs",
    """
    statistics.median_high(ratios(ours, theirs)) | With an even number of rounds the median is the mean of the two in
        the middle.
    statistics.median_low(ratios(ours, theirs)) | With an even number of rounds the median is the mean of the two in the
        middle. Yours is the lower one.
    statistics.median(sorted(a / b for a, b in zip(ours, theirs))[:-1]) | The slowest round is left out. Always leave
        out the first one.
    median_ratio(*without_slowest(ours, theirs)) | The round in which we were slowest is left out. Leave out the first
        one.
    median_ratio(ours[:-1], theirs[:-1]) | The last round is left out. Leave out the first.
    ratios(ours, theirs)[len(ours[1:]) // 2] | Sort the ratios before you take the middle one. That is the median.
    median_ratio(ours, theirs) | The first round is included, but it contains work that is done only once. Leave it out.
    median_ratio(theirs[1:], ours[1:]) | The ratio is inverted. Use ours over theirs, so that below 1 means that ours is
        faster.
    1 / median_ratio(ours[1:], theirs[1:]) | The ratio is inverted: this is 1 over it, but below 1 should mean that ours
        is faster.
    median_ratio(sorted(ours[1:]), sorted(theirs[1:])) | The lists have been sorted, but the two times of a round belong
        together.
    statistics.mean(ratios(ours, theirs)) | This is a mean, which one bad round changes. Take the median.
    sum(ours[1:]) / sum(theirs[1:]) | This compares sums, which one slow round dominates. Take each round's ratio, then
        the median.
    statistics.median(ours[1:]) / statistics.median(theirs[1:]) | This compares two medians, which may come from
        different rounds. Take each round's ratio first.
    min(ours[1:]) / min(theirs[1:]) | This compares each side's fastest round, which may be different rounds.
    """,
    globals(),
)
