"""Requests go before runs.

When many questions come at once, each must be taken and its stream opened before anybody sees
anything, which is little work; the runs are much. So a new run holds back while requests come in:
the burst is answered first, with `run.queued`, and then the runs begin.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from osler.settings import Settings
from osler_serve.keys import Caller
from osler_serve.ledger import Ledger
from osler_serve.problems import RefusedRequest
from osler_serve.shared_runs import SharedRuns

# Seconds without a new request, after which there is calm.
GAP = 0.02
# Seconds that a run holds back; on a server that is never calm too.
MOST = 0.25
# What each other run that holds back adds to both: its client has yet to open its stream, and the
# last of them waits for the work of all others.
GAP_EACH, MOST_EACH = 0.0005, 0.004
T = TypeVar("T")


class Admission:
    def __init__(self) -> None:
        self._last = float("-inf")
        self._held = 0
        self._turn = asyncio.Lock()
        """Runs resume in the order of their arrival, so that a reported queue position holds."""

    def note_request(self) -> None:
        """One came in."""
        self._last = time.monotonic()

    async def wait_for_lull(self) -> None:
        """Returns `GAP` after the last request, and at the latest after `MOST`; both are longer
        where many runs hold back."""
        began = self._last = time.monotonic()  # what took so long since may be other requests
        self._held += 1
        try:
            async with self._turn:
                while (due := self._calm_from(began)) > time.monotonic():
                    await asyncio.sleep(due - time.monotonic())
                    if time.monotonic() > due + GAP:  # the loop is busy: requests may wait unread
                        self.note_request()
        finally:
            self._held -= 1

    def _calm_from(self, began: float) -> float:
        others = self._held - 1
        return min(self._last + GAP + GAP_EACH * others, began + MOST + MOST_EACH * others)


class WrittenTogether(Generic[T]):
    """Writes what comes while the disk is busy in one go, and in a thread of its own: a flush
    takes as long for one run as for a hundred, and runs at work may hold the other threads."""

    def __init__(self, write: Callable[[list[T]], None]) -> None:
        self._write = write
        self._thread = ThreadPoolExecutor(1, "written-together")
        self._waiting: list[tuple[T, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def put(self, item: T) -> None:
        """Returns when it is written. Raises what `write` does."""
        loop = asyncio.get_running_loop()
        self._waiting.append((item, loop.create_future()))
        written = self._waiting[-1][1]
        if self._writing is None or self._writing.done():
            self._writing = loop.create_task(self._write_waiting())
        await written

    async def _write_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            batch, self._waiting = self._waiting, []
            written = loop.run_in_executor(self._thread, self._write, [item for item, _ in batch])
            (failed,) = await asyncio.gather(written, return_exceptions=True)
            for _, waits in batch:
                if waits.done():  # who asked has gone
                    continue
                if failed is None:
                    waits.set_result(None)
                else:
                    waits.set_exception(failed)


class SearchLimiter:
    """Bounds the searches at once and those that wait; refuses any beyond."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._most = at_once + waiting
        self._inside = 0

    @asynccontextmanager
    async def pass_through(self) -> AsyncIterator[None]:
        """Raises `RefusedRequest` (503)."""
        if self._inside >= self._most:
            raise RefusedRequest(503, "busy", "too many searches at once", retry_after=1.0)
        self._inside += 1
        try:
            async with self._room:
                yield
        finally:
            self._inside -= 1


class TokenBudget:
    """Tokens of a key in a day (UTC). A run that begins before midnight is booked when it ends."""

    def __init__(self, ledger: Ledger, shared: SharedRuns) -> None:
        self._ledger, self._shared = ledger, shared

    def reserve(self, caller: Caller, settings: Settings) -> tuple[Settings, int]:
        """The settings, bound to what is left of the day, and how much the run may spend.

        What runs already is reserved: many runs at once cannot spend more than one. Raises
        `RefusedRequest` (429) where nothing is left.
        """
        if (allowed := caller.scope.tokens) is None:
            return settings, 0
        now = datetime.now(UTC)
        _, elsewhere = self._ledger.count_elsewhere(caller.id, self._shared.worker)
        left = (
            allowed - caller.reserved - elsewhere - self._ledger.spent_tokens(caller.id, _day(now))
        )
        if left <= 0:
            raise RefusedRequest(
                429,
                "token_budget",
                f"the {allowed:,} tokens a day of this key are spent or reserved",
                fix="wait for a run of yours to end, or for midnight UTC",
                retry_after=1.0 if caller.running else _seconds_left(now),
            )
        bound = min(left, settings.budget.tokens or left)
        budget = settings.budget.model_copy(update={"tokens": bound})
        return settings.model_copy(update={"budget": budget}), bound

    def book(self, caller: Caller, tokens: int) -> None:
        """Counts what a run spent. Blocks. Raises `StorageFailed`."""
        if caller.scope.tokens is not None and tokens:
            self._ledger.add_spent(caller.id, _day(datetime.now(UTC)), tokens)


def _day(now: datetime) -> str:
    return f"{now:%Y-%m-%d}"


def _seconds_left(now: datetime) -> float:
    tomorrow = (now + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    return (tomorrow - now).total_seconds()
