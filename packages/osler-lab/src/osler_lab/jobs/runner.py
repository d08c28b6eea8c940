"""The loop of every resumable job: claim a batch, try what is due in it, release it.

Several processes and hosts may run it on one folder. What a batch's last holder finished is not
done again; what is claimed elsewhere is waited for; an item that fails is noted by its `Work` and
the rest goes on. Where nothing succeeds any more, the job stops and says why.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from osler.errors import BadRun, translate_os_errors
from osler.text import make_slug
from osler.trace.ordered import gather

# Two minutes: `JobRunner` touches a claim every quarter of this, so three touches may be lost
# before another host takes the batch over.
LEASE = 120.0
"""Seconds without a sign of life after which a batch is free again."""


@dataclass(frozen=True)
class Claims:
    """The claims of one log folder, as one writer sees them."""

    folder: Path
    writer: str
    lease: float = LEASE
    clock: Callable[[], float] = time.time

    def take_batch(self, batch: str) -> bool:
        """Whether the batch is now this writer's. Raises `BadRun` where the disk fails."""
        with translate_os_errors(
            f"{self.folder} cannot be written", BadRun, "make room, then run the same command again"
        ):
            return self._try_taking(batch)

    def _try_taking(self, batch: str) -> bool:
        self.folder.mkdir(exist_ok=True)
        path = self._claim_path(batch)
        if self._create_claim(path):
            return True
        if not self._is_abandoned(path):
            return False
        # Only one of several who see it abandoned can rename it; the others find it gone.
        grave = path.with_name(f".{path.name}.{self.writer}")
        with contextlib.suppress(OSError):
            path.rename(grave)
            grave.unlink()
        return self._create_claim(path)

    def touch_claim(self, batch: str) -> None:
        """A sign of life."""
        with contextlib.suppress(OSError):
            now = self.clock()
            os.utime(self._claim_path(batch), (now, now))

    def release_batch(self, batch: str) -> None:
        """Frees the batch, unless another writer has taken it over."""
        path = self._claim_path(batch)
        with contextlib.suppress(OSError):
            # After a long suspension the lease may have expired and the file may be another's.
            if path.read_text(encoding="utf-8") == self._owner_line():
                path.unlink()

    def _create_claim(self, path: Path) -> bool:
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(self._owner_line())
        except FileExistsError:
            return False
        except OSError:
            with contextlib.suppress(OSError):  # half a claim would keep others waiting
                path.unlink()
            raise
        now = self.clock()
        os.utime(path, (now, now))
        return True

    def _is_abandoned(self, path: Path) -> bool:
        try:
            changed = path.stat().st_mtime
            # Split from the right: a host name may hold a space, the other two parts cannot.
            host, process, _ = path.read_text(encoding="utf-8").rsplit(" ", 2)
            pid = int(process)
        except FileNotFoundError:
            return True
        except ValueError:  # begun, and not yet written; or damaged
            return self.clock() - changed > self.lease
        # On this host a dead process frees its batch at once; on others only time tells.
        if host == socket.gethostname() and not _is_alive(pid):
            return True
        # A sign of life from the future is one from before the clock was set back.
        return not 0 <= self.clock() - changed + 1 <= self.lease

    def _owner_line(self) -> str:
        return f"{socket.gethostname()} {os.getpid()} {self.writer}"

    def _claim_path(self, batch: str) -> Path:
        return self.folder / make_slug(batch)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):  # no process has such a number
        return False
    except PermissionError:
        return True
    return True


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
