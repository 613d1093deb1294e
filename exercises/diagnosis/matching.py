"""Compare numbers with guesses, and say which of them they equal, if any: by a clear lead, not by a fixed tolerance."""

from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor

# how far the states of a right model may be from ours, as a share of their size: measured 1e-6, 2e-3 and 1.3e-2
NOISE = {"float32": 2e-5, "float16": 5e-3, "bfloat16": 3e-2}
CLEAR = {"float32": 10, "float16": 3, "bfloat16": 3}  # how many times farther the next guess must be
LIMIT = 0.02  # a guess farther away than this is no match, however far the next one is
EXACT = 1e-7  # nearer is equal

Names = tuple[str, ...]  # of bugs; () is our encoder without any


class Match(NamedTuple):
    """The guesses that the numbers equal, or none; the distances of the nearest and of the next guess; the nearest."""

    fits: list[Names]
    distance: float
    next: float
    grain: str
    nearest: Names

    @property
    def names(self) -> list[str]:
        """The bugs of all fitting guesses."""
        return list(dict.fromkeys(name for fit in self.fits for name in fit))

    @property
    def is_right(self) -> bool:
        """Whether the numbers equal those without a bug, as far as their precision tells."""
        return () in self.fits


def grain(numbers: Tensor) -> str:
    """Return the coarsest precision in which numbers can be written."""
    for name in ("bfloat16", "float16"):
        if torch.equal(numbers.to(getattr(torch, name)).float(), numbers):
            return name
    return "float32"


def size(numbers: Tensor) -> Tensor:
    """Return the root of the mean square."""
    return numbers.pow(2).mean(-1).sqrt()


def distance(one: Tensor, other: Tensor) -> float:
    """Return how far apart numbers (N,) are, as a share of the larger ones' size."""
    return (size(one - other) / torch.maximum(size(one), size(other))).item()


def match(numbers: Tensor, guesses: Mapping[Names, Tensor]) -> Match:
    """Return which guess numbers (N,) equal; guesses are (N,), and () is the right one.

    Guesses that are not finite are dropped, and those that equal the right one here, which show nothing. Guesses that
    fit alike are returned together, but only if the nearest is within the noise of the precision.
    """
    right, kind = guesses[()], grain(numbers)
    distances = {
        names: distance(guess, numbers)
        for names, guess in guesses.items()
        if guess.isfinite().all() and (not names or distance(guess, right) > 10 * EXACT)
    }
    names = sorted(distances, key=lambda each: (distances[each], len(each)))
    nearest = distances[names[0]]
    limit = CLEAR[kind] * max(nearest, EXACT)
    alike = [each for each in names if distances[each] <= limit]
    following = distances[names[len(alike)]] if len(alike) < len(names) else nearest
    is_noise = nearest <= NOISE[kind]
    fits = alike if len(alike) < len(names) and nearest <= max(NOISE[kind], LIMIT * (len(alike) == 1)) else []
    if fits == [()] and not is_noise:
        fits = []
    return Match(fits, nearest, following, kind, names[0])


def is_equal(one: Tensor, other: Tensor, of: Tensor) -> bool:
    """Return whether two parts of some numbers differ by noise alone, compared with the size of all."""
    return bool(size((one - other).flatten()) <= NOISE[grain(one)] * size(of.flatten()))
