"""Fair timing on a noisy machine: contestants take turns in one process, and ratios are taken within a turn."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from tqdm import tqdm

OURS, LIMIT = "this repository", "matrix products alone"


class Work(NamedTuple):
    """A task with the functions that do it, by name: ours, the peers', and optionally the limit."""

    name: str
    contestants: dict[str, Callable[[], object]]
    rounds: int


class Quartiles(NamedTuple):
    """Lower quartile, median and upper quartile."""

    low: float
    median: float
    high: float


def take_turns(work: Work, device: str) -> dict[str, list[float]]:
    """Return the seconds of each contestant in each round, after a warm-up round."""
    seconds = {name: [] for name in work.contestants}
    names = list(work.contestants)
    for turn in tqdm(range(work.rounds + 1), desc=work.name, unit="round"):
        for name in names if turn % 2 else reversed(names):  # alternating, so that nothing always follows the slowest
            started = time.perf_counter()
            work.contestants[name]()
            if device == "cuda":
                torch.cuda.synchronize()
            if turn:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def quartiles(values: list[float]) -> Quartiles:
    """Return the quartiles of two or more values."""
    return Quartiles(*statistics.quantiles(values, n=4, method="inclusive"))


def ratios(seconds: dict[str, list[float]], name: str, ours: str = OURS) -> list[float]:
    """Return our time divided by a contestant's, round by round; below 1, ours is faster."""
    return [mine / theirs for mine, theirs in zip(seconds[ours], seconds[name], strict=True)]


def over_fastest(seconds: dict[str, list[float]]) -> tuple[str, float]:
    """Return the peer with the smallest median, and the median ratio of our time to its."""
    peers = [name for name in seconds if not name.startswith(OURS) and name != LIMIT]
    fastest = min(peers, key=lambda name: statistics.median(seconds[name]))
    return fastest, statistics.median(ratios(seconds, fastest))
