"""Runs an extractor over the chunks of a knowledge base: estimated, resumable, concurrent.

A chunk is done when it is stored under its current key. So a killed run resumes where it stopped,
a changed text, prompt or schema is extracted again, and results known by key are stored without a
model call. Transactions are short: other processes may read, build and search meanwhile, and add
texts between two chunks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from osler.extract import ExtractionCost, ExtractionOutcome, Extractor, store
from osler.extract.store import ExtractedPassage
from osler.kb.store.passages import (
    Progress,
    Scope,
    ignore_progress,
    in_scope,
    read_by_number,
    read_numbered,
)
from osler.trace.ordered import gather
from osler.types import Passage, Usage

_ROWS = 500


@dataclass(frozen=True, slots=True)
class ExtractionPlan:
    """An estimate of a run."""

    chunks: int
    """Chunks in the selected sources."""
    done: int
    known: int
    """Chunks to do whose result is known by content; they cost nothing."""
    asked: int
    """Chunks for the extractor to read."""
    cost: ExtractionCost
    """Cost of `asked`."""
    seconds: float | None
    """Sequential model time; `None` before the first measured chunk of this extractor."""
    measured: int
    """Number of chunks on whose mean `cost` and `seconds` rest; 0 = a guess."""


@dataclass(slots=True)
class ExtractionReport:
    """Result of a run."""

    chunks: int = 0
    known: int = 0
    """Of these, the number known by content, which cost nothing."""
    failed: int = 0
    gone: int = 0
    """Chunks that were deleted while they were being read."""
    cut: int = 0
    kinds: tuple[tuple[str, int], ...] = ()
    drops: tuple[tuple[str, int], ...] = ()
    failures: tuple[str, ...] = ()
    """The first five reasons."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    left: int = 0
    """Chunks beyond `limit`."""


@runtime_checkable
class Learner(Protocol):
    """An extractor that looks at all chunks before it reads the first."""

    def learn_names(self, passages: Iterator[Passage]) -> None: ...


@dataclass(frozen=True, slots=True)
class PendingChunks:
    """Numbers of the pending passages, in order, and the number of chunks in scope."""

    numbers: tuple[int, ...]
    chunks: int


def pending_chunks(
    folder: Path, extractor: Extractor, *, scope: Scope = None, again: bool = False
) -> PendingChunks:
    """The chunks that are not stored under their current key; `again`: all chunks in scope."""
    wanted, count = list[int](), 0
    with store.open_for_reading(folder) as db:
        done = {} if again else store.stored_keys(db, extractor.name)
        for number, passage in read_numbered(db, "SELECT * FROM passage ORDER BY number"):
            if not in_scope(passage.source, scope):
                continue
            count += 1
            if done.get(number) != extractor.result_key(passage):
                wanted.append(number)
    return PendingChunks(tuple(wanted), count)


def plan_extraction(
    folder: Path,
    extractor: Extractor,
    *,
    scope: Scope = None,
    limit: int | None = None,
    again: bool = False,
) -> ExtractionPlan:
    """Estimates a run; reads every pending chunk, calls no model and writes nothing."""
    found = pending_chunks(folder, extractor, scope=scope, again=again)
    known, asked, guess = 0, 0, ExtractionCost()
    with store.open_for_reading(folder) as db:
        for passage in _read_passages(db, found.numbers[:limit]):
            if not again and store.is_kept(db, extractor.result_key(passage)):
                known += 1
            else:
                asked += 1
                guess += extractor.estimate_cost(passage)
        before = [a for a in store.extractor_accounts(db) if a.extractor == extractor.name]
    done = found.chunks - len(found.numbers)
    if not before or not before[0].usage.calls:
        return ExtractionPlan(found.chunks, done, known, asked, guess, None, 0)
    past = before[0]
    # Measured mean instead of the guess, once this extractor has done chunks.
    share = asked / past.chunks
    cost = ExtractionCost(
        round(past.usage.calls * share),
        round(past.usage.prompt_tokens * share),
        round(past.usage.completion_tokens * share),
    )
    return ExtractionPlan(
        found.chunks, done, known, asked, cost, past.usage.seconds * share, past.chunks
    )


def _read_passages(db: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[Passage]:
    for start in range(0, len(numbers), _ROWS):
        yield from read_by_number(db, numbers[start : start + _ROWS]).values()


async def run_extraction(
    folder: Path,
    extractor: Extractor,
    *,
    scope: Scope = None,
    limit: int | None = None,
    again: bool = False,
    at_once: int = 4,
    progress: Progress | None = None,
) -> ExtractionReport:
    """Extracts from all pending chunks, at most `limit`, with `at_once` batches at a time.

    A chunk with unreadable replies counts as failed and is tried again by the next run. Raises
    `ModelError` when the model is unavailable, and `KnowledgeBaseError`; finished chunks are kept.
    """
    # Hashing every chunk blocks: keep it off the event loop.
    found = await asyncio.to_thread(pending_chunks, folder, extractor, scope=scope, again=again)
    wanted = found.numbers[:limit]
    job = _ExtractionJob(folder, extractor, len(wanted), again, progress or ignore_progress)
    if isinstance(extractor, Learner):
        await asyncio.to_thread(_learn_names, folder, extractor, wanted)
    begun = time.perf_counter()
    await job.work_through(wanted, at_once)
    if len(wanted) == len(found.numbers) and scope is None:
        await asyncio.to_thread(_sweep_results, folder)
    return job.build_report(time.perf_counter() - begun, len(found.numbers) - len(wanted))


def _learn_names(folder: Path, extractor: Learner, numbers: Sequence[int]) -> None:
    with store.open_for_reading(folder) as db:
        extractor.learn_names(_read_passages(db, numbers))


def _sweep_results(folder: Path) -> None:
    with store.open_for_batch(folder) as db:
        store.sweep_results(db)


@dataclass
class _ExtractionJob:
    folder: Path
    extractor: Extractor
    total: int
    again: bool
    progress: Progress
    report: ExtractionReport = field(default_factory=ExtractionReport)
    kinds: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    _writer: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def work_through(self, numbers: Sequence[int], at_once: int) -> None:
        """Processes all chunks; the first error stops the others and is raised."""
        self.progress("extract", 0, self.total)
        left = iter(numbers)

        async def worker() -> None:
            while batch := tuple(islice(left, self.extractor.batch)):
                await self._extract_batch(batch)

        await gather([worker() for _ in range(max(1, at_once))])

    async def _extract_batch(self, numbers: Sequence[int]) -> None:
        passages, kept = await asyncio.to_thread(self._read_batch, numbers)
        keys = {number: self.extractor.result_key(passage) for number, passage in passages.items()}
        asked = {n: p for n, p in passages.items() if keys[n] not in kept}
        fresh = await self.extractor.extract(list(asked.values())) if asked else []
        outcomes = dict(zip(asked, fresh, strict=True))
        done = [
            ExtractedPassage(number, key, outcomes.get(number) or ExtractionOutcome(kept[key]))
            for number, key in keys.items()
        ]
        # One writer at a time: SQLite would make the others wait with a lock error.
        async with self._writer:
            written = await asyncio.to_thread(self._write_batch, done)
        self.report.known += len(passages) - len(asked)
        self.report.gone += len(numbers) - written
        self._count_done(done)
        self.progress("extract", self.report.chunks, self.total)

    def _read_batch(self, numbers: Sequence[int]) -> tuple[dict[int, Passage], store.Kept]:
        with store.open_for_reading(self.folder) as db:
            passages = read_by_number(db, numbers)
            keys = [] if self.again else [self.extractor.result_key(p) for p in passages.values()]
            return passages, store.known_results(db, keys)

    def _write_batch(self, done: Sequence[ExtractedPassage]) -> int:
        with store.open_for_batch(self.folder) as db:
            return store.write_results(db, self.extractor.name, done)

    def _count_done(self, done: Sequence[ExtractedPassage]) -> None:
        for one in done:
            found = one.outcome.found
            self.report.chunks += 1
            self.report.cut += found.cut
            self.report.usage += one.outcome.usage
            self.kinds.update(item.kind for item in found.items)
            self.drops.update(dict(found.drops))
            if one.outcome.failed:
                self.failures.append(one.outcome.failed)

    def build_report(self, seconds: float, left: int) -> ExtractionReport:
        return replace(
            self.report,
            failed=len(self.failures),
            kinds=tuple(self.kinds.most_common()),
            drops=tuple(self.drops.most_common()),
            failures=tuple(self.failures[:5]),
            seconds=seconds,
            left=left,
        )
