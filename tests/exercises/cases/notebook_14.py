"""Answers readers give to the exercises of notebook 14: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch


def turn(x, positions, base, sign=1, speeds=None, kind=torch.float32):
    D = x.size(-1)
    speeds = base ** (-torch.arange(0, D, 2) / D) if speeds is None else speeds(base, torch.arange(0, D, 2) / D)
    angles = (sign * positions[:, None] * speeds).to(kind)
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        [first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()], dim=-1
    )


def turn_as_complex(x, positions, base):
    D = x.size(-1)
    angles = positions[:, None] * base ** (-torch.arange(0, D, 2) / D)
    arrows = torch.complex(*x.chunk(2, dim=-1)) * torch.exp(1j * angles)
    return torch.cat([arrows.real, arrows.imag], dim=-1)


def turn_by_rotating_halves(x, positions, base):
    D = x.size(-1)
    angles = torch.outer(positions.float(), 1.0 / base ** (torch.arange(0, D, 2).float() / D))
    angles = torch.cat([angles, angles], dim=-1)
    first, second = x.chunk(2, dim=-1)
    return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()


def turn_pair_by_pair(x, positions, base):
    half = x.size(-1) // 2
    firsts, seconds = [], []
    for i in range(half):
        angle = positions * base ** (-i / half)
        a, b = x[..., i], x[..., i + half]
        firsts.append(a * angle.cos() - b * angle.sin())
        seconds.append(a * angle.sin() + b * angle.cos())
    return torch.stack(firsts + seconds, dim=-1)


def turn_in_float64(x, positions, base):
    return turn(x, positions.double(), base).to(x.dtype)


def turn_neighbours(x, positions, base):
    D = x.size(-1)
    angles = positions[:, None] * base ** (-torch.arange(0, D, 2) / D)
    first, second = x[..., ::2], x[..., 1::2]
    both = first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()
    return torch.stack(both, dim=-1).flatten(-2)


def turn_and_weave(x, positions, base):
    return torch.stack(turn(x, positions, base).chunk(2, dim=-1), dim=-1).flatten(-2)


def turn_overwriting(x, positions, base):
    D = x.size(-1)
    angles = positions[:, None] * base ** (-torch.arange(0, D, 2) / D)
    first, second = x.chunk(2, dim=-1)
    first = first * angles.cos() - second * angles.sin()
    return torch.cat([first, first * angles.sin() + second * angles.cos()], dim=-1)


def turn_with_wrong_sign(x, positions, base):
    D = x.size(-1)
    angles = positions[:, None] * base ** (-torch.arange(0, D, 2) / D)
    first, second = x.chunk(2, dim=-1)
    return torch.cat(
        [first * angles.cos() + second * angles.sin(), first * angles.sin() + second * angles.cos()], dim=-1
    )


def turn_in_numpy(x, positions, base):
    D = x.shape[-1]
    angles = np.asarray(positions)[:, None] * base ** (-np.arange(0, D, 2) / D)
    first, second = np.split(np.asarray(x), 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def rotary(x, positions, base):
    return turn(x, positions, base)


def near(S, reach):
    positions = torch.arange(S)
    return (positions[:, None] - positions).abs() <= reach


def with_cls(S, reach):
    mask = near(S, reach)
    mask[0], mask[:, 0] = True, True
    return mask


def with_cls_by_or(S, reach):
    positions = torch.arange(S)
    return near(S, reach) | (positions[:, None] == 0) | (positions == 0)


RIGHT = {
    "14.1": [
        ((-2, -1), (-1, 3), -1, -1),
        [[-2.0, -1.0], [-1.0, 3.0], -1.0, -1.0],
        ((-1.9999999, -1.0000001), (-1, 3), -1, -1),
        (torch.tensor([-2, -1]), np.array([-1, 3]), torch.tensor(-1), "-1"),
    ],
    "14.2": [turn, turn_as_complex, turn_by_rotating_halves, turn_pair_by_pair, turn_in_float64],
    "14.3": [
        (4_718_592, 2048, 2_654_208),
        ["4,718,592", "2048", "2,654,208"],
        (2 * 768 * 3072, 2048.0, 2654208),
        torch.tensor([4_718_592, 2048, 2_654_208]),
        np.array([4_718_592, 2048, 2_654_208]),
    ],
    "14.4": [
        with_cls,
        with_cls_by_or,
        lambda S, reach: with_cls(S, reach).numpy(),
        lambda S, reach: with_cls(S, reach).tolist(),
    ],
}

WRONG = {
    "14.1": [
        (((2, 1), (-1, 3), -1, -1), "turned_query: that is the query itself"),
        (((-1, 2), (-1, 3), -1, -1), "one quarter turn"),
        (((1, -2), (-1, 3), -1, -1), "both signs"),
        (((-2, -1), (3, 1), -7, -7), "turned_key: that is the key itself"),
        (((-2, -1), (1, -3), 1, 1), "clockwise"),
        (((-2, -1), (-3, 1), 5, 5), "(−y, x)"),
        (((-2, -1), (-1, 3), 5, -1), "add both"),
        (((-2, -1), (-1, 3), 7, -1), "product: that is the product of"),
        (((-2, -1), (-1, 3), -1, 1), "depend on"),
        (((-2, -1), 5, -1, -1), "two numbers"),
        ((-2, -1), "two arrows"),
    ],
    "14.2": [
        (lambda x, p, base: turn(x, p, base, sign=-1), "clockwise"),
        (turn_neighbours, "Neighbours are paired"),
        (turn_and_weave, "The pairs are rotated, but interleaved"),
        (
            lambda x, p, base: torch.cat(turn(x, p, base).chunk(2, dim=-1)[::-1], dim=-1),
            "The halves are swapped. The result",
        ),
        (lambda x, p, base: turn(x, p, base, speeds=lambda b, i: torch.ones(len(i))), "one speed"),
        (lambda x, p, base: turn(x, p, base, speeds=lambda b, i: b ** (-i / 2)), "−2i/D"),
        (lambda x, p, base: turn(x, p, base, speeds=lambda b, i: b**i), "grow"),
        (
            lambda x, p, base: turn(x, p, base, speeds=lambda b, i: b ** -i.flip(0)),
            "The speeds are reversed. The first",
        ),
        (lambda x, p, base: turn(x, p, 10_000.0), "The base is fixed at 10,000"),
        (turn_overwriting, "The second number has to use"),
        (lambda x, p, base: turn(x, torch.arange(x.size(-2)), base), "Row 0 may have any position"),
        (lambda x, p, base: turn(x, p + 1, base), "Yours counts positions from 1. The"),
        (lambda x, p, base: turn(x, torch.deg2rad(p), base), "The angles are already in radians"),
        (lambda x, p, base: turn(x, torch.rad2deg(p), base), "cos and sin take radians. Do"),
        (lambda x, p, base: rotary(x, p, base), "This is the notebook's `rotary`, or"),
        (lambda x, p, base: turn(x, p, base, kind=torch.float16), "float16 is too coarse"),
        (lambda x, p, base: turn(x, p, base, kind=x.dtype), "and sines in float32 for every"),
        (turn_with_wrong_sign, "keeps lengths"),
        (lambda x, p, base: turn(x, p + 5, base), "the arrows point elsewhere"),
        (lambda x, p, base: turn(x.detach(), p, base), "no gradient flows"),
        (turn_in_numpy, "NumPy has no gradients"),
    ],
    "14.3": [
        ((768 * 3072, 2048, 3 * 768 * 1152), "two"),
        ((2 * 768 * 3072 + 3840, 2048, 3 * 768 * 1152), "without biases"),
        ((7, 2048, 3 * 768 * 1152), "two matrices"),
        ((4_718_592, 4608, 2_654_208), "smaller"),
        ((4_718_592, 1536, 2_654_208), "not four"),
        ((4_718_592, 1000, 2_654_208), "gated_size: three matrices of 768 ·"),
        ((4_718_592, 2048, 2 * 768 * 1152), "third matrix"),
        ((4_718_592, 2048, 1152), "three matrices"),
        (4_718_592, "three numbers"),
    ],
    "14.4": [
        (lambda S, r: torch.eye(S).bool(), "is [CLS]"),
        (lambda S, r: with_cls(S, r) | (torch.arange(S) == S - 1), "may not see token 7"),
        (lambda S, r: torch.zeros(S, S).masked_fill(~with_cls(S, r), -torch.inf), "The positions are right, but this"),
        (lambda S, r: with_cls(S, r).float(), "booleans"),
        (lambda S, r: with_cls(S + 1, r), "shape"),
    ],
}
