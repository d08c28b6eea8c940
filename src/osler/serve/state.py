"""What the doors share, and how they get at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from osler.app.config import Settings
from osler.app.wiring.resource_cache import ResourceCache
from osler.serve.keys import Authenticator, Caller
from osler.serve.ledger import Ledger
from osler.serve.metrics import ServerMetrics
from osler.serve.problems import RefusedRequest
from osler.serve.reports import ReportCache
from osler.serve.run_manager import RunManager

Page = Callable[[Path], str]
"""The events file of a run → its report as HTML, which needs nothing else."""


class SearchLimiter:
    """So many at once, so many waiting; whoever comes then is sent away."""

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


@dataclass(frozen=True)
class ServerState:
    """One server: what it serves from, and what it counts."""

    settings: Settings
    shelf: ResourceCache
    ledger: Ledger
    desk: RunManager
    gate: Authenticator
    searches: SearchLimiter
    metrics: ServerMetrics
    page: Page
    reports: ReportCache = field(default_factory=ReportCache)


def current_state(request: Request) -> ServerState:
    site = request.app.state.site
    assert isinstance(site, ServerState)  # noqa: S101  `app.create_app` puts it there
    return site


def current_caller(request: Request) -> Caller:
    caller = request.scope["osler.caller"]
    assert isinstance(caller, Caller)  # noqa: S101  the guard puts it there
    return caller
