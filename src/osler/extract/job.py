"""A run of an extractor over the chunks of a knowledge base: estimate, resume, at once.

A chunk is done when it is stored under the key that it has now; all else is to do. So a run
that was killed goes on where it stopped, a changed text, prompt or schema is done anew, and
what is known by key is stored without asking. Short transactions: others may read, build
and search meanwhile, and add between two chunks.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Protocol, runtime_checkable

from osler.extract import store
from osler.extract.base import ExtractionCost, ExtractionOutcome, Extractor
from osler.extract.store import ExtractedPassage
from osler.kb.store import access
from osler.kb.store.access import LockMode
from osler.kb.store.passages import (
    Progress,
    Scope,
    ignore_progress,
    in_scope,
    read_by_number,
    read_numbered,
)
from osler.types import Passage, Usage

_PATIENCE = 600.0
"""Seconds that a finished chunk waits for a process that adds texts."""
_ROWS = 500


@dataclass(frozen=True, slots=True)
class ExtractionPlan:
    """What a run would do, and about what it would take."""

    chunks: int
    """In the sources that are asked for."""
    done: int
    known: int
    """To do, but known by content: they cost nothing."""
    asked: int
    """To be read by the extractor."""
    cost: ExtractionCost
    """Of `asked`."""
    seconds: float | None
    """Of model time, one after the other; `None` where no chunk of this extractor tells."""
    measured: int
    """Chunks done before, on whose mean `cost` and `seconds` rest; 0 = a guess."""


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What a run did."""

    chunks: int = 0
    known: int = 0
    """Of these, how many cost nothing."""
    failed: int = 0
    gone: int = 0
    """Chunks that were taken out while they were read."""
    cut: int = 0
    kinds: tuple[tuple[str, int], ...] = ()
    drops: tuple[tuple[str, int], ...] = ()
    failures: tuple[str, ...] = ()
    """The first of them, in words."""
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    left: int = 0
    """Chunks that `limit` left to do."""


@runtime_checkable
class Learner(Protocol):
    """An extractor that looks at all chunks to be done before it reads the first."""

    def learn_names(self, passages: Iterator[Passage]) -> None: ...


@dataclass(frozen=True, slots=True)
class PendingChunks:
    """Numbers of the passages to do, in order, and how many are in scope."""

    numbers: tuple[int, ...]
    chunks: int


def pending_chunks(
    folder: Path, extractor: Extractor, *, scope: Scope = None, again: bool = False
) -> PendingChunks:
    """The chunks that are not done under the key that they have now; `again`: all."""
    wanted, count = list[int](), 0
    with (
        access.translate_errors(folder),
        closing(access.open_connection(folder)) as db,
        access.read_transaction(db),
    ):
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
    """Reads every chunk that is to be done, asks nothing and writes nothing."""
    found = pending_chunks(folder, extractor, scope=scope, again=again)
    known, asked, guess = 0, 0, ExtractionCost()
    with (
        access.translate_errors(folder),
        closing(access.open_connection(folder)) as db,
        access.read_transaction(db),
    ):
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
    """Does what is to be done, at most `limit` chunks, `at_once` batches at a time.

    A chunk whose replies cannot be read is counted as failed, and tried again by the next
    run. Raises `ModelError` when the model is gone, and `KnowledgeBaseError`; what was done
    by then is kept.
    """
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
    with (
        access.translate_errors(folder),
        closing(access.open_connection(folder)) as db,
        access.read_transaction(db),
    ):
        extractor.learn_names(_read_passages(db, numbers))


def _sweep_results(folder: Path) -> None:
    together = access.open_for_writing(folder, LockMode.TOGETHER, wait=_PATIENCE)
    with together as db, access.write_transaction(db):
        store.sweep_results(db)


@dataclass
class _ExtractionJob:
    folder: Path
    extractor: Extractor
    total: int
    again: bool
    progress: Progress
    done: int = 0
    known: int = 0
    gone: int = 0
    cut: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    _writer: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def work_through(self, numbers: Sequence[int], at_once: int) -> None:
        """All of them; the first error stops the others, and is what is raised."""
        self.progress("extract", 0, self.total)
        left = iter(numbers)

        async def worker() -> None:
            while batch := tuple(islice(left, self.extractor.batch)):
                await self._extract_batch(batch)

        workers = [asyncio.create_task(worker()) for _ in range(max(1, at_once))]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

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
        async with self._writer:
            written = await asyncio.to_thread(self._write_batch, done)
        self.known += len(passages) - len(asked)
        self.gone += len(numbers) - written
        self._count_done(done)
        self.progress("extract", self.done, self.total)

    def _read_batch(self, numbers: Sequence[int]) -> tuple[dict[int, Passage], store.Kept]:
        with (
            access.translate_errors(self.folder),
            closing(access.open_connection(self.folder)) as db,
        ):
            passages = read_by_number(db, numbers)
            keys = [] if self.again else [self.extractor.result_key(p) for p in passages.values()]
            return passages, store.known_results(db, keys)

    def _write_batch(self, done: Sequence[ExtractedPassage]) -> int:
        together = access.open_for_writing(self.folder, LockMode.TOGETHER, wait=_PATIENCE)
        with together as db, access.write_transaction(db):
            return store.write_results(db, self.extractor.name, done)

    def _count_done(self, done: Sequence[ExtractedPassage]) -> None:
        for one in done:
            found = one.outcome.found
            self.done += 1
            self.cut += found.cut
            self.usage += one.outcome.usage
            self.kinds.update(item.kind for item in found.items)
            self.drops.update(dict(found.drops))
            if one.outcome.failed:
                self.failures.append(one.outcome.failed)

    def build_report(self, seconds: float, left: int) -> ExtractionReport:
        return ExtractionReport(
            self.done,
            self.known,
            len(self.failures),
            self.gone,
            self.cut,
            tuple(self.kinds.most_common()),
            tuple(self.drops.most_common()),
            tuple(self.failures[:5]),
            self.usage,
            seconds,
            left,
        )
