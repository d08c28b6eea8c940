"""Whether it lives, whether it can answer, what it counts, and what a reader must know of it."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import Response

from osler.app.config import ROLES, STRATEGIES
from osler.app.wiring.composers import may_write
from osler.app.wiring.models import PACKAGED
from osler.errors import OslerError
from osler.serve import documents, schemas, schemas_evaluation
from osler.serve.api import open_sources
from osler.serve.keys import Caller
from osler.serve.metrics import MEDIA
from osler.serve.problems import RefusedRequest, refusal_for
from osler.serve.state import ServerState, current_caller, current_state
from osler.sources.catalogue import EMR
from osler.text import read_packaged

At = Annotated[ServerState, Depends(current_state)]
Who = Annotated[Caller, Depends(current_caller)]
root = APIRouter(tags=["operation"], responses=schemas.PROBLEMS)
told = APIRouter(prefix="/api/v1", tags=["operation"], responses=schemas.PROBLEMS)

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
async def live() -> schemas.Health:
    """The process answers."""
    return schemas.Health(status="ok")


@root.get("/readyz")
async def ready(site: At) -> schemas.Health:
    """Questions can be taken: the knowledge base is open and built, runs can be written, and it
    is not stopping."""
    if site.desk.draining:
        raise RefusedRequest(503, "stopping", "the server is about to stop", retry_after=10.0)
    try:
        held = await site.shelf.open_knowledge()
        await asyncio.to_thread(held.kb.require_built, held.encoder.identity)
        await asyncio.to_thread(site.desk.check_writable)
    except OslerError as error:
        cause = refusal_for(error)
        raise RefusedRequest(
            503, cause.code, error.message, fix=error.fix, retry_after=10.0
        ) from error
    return schemas.Health(status="ready")


@root.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def metrics(site: At) -> Response:
    """For Prometheus."""
    return Response(site.metrics.render_text(), media_type=MEDIA)


@told.get("/transparency")
async def transparency(site: At, caller: Who) -> schemas.Transparency:
    """Who it is for, what it is made of, and what it does not do."""
    settings = site.settings
    access = caller.scope.narrow_settings(settings).access
    held = await site.shelf.open_knowledge()
    info = await asyncio.to_thread(held.kb.info)
    models = {
        role: schemas.ModelView(
            kind=settings.model_for(role).kind,
            name=settings.model_for(role).name or _model_name(settings.model_for(role).kind),
            words_answers=may_write(settings, role),
        )
        for role in ROLES
    }
    return schemas.Transparency(
        notice=schemas.NOTICE,
        version=version("osler"),
        intended_users="healthcare professionals and researchers",
        intended_use="finding and reading evidence for a medical question, with its sources",
        out_of_scope=OUT_OF_SCOPE,
        models={str(role): model for role, model in models.items()},
        encoder=held.encoder.identity,
        strategies=[kind for kind in STRATEGIES if caller.scope.allows_strategy(kind)],
        strategy=settings.strategy.kind,
        snapshot=info.snapshot,
        sources=[documents.source_view(one) for one in open_sources(access, info)],
        limits={
            **settings.budget.model_dump(),
            "run_seconds": settings.serve.run_seconds,
            "body_bytes": settings.serve.body_kib * 1024,
        },
        known_limits=KNOWN_LIMITS,
    )


@told.get("/examples")
async def examples(site: At) -> schemas_evaluation.ExampleList:
    """Questions to try, where the sample texts that answer them are in the knowledge base."""
    kb = (await site.shelf.open_knowledge()).kb
    info = await asyncio.to_thread(kb.info)
    # Made-up patients of the user's own are marked as illustrative too.
    if not any(one.illustrative for one in info.sources if one.source != EMR):
        return schemas_evaluation.ExampleList(examples=[])
    return schemas_evaluation.ExampleList(examples=await asyncio.to_thread(_shortest_examples))


def _shortest_examples() -> list[schemas_evaluation.ExampleView]:
    """The shortest of each language: whoever tries something reads them first."""
    found: list[schemas_evaluation.ExampleView] = []
    for name in ("questions_en.jsonl", "questions_zh.jsonl"):
        text = read_packaged("osler.sample", name)
        asked = sorted(map(json.loads, text.splitlines()), key=lambda one: len(one["question"]))
        found += [
            schemas_evaluation.ExampleView(
                question=one["question"],
                options=list(one.get("options", {}).values()),
                language=one["language"],
            )
            for one in asked[:_EXAMPLES]
        ]
    return found


def _model_name(kind: str) -> str:
    return PACKAGED if kind == "packaged" else kind
