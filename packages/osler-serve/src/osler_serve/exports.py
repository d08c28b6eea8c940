"""Recorded answers as files for other programs, over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import Response

from osler.answer.evidence_table import flat_rows, tabulate_studies
from osler.answer.export import ExportedAnswer, ExportFormat, find_kind
from osler_serve import evaluation_replies, schemas
from osler_serve.api import At, RunId, Who
from osler_serve.problems import RefusedRequest
from osler_serve.run_views import RunView, load_run

router = APIRouter(prefix="/api/v1", responses=schemas.PROBLEMS)
_FILE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string"}}}}
}
Format = Annotated[ExportFormat, Query(description="markdown, docx, pdf, ris, bibtex, csv, …")]


@router.get("/runs/{id}/export", tags=["runs"], response_class=Response, responses=_FILE)
async def export_run(id: RunId, site: At, caller: Who, to: Format = "markdown") -> Response:
    """The answer with its references, or these alone, as a file."""
    view = await load_run(site.desk, caller, id)
    return await export_response([exported_answer(view)], to, id)


@router.get("/runs/{id}/studies", tags=["runs"])
async def list_studies(id: RunId, site: At, caller: Who) -> evaluation_replies.StudyTable:
    """The evidence table: a row for each effect that the cited passages state."""
    view = await load_run(site.desk, caller, id)
    hits = [one.hit for one in exported_answer(view).solution.answer.evidence]
    rows = await asyncio.to_thread(lambda: list(flat_rows(tabulate_studies(hits))))
    shown = evaluation_replies.StudyRowView.model_fields
    return evaluation_replies.StudyTable(
        rows=[evaluation_replies.StudyRowView(**{k: row[k] for k in shown}) for row in rows]
    )


def exported_answer(view: RunView, asked: str = "") -> ExportedAnswer:
    """`asked`: the question as the reader wrote it in a conversation.

    Raises `RefusedRequest` (409) for a run that has no answer.
    """
    if view.solution is None or view.question is None:
        said = f"run {view.id} has no answer: it is {view.status}"
        raise RefusedRequest(409, "no_answer", said, fix="export a run that was answered")
    return ExportedAnswer(
        replace(view.question, text=asked or view.question.text),
        view.solution,
        view.id,
        view.strategy,
        view.snapshot,
        view.created,
        view.question.text,
    )


async def export_response(answers: list[ExportedAnswer], to: ExportFormat, name: str) -> Response:
    """The file as a download. Raises `BadConfig` without the extra that its format needs."""
    kind = find_kind(to)
    data = await asyncio.to_thread(kind.write, answers)
    headers = {
        "Content-Disposition": f'attachment; filename="osler-{name}{kind.suffix}"',
        "X-Content-Type-Options": "nosniff",
    }
    return Response(data, media_type=kind.media, headers=headers)
