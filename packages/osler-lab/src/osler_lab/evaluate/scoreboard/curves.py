"""Curves of the scoreboard as numbers: risk over coverage, the cost-quality front."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from osler_lab.evaluate.intervals import Estimate, proportion
from osler_lab.evaluate.scoreboard.scores import ScoredAnswer

COVERAGES = (0.8, 0.6, 0.4)
NOTICED = 0.1
"""Seconds: a shorter difference is noticed by nobody (Miller 1968), and who runs first on a cold
machine may lose as much."""


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """How often answers are wrong where only the surest are given."""

    points: tuple[tuple[float, float], ...]
    """Coverage and risk, from the surest answer on."""
    aurc: float
    """Mean risk over all coverages (Geifman and El-Yaniv 2017)."""
    at: tuple[tuple[float, Estimate], ...]
    """Risk at `COVERAGES`."""


def risk_curve(answers: Iterable[ScoredAnswer]) -> RiskCurve | None:
    """Over the answers that bear a sureness; `None` for fewer than ten."""
    known = sorted((-one.sureness, one.right) for one in answers if one.sureness is not None)
    if len(known) < 10:
        return None
    wrong, points = 0.0, []
    # Ties are taken together: their order is chance.
    for n, (sureness, right) in enumerate(known, 1):
        wrong += 1 - right
        if n == len(known) or known[n][0] != sureness:
            points.append((n / len(known), wrong / n))
    at = []
    for coverage in COVERAGES:
        first = known[: max(1, round(coverage * len(known)))]
        missed = sum(1 - right for _, right in first)
        at.append((coverage, proportion(int(missed), len(first))))
    return RiskCurve(tuple(points), fmean(risk for _, risk in points), tuple(at))


@dataclass(frozen=True, slots=True)
class FrontPoint:
    """A strategy's quality and cost over one set of questions."""

    strategy: str
    right: Estimate
    seconds: float
    """Median."""
    mean_seconds: float


def cost_points(answers: Iterable[ScoredAnswer]) -> list[FrontPoint]:
    """Each strategy's point, over whatever answers are given."""
    by_strategy: dict[str, list[ScoredAnswer]] = {}
    for one in answers:
        by_strategy.setdefault(one.strategy, []).append(one)
    return [
        FrontPoint(
            label,
            proportion(int(sum(one.right for one in ours)), len(ours)),
            median(one.seconds for one in ours),
            fmean(one.seconds for one in ours),
        )
        for label, ours in by_strategy.items()
    ]


def is_on_front(point: FrontPoint, others: Sequence[FrontPoint]) -> bool:
    """Whether no other point is at least as right at most as dear, and better in one of the two;
    cheaper by less than `NOTICED` is not cheaper."""
    return not any(
        other.right.value >= point.right.value
        and other.mean_seconds <= point.mean_seconds
        and (
            other.right.value > point.right.value
            or other.mean_seconds < point.mean_seconds - NOTICED
        )
        for other in others
    )
