"""Measures a solver in one call: samples in, figures with their intervals out."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from osler.errors import BadConfig, BadRun
from osler.text import suggest_word
from osler.trace import Budget, Solver
from osler_lab.evaluate.datasets import load_dataset
from osler_lab.evaluate.datasets.choice import sample_folder
from osler_lab.evaluate.intervals import Estimate, estimate_mean
from osler_lab.evaluate.log import read_records
from osler_lab.evaluate.measures import BY_NAME, PRIMARY, Measure, measure_value
from osler_lab.evaluate.record import Sample, SampleRecord
from osler_lab.evaluate.runner import EvaluationRunner, ReadyStrategy, RunnerCell

_NAME = "solver"


@dataclass(frozen=True, slots=True)
class SolverFigures:
    """What a solver reached, by the name of each measure."""

    figures: Mapping[str, Estimate | None]
    """With their 95 % intervals; `None` where a measure applies to no sample."""
    failed: Mapping[str, str]
    """Ids of the samples on which the solver raised, each with why. A measure of right answers
    counts them as 0."""


async def measure_solver(
    data: str | Sequence[Sample],
    solver: Solver,
    measures: Sequence[str] = (),
    *,
    folder: Path | None = None,
    jobs: int = 1,
    seed: int = 0,
    budget: Budget = Budget(),  # noqa: B008 - frozen
) -> SolverFigures:
    """Tries every sample with the solver, which is handed the question alone, and measures.

    `data` is a list of samples, with ids that differ within a task, or the name of a data set,
    whose files lie below `folder`; those that come with Osler ("sample", "sample-open", …) need
    none. `measures` are names of `osler_lab.evaluate.measures.MEASURES`; without any, the one by
    which each kind of question is compared. `jobs` samples are tried at once, each within
    `budget`; what should survive a kill, or be compared, is `osler eval run`'s. Raises `BadConfig`
    for an unknown name, `MalformedSource` for files that are not there, and `BadRun` where 20
    samples in a row fail.

        >>> import asyncio, osler, osler_lab
        >>> from osler.types import Halt
        >>> class AlwaysFirst:
        ...     async def solve(self, question, run):
        ...         return osler.Solution(osler.Answer(option="A"), Halt.CONVERGED, "the first")
        >>> measured = asyncio.run(osler_lab.measure_solver("sample", AlwaysFirst(), ["accuracy"]))
        >>> print(measured.figures["accuracy"])
        0.267 [0.142, 0.444]
        >>> measured.failed
        {}
    """
    chosen = [_find_measure(name) for name in measures]
    if isinstance(data, str):
        data = load_dataset(data, folder or sample_folder()).samples
    ready = ReadyStrategy(solver, seed=seed, budget=budget)

    async def prepare(strategy: str) -> ReadyStrategy:
        return ready

    with tempfile.TemporaryDirectory() as log:
        try:
            await EvaluationRunner(Path(log), prepare, jobs).run(_cells_of(data))
        except BadRun as error:
            said = "correct the cause, and call again; nothing of this call is kept"
            raise BadRun(error.message, fix=said) from error
        records = list(read_records(Path(log)))
    chosen = chosen or [BY_NAME[name] for name in dict.fromkeys(PRIMARY[one.kind] for one in data)]
    return SolverFigures(
        {measure.name: _estimate(measure, records, seed) for measure in chosen},
        {record.sample.id: record.error for record in records if record.status == "failed"},
    )


def _find_measure(name: str) -> Measure:
    if name not in BY_NAME:
        hint = suggest_word(name, BY_NAME)
        raise BadConfig(f"no measure {name!r}", fix=f"{hint}there are {', '.join(BY_NAME)}")
    return BY_NAME[name]


def _cells_of(samples: Sequence[Sample]) -> list[RunnerCell]:
    tasks = dict.fromkeys(sample.task for sample in samples)
    return [RunnerCell(_NAME, task, [one for one in samples if one.task == task]) for task in tasks]


def _estimate(measure: Measure, records: Sequence[SampleRecord], seed: int) -> Estimate | None:
    values = [measure_value(measure, record) for record in records]
    counted = [value for value in values if value is not None]
    return estimate_mean(counted, seed) if counted else None
