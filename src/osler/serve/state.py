"""What the doors share, and how they get at it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fastapi import Request

from osler.app.config import Settings
from osler.app.wiring import Shelf
from osler.serve.keys import Caller, Gate
from osler.serve.ledger import Ledger
from osler.serve.metrics import Metrics
from osler.serve.problems import Refused
from osler.serve.reports import Reports
from osler.serve.run_manager import Desk

Page = Callable[[Path], str]
"""The events file of a run → its report as HTML, which needs nothing else."""


class Turnstile:
    """So many at once, so many waiting; whoever comes then is sent away."""

    def __init__(self, at_once: int, waiting: int) -> None:
        self._room = asyncio.Semaphore(at_once)
        self._most = at_once + waiting
        self._inside = 0

    @asynccontextmanager
    async def pass_through(self) -> AsyncIterator[None]:
        """Raises `Refused` (503)."""
        if self._inside >= self._most:
            raise Refused(503, "busy", "too many searches at once", retry_after=1.0)
        self._inside += 1
        try:
            async with self._room:
                yield
        finally:
            self._inside -= 1


@dataclass(frozen=True)
class Site:
    """One server: what it serves from, and what it counts."""

    settings: Settings
    shelf: Shelf
    ledger: Ledger
    desk: Desk
    gate: Gate
    searches: Turnstile
    metrics: Metrics
    page: Page
    reports: Reports = field(default_factory=Reports)


def site_of(request: Request) -> Site:
    site = request.app.state.site
    assert isinstance(site, Site)  # noqa: S101  `app.create` puts it there
    return site


def caller_of(request: Request) -> Caller:
    caller = request.scope["osler.caller"]
    assert isinstance(caller, Caller)  # noqa: S101  the guard puts it there
    return caller
