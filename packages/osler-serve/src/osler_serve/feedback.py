"""What readers say of answers: `/api/v1/feedback`."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field

from osler.runs.feedback import Feedback, FeedbackStore
from osler_serve import evaluation_replies, replies, schemas
from osler_serve.api import At, RunId, Who
from osler_serve.run_views import is_visible_run, load_run

router = APIRouter(prefix="/api/v1", tags=["feedback"], responses=schemas.PROBLEMS)


class FeedbackRequest(schemas.RequestModel):
    verdict: Literal["helpful", "wrong", "unsafe"]
    note: Annotated[replies.Words, Field(max_length=4_000)] = ""


@router.post("/runs/{id}/feedback", status_code=201)
async def judge_run(
    id: RunId, given: FeedbackRequest, site: At, caller: Who
) -> evaluation_replies.FeedbackView:
    """Say whether an answer was helpful, wrong or unsafe, and why."""
    await load_run(site.desk, caller, id)  # 404 for a run that the caller may not see
    one = Feedback("run", id, given.verdict, note=given.note)
    store = FeedbackStore(site.settings.home)
    (kept,) = await asyncio.to_thread(store.add_all, [one], caller.workspace)
    return evaluation_replies.FeedbackView.from_value(kept)


@router.get("/feedback")
async def list_feedback(
    site: At, caller: Who, limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000
) -> evaluation_replies.FeedbackList:
    """The workspace's feedback on cards, and on the answers that the caller may see."""
    store = FeedbackStore(site.settings.home)
    found = await asyncio.to_thread(store.read_all, caller.workspace, limit)
    shown = [
        one
        for one in found
        if one.kind == "card" or await is_visible_run(site.desk, caller, one.about)
    ]
    return evaluation_replies.FeedbackList(
        feedback=[evaluation_replies.FeedbackView.from_value(one) for one in shown]
    )
