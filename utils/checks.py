"""Comparisons that notebooks print: the same text on every machine, an AssertionError where they fail."""

import math

from torch import Tensor

from utils.checkpoints import DEFAULT_CHECKPOINT, checkpoint_name


def largest_difference(ours: Tensor, official: Tensor) -> float:
    """Largest absolute difference of two tensors; ValueError if their shapes differ."""
    if ours.shape != official.shape:
        raise ValueError(
            f"shapes differ: ours is {tuple(ours.shape)}, the official one {tuple(official.shape)}"
        )
    return (ours.detach() - official.detach()).abs().max().item()


def compare(name: str, ours: Tensor, official: Tensor, tolerance: float = 1e-5) -> None:
    """Print and assert that two tensors differ by `tolerance` at most, to the tolerance's last digit."""
    difference = largest_difference(ours, official)
    digits = max(0, round(-math.log10(tolerance)))
    print(f"{name:<30} {tuple(ours.shape)!s:<18} largest difference {difference:.{digits}f}")
    assert difference <= tolerance, f"{name}: largest difference {difference:.2e} is above {tolerance:.0e}"


def finding(statement: str, holds: bool) -> None:
    """Assert what the default checkpoint has learned; with another checkpoint only print whether it holds there."""
    if checkpoint_name() == DEFAULT_CHECKPOINT:
        assert holds, f"not so: {statement}"
    print(f"{'✓' if holds else '✗ not with this checkpoint:'} {statement}")
