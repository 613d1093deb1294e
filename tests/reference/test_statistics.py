"""Intervals equal those of scipy, cover what they should, and refuse values without an interval."""

import numpy as np
import pytest
from scipy.stats import binomtest, ttest_1samp

from utils.statistics import wilson_interval
from utils.support.intervals import bootstrap_interval, t_interval


@pytest.mark.parametrize("total", [1, 2, 10, 29, 263, 1000])
def test_wilson_interval_equals_scipys(total):
    for right in range(0, total + 1, max(1, total // 10)):
        expected = binomtest(right, total).proportion_ci(confidence_level=0.95, method="wilson")
        assert wilson_interval(right, total) == pytest.approx((expected.low, expected.high), abs=1e-4)
    assert wilson_interval(0, total)[0] >= 0
    assert wilson_interval(total, total)[1] <= 1


@pytest.mark.parametrize(("right", "total"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_interval_refuses_impossible_counts(right, total):
    with pytest.raises(ValueError, match=rf"{right} right answers of {total}: use 0 to the total"):
        wilson_interval(right, total)


def test_bootstrap_interval_is_close_to_the_normal_one():
    low, high = bootstrap_interval(range(100))
    assert low == pytest.approx(49.5 - 1.96 * 2.887, abs=0.5)
    assert high == pytest.approx(49.5 + 1.96 * 2.887, abs=0.5)


def test_bootstrap_interval_depends_on_the_seed_alone():
    values = np.random.default_rng(0).normal(size=20)
    np.random.seed(1)  # noqa: NPY002 - the global generator must not matter
    first = bootstrap_interval(values)
    np.random.seed(2)  # noqa: NPY002
    assert bootstrap_interval(values.tolist()) == first
    assert bootstrap_interval(values, seed=1) != first


@pytest.mark.parametrize("size", [2, 5, 7, 40])
def test_t_interval_equals_scipys(size):
    values = np.random.default_rng(size).normal(3, 2, size=size)
    expected = ttest_1samp(values, 0).confidence_interval(0.95)
    assert t_interval(values) == pytest.approx((expected.low, expected.high))
    assert t_interval([0.5] * size) == (0.5, 0.5)


@pytest.mark.parametrize("interval", [bootstrap_interval, t_interval])
@pytest.mark.parametrize("values", [[], [1.0], [1.0, float("nan")], [1.0, float("inf")], [[1.0, 2.0]]])
def test_intervals_refuse_bad_values(interval, values):
    with pytest.raises(ValueError, match=r"values must be at least two finite numbers: leave out missing ones"):
        interval(values)
