"""Confidence intervals (95 %) of a mean. Used from notebook 08 on."""

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import bootstrap, t


def bootstrap_interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean (Efron 1979), computed by scipy.

    It is too narrow for fewer than ten values: use `t_interval`. ValueError for fewer than two values, and for values
    that are not finite.
    """
    values = as_values(values)
    options = {"n_resamples": 2000, "confidence_level": 0.95, "method": "percentile"}
    interval = bootstrap((values,), np.mean, **options, random_state=seed).confidence_interval
    return float(interval.low), float(interval.high)


def t_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean by Student's t (1908), for few values; errors as in `bootstrap_interval`."""
    values = as_values(values)
    half = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return float(values.mean() - half), float(values.mean() + half)


def as_values(values: Sequence[float]) -> np.ndarray:
    """Return the values as an array; ValueError unless they are at least two finite numbers."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise ValueError("values must be at least two finite numbers: leave out missing ones")
    return values
