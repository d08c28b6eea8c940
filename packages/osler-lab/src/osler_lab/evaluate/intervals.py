"""Confidence intervals for proportions, means and differences of pairs; paired tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, sqrt

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

    @property
    def percent(self) -> str:
        """The same times 100: "54.0 [44.0, 63.0]"."""
        return f"{100 * self.value:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


def proportion(hits: float, n: int) -> Estimate:
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


def widen_equal(change: Estimate) -> Estimate:
    """A difference of shares whose bootstrap has no width, since all pairs changed alike: as far
    to either side as pairs that change otherwise may be frequent (Wilson's bound of 0 of n)."""
    if change.low < change.high:
        return change
    room = proportion(0, change.n).high
    low, high = max(-1.0, change.value - room), min(1.0, change.value + room)
    return Estimate(change.value, low, high, change.n)


DRAWS = 10_000


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A two-sided paired test."""

    __test__ = False  # no test of pytest's

    name: str
    p: float
    n: int
    """Pairs."""


def paired_test(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> PairedTest:
    """Tests by McNemar (exact) for right and wrong, else by sign-flip permutations of the mean.

    Raises `ValueError` for no pairs, or values that are not paired.
    """
    if len(first) != len(second) or not first:
        raise ValueError(f"pairs are needed, got {len(first)} and {len(second)} values")
    if {*first, *second} <= {0.0, 1.0}:
        return PairedTest("McNemar, exact", mcnemar(first, second), len(first))
    return PairedTest("permutation", permutation(first, second, seed=seed), len(first))


def mcnemar(first: Sequence[float], second: Sequence[float]) -> float:
    """Exact binomial p-value of the discordant pairs; 1.0 without any."""
    only_first = sum(a > b for a, b in zip(first, second, strict=True))
    only_second = sum(b > a for a, b in zip(first, second, strict=True))
    n, least = only_first + only_second, min(only_first, only_second)
    # Under H0 each discordant pair falls either way with 1/2: a binomial tail, doubled.
    tail = sum(comb(n, i) for i in range(least + 1))
    return min(1.0, 2 * tail / (1 << n))


def permutation(
    first: Sequence[float], second: Sequence[float], *, seed: int = 0, draws: int = DRAWS
) -> float:
    """Share of random sign flips whose mean difference is at least as far from 0.

    The observed one counts as a draw, so that p is never 0.
    """
    gaps = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    seen, chance = abs(float(gaps.mean())), np.random.default_rng(seed)
    extreme = 0
    for begin in range(0, draws, 500):  # bounded memory for long samples
        size = min(500, draws - begin)
        signs = chance.choice((-1.0, 1.0), size=(size, len(gaps)))
        # A flip that gives the same mean by another order of sums counts as the same.
        extreme += int((np.abs((signs * gaps).mean(axis=1)) >= seen - 1e-12).sum())
    return (extreme + 1) / (draws + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's correction: the family keeps its error rate, in the order that was given."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    corrected, worst = [1.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        # Step down: factor m - rank for the smallest p first, never below the one before.
        worst = max(worst, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = worst
    return corrected
