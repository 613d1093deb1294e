"""Fair timing on a noisy machine: contestants take turns in one process, and ratios are taken within a turn."""

import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import torch
from tqdm import tqdm

OURS, LIMIT = "this repository", "matrix products alone"


class Work(NamedTuple):
    """Something to do, and who does it: functions by name, ours among them, and maybe the limit."""

    name: str
    contestants: dict[str, Callable[[], object]]
    rounds: int


class Quartiles(NamedTuple):
    """Lower quartile, median and upper quartile."""

    low: float
    median: float
    high: float


def take_turns(work: Work, device: str) -> dict[str, list[float]]:
    """Seconds of each contestant in each round, after a round that warms up and does not count."""
    seconds = {name: [] for name in work.contestants}
    names = list(work.contestants)
    for number in tqdm(range(work.rounds + 1), desc=work.name, unit="round"):
        for name in names if number % 2 else reversed(names):  # nobody is always the one after the slowest
            started = time.perf_counter()
            work.contestants[name]()
            if device == "cuda":
                torch.cuda.synchronize()
            if number:
                seconds[name].append(time.perf_counter() - started)
    return seconds


def quartiles(values: list[float]) -> Quartiles:
    """Of two values or more."""
    return Quartiles(*statistics.quantiles(values, n=4, method="inclusive"))


def ratios(seconds: dict[str, list[float]], name: str) -> list[float]:
    """Our time over a contestant's, round by round: below 1, ours is faster."""
    return [ours / theirs for ours, theirs in zip(seconds[OURS], seconds[name], strict=True)]


def over_fastest(seconds: dict[str, list[float]]) -> tuple[str, float]:
    """The peer that is fastest by its median, and the median of our time over its."""
    peers = [name for name in seconds if not name.startswith(OURS) and name != LIMIT]
    fastest = min(peers, key=lambda name: statistics.median(seconds[name]))
    return fastest, statistics.median(ratios(seconds, fastest))
