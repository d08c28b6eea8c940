"""Confidence intervals for proportions, means and differences of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

Z = 1.959963984540054
"""Normal quantile of a two-sided 95 % interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its 95 % interval and the number of samples behind it."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def proportion(hits: int, n: int) -> Estimate:
    """A share with Wilson's score interval, which holds near 0 and 1 and for small n.

    Raises `ValueError` unless 0 <= hits <= n and n > 0.
    """
    if not 0 <= hits <= n or n == 0:
        raise ValueError(f"{hits} of {n} is not a proportion")
    # Wilson (1927): centre = (p + z^2/2n) / (1 + z^2/n), half width as below.
    share = hits / n
    spread = 1 + Z**2 / n
    centre = (share + Z**2 / (2 * n)) / spread
    half = Z * sqrt(share * (1 - share) / n + Z**2 / (4 * n**2)) / spread
    # The bounds at 0 and n are exact; only rounding would move them.
    low = 0.0 if hits == 0 else centre - half
    high = 1.0 if hits == n else centre + half
    return Estimate(share, low, high, n)


def mean(values: Sequence[float], *, seed: int = 0, draws: int = 10_000) -> Estimate:
    """A mean with its percentile bootstrap interval; seeded, so that a table repeats.

    Raises `ValueError` for no values.
    """
    if not values:
        raise ValueError("no values, no mean")
    sample = np.asarray(values, dtype=np.float64)
    chance = np.random.default_rng(seed)
    means = np.empty(draws)
    for begin in range(0, draws, 500):  # bounded memory for long samples
        size = min(500, draws - begin)
        # Blocks draw from one generator in order, so the block size does not change the figures of
        # a seed.
        picks = chance.integers(0, len(sample), (size, len(sample)))
        means[begin : begin + size] = sample[picks].mean(axis=1)
    low, high = np.quantile(means, (0.025, 0.975))
    return Estimate(float(sample.mean()), float(low), float(high), len(sample))


# Bootstrap draws of an interval in a table.
_TABLE_DRAWS = 2_000


def estimate_mean(values: Sequence[float], seed: int) -> Estimate:
    """Estimates a mean: Wilson's interval for right and wrong, else a bootstrap.

    A bootstrap of ten right answers says that all are right, and means nothing. Raises
    `ValueError` for no values.
    """
    # A bootstrap of n ones has no width: Wilson's interval does not collapse.
    if {*values} <= {0.0, 1.0}:
        return proportion(int(sum(values)), len(values))
    return mean(values, seed=seed, draws=_TABLE_DRAWS)


def difference(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> Estimate:
    """Mean of `second - first` over the same samples, paired. Raises `ValueError`."""
    if len(first) != len(second):
        raise ValueError(f"pairs are needed, got {len(first)} and {len(second)} values")
    return mean([b - a for a, b in zip(first, second, strict=True)], seed=seed)
