"""The native API, `/api/v1`, and the script-free report of a run."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query
from fastapi.responses import HTMLResponse, StreamingResponse
from pydantic import BaseModel

from osler import reports
from osler.build.danger import danger_notice
from osler.errors import BadRun, OslerError, UnknownPassage
from osler.kb.check import KnowledgeBaseInfo, Provenance, SourceInfo
from osler.methods.omni.dossier import SavedPlan
from osler.questions import parse_question
from osler.runs.files import EVENTS
from osler.settings import Settings
from osler.settings.sections import AccessSettings
from osler.sources.catalogue import EMR
from osler.types import Passage
from osler_serve import choices, replies, schemas
from osler_serve.graph_views import caller_graph, read_concept
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest
from osler_serve.run_streams import (
    SSE_HEADERS,
    SSE_MEDIA,
    stream_active,
    stream_elsewhere,
    stream_recorded,
)
from osler_serve.run_views import (
    active_run,
    finished_folder,
    is_elsewhere,
    list_changed,
    load_run,
    outdated_runs,
    stop_run,
    visible_entries,
)
from osler_serve.state import ServerState, current_caller, current_state

At = Annotated[ServerState, Depends(current_state)]
Who = Annotated[Caller, Depends(current_caller)]
RunId = Annotated[str, Path(description="Of a run, as in 20260102-030405-0123456789ab.")]
# The strategy that makes and runs source plans.
PLANNING = "omni-rag"
_RELATIONS = 50
_SAFE_PAGE = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'"
)

router = APIRouter(prefix="/api/v1", responses=schemas.PROBLEMS)
pages = APIRouter(responses=schemas.PROBLEMS)


@router.post("/runs", status_code=202, tags=["runs"])
async def create_run(asked: schemas.RunRequest, site: At, caller: Who) -> replies.RunStarted:
    """Start a run. It goes on without a watcher; `events` is where to watch it."""
    question = parse_question(asked.question, options=tuple(asked.options), language=asked.language)
    settings = choices.caller_settings(
        site.settings,
        caller,
        asked,
        strategy=asked.strategy or (None if asked.plan is None else PLANNING),
    )
    plan = None if asked.plan is None else await _parse_plan(site, settings, asked.plan)
    live = await site.desk.start_run(caller, question, settings, plan)
    where = f"/api/v1/runs/{live.id}/events"
    return replies.RunStarted(
        danger=reports.DangerView.of(live.danger),
        run_id=live.id,
        status=live.status,
        events=where,
    )


async def _parse_plan(
    site: ServerState, settings: Settings, queries: list[replies.SourceQuery]
) -> SavedPlan:
    """Raises `RefusedRequest` (422) where the strategy runs no plan, or the plan is none."""
    if settings.strategy.kind != PLANNING:
        said = f"{settings.strategy.kind} runs no source plan"
        raise RefusedRequest(422, "bad_choice", said, fix=f"leave strategy out, or say {PLANNING}")
    return choices.plan_from_request(queries, await _searched_sources(site, settings))


async def _searched_sources(site: ServerState, settings: Settings) -> tuple[str, ...]:
    """Raises `BadConfig`, a 422 reply, for a source that is not there."""
    from osler.build.knowledge import searched_sources

    kb = (await site.shelf.open_knowledge()).kb
    return await asyncio.to_thread(searched_sources, settings, kb)


@router.post("/plan", tags=["runs"])
async def plan(asked: schemas.PlanRequest, site: At, caller: Who) -> replies.PlanView:
    """A source plan, which is not run. Edit its queries and give them to `POST /runs`."""
    return await make_plan(site, caller, asked)


async def make_plan(
    site: ServerState, caller: Caller, asked: schemas.PlanRequest
) -> replies.PlanView:
    """One plan, for every interface."""
    question = parse_question(asked.question, options=tuple(asked.options), language=asked.language)
    settings = choices.caller_settings(site.settings, caller, asked, strategy=PLANNING)
    try:
        made = await site.desk.make_plan(caller, question, settings)
    except BadRun as error:  # the budget, which the request may have narrowed, ended first
        raise RefusedRequest(422, "no_plan", error.message, fix="raise the limits") from error
    return replies.PlanView.of(made, question.text, danger_notice(settings, question))


@router.get("/runs", tags=["runs"])
async def list_runs(
    site: At,
    caller: Who,
    before: Annotated[str, Query(max_length=64)] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> replies.RunList:
    """The caller's workspace's runs, the newest first."""
    entries, next_page = await asyncio.to_thread(visible_entries, site.desk, caller, before, limit)
    listed = []
    for entry in entries:
        live = site.desk.find_run(entry.id, caller.workspace)
        status = live.status if live else entry.status
        listed.append(replies.RunSummary.from_value(entry, run_id=entry.id, status=status))
    return replies.RunList(runs=listed, next=next_page)


@router.get("/runs/{id}", tags=["runs"])
async def get_run(id: RunId, site: At, caller: Who) -> replies.RunReport:
    """A run with its answer, citations and evidence, while it runs and ever after."""
    view = await load_run(site.desk, caller, id)
    now = {
        "changed": await list_changed(site.desk, view),
        "outdated": bool(await outdated_runs(site.desk, [id])),
        "ahead": site.desk.count_ahead(id),
    }
    return view.report().model_copy(update=now)


@router.get(
    "/runs/{id}/events",
    tags=["runs"],
    response_class=StreamingResponse,
    responses={200: {"content": {SSE_MEDIA: {"schema": {"type": "string"}}}}},
)
async def run_events(
    id: RunId,
    site: At,
    caller: Who,
    last_event_id: Annotated[str, Header(max_length=20)] = "",
    after: Annotated[int | None, Query(ge=0, le=2**31)] = None,
) -> StreamingResponse:
    """Its events as they happen, as server-sent events; the same again after the end.

    `Last-Event-ID`, or `after`, is the number of the last event that was seen.
    """
    seen = after if after is not None else _event_number(last_event_id)
    if live := active_run(site.desk, caller, id):
        body = stream_active(site.desk, live, seen)
    elif await is_elsewhere(site.desk, caller, id):
        body = stream_elsewhere(site.desk, caller, id, seen)
    else:
        body = stream_recorded(await load_run(site.desk, caller, id), seen)
    return StreamingResponse(body, media_type=SSE_MEDIA, headers=SSE_HEADERS)


def _event_number(given: str) -> int:
    if not given:
        return 0
    if not (given.isascii() and given.isdigit()):
        raise RefusedRequest(422, "bad_event_id", "Last-Event-ID is not the number of an event")
    return int(given)


@router.post("/runs/{id}/cancel", tags=["runs"])
async def cancel_run(id: RunId, site: At, caller: Who) -> replies.RunReport:
    """Stop it, and its model call; a run that is over stays as it is."""
    await stop_run(site.desk, caller, id)
    return (await load_run(site.desk, caller, id)).report()


@router.post("/search", tags=["knowledge"])
async def search(asked: schemas.SearchRequest, site: At, caller: Who) -> replies.SearchResult:
    """The passages that these words find."""
    return await run_search(site, caller, asked)


async def run_search(
    site: ServerState, caller: Caller, asked: schemas.SearchRequest
) -> replies.SearchResult:
    """One search, for every interface. Raises `RefusedRequest` (503) where too many run, and
    `BadConfig`, a 422 reply, for a source that is not there."""
    settings = choices.search_settings(caller.scope.narrow_settings(site.settings), asked)
    async with site.searches.pass_through():
        hits = await site.shelf.search(settings, asked.query, k=asked.k, sources=asked.sources)
    return replies.SearchResult(
        query=asked.query,
        snapshot=await served_snapshot(site),
        hits=[reports.SearchHit.from_value(one) for one in hits],
    )


@router.get("/passages/{id:path}", tags=["knowledge"])
async def get_passage(
    id: Annotated[str, Path(description="Of a passage, as in guideline:asthma#2; # is %23.")],
    site: At,
    caller: Who,
    context: Annotated[int, Query(ge=0, le=5, description="Passages before and after it.")] = 0,
    snapshot: Annotated[
        str, Query(max_length=64, description="Only if this is the snapshot that is served.")
    ] = "",
) -> replies.PassageInContext:
    """A passage, where it comes from, and what stands around it."""
    return await open_passage(site, caller, id, context, await served_snapshot(site, snapshot))


async def served_snapshot(site: ServerState, wanted: str = "") -> str:
    """Identity of the served snapshot. Raises `RefusedRequest` (409) where another is `wanted`."""
    kb = (await site.shelf.open_knowledge()).kb
    now = await asyncio.to_thread(lambda: kb.snapshot)
    if wanted and wanted != now:
        raise RefusedRequest(
            409,
            "other_snapshot",
            f"the snapshot that is served is {now}",
            fix="a run keeps the passages that it cites: GET /api/v1/runs/{id}",
        )
    return now


async def open_passage(
    site: ServerState, caller: Caller, id: str, context: int, snapshot: str
) -> replies.PassageInContext:
    """One passage, for every interface. Raises `UnknownPassage`."""
    around, origin = await passage_context(site, caller, id, context)
    wanted = next(one for one in around if one.id == id)
    return replies.PassageInContext(
        passage=reports.PassageView.from_value(wanted),
        context=[reports.PassageView.from_value(one) for one in around] if context else [],
        provenance=None if origin is None else replies.ProvenanceView.of(origin),
        snapshot=snapshot,
    )


async def passage_context(
    site: ServerState, caller: Caller, id: str, context: int = 0
) -> tuple[tuple[Passage, ...], Provenance | None]:
    """A passage with its neighbours and where it is from; one that is not the knowledge base's
    stands alone, without an origin. Raises `UnknownPassage`."""
    access = caller.scope.narrow_settings(site.settings).access
    kb = (await site.shelf.open_knowledge()).kb

    def read_passages() -> tuple[tuple[Passage, ...], Provenance]:
        found, origin = kb.neighbours(id, context), kb.provenance(id)
        if not access.may_open(found[0].source, id.partition("#")[0], found[0].locator.kind):
            raise UnknownPassage(f"there is no passage {id!r}")
        return found, origin

    try:
        return await asyncio.to_thread(read_passages)
    except UnknownPassage as absent:
        # What may not be opened takes the way of what is not there, to the same words.
        other = await site.shelf.outside_passage(id)
        if other is not None and _may_open_outside(access, other):
            return (other,), None
        if all(map(access.may_search, kb.sources)) and not access.patients:
            raise
        # The nearest ids may be those of patients.
        fix = "search for it: POST /api/v1/search"
        raise UnknownPassage(f"there is no passage {id!r}", fix=fix) from absent


def _may_open_outside(access: AccessSettings, passage: Passage) -> bool:
    """Of a record that was opened for somebody, only who has it by name: its id is no secret."""
    is_named = passage.source != EMR or passage.id.partition("#")[0] in access.patients
    return access.may_search(passage.source) and is_named


@router.get("/sources", tags=["knowledge"])
async def sources(site: At, caller: Who) -> replies.SourceList:
    """What there is to search, counted."""
    from osler.build.knowledge import searched_sources

    settings = caller.scope.narrow_settings(site.settings)
    kb = (await site.shelf.open_knowledge()).kb
    info = await asyncio.to_thread(kb.info)
    return replies.SourceList(
        snapshot=info.snapshot,
        searched=list(await asyncio.to_thread(searched_sources, settings, kb)),
        sources=source_views(settings.access, info),
    )


def open_sources(access: AccessSettings, info: KnowledgeBaseInfo) -> list[SourceInfo]:
    """The sources that the caller may know of."""
    return [one for one in info.sources if access.may_search(one.source)]


def source_views(access: AccessSettings, info: KnowledgeBaseInfo) -> list[replies.SourceView]:
    return [replies.SourceView.from_value(one) for one in open_sources(access, info)]


@router.get("/kb", tags=["knowledge"])
async def kb_status(site: At, caller: Who) -> replies.KbStatus:
    """The state of the knowledge base."""
    kb = (await site.shelf.open_knowledge()).kb
    info = await asyncio.to_thread(kb.info)
    shown = open_sources(caller.scope.narrow_settings(site.settings).access, info)
    return replies.KbStatus.from_value(
        info,
        documents=sum(one.documents for one in shown),
        passages=sum(one.passages for one in shown),
        bytes=info.size,
        named_snapshots=info.snapshots,
        graph=await caller_graph(site, caller) is not None,
    )


@router.get("/graph/concepts", tags=["graph"])
async def find_concepts(
    site: At, caller: Who, term: Annotated[str, Query(min_length=1, max_length=500)]
) -> replies.ConceptMatchList:
    """The concepts that have this name."""
    graph = await caller_graph(site, caller)
    matches = await asyncio.to_thread(graph.find_exact, term) if graph else []
    return replies.ConceptMatchList(
        term=term,
        concepts=[replies.ConceptMatch(id=m.concept, name=m.name) for m in matches[:50]],
    )


@router.get("/graph/concepts/{id:path}", tags=["graph"])
async def get_concept(
    id: Annotated[str, Path(description="Of a concept, as in DOID:9352.")],
    site: At,
    caller: Who,
    limit: Annotated[int, Query(ge=1, le=_RELATIONS, description="Relations.")] = _RELATIONS,
) -> replies.ConceptView:
    """A concept: names, definitions, one-hop relations."""
    return await read_concept(site, caller, id, limit)


@pages.get(
    "/runs/{id}/report.html",
    tags=["runs"],
    response_class=HTMLResponse,
    responses={200: {"content": {"text/html": {"schema": {"type": "string"}}}}},
)
async def report(id: RunId, site: At, caller: Who) -> HTMLResponse:
    """The run as one page without scripts, ready to print."""
    log = await finished_folder(site.desk, caller, id) / EVENTS
    live = active_run(site.desk, caller, id)
    if not log.is_file():
        if live is not None and not live.is_over:
            raise RefusedRequest(409, "not_finished", "the run is not finished", retry_after=1.0)
        raise RefusedRequest(404, "no_report", "this run came to no answer that was kept")
    await load_run(site.desk, caller, id)  # what is damaged for the API is so for the page
    try:
        text = await asyncio.to_thread(site.page, log)
    except OslerError as error:
        raise RefusedRequest(404, "damaged_run", f"the run {id} is damaged") from error
    return HTMLResponse(text, headers={"Content-Security-Policy": _SAFE_PAGE})


def add_error_schema(schemas: dict[str, Any], form: type[BaseModel]) -> None:
    """Adds an error that is sent with another media type, which FastAPI does not describe, and
    the forms of its parts."""
    schema = form.model_json_schema(ref_template="#/components/schemas/{model}")
    for name, part in schema.pop("$defs", {}).items():
        schemas.setdefault(name, part)
    schemas[form.__name__] = schema
