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
from osler.extract.base import Cost, Extractor, Outcome
from osler.extract.store import Done
from osler.kb.store import access
from osler.kb.store.access import Mode
from osler.kb.store.passages import Progress, Scope, by_number, numbered, silent, within
from osler.types import Passage, Usage

_PATIENCE = 600.0
"""Seconds that a finished chunk waits for a process that adds texts."""
_ROWS = 500


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do, and about what it would take."""

    chunks: int
    """In the sources that are asked for."""
    done: int
    known: int
    """To do, but known by content: they cost nothing."""
    asked: int
    """To be read by the extractor."""
    cost: Cost
    """Of `asked`."""
    seconds: float | None
    """Of model time, one after the other; `None` where no chunk of this extractor tells."""
    measured: int
    """Chunks done before, on whose mean `cost` and `seconds` rest; 0 = a guess."""


@dataclass(frozen=True, slots=True)
class Report:
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

    def learn(self, passages: Iterator[Passage]) -> None: ...


@dataclass(frozen=True, slots=True)
class Todo:
    """Numbers of the passages to do, in order, and how many are in scope."""

    numbers: tuple[int, ...]
    chunks: int


def todo(folder: Path, extractor: Extractor, *, scope: Scope = None, again: bool = False) -> Todo:
    """The chunks that are not done under the key that they have now; `again`: all."""
    wanted, count = list[int](), 0
    with access.translated(folder), closing(access.connect(folder)) as db, access.still(db):
        done = {} if again else store.keys(db, extractor.name)
        for number, passage in numbered(db, "SELECT * FROM passage ORDER BY number"):
            if not within(passage.source, scope):
                continue
            count += 1
            if done.get(number) != extractor.key(passage):
                wanted.append(number)
    return Todo(tuple(wanted), count)


def plan(
    folder: Path,
    extractor: Extractor,
    *,
    scope: Scope = None,
    limit: int | None = None,
    again: bool = False,
) -> Plan:
    """Reads every chunk that is to be done, asks nothing and writes nothing."""
    found = todo(folder, extractor, scope=scope, again=again)
    known, asked, guess = 0, 0, Cost()
    with access.translated(folder), closing(access.connect(folder)) as db, access.still(db):
        for passage in _passages(db, found.numbers[:limit]):
            if not again and store.is_kept(db, extractor.key(passage)):
                known += 1
            else:
                asked += 1
                guess += extractor.cost(passage)
        before = [a for a in store.accounts(db) if a.extractor == extractor.name]
    done = found.chunks - len(found.numbers)
    if not before or not before[0].usage.calls:
        return Plan(found.chunks, done, known, asked, guess, None, 0)
    past = before[0]
    share = asked / past.chunks
    cost = Cost(
        round(past.usage.calls * share),
        round(past.usage.prompt_tokens * share),
        round(past.usage.completion_tokens * share),
    )
    return Plan(found.chunks, done, known, asked, cost, past.usage.seconds * share, past.chunks)


def _passages(db: sqlite3.Connection, numbers: Sequence[int]) -> Iterator[Passage]:
    for start in range(0, len(numbers), _ROWS):
        yield from by_number(db, numbers[start : start + _ROWS]).values()


async def run(
    folder: Path,
    extractor: Extractor,
    *,
    scope: Scope = None,
    limit: int | None = None,
    again: bool = False,
    at_once: int = 4,
    progress: Progress | None = None,
) -> Report:
    """Does what is to be done, at most `limit` chunks, `at_once` batches at a time.

    A chunk whose replies cannot be read is counted as failed, and tried again by the next
    run. Raises `ModelError` when the model is gone, and `KnowledgeBaseError`; what was done
    by then is kept.
    """
    found = await asyncio.to_thread(todo, folder, extractor, scope=scope, again=again)
    wanted = found.numbers[:limit]
    job = _Job(folder, extractor, len(wanted), again, progress or silent)
    if isinstance(extractor, Learner):
        await asyncio.to_thread(_learn, folder, extractor, wanted)
    begun = time.perf_counter()
    await job.work(wanted, at_once)
    if len(wanted) == len(found.numbers) and scope is None:
        await asyncio.to_thread(_sweep, folder)
    return job.report(time.perf_counter() - begun, len(found.numbers) - len(wanted))


def _learn(folder: Path, extractor: Learner, numbers: Sequence[int]) -> None:
    with access.translated(folder), closing(access.connect(folder)) as db, access.still(db):
        extractor.learn(_passages(db, numbers))


def _sweep(folder: Path) -> None:
    together = access.writing(folder, Mode.TOGETHER, wait=_PATIENCE)
    with together as db, access.transaction(db):
        store.sweep(db)


@dataclass
class _Job:
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

    async def work(self, numbers: Sequence[int], at_once: int) -> None:
        """All of them; the first error stops the others, and is what is raised."""
        self.progress("extract", 0, self.total)
        left = iter(numbers)

        async def worker() -> None:
            while batch := tuple(islice(left, self.extractor.batch)):
                await self._batch(batch)

        workers = [asyncio.create_task(worker()) for _ in range(max(1, at_once))]
        try:
            await asyncio.gather(*workers)
        finally:
            for task in workers:
                task.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _batch(self, numbers: Sequence[int]) -> None:
        passages, kept = await asyncio.to_thread(self._read, numbers)
        keys = {number: self.extractor.key(passage) for number, passage in passages.items()}
        asked = {n: p for n, p in passages.items() if keys[n] not in kept}
        fresh = await self.extractor.extract(list(asked.values())) if asked else []
        outcomes = dict(zip(asked, fresh, strict=True))
        done = [
            Done(number, key, outcomes.get(number) or Outcome(kept[key]))
            for number, key in keys.items()
        ]
        async with self._writer:
            written = await asyncio.to_thread(self._write, done)
        self.known += len(passages) - len(asked)
        self.gone += len(numbers) - written
        self._count(done)
        self.progress("extract", self.done, self.total)

    def _read(self, numbers: Sequence[int]) -> tuple[dict[int, Passage], store.Kept]:
        with access.translated(self.folder), closing(access.connect(self.folder)) as db:
            passages = by_number(db, numbers)
            keys = [] if self.again else [self.extractor.key(p) for p in passages.values()]
            return passages, store.kept(db, keys)

    def _write(self, done: Sequence[Done]) -> int:
        together = access.writing(self.folder, Mode.TOGETHER, wait=_PATIENCE)
        with together as db, access.transaction(db):
            return store.write(db, self.extractor.name, done)

    def _count(self, done: Sequence[Done]) -> None:
        for one in done:
            found = one.outcome.found
            self.done += 1
            self.cut += found.cut
            self.usage += one.outcome.usage
            self.kinds.update(item.kind for item in found.items)
            self.drops.update(dict(found.drops))
            if one.outcome.failed:
                self.failures.append(one.outcome.failed)

    def report(self, seconds: float, left: int) -> Report:
        return Report(
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
