"""The server put together: doors, guard, life cycle."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI
from starlette.middleware import Middleware

from osler.app.audit.entries import open_audit
from osler.app.config import Settings
from osler.app.danger import load_rules
from osler.app.forget import expire_runs, oldest_kept
from osler.app.wiring.resource_cache import ResourceCache
from osler.errors import OslerError
from osler.serve import (
    api,
    chat,
    evaluations,
    exports,
    feedback,
    otel,
    page,
    problems,
    responses,
    status,
    threads,
    tools,
    uploads,
)
from osler.serve import schemas as wire
from osler.serve.admission import SearchLimiter
from osler.serve.audited_requests import AuditedRequests
from osler.serve.clinic import endpoints as clinic
from osler.serve.clinic.hook_wire import OperationOutcome
from osler.serve.keys import Authenticator, check_binding
from osler.serve.ledger import Ledger
from osler.serve.metrics import ServerMetrics
from osler.serve.middleware import AuthMiddleware, is_open_to_all
from osler.serve.reading_tools import calling_caller
from osler.serve.run_manager import RunManager
from osler.serve.state import Page, ServerState, check_scope

_LOG = logging.getLogger("osler.serve")
# In `home`: where the ledger lies.
FOLDER = "serve"


def build_state(
    settings: Settings, page: Page, *, shelf: ResourceCache | None = None
) -> ServerState:
    """Opens what all endpoints share.

    Raises `BadConfig` for a public address without a key, and for rules that cannot be read.
    """
    open_audit(settings)  # a log that cannot be written shows here too
    load_rules(settings)  # a mistake in one's own file shows here, not at the first question
    ledger = Ledger(settings.home / FOLDER)
    check_binding(settings.serve.host, ledger)
    metrics = ServerMetrics()
    shelf = shelf or ResourceCache(settings)
    watchers = (metrics.count_event, *otel.make_watchers())
    desk = RunManager(shelf, ledger, settings.serve, watchers, metrics.count_end)
    metrics.watch_runs(desk)
    limits = settings.serve
    turnstile = SearchLimiter(limits.searches, limits.searches_waiting)
    return ServerState(
        settings, shelf, ledger, desk, Authenticator(ledger, limits), turnstile, metrics, page
    )


def create_app(site: ServerState) -> FastAPI:
    """The application. What it opens it closes at the end of its life."""
    mcp = tools.build_mcp_server(
        lambda context: (site, calling_caller(context)),
        patients=site.settings.serve.patients,
    )
    # Its session manager exists once the routes are made, and is run by the lifespan below.
    served = tools.http_routes(mcp)

    @asynccontextmanager
    async def run_lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.callback(site.ledger.close)
            stack.callback(site.shelf.close)
            stack.push_async_callback(site.desk.drain, 0.0)
            await stack.enter_async_context(mcp.session_manager.run())
            if left := stack.enter_context(site.ledger.hold_open(site.desk.is_kept)):
                _LOG.warning("%d runs were not finished when the server stopped", left)
            await _warm_up(site)
            # What is loaded stays: looking through it for garbage stops all requests for 0.1 s.
            gc.collect()
            gc.freeze()
            stack.callback(gc.unfreeze)
            yield

    guarded = Middleware(
        AuthMiddleware,
        gate=site.gate,
        limits=site.settings.serve,
        metrics=site.metrics,
        pace=site.desk.pace,
        audit=AuditedRequests(site.settings, is_open_to_all),
    )
    app = FastAPI(
        title="Osler",
        version=version("osler"),
        description=wire.NOTICE,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        lifespan=run_lifespan,
        middleware=[guarded],
        dependencies=[Depends(check_scope)],
    )
    app.state.site = site
    problems.install_handlers(app)
    shown = (page.router, api.router, api.pages, evaluations.router, exports.router, threads.router)
    for router in (
        *shown,
        feedback.router,
        uploads.router,
        status.root,
        status.told,
        chat.router,
        responses.router,
        clinic.router,
    ):
        app.include_router(router)
    app.router.routes.extend(served)
    _describe_schema(app)
    return app


async def _warm_up(site: ServerState) -> None:
    """Opens what the first question would wait for. What fails shows in /readyz, and is tried
    again when it is wanted."""
    await asyncio.to_thread(_delete_expired, site)
    try:
        await site.shelf.parts_for(site.settings)
    except OslerError as error:
        _LOG.warning("not ready: %s", error)


def _delete_expired(site: ServerState) -> None:
    """Deletes the runs that runs.days no longer keeps."""
    if before := oldest_kept(site.settings):
        expire_runs(site.settings)
        site.ledger.delete_ended(before)


def _describe_schema(app: FastAPI) -> None:
    """The schema, with the form of problems and without the validation form that is never sent."""
    made = app.openapi

    def build_schema() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = made()
            schemas = schema["components"]["schemas"]
            for form in (wire.Problem, OperationOutcome):
                api.add_error_schema(schemas, form)
            for name in ("HTTPValidationError", "ValidationError"):
                schemas.pop(name, None)
        return app.openapi_schema or {}

    app.openapi = build_schema  # type: ignore[method-assign]
