"""Requests go before runs.

When many questions come at once, each must be taken and its stream opened before anybody sees
anything, which is little work; the runs are much. So a new run holds back while requests come in:
the burst is answered first, with `run.queued`, and then the runs begin.
"""

from __future__ import annotations

import asyncio
import time

GAP = 0.02
"""Seconds without a new request, after which there is calm."""
MOST = 0.25
"""Seconds that a run holds back; on a server that is never calm too."""


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
