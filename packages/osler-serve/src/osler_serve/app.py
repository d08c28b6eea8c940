"""Assembles the application: routers, middleware, lifespan, OpenAPI."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from importlib.metadata import version
from importlib.util import find_spec
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, FastAPI
from fastapi.responses import Response
from starlette.middleware import Middleware

from osler.answer.export import usable_formats
from osler.audit.entries import check_audit, open_audit
from osler.build.composers import may_write
from osler.build.danger import load_rules
from osler.build.models import PACKAGED
from osler.build.privacy import unknown_sources
from osler.build.resource_cache import ResourceCache
from osler.errors import OslerError
from osler.settings import ROLES, STRATEGIES, Settings
from osler.sources.catalogue import EMR
from osler.text import read_packaged
from osler_serve import (
    api,
    chat,
    conversations,
    evaluation_replies,
    exports,
    feedback,
    label_views,
    otel,
    page,
    problems,
    replies,
    schemas,
    threads,
    tools,
    uploads,
)
from osler_serve import schemas as wire
from osler_serve.admission import SearchLimiter
from osler_serve.api import source_views
from osler_serve.audited_requests import AuditedRequests
from osler_serve.clinic import endpoints as clinic
from osler_serve.clinic import launch_page
from osler_serve.clinic.hook_wire import OperationOutcome
from osler_serve.handover import watch_others
from osler_serve.keys import Authenticator, Caller, check_binding
from osler_serve.ledger import Ledger
from osler_serve.metrics import MEDIA, ServerMetrics
from osler_serve.middleware import AuthMiddleware, is_unrecorded
from osler_serve.ops.forget import expire_runs, oldest_kept
from osler_serve.ops.uploads import clear_interrupted
from osler_serve.problems import RefusedRequest, refusal_for
from osler_serve.reading_tools import calling_caller
from osler_serve.run_manager import RunManager
from osler_serve.state import (
    Page,
    ServerState,
    check_scope,
    count_behind,
    current_caller,
    current_state,
)
from osler_serve.upload_queue import UploadQueue

At = Annotated[ServerState, Depends(current_state)]
Who = Annotated[Caller, Depends(current_caller)]
root = APIRouter(tags=["operation"], responses=schemas.PROBLEMS)
operation = APIRouter(prefix="/api/v1", tags=["operation"], responses=schemas.PROBLEMS)

_EXAMPLES = 4
KNOWN_LIMITS = [
    "An answer is as good as the passages that were found; what is not in the knowledge base"
    " is not in the answer.",
    "A citation shows that the quoted words stand in the passage. Whether they answer the"
    " question, and whether the passage is right, the reader must judge.",
    "Of a conversation the reader's earlier questions are read, to make the last one stand alone;"
    " earlier answers are not.",
    "Passages marked illustrative are sample texts and no clinical reference.",
]
OUT_OF_SCOPE = [
    "emergencies",
    "patients using it without a professional",
    "orders and prescriptions: nothing is ordered or written back",
    "texts with identifiers of patients",
]


@root.get("/healthz")
async def live() -> replies.Health:
    """The process answers."""
    return replies.Health(status="ok")


@root.get("/readyz")
async def ready(site: At) -> replies.Health:
    """Questions can be answered: the knowledge base is open and holds passages, runs and the audit
    log can be written, and it is not stopping. What is worse than it should be is named."""
    if site.desk.draining:
        raise RefusedRequest(503, "stopping", "the server is about to stop", retry_after=10.0)
    try:
        behind = await count_behind(site)
        await asyncio.to_thread(site.desk.check_writable)
        await asyncio.to_thread(check_audit, site.settings)
    except OslerError as error:
        cause = refusal_for(error)
        raise RefusedRequest(
            503, cause.code, error.message, fix=error.fix, retry_after=10.0
        ) from error
    worse = [f"{behind:,} passages are found by words alone until they are encoded"] * (behind > 0)
    worse += [f"uploads are not encoded: {site.uploads.problem}"] * bool(site.uploads.problem)
    status: Literal["ready", "degraded"] = "degraded" if worse else "ready"
    return replies.Health(status=status, degraded=worse, vectors_behind=behind)


@root.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(site: At) -> Response:
    """For Prometheus."""
    return Response(site.metrics.render_text(), media_type=MEDIA)


@operation.get("/transparency")
async def transparency(site: At, caller: Who) -> replies.Transparency:
    """Who it is for, what it is made of, and what it does not do."""
    settings = site.settings
    access = caller.scope.narrow_settings(settings).access
    held = await site.shelf.open_knowledge()
    info = await asyncio.to_thread(held.kb.info)
    models = {
        str(role): replies.ModelView(
            kind=model.kind,
            name=model.name or (PACKAGED if model.kind == "packaged" else model.kind),
            words_answers=may_write(settings, role),
        )
        for role, model in ((role, settings.model_for(role)) for role in ROLES)
    }
    places = settings.serve.uploads if caller.scope.allows_verb("upload") else ()
    return replies.Transparency(
        notice=replies.NOTICE,
        version=version("osler"),
        intended_users="healthcare professionals and researchers",
        intended_use="finding and reading evidence for a medical question, with its sources",
        out_of_scope=OUT_OF_SCOPE,
        models=models,
        encoder=held.encoder.identity,
        strategies=[kind for kind in STRATEGIES if caller.scope.allows_strategy(kind)],
        exports=list(usable_formats()),
        uploads=[one for one in places if access.may_search(one)],
        strategy=settings.strategy.kind,
        snapshot=info.snapshot,
        sources=source_views(access, info),
        limits={
            **settings.budget.model_dump(),
            "run_seconds": settings.serve.run_seconds,
            "body_bytes": settings.serve.body_kib * 1024,
        },
        known_limits=KNOWN_LIMITS,
    )


@operation.get("/examples")
async def examples(site: At) -> evaluation_replies.ExampleList:
    """Questions to try, where the sample texts that answer them are in the knowledge base."""
    kb = (await site.shelf.open_knowledge()).kb
    info = await asyncio.to_thread(kb.info)
    # Made-up patients of the user's own are marked as illustrative too.
    if not any(one.illustrative for one in info.sources if one.source != EMR):
        return evaluation_replies.ExampleList(examples=[])
    return evaluation_replies.ExampleList(examples=await asyncio.to_thread(_shortest_examples))


def _shortest_examples() -> list[evaluation_replies.ExampleView]:
    """The shortest of each language: whoever tries something reads them first."""
    found: list[evaluation_replies.ExampleView] = []
    for name in ("questions_en.jsonl", "questions_zh.jsonl"):
        text = read_packaged("osler.sample", name)
        asked = sorted(map(json.loads, text.splitlines()), key=lambda one: len(one["question"]))
        found += [
            evaluation_replies.ExampleView(
                question=one["question"],
                options=list(one.get("options", {}).values()),
                language=one["language"],
            )
            for one in asked[:_EXAMPLES]
        ]
    return found


_LOG = logging.getLogger("osler_serve")
# In `home`: where the ledger lies.
FOLDER = "serve"


def build_state(
    settings: Settings, page: Page, *, shelf: ResourceCache | None = None
) -> ServerState:
    """Opens what all endpoints share.

    Raises `BadConfig` for an address or a name that others reach without a key, and for rules that
    cannot be read.
    """
    open_audit(settings)  # a log that cannot be written shows here too
    load_rules(settings)  # a mistake in one's own file shows here, not at the first question
    ledger = Ledger(settings.home / FOLDER)
    check_binding(settings.serve, ledger)
    metrics = ServerMetrics()
    shelf = shelf or ResourceCache(settings)
    watchers = (metrics.count_event, *otel.make_watchers())
    desk = RunManager(shelf, ledger, settings.serve, watchers, metrics.count_end)
    metrics.watch_runs(desk)
    limits = settings.serve
    turnstile = SearchLimiter(limits.searches, limits.searches_waiting)
    return ServerState(
        settings=settings,
        shelf=shelf,
        ledger=ledger,
        desk=desk,
        gate=Authenticator(ledger, limits),
        searches=turnstile,
        metrics=metrics,
        uploads=UploadQueue(settings),
        page=page,
    )


def create_app(site: ServerState, *, owns_process: bool = False) -> FastAPI:
    """The application. What it opens it closes at the end of its life; where it
    `owns_process`, the garbage collector leaves out what is loaded."""
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
            await stack.enter_async_context(mcp.session_manager.run())
            if left := stack.enter_context(site.ledger.hold_open(site.desk.is_kept)):
                _LOG.warning("%d runs were not finished when the server stopped", left)
            stack.enter_context(site.desk.shared.hold_open())
            others = watch_others(site.desk, site.gate)
            stack.push_async_callback(_end_task, asyncio.create_task(others))
            stack.push_async_callback(site.desk.drain, 0.0)
            await _warm_up(site)
            stack.push_async_callback(_end_task, asyncio.create_task(site.uploads.work()))
            if owns_process:
                # What is loaded stays: looking through it stops all requests for 0.1 s.
                gc.collect()
                gc.freeze()
            yield

    guarded = Middleware(
        AuthMiddleware,
        gate=site.gate,
        limits=site.settings.serve,
        metrics=site.metrics,
        pace=site.desk.pace,
        audit=AuditedRequests(site.settings, is_unrecorded),
        uploads=site.uploads,
    )
    app = FastAPI(
        title="Osler",
        version=version("osler"),
        description=replies.NOTICE,
        docs_url=None,  # they load scripts from elsewhere
        redoc_url=None,
        lifespan=run_lifespan,
        middleware=[guarded],
        dependencies=[Depends(check_scope)],
    )
    app.state.site = site
    problems.install_handlers(app)
    for router in _ROUTERS:
        app.include_router(router)
    if find_spec("osler_lab"):  # reports of evaluations are read by the laboratory
        from osler_serve import evaluations

        app.include_router(evaluations.router)
    app.router.routes.extend(served)
    _describe_schema(app)
    return app


_ROUTERS = (
    page.router,
    api.router,
    api.pages,
    label_views.router,
    exports.router,
    threads.router,
    conversations.router,
    feedback.router,
    uploads.router,
    root,
    operation,
    chat.router,
    clinic.router,
    launch_page.pages,
    launch_page.router,
)


async def _end_task(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _warm_up(site: ServerState) -> None:
    """Opens what the first question would wait for. What fails shows in /readyz, and is tried
    again when it is wanted."""
    await asyncio.to_thread(clear_interrupted, site.settings)
    await asyncio.to_thread(_delete_expired, site)
    try:
        await site.shelf.parts_for(site.settings)
    except OslerError as error:
        _LOG.warning("not ready: %s", error)
        return
    kb = (await site.shelf.open_knowledge()).kb
    # The first file makes the source of uploads; `osler doctor` names it until then.
    if unknown := unknown_sources(site.settings, (*kb.sources, *site.settings.serve.uploads)):
        _LOG.warning("access names sources that are not there: %s", ", ".join(unknown))


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
