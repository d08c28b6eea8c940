"""The loop of every resumable job: claim a batch, try what is due in it, release it.

Several processes and hosts may run it on one folder. What a batch's last holder finished is not
done again; what is claimed elsewhere is waited for; an item that fails is noted by its `Work` and
the rest goes on. Where nothing succeeds any more, the job stops and says why.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from osler.errors import BadRun
from osler.trace.ordered import gather
from osler_lab.jobs.claims import Claims

I = TypeVar("I")  # noqa: E741  an item
J = TypeVar("J", contravariant=True)

Progress = Callable[[str, int, int | None], None]
"""Called with a label, how many are done, and of how many (`None` = unknown)."""
HOPELESS = 20
"""Failures in a row after which a job stops: by then the cause is the set-up, not the items."""
# Seconds between two looks at batches that others hold.
_POLL = 0.5


@dataclass(frozen=True, slots=True)
class Batch(Generic[I]):
    """Items that are claimed together."""

    name: str
    """Equal for every process that works on the folder."""
    items: Sequence[I]


class Work(Protocol[J]):
    """The part of a job that is its own: which items are due, and how one is tried."""

    def refresh(self) -> None:
        """Reads what other writers have added to the folder."""

    def is_due(self, item: J) -> bool: ...

    async def try_item(self, item: J) -> str:
        """Tries the item and writes its result down; returns why it failed, else ""."""


@dataclass
class JobRunner(Generic[I]):
    """Process that works through batches until no item is due."""

    claims: Claims
    work: Work[I]
    jobs: int = 1
    """Items at once."""
    noun: str = "items"
    # Failures in a row.
    _failures: int = field(init=False, default=0)

    async def run(self, batches: Sequence[Batch[I]]) -> None:
        """Raises `BadRun` when `HOPELESS` items in a row have failed, with the last reason."""
        while batches := self._open_batches(batches):
            if not await self._make_pass(batches):
                await asyncio.sleep(_POLL)  # the rest is in other hands

    def _open_batches(self, batches: Sequence[Batch[I]]) -> list[Batch[I]]:
        self.work.refresh()
        return [batch for batch in batches if any(map(self.work.is_due, batch.items))]

    async def _make_pass(self, batches: Sequence[Batch[I]]) -> bool:
        """Takes every batch that is free; whether there was any."""
        worked = False
        for batch in batches:
            if any(map(self.work.is_due, batch.items)) and self.claims.take_batch(batch.name):
                worked = True
                async with self._hold(batch.name):
                    self.work.refresh()  # its last holder may have done some
                    await self._try_items(batch)
        return worked

    @contextlib.asynccontextmanager
    async def _hold(self, batch: str) -> AsyncIterator[None]:
        """Keeps a claim alive: one slow item may take longer than a claim lasts."""

        async def touch_often() -> None:
            while True:
                await asyncio.sleep(self.claims.lease / 4)
                self.claims.touch_claim(batch)

        alive = asyncio.create_task(touch_often())
        try:
            yield
        finally:
            alive.cancel()
            self.claims.release_batch(batch)

    async def _try_items(self, batch: Batch[I]) -> None:
        due = [item for item in batch.items if self.work.is_due(item)]
        # All workers draw from one iterator: none waits while items are left. Python's iterators
        # may be shared by the tasks of a loop, as `next` never awaits.
        todo = iter(due)

        async def work_through() -> None:
            for item in todo:
                self._count_failure(await self.work.try_item(item))
                self.claims.touch_claim(batch.name)

        await gather(work_through() for _ in range(min(self.jobs, len(due))))

    def _count_failure(self, reason: str) -> None:
        # Any success resets the count, so scattered failures never stop a job.
        self._failures = self._failures + 1 if reason else 0
        if self._failures >= HOPELESS:
            raise BadRun(
                f"{self._failures} {self.noun} in a row have failed; the last: {reason}",
                fix="correct the cause and run the same command again; finished items are kept",
            )


def make_batches(items: Sequence[I], size: int, name: Callable[[int, I], str]) -> list[Batch[I]]:
    """Cuts items into batches; `name` gets a batch's number and its first item."""
    starts = range(0, len(items), size)
    return [Batch(name(at // size, items[at]), items[at : at + size]) for at in starts]
