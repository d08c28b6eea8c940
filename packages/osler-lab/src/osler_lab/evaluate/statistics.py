"""Paired significance tests, corrected for their number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

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
