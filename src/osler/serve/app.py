"""The server put together: doors, guard, life cycle."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.middleware import Middleware

from osler.app.config import Settings
from osler.app.wiring import Shelf
from osler.errors import OslerError
from osler.serve import api, chat, evaluations, otel, page, problems, status, tooling, tools
from osler.serve import schemas as wire
from osler.serve.keys import Gate, check_binding
from osler.serve.ledger import Ledger
from osler.serve.metrics import Metrics
from osler.serve.middleware import Guard
from osler.serve.run_manager import Desk
from osler.serve.state import Page, Site, Turnstile

_LOG = logging.getLogger("osler.serve")
FOLDER = "serve"
"""In `home`: where the ledger lies."""


def site(settings: Settings, page: Page, *, shelf: Shelf | None = None) -> Site:
    """What the doors share. Raises `BadConfig` for an address that others reach without a key."""
    ledger = Ledger(settings.home / FOLDER)
    check_binding(settings.serve.host, ledger)
    metrics = Metrics()
    shelf = shelf or Shelf(settings)
    watchers = (metrics.event, *otel.watchers())
    desk = Desk(shelf, ledger, settings.serve, watchers)
    metrics.watch_desk(desk)
    limits = settings.serve
    turnstile = Turnstile(limits.searches, limits.searches_waiting)
    return Site(settings, shelf, ledger, desk, Gate(ledger, limits), turnstile, metrics, page)


def create(site: Site) -> FastAPI:
    """The application. What it opens it closes at the end of its life."""
    mcp = tools.server(
        lambda context: (site, tooling.caller_of(context)), patients=site.settings.serve.patients
    )
    served = tools.http(mcp)

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(site.ledger.close)
            stack.callback(site.shelf.close)
            stack.push_async_callback(site.desk.drain, 0.0)
            await stack.enter_async_context(mcp.session_manager.run())
            await _warm(site)
            # What is loaded stays: looking through it for garbage stops all requests for 0.1 s.
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
            yield

    guarded = Middleware(
        Guard,
        gate=site.gate,
        limits=site.settings.serve,
        metrics=site.metrics,
        pace=site.desk.pace,
    )
    app = FastAPI(
        title="Osler",
        version=version("osler"),
        description=wire.NOTICE,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        lifespan=life,
        middleware=[guarded],
    )
    app.state.site = site
    problems.install(app)
    shown = (page.router, api.router, api.pages, evaluations.router)
    for router in (*shown, status.root, status.told, chat.router):
        app.include_router(router)
    app.router.routes.extend(served)
    _describe(app)
    return app


async def _warm(site: Site) -> None:
    """Opens what the first question would wait for. What fails is told by /readyz, and tried
    again when it is wanted."""
    try:
        interrupted = await asyncio.to_thread(site.ledger.interrupted)
        if interrupted:
            _LOG.warning("%d runs were not finished when the server stopped", interrupted)
        await site.shelf.parts(site.settings)
    except OslerError as error:
        _LOG.warning("not ready: %s", error)


def _describe(app: FastAPI) -> None:
    """The schema, with the form of problems and without the validation form that is never sent."""
    made = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schemas = schema["components"]["schemas"]
            schemas["Problem"] = api.problem_schema()
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
        return app.openapi_schema or {}

    app.openapi = described  # type: ignore[method-assign]
