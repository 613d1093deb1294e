"""Checks for the exercises of notebook 14."""

import torch
from torch import Tensor

from exercises import (
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
from exercises.arrays import run_on_copies
from exercises.notebook_09 import expect_own
from exercises.notebook_13 import expect_no_additive


@exercise("14.1")
def turned_by_hand(answer):
    """The query (2, 1) at position 2 and the key (3, 1) at position 1, a quarter turn per position."""
    expect(isinstance(answer, (tuple, list)) and len(answer) == 4, "Give two arrows and two numbers.")
    query, key = (
        as_arrow(one, name) for one, name in zip(answer[:2], ("turned_query", "turned_key"), strict=True)
    )
    names = ("product", "product_ten_later")
    product, later = (as_number(one, name) for one, name in zip(answer[2:], names, strict=True))
    expect(query != (2, 1), "turned_query: that is the query itself. At position 2 it is turned twice.")
    expect(query != (-1, 2), "turned_query: that is one quarter turn, and it stands at position 2.")
    expect(query == (-2, -1), "turned_query: two quarter turns are half a turn, so both signs change.")
    expect(key != (3, 1), "turned_key: that is the key itself. At position 1 it is turned once.")
    expect(key != (1, -3), "turned_key: that is clockwise. A quarter turn makes (−y, x) of (x, y).")
    expect(key == (-1, 3), "turned_key: a quarter turn makes (−y, x) of (x, y).")
    expect(product != 2 * 3 + 1 * 1, "product: that is of the arrows as they were, before turning.")
    expect(product == -1, "product: multiply first numbers, multiply second numbers, and add both.")
    hint = "product_ten_later: both arrows turn further by the same angle. What does the product depend on?"
    expect(later == -1, hint)
    return "Ten positions later both arrows point elsewhere, and their product is the same."


def as_arrow(value, name: str) -> tuple[float, float]:
    """Two numbers, or a `Hint`."""
    value = value.tolist() if hasattr(value, "tolist") else value
    expect(isinstance(value, (tuple, list)) and len(value) == 2, f"{name} is two numbers, such as (0, 1).")
    x, y = (round(as_number(number, f"Each number of {name}"), 4) for number in value)
    return x, y


@exercise("14.2", points=2)
def arrows_turned(answer):
    """Arrows (S, 2), each turned by its angle (S,)."""
    expect_function(answer)
    expect_own(answer, "rotary", "turn the arrows yourself.")
    generator = torch.Generator().manual_seed(0)
    for S in (1, 5, 2):
        arrows, angles = torch.randn(S, 2, generator=generator), 3 * torch.randn(S, generator=generator)
        found = run_on_copies(answer, arrows, angles)
        result = expect_tensor(as_tensor(found), (S, 2)).detach()
        wanted = turned(arrows, angles)
        hints = {
            "That is clockwise: the first number is x cos φ − y sin φ.": turned(arrows, -angles),
            "The angles are in radians already.": turned(arrows, angles.deg2rad()),
            "Radians are what cos and sin take: make no degrees of them.": turned(arrows, angles.rad2deg()),
            "The two numbers of an arrow are exchanged: x comes first.": turned(arrows.flip(-1), angles),
            "The second number has to use x as it was, not as it has become.": overwritten(arrows, angles),
            "Every arrow is turned by its own angle, not by the first one's.": turned(arrows, angles[:1]),
        }
        for hint, wrong in hints.items():
            expect(not close(result, wrong, 1e-4) or close(wrong, wanted, 1e-4), hint)
        lengths = result.norm(dim=1), arrows.norm(dim=1)
        expect(close(*lengths, 1e-4), "A turn keeps lengths, and this changes them: look at the signs.")
        expect(close(result, wanted, 1e-4), "The lengths are right, but the arrows point elsewhere.")
    if isinstance(found, Tensor):  # NumPy and lists know no gradients
        cut_off = "The numbers are right, but no gradient flows back to the arrows: no detach, no new tensor."
        arrows.requires_grad_()
        expect_gradients(answer(arrows, angles), turned(arrows, angles), [arrows], cut_off)
    return "This, for each pair of a head, is all that `rotary` does."


def turned(arrows: Tensor, angles: Tensor) -> Tensor:
    """Arrows (S, 2) turned by angles (S,), counterclockwise."""
    x, y = arrows.unbind(-1)
    return torch.stack([x * angles.cos() - y * angles.sin(), x * angles.sin() + y * angles.cos()], dim=-1)


def overwritten(arrows: Tensor, angles: Tensor) -> Tensor:
    """What comes out if x is replaced before y is computed."""
    x, y = arrows.unbind(-1)
    x = x * angles.cos() - y * angles.sin()
    return torch.stack([x, x * angles.sin() + y * angles.cos()], dim=-1)


@exercise("14.3")
def gate_counted(answer):
    """Parameters of BERT-base's network, the inner size of a gated one with as many, and ModernBERT-base's."""
    answer = answer.tolist() if hasattr(answer, "tolist") else answer
    expect(isinstance(answer, (tuple, list)) and len(answer) == 3, "Give three numbers.")
    names = ("bert_parameters", "gated_size", "modern_parameters")
    plain, size, modern = (as_number(one, name) for one, name in zip(answer, names, strict=True))
    expect(plain != 768 * 3072, "bert_parameters: that is one matrix, and the network has two.")
    expect(plain != 2 * 768 * 3072 + 768 + 3072, "bert_parameters: count without biases.")
    expect(plain == 2 * 768 * 3072, "bert_parameters: two matrices of 768 · 3072 numbers.")
    expect(
        size != 3072 * 3 / 2, "gated_size: a third matrix makes the network larger, so the size is smaller."
    )
    expect(size != 3072 / 2, "gated_size: there are three matrices instead of two, not four.")
    expect(size == 2048, "gated_size: three matrices of 768 · I numbers are as many as two of 768 · 3072.")
    expect(modern != 2 * 768 * 1152, "modern_parameters: a gated network has a third matrix.")
    expect(modern == 3 * 768 * 1152, "modern_parameters: three matrices of 768 · 1152 numbers.")
    return "ModernBERT's network is smaller than two thirds would make it: its authors chose more layers."


@exercise("14.4", points=2)
def window_and_first(answer):
    """True within `reach` of each other, and in the first row and the first column."""
    expect_function(answer)
    for S, reach in ((8, 3), (4, 1), (7, 2), (5, 8), (1, 1)):
        found = answer(S, reach)
        result = expect_tensor(as_tensor(found), (S, S), f"For S = {S} it")
        same = result.bool()
        window = (torch.arange(S)[:, None] - torch.arange(S)).abs() <= reach
        row, column, behind = window.clone(), window.clone(), window.tril()
        row[0], column[:, 0] = True, True
        wanted = row | column
        both = behind.clone()
        both[0], both[:, 0] = True, True
        width = (torch.arange(S)[:, None] - torch.arange(S)).abs() <= reach // 2
        width[0], width[:, 0] = True, True
        strict = (torch.arange(S)[:, None] - torch.arange(S)).abs() < reach
        strict[0], strict[:, 0] = True, True
        expect_no_additive(result, wanted)
        hints = {
            "Turned round: True is where a token may look.": ~wanted,
            "That is the window alone: position 0 sees all, and all see it.": window,
            "Position 0 sees all, but nobody far away sees it: the first column, too.": row,
            "All see position 0, but it does not see all: the first row, too.": column,
            "A window reaches to both sides: the distance counts, not its sign.": both,
            "`reach` is to *either* side, not the width of the window.": width,
            "A distance of exactly `reach` still lies in the window.": strict,
            "All is visible: outside the window only position 0 is.": torch.ones(S, S).bool(),
        }
        for hint, wrong in hints.items():
            expect(not torch.equal(same, wrong) or torch.equal(wrong, wanted), hint)
        row, column = (same != wanted).nonzero()[0].tolist() if not torch.equal(same, wanted) else (0, 0)
        either = "one of the two is [CLS]" if 0 in (row, column) else "none of the two is [CLS]"
        expect(
            torch.equal(same, wanted),
            f"For S = {S} and reach = {reach} token {row} {'may' if wanted[row, column] else 'may not'} see token "
            f"{column}: it is {abs(row - column)} away, and {either}.",
        )
        if result.dtype != torch.bool:
            raise Hint(
                "The places are right, but a mask of numbers would be added to the scores: return booleans."
            )
    return "With it [CLS] hears of every token in each layer, for fewer than 2 · S pairs more."
