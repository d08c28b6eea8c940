"""People's ratings of long answers by strategy, data set and dimension (Omni-RAG Table 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

from osler.errors import BadRun
from osler_lab.evaluate.agreement import weighted_kappa
from osler_lab.evaluate.intervals import Estimate, mean
from osler_lab.evaluate.log import TriedSamples
from osler_lab.evaluate.metrics.rubric import DIMENSIONS, Rating
from osler_lab.evaluate.record import SampleKey


@dataclass(frozen=True, slots=True)
class RatedCell:
    """Ratings of one strategy on one data set."""

    strategy: str
    task: str
    means: dict[str, Estimate]
    """Dimension to the mean mark, 1 to 5, over the answers; one that nobody gave is left out."""
    answers: int
    raters: int


@dataclass(frozen=True, slots=True)
class RaterAgreement:
    """Agreement of the raters among themselves, in one dimension."""

    dimension: str
    n: int
    """Pairs of marks that two raters gave one answer."""
    kappa: float | None
    """Cohen's, with quadratic weights; `None` where all gave one and the same mark."""


@dataclass(frozen=True, slots=True)
class RatingTable:
    cells: tuple[RatedCell, ...]
    """In the order in which the file names strategies and data sets."""
    agreement: tuple[RaterAgreement, ...]


def tabulate_ratings(ratings: Sequence[Rating], *, seed: int = 0) -> RatingTable:
    """Averages the ratings. Raises `BadRun` for none."""
    if not ratings:
        raise BadRun("the file holds no rating", fix="one row for each answer and rater")
    cells: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for rating in ratings:
        cells[rating.key.strategy, rating.key.task].append(rating)
    return RatingTable(
        tuple(_make_cell(*place, group, seed) for place, group in cells.items()),
        tuple(_compare_raters(ratings)),
    )


def _make_cell(strategy: str, task: str, group: Sequence[Rating], seed: int) -> RatedCell:
    means = {}
    for dimension in DIMENSIONS:
        marks = list(_marks_by_answer(group, dimension).values())
        if marks:
            # An answer counts once, however many people rated it; intervals are over answers.
            means[dimension] = mean([fmean(given) for given in marks], seed=seed)
    raters = {rating.rater for rating in group}
    return RatedCell(strategy, task, means, len({rating.key for rating in group}), len(raters))


def _marks_by_answer(ratings: Iterable[Rating], dimension: str) -> dict[SampleKey, list[int]]:
    marks: dict[SampleKey, list[int]] = defaultdict(list)
    for rating in ratings:
        for name, mark in rating.marks:
            if name == dimension:
                marks[rating.key].append(mark)
    return marks


def _compare_raters(ratings: Sequence[Rating]) -> Iterable[RaterAgreement]:
    for dimension in DIMENSIONS:
        given = _marks_by_answer(ratings, dimension).values()
        pairs = [pair for marks in given for pair in combinations(marks, 2)]
        if pairs:
            # Who is named first means nothing: both orders, so that the margins are the same.
            both = [*pairs, *((second, first) for first, second in pairs)]
            yield RaterAgreement(dimension, len(pairs), weighted_kappa(both))


def require_logged(folder: Path, ratings: Iterable[Rating]) -> None:
    """Raises `BadRun` naming the first rated answer that the log folder does not hold."""
    tried = TriedSamples(folder)
    tried.refresh()
    for rating in ratings:
        if rating.key not in tried.status:
            raise BadRun(
                f"{folder} has no answer of {rating.key.strategy} to {rating.key.id} of"
                f" {rating.key.task}",
                fix="strategy, task and id must be as in the log",
            )
