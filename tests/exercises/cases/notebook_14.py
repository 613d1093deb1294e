"""Answers to the exercises of notebook 14 that its checks do not declare."""

import numpy as np
import torch

from utils.modernbert import rotary


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


def turn_in_numpy(x, positions, base):
    D = x.shape[-1]
    angles = np.asarray(positions)[:, None] * base ** (-np.arange(0, D, 2) / D)
    first, second = np.split(np.asarray(x), 2, axis=-1)
    cos, sin = np.cos(angles), np.sin(angles)
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


RIGHT = r"""
    14.1 | ((-1.9999999, -1.0000001), (-1, 3), -1, -1)
    14.1 | (torch.tensor([-2, -1]), np.array([-1, 3]), torch.tensor(-1), "-1")
    14.1 | ("(−2, −1)", "-1, 3", "−1", "−1")
    14.2 | turn_as_complex
    14.2 | turn_by_rotating_halves
    14.2 | lambda x, positions, base: right(x, positions.double(), base).to(x.dtype)
    14.4 | positions).abs() <= reach => positions).abs() <= reach; mask = mask | (positions[:, None] == 0) | (positions == 0)
    14.4 | lambda S, reach: right(S, reach).numpy()
    14.4 | lambda S, reach: right(S, reach).tolist()
"""
WRONG = r"""
    14.1 | (right[0], 5, -1, -1) | two numbers
    14.1 | (-2, -1) | two arrows
    14.2 | lambda x, p, base: rotary(x, p, base) | This calls the series' own `rotary`
    14.2 | positions[:, None] * speeds => (positions[:, None] * speeds).half() | float16 is too coarse
    14.2 | positions[:, None] * speeds => (positions[:, None] * speeds).to(x.dtype) | and sines in float32 for every
    14.2 | cos() - => cos() + | keeps lengths
    14.2 | positions[:, None] => (positions + 5)[:, None] | the arrows point elsewhere
    14.2 | turn_in_numpy | NumPy has no gradients
    14.3 | 4_718_592 | three numbers
    14.4 | lambda S, r: torch.eye(S).bool() | is [CLS]
    14.4 | lambda S, r: right(S, r) | (torch.arange(S) == S - 1) | may not see token 12
    14.4 | lambda S, r: torch.zeros(S, S).masked_fill(~right(S, r), -torch.inf) | The positions are right, but this
    14.4 | lambda S, r: right(S, r).float() | booleans
    14.4 | lambda S, r: right(S + 1, r) | shape
"""
