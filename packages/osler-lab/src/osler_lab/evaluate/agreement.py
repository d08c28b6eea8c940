"""How far a judge agrees with people, and people with one another (Omni-RAG Table 5)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean

from osler.errors import BadRun
from osler_lab.evaluate.datasets.base import csv_records, required_cells, yes_or_no
from osler_lab.evaluate.intervals import Estimate, mean
from osler_lab.evaluate.judged import Form, Judgement, read_judgements
from osler_lab.evaluate.judges import DIMENSIONS, Rating, read_ratings
from osler_lab.evaluate.log import TriedSamples
from osler_lab.evaluate.metrics.choice import Agreement, agreement
from osler_lab.evaluate.record import SampleKey


@dataclass(frozen=True, slots=True)
class MarkAgreement:
    """Marks of a judge against those of people, over the same answers."""

    judge: str
    dimension: str
    n: int
    """Pairs of a judge's mark and one person's."""
    same: float
    """Share of pairs with the same mark."""
    near: float
    """Share of pairs at most one mark apart."""
    higher: float
    """The judge's mean mark less people's."""
    kappa: float | None
    """Cohen's, with quadratic weights; `None` where both gave one and the same mark always."""


@dataclass(frozen=True, slots=True)
class VerdictAgreement:
    """A judge's right and wrong against people's."""

    judge: str
    agreement: Agreement


@dataclass(frozen=True, slots=True)
class HumanAgreement:
    """Agreement of a log's judges with a file of people's judgements."""

    marked: tuple[MarkAgreement, ...]
    graded: tuple[VerdictAgreement, ...]


def compare_with_people(folder: Path, people: Path) -> HumanAgreement:
    """People's CSV has strategy, task, id, rater, and either the four dimensions or `verdict`.

    Raises `MalformedSource` for a file that is neither, `BadRun` where nothing was judged by both.
    """
    judgements = read_judgements(folder)
    rows = list(csv_records(people))
    # The header decides which of the two forms of file this is.
    if rows and "verdict" in rows[0].data:
        result = HumanAgreement((), _grade_agreement(judgements, read_verdicts(people)))
    else:
        result = HumanAgreement(_mark_agreement(judgements, people), ())
    if not (result.marked or result.graded):
        raise BadRun(
            f"no answer of {people} was judged in {folder}",
            fix="`osler eval judge` judges them; strategy, task and id must be as in the log",
        )
    return result


def read_verdicts(path: Path) -> list[tuple[SampleKey, bool]]:
    """Raises `MalformedSource` naming file and line for a verdict other than yes and no."""
    verdicts = []
    for row in csv_records(path):
        *key, word = required_cells(path, row, "strategy", "task", "id", "verdict")
        verdicts.append((SampleKey(*key), yes_or_no(path, row, word)))
    return verdicts


def _by_judge(
    judgements: Iterable[Judgement], form: Form
) -> dict[str, dict[SampleKey, dict[str, float]]]:
    values: dict[str, dict[SampleKey, dict[str, float]]] = defaultdict(dict)
    for judgement in judgements:
        if judgement.form == form and judgement.values:
            values[judgement.judge][judgement.key] = judgement.values
    return values


def _grade_agreement(
    judgements: Sequence[Judgement], people: Sequence[tuple[SampleKey, bool]]
) -> tuple[VerdictAgreement, ...]:
    agreements = []
    for judge, values in _by_judge(judgements, "correct").items():
        pairs = [
            (bool(values[key]["correct"]), verdict) for key, verdict in people if key in values
        ]
        if pairs:
            machine, person = zip(*pairs, strict=True)
            agreements.append(VerdictAgreement(judge, agreement(machine, person)))
    return tuple(agreements)


def _mark_agreement(judgements: Sequence[Judgement], people: Path) -> tuple[MarkAgreement, ...]:
    ratings, agreements = read_ratings(people), []
    for judge, values in _by_judge(judgements, "rubric").items():
        for name in DIMENSIONS:
            pairs = [
                # Every rater is paired with the judge by itself: averaging raters first would hide
                # how far people differ among themselves.
                (int(values[rating.key][name]), mark)
                for rating in ratings
                for dimension, mark in rating.marks
                if dimension == name and name in values.get(rating.key, {})
            ]
            if pairs:
                agreements.append(_compare_marks(judge, name, pairs))
    return tuple(agreements)


def _compare_marks(judge: str, name: str, pairs: Sequence[tuple[int, int]]) -> MarkAgreement:
    apart = [machine - person for machine, person in pairs]
    return MarkAgreement(
        judge,
        name,
        len(pairs),
        fmean(gap == 0 for gap in apart),
        fmean(abs(gap) <= 1 for gap in apart),
        fmean(apart),
        weighted_kappa(pairs),
    )


def weighted_kappa(pairs: Sequence[tuple[int, int]]) -> float | None:
    """Cohen's kappa with quadratic weights; `None` where chance alone explains everything."""
    seen = fmean((a - b) ** 2 for a, b in pairs)
    # Kappa_w = 1 - sum(w * observed) / sum(w * expected) with w = (a - b)^2; the expected part is
    # the mean over all pairs of the two margins.
    chance = fmean((a - b) ** 2 for a, _ in pairs for _, b in pairs)
    return 1 - seen / chance if chance else None


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


def tabulate_ratings(ratings: Sequence[Rating]) -> RatingTable:
    """Averages the ratings. Raises `BadRun` for none."""
    if not ratings:
        raise BadRun("the file holds no rating", fix="one row for each answer and rater")
    cells: dict[tuple[str, str], list[Rating]] = defaultdict(list)
    for rating in ratings:
        cells[rating.key.strategy, rating.key.task].append(rating)
    return RatingTable(
        tuple(_make_cell(*place, group) for place, group in cells.items()),
        tuple(_compare_raters(ratings)),
    )


def _make_cell(strategy: str, task: str, group: Sequence[Rating]) -> RatedCell:
    means = {}
    for dimension in DIMENSIONS:
        marks = list(_marks_by_answer(group, dimension).values())
        if marks:
            # An answer counts once, however many people rated it; intervals are over answers.
            means[dimension] = mean([fmean(given) for given in marks])
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
