"""Tables and curves of the scoreboard: what stands in one was answered under equal conditions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from operator import itemgetter
from statistics import fmean, median

from osler.errors import BadRun
from osler.types import DecidedBy
from osler_lab.evaluate.intervals import Estimate, difference, holm, paired_test, proportion
from osler_lab.evaluate.scoreboard.scores import ScoredAnswer, ScoredLog, of_task

METHOD = "the method, where it decides"
"""Chooser of a method that decides by itself on any question."""

Answers = Mapping[str, ScoredAnswer]
"""Question → answer of one strategy."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A strategy on a data set."""

    strategy: str
    right: Estimate
    grounded: Estimate
    answered: Estimate
    calls: float
    tokens: float
    searches: float
    seconds: float
    """Median."""
    change: Estimate | None = None
    """Right minus the first row's, on the same questions."""
    p: float | None = None
    """McNemar's exact test against the first row, by Holm over all tables of the page."""
    recall: float | None = None
    rank: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the difference from the first row is more than chance."""
        if self.p is None or self.change is None or self.p >= 0.05:
            return ""
        return "better" if self.change.value > 0 else "worse"


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """Rows of one data set that may be compared."""

    task: str
    chooser: str
    """Who chose the option in every row; empty for questions without options."""
    rows: tuple[ScoreRow, ...]


def make_tables(log: ScoredLog, strategies: Sequence[str]) -> list[ScoreTable]:
    """A table for each data set and way of choosing, rows in the order that is given.

    Rows whose method decides by itself on any question of a data set with options stand in a table
    of their own: their option was chosen otherwise. Raises `BadRun` for rows of other questions,
    or of other settings.
    """
    tables = []
    for task in log.tasks:
        found = of_task(log.scores, task, strategies)
        by_chooser: dict[str, list[str]] = {}
        for label in (label for label in strategies if label in found):
            by_chooser.setdefault(chooser_of(found[label].values()), []).append(label)
        for chooser, labels in by_chooser.items():
            require_same_conditions(log, task, {label: found[label] for label in labels})
            first = found[labels[0]]
            rows = [_make_row(label, found[label], first) for label in labels]
            tables.append(ScoreTable(task, chooser, tuple(rows)))
    return _correct_tables(tables)


def chooser_of(answers: Iterable[ScoredAnswer]) -> str:
    """Who chose the options: a reader of what was found, or on some questions the method itself;
    empty for questions without options."""
    known = list(answers)
    if known and known[0].kind not in ("choice", "choices"):
        return ""
    # A reader in a method's stead is the reader of all other rows: the settings are the same.
    own = any(one.decided == DecidedBy.METHOD for one in known)
    return METHOD if own else "one reader for all rows"


def require_same_conditions(log: ScoredLog, task: str, rows: Mapping[str, Answers]) -> None:
    """Raises `BadRun` naming rows that rest on other questions, settings or knowledge bases."""
    labels = list(rows)
    wanted = set(rows[labels[0]])
    digests, bases = set[str](), set[str]()
    for label in labels:
        if set(rows[label]) != wanted:
            more, less = len(set(rows[label]) - wanted), len(wanted - set(rows[label]))
            raise BadRun(
                f"{label} and {labels[0]} on {task} rest on different questions: {more} more,"
                f" {less} missing",
                fix="`osler scoreboard --log-dir` tries what is missing",
            )
        digest, _, base = log.conditions[f"{task} {label}"].partition("@")
        digests.add(digest)
        bases |= {base} - {""}
    if len(digests) > 1 or len(bases) > 1:
        what = "settings" if len(digests) > 1 else "knowledge bases"
        raise BadRun(f"rows on {task} were made with different {what}: {', '.join(labels)}")


def _make_row(label: str, answers: Answers, first: Answers) -> ScoreRow:
    ids = sorted(answers)
    ours = [answers[id] for id in ids]
    right = [one.right for one in ours]
    row = ScoreRow(
        label,
        _share(right),
        _share([one.grounded for one in ours]),
        _share([one.answered for one in ours]),
        fmean(one.calls for one in ours),
        fmean(one.tokens for one in ours),
        fmean(one.searches for one in ours),
        median(one.seconds for one in ours),
        recall=_mean_known([one.recall for one in ours]),
        rank=_mean_known([one.rank for one in ours]),
    )
    if answers is first:
        return row
    before = [first[id].right for id in ids]
    return replace(row, change=difference(before, right), p=paired_test(before, right).p)


def _share(values: Sequence[float]) -> Estimate:
    return proportion(int(sum(values)), len(values))


def _mean_known(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def find_departures(log: ScoredLog, published: ScoredLog) -> list[str]:
    """Rows whose share of right answers lies outside the published one's 95 % interval, and rows
    that are missing, in words; empty where the published figures were reproduced."""
    departures = []
    for task in published.tasks:
        ours, theirs = of_task(log.scores, task), of_task(published.scores, task)
        for label, answers in theirs.items():
            wanted = _share([one.right for one in answers.values()])
            if label not in ours:
                departures.append(f"{label} on {task}: not measured, published {wanted}")
                continue
            got = _share([one.right for one in ours[label].values()])
            if not wanted.low <= got.value <= wanted.high:
                departures.append(f"{label} on {task}: {got}, published {wanted}")
    return departures


def _correct_tables(tables: Sequence[ScoreTable]) -> list[ScoreTable]:
    """Holm's correction over every comparison of these tables: one family."""
    tested = [row.p for table in tables for row in table.rows if row.p is not None]
    corrected = iter(holm(tested))
    return [
        replace(
            table,
            rows=tuple(
                row if row.p is None else replace(row, p=next(corrected)) for row in table.rows
            ),
        )
        for table in tables
    ]


COVERAGE = 0.8
NOTICED = 0.1
"""Seconds: a shorter difference is noticed by nobody (Miller 1968), and who runs first on a cold
machine may lose as much."""


@dataclass(frozen=True, slots=True)
class RiskCurve:
    """How often answers are wrong where only the surest are given."""

    aurc: float
    """Mean risk over all coverages (Geifman and El-Yaniv 2017)."""
    risk: Estimate
    """Risk at `COVERAGE`."""


def risk_curve(answers: Iterable[ScoredAnswer]) -> RiskCurve | None:
    """Over the answers that bear a sureness; `None` for fewer than ten."""
    known = sorted((-one.sureness, 1 - one.right) for one in answers if one.sureness is not None)
    if len(known) < 10:
        return None
    wrong = list[float]()
    for _, tie in groupby(known, key=itemgetter(0)):
        missed = [one for _, one in tie]
        wrong += [fmean(missed)] * len(missed)  # the order within a tie is chance
    risks = [total / n for n, total in enumerate(accumulate(wrong), 1)]
    first = wrong[: round(COVERAGE * len(wrong))]
    return RiskCurve(fmean(risks), proportion(sum(first), len(first)))


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
            _share([one.right for one in ours]),
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
