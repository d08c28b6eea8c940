"""Requests go before runs.

When many questions come at once, each must be taken and its stream opened before anybody sees
anything, which is little work; the runs are much. So a new run holds back while requests come in:
the burst is answered first, with `run.queued`, and then the runs begin.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from osler.serve.problems import RefusedRequest

# Seconds without a new request, after which there is calm.
GAP = 0.02
# Seconds that a run holds back; on a server that is never calm too.
MOST = 0.25


class Admission:
    def __init__(self) -> None:
        self._last = float("-inf")

    def note_request(self) -> None:
        """One came in."""
        self._last = time.monotonic()

    async def wait_for_lull(self) -> None:
        """Returns `GAP` after the last request, and at the latest after `MOST`."""
        latest = time.monotonic() + MOST
        while (wait := min(self._last + GAP, latest) - time.monotonic()) > 0:  # noqa: ASYNC110
            await asyncio.sleep(wait)


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
