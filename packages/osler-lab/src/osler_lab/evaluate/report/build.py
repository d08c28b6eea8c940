"""Builds a report from a log folder, as plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from osler.errors import BadRun
from osler.text import read_packaged_table
from osler.types import Usage
from osler_lab.evaluate.compare import PairedComparison, Undecided, compare_logs
from osler_lab.evaluate.datasets import DATA_SETS
from osler_lab.evaluate.intervals import Estimate, estimate_mean
from osler_lab.evaluate.judged import Judgement, read_judgements
from osler_lab.evaluate.log import read_records
from osler_lab.evaluate.measures import (
    BY_NAME,
    MEASURES,
    PRIMARY,
    Measure,
    answer_text,
    chosen_letters,
    measure_value,
)
from osler_lab.evaluate.metrics.choice import calibration_error, leaderboard, standard_error
from osler_lab.evaluate.plan import EvaluationPlan, read_plan
from osler_lab.evaluate.record import SampleRecord
from osler_lab.evaluate.report.opponents import GoldTally, SimpleOpponent

SHOWN = 20
"""Number of samples of a cell that the report shows."""
CALIBRATED = 100
"""Answers with a confidence below which no calibration error is shown: it would be noise."""


@dataclass(frozen=True, slots=True)
class ReportedSample:
    """Sample as the report shows it."""

    strategy: str
    task: str
    id: str
    question: str
    options: tuple[tuple[str, str], ...]
    gold: str
    answer: str
    score: float | None
    """Score by the primary measure; `None` for a sample that failed."""
    why: str


@dataclass
class ReportCell:
    """Figures of one strategy on one task."""

    strategy: str
    task: str
    planned: int
    trained_on: int = 0
    """Its samples that a model of the strategy was trained on."""
    undecided: int = 0
    """Its answers that a reader gave in the method's stead."""
    done: int = 0
    failed: int = 0
    values: dict[str, list[float]] = field(default_factory=dict)
    errors: dict[str, int] = field(default_factory=dict)
    confidence: list[tuple[float, float]] = field(default_factory=list)
    exam: list[tuple[str, str, float]] = field(default_factory=list)
    shown: list[ReportedSample] = field(default_factory=list)
    prompts: set[str] = field(default_factory=set)
    estimates: dict[str, Estimate] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        return max(0, self.planned - self.done - self.failed)

    @property
    def error(self) -> float | None:
        """MIRAGE's standard error of the accuracy; `None` if absent."""
        scores = self.values.get("accuracy")
        return standard_error(sum(scores) / len(scores), len(scores)) if scores else None

    @property
    def ece(self) -> float | None:
        """Expected calibration error; `None` for fewer than `CALIBRATED` answers."""
        if len(self.confidence) < CALIBRATED:
            return None
        confidences, rights = zip(*self.confidence, strict=True)
        return calibration_error(confidences, rights)

    @property
    def leaderboard(self) -> tuple[dict[str, float], float] | None:
        """CMB's average, for tasks whose samples name their examination."""
        return leaderboard(self.exam) if self.exam else None


@dataclass(frozen=True, slots=True)
class PrintedFigure:
    """A number of a paper beside ours."""

    place: str
    task: str
    strategy: str
    theirs: float
    ours: Estimate
    differs: str


@dataclass(frozen=True, slots=True)
class RivalFigure:
    """A number of a paper for a data set of the log, by a method that is not in it."""

    place: str
    task: str
    theirs: float
    reader: str
    differs: str
    parts: Mapping[str, float]
    """By examination, where the paper has that."""

    @property
    def cells(self) -> tuple[str, str, str, str, str]:
        """A row of a table: data, paper, printed, by examination, and what differs."""
        parts = ", ".join(f"{name} {value:.2f}" for name, value in self.parts.items())
        differs = f"{self.reader}; {self.differs}"
        return (self.task, self.place, f"{self.theirs:.2f}", parts, differs)


@dataclass(frozen=True, slots=True)
class JudgedCell:
    """Verdicts of one judge on one strategy and task, by one form."""

    form: str
    judge: str
    strategy: str
    task: str
    estimates: dict[str, Estimate]
    unread: int
    """Verdicts that could not be read; they are in no figure."""
    usage: Usage


@dataclass(frozen=True)
class EvaluationReport:
    """Content of a report."""

    plan: EvaluationPlan
    cells: tuple[ReportCell, ...]
    compared: tuple[PairedComparison, ...]
    printed: tuple[PrintedFigure, ...]
    judged: tuple[JudgedCell, ...] = ()
    opponents: Mapping[str, Mapping[str, tuple[SimpleOpponent, ...]]] = field(default_factory=dict)
    """Task → measure → what the majority answer and chance score."""
    rivals: tuple[RivalFigure, ...] = ()
    """What the papers print for these data sets by methods that are not in the log."""

    @property
    def tasks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.task for cell in self.cells))

    @property
    def strategies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.strategy for cell in self.cells))

    def cell_of(self, strategy: str, task: str) -> ReportCell | None:
        return next((c for c in self.cells if (c.strategy, c.task) == (strategy, task)), None)

    def measures(self) -> list[Measure]:
        """Measures that at least one cell has, in the order of `MEASURES`."""
        known = {name for cell in self.cells for name in cell.estimates}
        return [measure for measure in MEASURES if measure.name in known]

    def macro_mean(self, strategy: str, measure: str) -> float | None:
        """The mean over the tasks that anybody has it on, each counting the same; `None` unless
        the strategy has it on all of them."""
        known = [cell for cell in self.cells if measure in cell.estimates]
        own = [one.estimates[measure].value for one in known if one.strategy == strategy]
        tasks = {cell.task for cell in known}
        return sum(own) / len(own) if own and len(own) == len(tasks) else None


def build_report(
    folder: Path,
    *,
    shown: int = SHOWN,
    measures: Sequence[Measure] = MEASURES,
    allow_undecided: bool = False,
) -> EvaluationReport:
    """`allow_undecided` compares answers that a reader gave in a method's stead as well.

    Raises `BadRun` for a folder without a log, a damaged one, or a measure that fails."""
    plan = read_plan(folder)
    cells = {
        (label, task): ReportCell(label, task, planned, plan.trained_on.get(label, {}).get(task, 0))
        for label, counts in plan.asked.items()
        for task, planned in counts.items()
    }
    golds: dict[str, GoldTally] = {}
    for record in read_records(folder):
        sample = record.sample
        golds.setdefault(sample.task, GoldTally(sample.kind)).note_sample(sample)
        place = record.strategy, sample.task
        cell = cells.setdefault(place, ReportCell(*place, 0))
        _note_record(cell, record, measures)
        if len(cell.shown) > 10 * shown + 100:  # bounded memory, whatever the log's size
            cell.shown = _failures_first(cell.shown)[:shown]
    for cell in cells.values():
        cell.shown = _failures_first(cell.shown)[:shown]
        cell.estimates = {
            name: estimate_mean(values, plan.seed) for name, values in cell.values.items() if values
        }
    kept = tuple(cells.values())
    if not any(cell.done or cell.failed for cell in kept):
        raise BadRun(f"{folder} holds no sample yet", fix="`osler eval run` tries them")
    return EvaluationReport(
        plan,
        kept,
        _compare_cells(folder, plan, kept, "allow" if allow_undecided else "leave out"),
        tuple(_printed_figures(plan, cells)),
        tuple(judged_cells(read_judgements(folder), plan.seed)),
        {task: tally.opponents(plan.seed) for task, tally in golds.items()},
        tuple(_rival_figures(plan, cells)),
    )


def judged_cells(judgements: Iterable[Judgement], seed: int) -> Iterable[JudgedCell]:
    """Summarises judgements by form, judge, strategy and task."""
    groups: dict[tuple[str, str, str, str], list[Judgement]] = {}
    for one in judgements:
        groups.setdefault((one.form, one.judge, *one.key[:2]), []).append(one)
    for (form, judge, strategy, task), group in sorted(groups.items()):
        names = dict.fromkeys(name for one in group for name in one.values)
        estimates = {
            name: estimate_mean([one.values[name] for one in group if name in one.values], seed)
            for name in names
        }
        unread = sum(not one.is_read for one in group)
        usage = sum((one.usage for one in group), Usage())
        yield JudgedCell(form, judge, strategy, task, estimates, unread, usage)


def _compare_cells(
    folder: Path, plan: EvaluationPlan, cells: Sequence[ReportCell], undecided: Undecided
) -> tuple[PairedComparison, ...]:
    if len({cell.strategy for cell in cells if cell.done}) < 2:
        return ()
    return tuple(compare_logs(folder, folder, seed=plan.seed, undecided=undecided))


def _note_record(cell: ReportCell, record: SampleRecord, measures: Sequence[Measure]) -> None:
    failed = record.status == "failed"
    if failed:
        cell.failed += 1
        kind = record.error.partition(":")[0]
        cell.errors[kind] = cell.errors.get(kind, 0) + 1
    else:
        cell.done += 1
        cell.undecided += record.is_undecided
        cell.prompts.update(record.outcome.prompts)
    for measure in measures:
        if (value := measure_value(measure, record)) is not None:
            cell.values.setdefault(measure.name, []).append(value)
    score = measure_value(BY_NAME[PRIMARY[record.sample.kind]], record)
    if score is not None:
        choosing = record.sample.kind in ("choice", "choices")
        if record.outcome.confidence is not None and choosing:
            cell.confidence.append((record.outcome.confidence, score))
        if exam := record.sample.tag_value("exam_class"):
            cell.exam.append((record.sample.tag_value("exam_type"), exam, score))
    cell.shown.append(_reported_sample(record, None if failed else score))


def _failures_first(shown: Iterable[ReportedSample]) -> list[ReportedSample]:
    """Sorts samples: those that failed, then the worst answers, then the others."""
    return sorted(shown, key=lambda one: (one.score is not None, one.score or 0.0, one.id))


def _reported_sample(record: SampleRecord, score: float | None) -> ReportedSample:
    sample, outcome = record.sample, record.outcome
    question = sample.question
    gold = " ".join(sample.gold.letters) or " | ".join(sample.gold.texts)
    answer = " ".join(sorted(chosen_letters(record))) if question.options else answer_text(record)
    return ReportedSample(
        record.strategy,
        sample.task,
        sample.id,
        question.text,
        tuple(question.lettered),
        gold,
        answer or "none",
        score,
        record.error or f"{outcome.halt}: {outcome.why}",
    )


def _printed_figures(
    plan: EvaluationPlan, cells: Mapping[tuple[str, str], ReportCell]
) -> Iterable[PrintedFigure]:
    """Finds the numbers that the papers print for these tasks and strategies."""
    for entry in read_packaged_table(__package__, "printed.toml")["printed"]:
        for (label, task), cell in cells.items():
            entrant = plan.entrants.get(label)
            theirs = entry["values"].get(task)
            if entrant is None or theirs is None or not _same_settings(entry, entrant.settings):
                continue
            if (ours := cell.estimates.get(entry["measure"])) is None:
                continue
            models = ", ".join(sorted(set(entrant.models.values()))) or "another model"
            differs = f"{_tell_rows(plan, task)}{entry['differs']}"
            differs = f"{entry['reader']} there, {models} here; n = {ours.n}; {differs}"
            yield PrintedFigure(entry["place"], task, label, theirs, ours, differs)


def _rival_figures(
    plan: EvaluationPlan, cells: Mapping[tuple[str, str], ReportCell]
) -> Iterable[RivalFigure]:
    """Finds the numbers of the papers for these tasks that stand beside none of ours."""
    ours = {(one.place, one.task) for one in _printed_figures(plan, cells)}
    tasks = dict.fromkeys(task for _, task in cells)
    for entry in read_packaged_table(__package__, "printed.toml")["printed"]:
        for task in tasks:
            place, theirs = entry["place"], entry["values"].get(task)
            if theirs is not None and (place, task) not in ours:
                parts, differs = entry.get("parts", {}), _tell_rows(plan, task) + entry["differs"]
                yield RivalFigure(place, task, theirs, entry["reader"], differs, parts)


def _tell_rows(plan: EvaluationPlan, task: str) -> str:
    """Says where the data cannot be the published set: any file may be given under its name."""
    rows = plan.tasks[task].rows if task in plan.tasks else 0
    published = DATA_SETS[task].published if task in DATA_SETS else 0
    if not published or rows in (0, published):
        return ""
    return f"{rows:,} rows of data here, {published:,} as published; "


def _same_settings(entry: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    strategy = settings.get("strategy", {})
    return entry["strategy"] == strategy.get("kind") and entry.get("metric") in (
        None,
        strategy.get("metric"),
    )
