"""Calibration of confidence: expected calibration error, reliability bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose confidence lies in one tenth of the scale."""

    confidence: float
    """Mean."""
    accuracy: float
    n: int


def reliability(
    confidences: Sequence[float], rights: Sequence[float], bins: int = BINS
) -> tuple[Bin, ...]:
    """Groups answers into bins of equal width, in order, without the empty ones.

    Raises `ValueError` for confidences outside 0 to 1, and for unequal lengths.
    """
    if len(confidences) != len(rights):
        raise ValueError(f"{len(confidences)} confidences for {len(rights)} answers")
    if not all(0 <= value <= 1 for value in confidences):
        raise ValueError("a confidence lies in 0 to 1")
    by_bin: dict[int, list[tuple[float, float]]] = {}
    for confidence, right in zip(confidences, rights, strict=True):
        # A confidence of exactly 1 belongs to the last bin.
        by_bin.setdefault(min(int(confidence * bins), bins - 1), []).append((confidence, right))
    return tuple(
        Bin(fmean(c for c, _ in pairs), fmean(r for _, r in pairs), len(pairs))
        for _, pairs in sorted(by_bin.items())
    )


def calibration_error(
    confidences: Sequence[float], rights: Sequence[float], bins: int = BINS
) -> float:
    """Expected calibration error: gaps of confidence and accuracy, weighted by the bins' size.

    Raises `ValueError` for no answers.
    """
    filled = reliability(confidences, rights, bins)
    if not filled:
        raise ValueError("no answers, no error")
    total = sum(one.n for one in filled)
    return sum(one.n * abs(one.confidence - one.accuracy) for one in filled) / total
