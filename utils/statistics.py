"""The confidence interval (95 %) of a proportion. Built in notebook 08."""

import math


def wilson_interval(right: int, total: int) -> tuple[float, float]:
    """Return the 95 % interval of a proportion such as an accuracy (Wilson 1927), which fits small samples, too.

    Built in notebook 08, section “How far can you trust such a number?”. It is written by hand because it is taught
    there; scipy.stats.binomtest(right, total).proportion_ci(method="wilson") gives the same. ValueError for a count
    outside 0 … total.
    """
    if not 0 <= right <= total or total == 0:
        raise ValueError(f"{right} right answers of {total}: use 0 to the total, and a total above 0")
    z, share = 1.96, right / total
    middle = (share + z**2 / (2 * total)) / (1 + z**2 / total)
    half = z / (1 + z**2 / total) * math.sqrt(share * (1 - share) / total + z**2 / (4 * total**2))
    return max(0.0, middle - half), min(1.0, middle + half)
