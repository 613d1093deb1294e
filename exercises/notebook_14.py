"""Checks for the exercises of notebook 14."""

from functools import partial

import numpy as np
import torch
from torch import Tensor

from exercises.attention import expect_no_additive
from exercises.comparison import expect_own, name_the_mistake
from exercises.framework import (
    CHANGES_INPUT,
    Hint,
    NotAttempted,
    as_number,
    as_tensor,
    close,
    exercise,
    expect,
    expect_function,
    expect_gradients,
    expect_tensor,
    from_text,
)
from exercises.mistakes import functions
from exercises.prediction import prediction


def as_arrow(value, name: str) -> tuple[float, float]:
    """Return two numbers, or a `Hint`."""
    value = from_text(value)
    value = value.tolist() if hasattr(value, "tolist") else value
    expect(isinstance(value, (tuple, list)) and len(value) == 2, f"{name} should be two numbers, such as (0, 1).")
    x, y = (round(as_number(number, f"Each number of {name}"), 4) for number in value)
    return x, y


prediction(
    "14.1",
    [
        partial(as_arrow, name="turned_query"),
        partial(as_arrow, name="turned_key"),
        partial(as_number, question="product"),
        partial(as_number, question="product_ten_later"),
    ],
    """
    = (-2, -1)
    (2, 1) | turned_query: that is the query itself. At position 2 it is rotated twice.
    (-1, 2) | turned_query: that is one quarter turn, but its position is 2.
    (1, -2) | turned_query: two quarter turns are half a turn, so both signs change.
    = (-1, 3)
    (3, 1) | turned_key: that is the key itself. At position 1 it is rotated once.
    (1, -3) | turned_key: that is clockwise. A quarter turn maps (x, y) to (−y, x).
    (-3, 1) | turned_key: a quarter turn maps (x, y) to (−y, x).
    = -1
    7 | product: that is the product of the arrows before the rotation.
    5 | product: multiply the first numbers, multiply the second numbers, and add both.
    = -1
    1 | product_ten_later: both arrows turn further by the same angle. What does the product depend on?
    """,
    ask="Give two arrows and two numbers.",
    remark="Ten positions later both arrows point elsewhere, and their product is the same.",
)


@exercise("14.2", points=3)
def all_pairs_turned(answer):
    """Check rotary positions: each pair of numbers is rotated by its position and speed."""
    expect_function(answer)
    expect_own(answer, "rotary", "write it yourself.")
    generator = torch.Generator().manual_seed(0)
    for shape, first, base in (
        ((3, 4), 0, 10_000.0),
        ((5, 4), 3, 10_000.0),
        ((6, 8), 0, 500.0),
        ((2, 3, 7, 10), 20, 160_000.0),
        ((2, 3, 3, 6), 1, 10_000.0),
        ((2, 4, 8), 1_000, 10_000.0),
    ):
        S = shape[-2]
        x, positions = torch.randn(shape, generator=generator), first + torch.arange(S).flip(0)
        result = answer(x.clone(), positions.clone(), base)
        if isinstance(result, np.ndarray):
            raise Hint("The model trains through this function, but NumPy has no gradients. Use tensors.")
        result = expect_tensor(as_tensor(result), shape, f"For x of the shape {shape} it", x.dtype).detach()
        wanted = turned(x, positions, base)
        name_the_mistake(result, wanted, TURNED_WRONG, (x, positions, base), tolerance=1e-3)
        lengths = result.norm(dim=-1), x.norm(dim=-1)
        expect(close(*lengths, 1e-3), "A rotation keeps lengths, but yours changes them. Look at the signs.")
        coarse = (
            "Right for small positions, but wrong at position 1,000. float16 is too coarse for "
            "such an angle, so compute the angles in float32."
        )
        expect(first < 1_000 or close(result, wanted, 1e-3), coarse)
        expect(
            close(result, wanted, 1e-3),
            f"The lengths are right, but the arrows point elsewhere, for positions {positions.tolist()} and base "
            f"{base:g}.",
            "The lengths are right, but the arrows point elsewhere. Pair i is made of the numbers i and i + D/2, and "
            "turns by position · base^(−2i/D) radians.",
        )
    expect_exact_angles(answer)
    kept = x.clone()
    answer(kept, positions, base)
    expect(torch.equal(kept, x), CHANGES_INPUT)
    x.requires_grad_()
    cut_off = "The numbers are right, but no gradient flows back to x. Remove any detach, and make no copy of x."
    expect_gradients(answer(x, positions, base), turned(x, positions, base), [x], cut_off)
    return "From here on the page turns with your function, and so does the model."


def expect_exact_angles(answer) -> None:
    """Raise `Hint` for angles that take over the precision of a bfloat16 `x`; a function may refuse such an x."""
    x, positions = torch.ones(2, 3, 8, dtype=torch.bfloat16), torch.tensor([500, 512, 1001])
    try:
        result = as_tensor(answer(x.clone(), positions, 10_000.0)).detach().float()
    except (Hint, NotAttempted):
        raise
    except Exception:  # torch has no complex numbers of 16 bits
        return
    rough = (
        "Right for float32, but for an x in bfloat16, with its 8 bits, the angles are far off. Compute angles, cosines "
        "and sines in float32 for every x."
    )
    expect(close(result, turned(x.float(), positions, 10_000.0), 0.05), rough)


def turned(x: Tensor, positions: Tensor, base: float, speeds: Tensor | None = None) -> Tensor:
    """Return vectors (…, S, D) rotated by their positions (S,), with the speeds (D/2,) of `base` by default."""
    angles = positions[:, None] * (speeds_of(x, base) if speeds is None else speeds)
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        [first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], dim=-1
    )


def turned_neighbours(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Return x with neighbours as pairs: number 2i with number 2i + 1."""
    D = x.size(-1)
    order = torch.cat([torch.arange(0, D, 2), torch.arange(1, D, 2)])
    result = torch.empty_like(x)
    result[..., order] = turned(x[..., order], positions, base)
    return result


def overwritten(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """Return x with the second number of each pair computed from the new first one."""
    _, second = x.chunk(2, dim=-1)
    new, _ = turned(x, positions, base).chunk(2, dim=-1)
    angles = positions[:, None] * speeds_of(x, base)
    return torch.cat([new, new * angles.sin() + second * angles.cos()], dim=-1)


def speeds_of(x: Tensor, base: float) -> Tensor:
    """Return the speed of each pair of numbers, (D/2,)."""
    return base ** -(torch.arange(0, x.size(-1), 2) / x.size(-1))


TURNED_WRONG = functions(
    "14.2",
    "x, positions, base",
    """
    turned(x, -positions, base) | This rotates clockwise. The first number is x cos φ − y sin φ.
    turned_neighbours(x, positions, base) | Neighbours are paired here: number i goes with number i + D/2, `chunk(2,
        dim=-1)` gives both halves.
    torch.stack(turned(x, positions, base).chunk(2, dim=-1), dim=-1).flatten(-2) | The pairs are rotated, but
        interleaved. The result has first all x of the pairs, then all y.
    torch.cat(turned(x, positions, base).chunk(2, dim=-1)[::-1], dim=-1) | The halves are swapped. The result has first
        all x of the pairs, then all y.
    turned(x, positions, base, torch.ones(x.size(-1) // 2)) | All pairs rotate at one speed. Pair i rotates by position
        · base^(−2i/D).
    turned(x, positions, base, speeds_of(x, base**0.5)) | The speeds are base^(−i/D): the exponent is −2i/D.
    turned(x, positions, base, speeds_of(x, 1 / base)) | The speeds grow from pair to pair: the exponent is *minus*
        2i/D.
    turned(x, positions, base, speeds_of(x, base).flip(0)) | The speeds are reversed. The first pair is the fastest.
    turned(x, positions, 10_000.0) | The base is fixed at 10,000. Use the argument `base`.
    overwritten(x, positions, base) | The second number has to use the original x, not the new one.
    turned(x, torch.arange(x.size(-2)), base) | Row 0 may have any position. Use the argument `positions`.
    turned(x, positions + 1, base) | Yours counts positions from 1. The first position is 0, which is not rotated.
    turned(x, positions, base, speeds_of(x, base).deg2rad()) | The angles are already in radians. Do not convert them.
    turned(x, positions, base, speeds_of(x, base).rad2deg()) | cos and sin take radians. Do not convert the angles to
        degrees.
    """,
    globals(),
)


prediction(
    "14.3",
    [partial(as_number, question=name) for name in ("bert_parameters", "gated_size", "modern_parameters")],
    """
    = 2 * 768 * 3072
    768 * 3072 | bert_parameters: that is one matrix, but the network has two.
    2 * 768 * 3072 + 768 + 3072 | bert_parameters: count without biases.
    7 | bert_parameters: two matrices of 768 · 3072 numbers.
    = 2048
    3072 * 3 / 2 | gated_size: a third matrix makes the network larger, so the size is smaller.
    3072 / 2 | gated_size: there are three matrices instead of two, not four.
    1000 | gated_size: three matrices of 768 · I should have as many numbers as two of 768 · 3072.
    = 3 * 768 * 1152
    2 * 768 * 1152 | modern_parameters: a gated network has a third matrix.
    1152 | modern_parameters: three matrices of 768 · 1152 numbers.
    """,
    ask="Give three numbers.",
    remark="ModernBERT's network is smaller than two thirds would make it: its authors chose more layers.",
)


def may_see(S: int, reach: int, row: bool = True, column: bool = True) -> Tensor:
    """Return what exercise 14.4 asks for, or without the first row or column."""
    offsets = torch.arange(S)[:, None] - torch.arange(S)
    mask = offsets.abs() <= reach
    mask[0] |= row
    mask[:, 0] |= column
    return mask


WRONG_WINDOWS = functions(
    "14.4",
    "S, reach",
    """
    ~may_see(S, reach) | The mask is inverted: True is where a token may look.
    may_see(S, reach, row=False, column=False) | This is only the window. Position 0 also sees all tokens, and all see
        it.
    may_see(S, reach, column=False) | Position 0 sees all, but distant tokens do not see it. Set the first column, too.
    may_see(S, reach, row=False) | All see position 0, but it does not see all. Set the first row, too.
    may_see(S, reach) & (torch.ones(S, S).tril().bool() | (torch.arange(S)[:, None] == 0)) | A window reaches to both
        sides. Use the absolute distance.
    may_see(S, reach // 2) | `reach` is to *either* side, not the width of the window.
    may_see(S, 1) | `reach` is fixed at 1. Use the argument.
    may_see(S, reach - 1) | A distance of exactly `reach` is still inside the window.
    torch.ones(S, S).bool() | Everything is visible. Outside the window, only position 0 should be.
    """,
    globals(),
)


@exercise("14.4", points=2)
def window_and_first(answer):
    """Check for a mask that is True within `reach`, and in the first row and column."""
    expect_function(answer)
    for S, reach in ((13, 9), (4, 1), (7, 2), (5, 8), (1, 1)):
        found = answer(S, reach)
        result = expect_tensor(as_tensor(found), (S, S), f"For S = {S} it")
        same, wanted = result.bool(), may_see(S, reach)
        expect_no_additive(result, wanted)
        name_the_mistake(same, wanted, WRONG_WINDOWS, (S, reach))
        row, column = (same != wanted).nonzero()[0].tolist() if not torch.equal(same, wanted) else (0, 0)
        either = "one of them is [CLS]" if 0 in (row, column) else "neither is [CLS]"
        expect(
            torch.equal(same, wanted),
            f"For S = {S} and reach = {reach} token {row} {'may' if wanted[row, column] else 'may not'} see token "
            f"{column}: it is {abs(row - column)} away, and {either}.",
        )
        if result.dtype != torch.bool:
            raise Hint("The positions are right, but a mask of numbers would be added to the scores. Return booleans.")
    return "With it [CLS] hears of every token in each layer, for fewer than 2 · S pairs more."
