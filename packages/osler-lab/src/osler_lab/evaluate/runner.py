"""Tries every sample under every strategy, and writes down each as soon as it is done.

The log is the checkpoint: what it holds is not done again, and what is killed is done by the
next who comes, on this host or on another. A sample that fails is noted with its reason and
the rest goes on; where nothing succeeds any more, the run stops and says why.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from osler.answer.abstention import explain_abstention, tell_unread
from osler.answer.written import say_unconfirmed
from osler.trace import Answered, Budget, Price, Run, Solver, Started
from osler.types import Question, Solution
from osler_lab.evaluate.log import LogWriter, TriedSamples
from osler_lab.evaluate.record import RecordedOutcome, Sample, SampleKey, SampleRecord, outcome_of
from osler_lab.evaluate.searches import note_searches
from osler_lab.jobs.journal import failure_reason
from osler_lab.jobs.runner import Batch, Claims, JobRunner, Progress, make_batches

BATCH = 16
"""Samples that are claimed at once."""


@dataclass(frozen=True, slots=True)
class SolvedRun:
    """A run that came to its end."""

    question: Question
    run: Run
    solution: Solution
    when: str
    """ISO 8601, UTC."""
    seconds: float
    """Wall clock."""


Keep = Callable[[SolvedRun], str]
"""Keeps a run with its tape; returns its name."""


@dataclass(frozen=True)
class ReadyStrategy:
    """A strategy that can solve now."""

    solver: Solver
    models: Mapping[str, str] = field(default_factory=dict)
    snapshot: str = ""
    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    kind: str = ""
    """The strategy's name, as events tell it."""
    accelerators: int = 0
    """Accelerators that its models run on; 0 = none, or not known."""
    taped: Callable[[], tuple[Solver, Keep]] | None = None
    """A solver for one run, which writes down all that models and indexes say."""
    notes_of: tuple[str, ...] = ()
    """Roles whose model may not word medicine: `osler.trace.Started`."""
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By model identity, where they are known."""


@dataclass(frozen=True)
class RunnerCell:
    """Strategy on a task, with the samples to try."""

    strategy: str
    task: str
    samples: Sequence[Sample]

    def batches(self) -> list[Batch[CellSample]]:
        items = [CellSample(self, sample) for sample in self.samples]
        return make_batches(items, BATCH, lambda n, _: f"{self.strategy}.{self.task}.{n}")


@dataclass(frozen=True, slots=True)
class CellSample:
    """Sample under a strategy: the item of the job."""

    cell: RunnerCell
    sample: Sample

    @property
    def key(self) -> SampleKey:
        return SampleKey(self.cell.strategy, self.cell.task, self.sample.id)


Prepare = Callable[[str], Awaitable[ReadyStrategy]]
"""A strategy's label → the strategy, loaded. Called when its first sample is due."""


@dataclass
class EvaluationRunner:
    """Process that works on a log folder; several may share one."""

    folder: Path
    prepare: Prepare
    jobs: int = 1
    """Samples at once."""
    again: bool = True
    """Whether samples that failed are tried once more."""
    progress: Progress | None = None
    _tried: TriedSamples = field(init=False)
    _writer: LogWriter = field(init=False)
    _ready: tuple[str, ReadyStrategy] | None = field(init=False, default=None)
    _loading: asyncio.Lock = field(init=False, default_factory=asyncio.Lock)
    # Tried by this run: a failed one is not tried again before the next.
    _fresh: set[SampleKey] = field(init=False, default_factory=set)

    async def run(self, cells: Sequence[RunnerCell]) -> None:
        """Returns when every sample of every cell was tried by somebody.

        Raises `BadRun` when `HOPELESS` samples in a row have failed, with the last reason.
        """
        self._tried = TriedSamples(self.folder)
        with LogWriter(self.folder) as self._writer:
            claims = Claims(self.folder / "claims", self._writer.name)
            runner = JobRunner[CellSample](claims, self, self.jobs, "samples")
            await runner.run([batch for cell in cells for batch in cell.batches()])

    def refresh(self) -> None:
        self._tried.refresh()

    def is_due(self, item: CellSample) -> bool:
        again = self.again and item.key not in self._fresh
        return not self._tried.is_done(item.key, again=again)

    async def try_item(self, item: CellSample) -> str:
        cell = item.cell
        self._report_cell(cell)  # before the models are loaded, which may take minutes
        ready = await self._prepare_strategy(cell.strategy)
        record = await try_sample(cell.strategy, ready, item.sample, self._writer)
        self._writer.write_record(record)
        self._tried.note_try(record.key, record.status)
        self._fresh.add(record.key)
        self._report_cell(cell)
        return record.error

    def _report_cell(self, cell: RunnerCell) -> None:
        if self.progress is not None:
            # The count is of the whole folder, with what other processes have done.
            done = self._tried.counts[cell.strategy, cell.task]
            self.progress(f"{cell.strategy} on {cell.task}", done, len(cell.samples))

    async def _prepare_strategy(self, strategy: str) -> ReadyStrategy:
        """The strategy; the one before it is let go, so that one model is in memory."""
        async with self._loading:
            if self._ready is None or self._ready[0] != strategy:
                self._ready = None
                self._ready = (strategy, await self.prepare(strategy))
            return self._ready[1]


async def try_sample(
    strategy: str, ready: ReadyStrategy, sample: Sample, writer: LogWriter
) -> SampleRecord:
    """Solves one sample and writes its trace. A failure is a result, with its reason.

    The solver is handed the question alone; the gold answer meets it only in the record.
    """
    began, when = time.perf_counter(), datetime.now(UTC).isoformat(timespec="milliseconds")
    # One run per sample: events, budget and usage never mix between samples.
    run = Run(
        id=f"{strategy}.{sample.task}.{sample.id}",
        seed=ready.seed,
        budget=ready.budget,
        prices=ready.prices,
    )
    outcome, error, tape = RecordedOutcome(), "", ""
    solver, keep = ready.taped() if ready.taped else (ready.solver, None)
    try:
        question = sample.question
        models = dict(ready.models)
        run.emit(
            Started(
                run.id,
                ready.kind,
                question,
                ready.snapshot,
                models,
                run.seed,
                run.budget,
                notes_of=ready.notes_of,
            )
        )
        with note_searches() as notes:
            said = explain_abstention(await solver.solve(question, run), run)
            solution = tell_unread(say_unconfirmed(said), run)
        run.emit(Answered(solution))
        outcome = outcome_of(solution, run, notes, ready.accelerators)
        if keep is not None:
            seconds = round(time.perf_counter() - began, 4)
            done = SolvedRun(question, run, solution, when, seconds)
            tape = await asyncio.to_thread(keep, done)
    except Exception as failure:  # a bug in one sample is noted with its place; the others go on
        error = failure_reason(failure)
    return SampleRecord(
        strategy,
        sample,
        "failed" if error else "done",
        when,
        round(time.perf_counter() - began, 4),
        ready.seed,
        outcome,
        error,
        # The trace goes first, so that a record never points at bytes that are not there.
        writer.write_trace(run.events),
        tape,
    )
