"""Answers readers give to the exercises of notebook 14: right alternatives, and wrong ones with a word of the hint."""

import numpy as np
import torch


def turn(arrows, angles):
    x, y = arrows.unbind(-1)
    return torch.stack([x * angles.cos() - y * angles.sin(), x * angles.sin() + y * angles.cos()], dim=-1)


def turn_as_complex(arrows, angles):
    return torch.view_as_real(torch.view_as_complex(arrows.contiguous()) * torch.exp(1j * angles))


def turn_by_matrices(arrows, angles):
    cos, sin = angles.cos(), angles.sin()
    matrices = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)  # (S, 2, 2)
    return (matrices @ arrows[:, :, None])[:, :, 0]


def turn_in_place(arrows, angles):
    x, y = arrows[:, 0], arrows[:, 1]
    arrows[:, 0] = x * angles.cos() - y * angles.sin()
    arrows[:, 1] = x * angles.sin() + y * angles.cos()
    return arrows


def turn_overwriting(arrows, angles):
    x, y = arrows.unbind(-1)
    x = x * angles.cos() - y * angles.sin()
    return torch.stack([x, x * angles.sin() + y * angles.cos()], dim=-1)


def turn_with_wrong_sign(arrows, angles):
    x, y = arrows.unbind(-1)
    return torch.stack([x * angles.cos() + y * angles.sin(), x * angles.sin() + y * angles.cos()], dim=-1)


def turn_in_numpy(arrows, angles):
    x, y = arrows[:, 0], arrows[:, 1]
    cos, sin = np.cos(angles), np.sin(angles)
    return np.stack([x * cos - y * sin, x * sin + y * cos], axis=-1).astype(np.float32)


def rotary(x, positions, base):
    return turn(x, positions)


def near(S, reach):
    positions = torch.arange(S)
    return (positions[:, None] - positions).abs() <= reach


def with_cls(S, reach, row=True, column=True):
    mask = near(S, reach).clone()
    if row:
        mask[0] = True
    if column:
        mask[:, 0] = True
    return mask


def with_cls_by_or(S, reach):
    positions = torch.arange(S)
    return near(S, reach) | (positions[:, None] == 0) | (positions == 0)


def with_cls_and_only_left(S, reach):
    mask = near(S, reach).tril()
    mask[0], mask[:, 0] = True, True
    return mask


RIGHT = {
    "14.1": [
        ((-2, -1), (-1, 3), -1, -1),
        [[-2.0, -1.0], [-1.0, 3.0], -1.0, -1.0],
        ((-1.9999999, -1.0000001), (-1, 3), -1, -1),
        (torch.tensor([-2, -1]), np.array([-1, 3]), torch.tensor(-1), "-1"),
    ],
    "14.2": [
        turn,
        turn_as_complex,
        turn_by_matrices,
        turn_in_numpy,
        lambda a, b: turn(a, b).numpy(),
        lambda a, b: turn(a, b).tolist(),
    ],
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
        (((2, 1), (-1, 3), -1, -1), "turned twice"),
        (((-1, 2), (-1, 3), -1, -1), "one quarter turn"),
        (((1, -2), (-1, 3), -1, -1), "both signs"),
        (((-2, -1), (3, 1), -7, -7), "turned once"),
        (((-2, -1), (1, -3), 1, 1), "clockwise"),
        (((-2, -1), (-3, 1), 5, 5), "(−y, x)"),
        (((-2, -1), (-1, 3), 5, -1), "add both"),
        (((-2, -1), (-1, 3), 7, -1), "before turning"),
        (((-2, -1), (-1, 3), -1, 1), "depend on"),
        (((-2, -1), 5, -1, -1), "two numbers"),
        ((-2, -1), "two arrows"),
    ],
    "14.2": [
        (lambda a, b: turn(a, -b), "clockwise"),
        (lambda a, b: turn(a, torch.deg2rad(b)), "radians"),
        (turn_overwriting, "as it was"),
        (lambda a, b: rotary(a, b, 10_000.0), "which the page shows"),
        (lambda a, b: turn(a, b.rad2deg()), "no degrees"),
        (lambda a, b: turn(a.flip(-1), b), "x comes first"),
        (turn_in_place, "alters"),
        (lambda a, b: turn(a, b[:1]), "its own angle"),
        (turn_with_wrong_sign, "keeps lengths"),
        (lambda a, b: turn(a, b + 1), "point elsewhere"),
        (lambda a, b: turn(a.detach(), b), "no gradient flows"),
        (lambda a, b: turn(a, b).T, "shape"),
        (lambda a, b: None, "return"),
    ],
    "14.3": [
        ((768 * 3072, 2048, 3 * 768 * 1152), "two"),
        ((2 * 768 * 3072 + 3840, 2048, 3 * 768 * 1152), "without biases"),
        ((7, 2048, 3 * 768 * 1152), "two matrices"),
        ((4_718_592, 4608, 2_654_208), "smaller"),
        ((4_718_592, 1536, 2_654_208), "not four"),
        ((4_718_592, 1000, 2_654_208), "as many as"),
        ((4_718_592, 2048, 2 * 768 * 1152), "third matrix"),
        ((4_718_592, 2048, 1152), "three matrices"),
        (4_718_592, "three numbers"),
    ],
    "14.4": [
        (lambda S, r: ~with_cls(S, r), "Turned round"),
        (near, "window alone"),
        (lambda S, r: with_cls(S, r, column=False), "first column"),
        (lambda S, r: with_cls(S, r, row=False), "first row"),
        (with_cls_and_only_left, "both sides"),
        (lambda S, r: with_cls(S, r // 2), "either"),
        (lambda S, r: with_cls(S, r - 1), "exactly"),
        (lambda S, r: torch.ones(S, S).bool(), "All is visible"),
        (lambda S, r: torch.eye(S).bool(), "is [CLS]"),
        (lambda S, r: with_cls(S, r) | (torch.arange(S) == S - 1), "may not see token 7"),
        (lambda S, r: torch.zeros(S, S).masked_fill(~with_cls(S, r), -torch.inf), "one to add"),
        (lambda S, r: with_cls(S, r).float(), "booleans"),
        (lambda S, r: with_cls(S + 1, r), "shape"),
        (lambda S, r: None, "return"),
    ],
}
