"""The state that all endpoints share, and their access to it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import Request

from osler.build.resource_cache import ResourceCache
from osler.settings import Settings
from osler_serve.admission import SearchLimiter
from osler_serve.keys import Authenticator, Caller
from osler_serve.ledger import Ledger
from osler_serve.metrics import ServerMetrics
from osler_serve.run_manager import RunManager
from osler_serve.scopes import ROUTE_VERBS
from osler_serve.upload_queue import UploadQueue

if TYPE_CHECKING:
    from osler_lab.evaluate.report import EvaluationReport

# The events file of a run → its report as HTML, which needs nothing else.
Page = Callable[[Path], str]


_KEPT_REPORTS = 8
Stamp = tuple[tuple[str, int, int], ...]


class ReportCache:
    """The reports of log folders, each built once for as long as its files stay as they are."""

    def __init__(self) -> None:
        self._built: OrderedDict[Path, tuple[Stamp, EvaluationReport]] = OrderedDict()
        self._one_by_one = asyncio.Lock()

    async def load_report(self, folder: Path) -> EvaluationReport:
        """Raises `BadRun` as `build_report` does."""
        from osler_lab.evaluate.report import build_report

        async with self._one_by_one:
            stamp = await asyncio.to_thread(_file_stamps, folder)
            known = self._built.get(folder)
            if known is None or known[0] != stamp:
                known = (stamp, await asyncio.to_thread(build_report, folder))
            self._built[folder] = known
            self._built.move_to_end(folder)
            while len(self._built) > _KEPT_REPORTS:
                self._built.popitem(last=False)
            return known[1]


def _file_stamps(folder: Path) -> Stamp:
    files = sorted(path for path in folder.glob("*.json*") if path.is_file())
    return tuple((path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files)


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
    uploads: UploadQueue
    page: Page
    reports: ReportCache = field(default_factory=ReportCache)


async def count_behind(site: ServerState) -> int:
    """The passages that wait for their vector. Raises `OslerError` where none can be searched."""
    held = await site.shelf.open_knowledge()
    return await asyncio.to_thread(held.kb.count_unindexed, held.encoder.identity)


async def current_state(request: Request) -> ServerState:
    site = request.app.state.site
    assert isinstance(site, ServerState)  # noqa: S101  `app.create_app` puts it there
    return site


async def check_scope(request: Request) -> None:
    """Raises `RefusedRequest` (403) for an operation that the caller's key may not use."""
    caller = request.scope.get("osler.caller")
    if caller is not None:  # probes and the empty page have none
        path = request.scope["route"].path.replace(":path}", "}")
        caller.scope.require_verb(ROUTE_VERBS.get((request.method, path)))


async def current_caller(request: Request) -> Caller:
    caller = request.scope["osler.caller"]
    assert isinstance(caller, Caller)  # noqa: S101  the guard puts it there
    return caller
