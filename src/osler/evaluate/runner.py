"""Tries every sample under every strategy, and writes down each as soon as it is done.

The log is the checkpoint: what it holds is not done again, and what is killed is done by the
next who comes, on this host or on another. A sample that fails is noted with its reason and
the rest goes on; where nothing succeeds any more, the run stops and says why.
"""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from osler.errors import BadRun, OslerError
from osler.evaluate.claims import Claims
from osler.evaluate.log import LogWriter, TriedSamples
from osler.evaluate.record import RecordedOutcome, SampleKey, SampleRecord, outcome_of
from osler.evaluate.sample import Sample
from osler.trace import Answered, Budget, Run, Solver, Started
from osler.trace.ordered import gather
from osler.types import Question, Solution

Progress = Callable[[str, int, int | None], None]

BATCH = 16
"""Samples that are claimed at once."""
HOPELESS = 20
"""Failures in a row after which a run stops."""
_POLL = 0.5
"""Seconds between two looks at batches that others hold."""


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
    taped: Callable[[], tuple[Solver, Keep]] | None = None
    """A solver for one run, which writes down all that models and indexes say."""


@dataclass(frozen=True)
class RunnerCell:
    """One strategy on one task."""

    strategy: str
    task: str
    samples: Sequence[Sample]

    def batches(self) -> Iterator[tuple[str, Sequence[Sample]]]:
        for start in range(0, len(self.samples), BATCH):
            name = f"{self.strategy}.{self.task}.{start // BATCH}"
            yield name, self.samples[start : start + BATCH]

    def key(self, sample: Sample) -> SampleKey:
        return SampleKey(self.strategy, self.task, sample.id)


Prepare = Callable[[str], Awaitable[ReadyStrategy]]
"""A strategy's label → the strategy, loaded. Called when its first sample is due."""


@dataclass
class EvaluationRunner:
    """One process that works on a log folder."""

    folder: Path
    prepare: Prepare
    jobs: int = 1
    """Samples at once."""
    again: bool = True
    """Whether samples that failed are tried once more."""
    progress: Progress | None = None
    _tried: TriedSamples = field(init=False)
    _claims: Claims = field(init=False)
    _writer: LogWriter = field(init=False)
    _ready: tuple[str, ReadyStrategy] | None = field(init=False, default=None)
    _fresh: set[SampleKey] = field(init=False, default_factory=set)
    """Tried by this run: a failed one is not tried again before the next."""
    _row: int = field(init=False, default=0)
    """Failures in a row."""

    async def run(self, cells: Sequence[RunnerCell]) -> None:
        """Returns when every sample of every cell was tried by somebody.

        Raises `BadRun` when `HOPELESS` samples in a row have failed, with the last reason.
        """
        self._tried = TriedSamples(self.folder)
        with LogWriter(self.folder) as self._writer:
            self._claims = Claims(self.folder / "claims", self._writer.name)
            while left := [cell for cell in cells if self._has_open(cell)]:
                if not await self._make_pass(left):
                    await asyncio.sleep(_POLL)  # the rest is in other hands

    def _has_open(self, cell: RunnerCell) -> bool:
        self._tried.refresh()
        return any(self._is_due(cell, sample) for sample in cell.samples)

    def _is_due(self, cell: RunnerCell, sample: Sample) -> bool:
        key = cell.key(sample)
        return not self._tried.is_done(key, again=self.again and key not in self._fresh)

    async def _make_pass(self, cells: Sequence[RunnerCell]) -> bool:
        """Takes every batch that is free; whether there was any."""
        worked = False
        for cell in cells:
            for name, samples in cell.batches():
                if not any(self._is_due(cell, sample) for sample in samples):
                    continue
                if not self._claims.take_batch(name):
                    continue
                worked = True
                try:
                    self._tried.refresh()  # another may have done it before we claimed it
                    due = [sample for sample in samples if self._is_due(cell, sample)]
                    await self._run_batch(cell, name, due)
                finally:
                    self._claims.release_batch(name)
        return worked

    async def _run_batch(self, cell: RunnerCell, name: str, samples: Sequence[Sample]) -> None:
        if not samples:
            return
        ready = await self._prepare_strategy(cell.strategy)
        todo = iter(samples)

        async def work_through() -> None:
            for sample in todo:
                await self._try_one(cell, ready, sample)
                self._claims.touch_claim(name)
                self._report_progress(cell)

        alive = asyncio.create_task(self._keep_alive(name))
        try:
            await gather(work_through() for _ in range(min(self.jobs, len(samples))))
        finally:
            alive.cancel()

    async def _keep_alive(self, name: str) -> None:
        """One slow sample may take longer than a claim lasts."""
        while True:
            await asyncio.sleep(self._claims.lease / 4)
            self._claims.touch_claim(name)

    async def _prepare_strategy(self, strategy: str) -> ReadyStrategy:
        """The strategy; the one before it is let go, so that one model is in memory."""
        if self._ready is None or self._ready[0] != strategy:
            self._ready = None
            self._ready = (strategy, await self.prepare(strategy))
        return self._ready[1]

    async def _try_one(self, cell: RunnerCell, ready: ReadyStrategy, sample: Sample) -> None:
        record = await try_sample(cell.strategy, ready, sample, self._writer)
        self._writer.write_record(record)
        self._tried.note_try(record.key, record.status)
        self._fresh.add(record.key)
        self._row = self._row + 1 if record.status == "failed" else 0
        if self._row >= HOPELESS:
            raise BadRun(
                f"{self._row} samples in a row have failed; the last: {record.error}",
                fix="mend that, and run the same command again: what is done is kept",
            )

    def _report_progress(self, cell: RunnerCell) -> None:
        if self.progress is not None:
            self.progress(
                f"{cell.strategy} on {cell.task}",
                self._tried.counts[cell.strategy, cell.task],
                len(cell.samples),
            )


async def try_sample(
    strategy: str, ready: ReadyStrategy, sample: Sample, writer: LogWriter
) -> SampleRecord:
    """One sample solved and its trace written. A failure is a result, with its reason.

    The solver is handed the question alone; the gold answer meets it only in the record.
    """
    began, when = time.perf_counter(), datetime.now(UTC).isoformat(timespec="milliseconds")
    run = Run(id=f"{strategy}.{sample.task}.{sample.id}", seed=ready.seed, budget=ready.budget)
    outcome, error, tape = RecordedOutcome(), "", ""
    solver, keep = ready.taped() if ready.taped else (ready.solver, None)
    try:
        question = sample.question
        models = dict(ready.models)
        run.emit(
            Started(run.id, ready.kind, question, ready.snapshot, models, run.seed, run.budget)
        )
        solution = await solver.solve(question, run)
        run.emit(Answered(solution))
        outcome = outcome_of(solution, run)
        if keep is not None:
            seconds = round(time.perf_counter() - began, 4)
            done = SolvedRun(question, run, solution, when, seconds)
            tape = await asyncio.to_thread(keep, done)
    except OslerError as failure:
        error = f"{type(failure).__name__}: {failure}"
    except Exception as failure:  # a bug in one sample is noted with its place; the others go on
        last = traceback.extract_tb(failure.__traceback__)[-1]
        error = f"{type(failure).__name__}: {failure} ({Path(last.filename).name}:{last.lineno})"
    return SampleRecord(
        strategy,
        sample,
        "failed" if error else "done",
        when,
        round(time.perf_counter() - began, 4),
        ready.seed,
        outcome,
        error,
        writer.write_trace(run.events),
        tape,
    )
