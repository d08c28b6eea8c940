"""Conversations over HTTP: `/api/v1/threads`.

A thread belongs to a workspace, and whoever may not see the run of one of its turns does not see
the thread: its questions may name what that run was about.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise
from typing import Annotated

from fastapi import APIRouter, Path
from fastapi.responses import Response
from pydantic import Field

from osler import reports
from osler.answer.follow_up import Standalone
from osler.questions import LIMIT, parse_question
from osler.runs.threads import (
    MOST_TURNS,
    Thread,
    ThreadMoved,
    ThreadStore,
    Turn,
    UnknownThread,
    keep_filters,
    make_standalone,
)
from osler_serve import choices, replies, schemas
from osler_serve.api import At, Who
from osler_serve.exports import Format, export_response, exported_answer
from osler_serve.keys import Caller
from osler_serve.ops.asked_again import compare_answers
from osler_serve.problems import RefusedRequest
from osler_serve.run_views import is_visible_run, load_run, outdated_runs
from osler_serve.state import ServerState

router = APIRouter(prefix="/api/v1/threads", tags=["threads"], responses=schemas.PROBLEMS)
ThreadId = Annotated[
    str, Path(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", description="Of a thread.")
]


class ThreadRequest(schemas.RunRequest):
    """A question in a conversation, and how it is to be solved."""

    standalone: Annotated[replies.Words, Field(max_length=LIMIT)] = ""
    """The question as it is to be searched for; empty = it is made to stand alone."""
    after: Annotated[int, Field(ge=0, le=500, strict=True)] | None = None
    """The turns that the asker has seen; where there are more by now, the request is refused."""


class ThreadStart(schemas.RequestModel):
    run_id: Annotated[str, Field(max_length=64)] = ""
    """A run that the conversation goes on from: it is its first turn."""


class StandaloneRequest(schemas.RequestModel):
    question: Annotated[replies.Words, Field(min_length=1, max_length=LIMIT)]


@router.post("", status_code=201)
async def create_thread(
    site: At, caller: Who, start: ThreadStart | None = None
) -> replies.ThreadView:
    """Begin a conversation; with `run_id`, after the question of that run."""
    if not site.settings.runs.keep:
        said = "this server keeps no runs, and a thread consists of runs"
        raise RefusedRequest(409, "not_kept", said, fix="send the conversation with each question")
    store, space = _store_of(site), caller.workspace
    run = None if start is None or not start.run_id else start.run_id
    view = None if run is None else await load_run(site.desk, caller, run)
    thread = await asyncio.to_thread(store.create_thread, "", space)
    if view is None or view.question is None:
        return _thread_view(thread)
    asked = view.question.text
    alone = Standalone(asked, "")
    turn = await asyncio.to_thread(store.add_turn, thread, view.id, asked, alone, space)
    return _thread_view(replace(thread, turns=(turn,)))


@router.get("")
async def list_threads(site: At, caller: Who) -> replies.ThreadList:
    """The conversations of the caller's workspace."""
    store, space = _store_of(site), caller.workspace
    found = await asyncio.to_thread(store.list_threads, space)
    shown = [one for one in found if await _is_visible(site, caller, one)]
    last = await asyncio.to_thread(store.last_runs, space)
    old = await outdated_runs(site.desk, last.values())
    return replies.ThreadList(
        threads=[_thread_view(one, old=last.get(one.id) in old) for one in shown]
    )


@router.get("/{id}")
async def get_thread(id: ThreadId, site: At, caller: Who) -> replies.ThreadView:
    """The turns of a conversation, each with the run that answers it."""
    thread = await _read_thread(site, caller, id)
    old = await outdated_runs(site.desk, [turn.run for turn in thread.turns[-1:]])
    return _thread_view(thread, old=bool(old))


@router.post("/{id}/standalone")
async def rewrite_question(
    id: ThreadId, asked: StandaloneRequest, site: At, caller: Who
) -> replies.StandaloneView:
    """How a question would be searched for; nothing is asked."""
    thread = await _read_thread(site, caller, id)
    alone = await _make_standalone(site, caller, asked.question, thread)
    return replies.StandaloneView(standalone=alone.text, rewritten_by=alone.by)


@router.post("/{id}/turns", status_code=202)
async def ask_in_thread(
    id: ThreadId, asked: ThreadRequest, site: At, caller: Who
) -> replies.TurnStarted:
    """Ask after what was asked before. The run goes on without a watcher."""
    thread = await _read_thread(site, caller, id)
    if asked.after is not None and asked.after != len(thread.turns):
        raise _moved(len(thread.turns))
    if len(thread.turns) >= MOST_TURNS:
        said = f"the conversation has {MOST_TURNS} questions, and takes no more"
        raise RefusedRequest(409, "thread_full", said, fix="begin another")
    if asked.plan is not None:
        raise RefusedRequest(422, "bad_choice", "a turn runs no plan", fix="POST /api/v1/runs")
    alone = (
        Standalone(asked.standalone, "" if asked.standalone == asked.question else "user")
        if asked.standalone
        else await _make_standalone(site, caller, asked.question, thread)
    )
    question = parse_question(alone.text, options=tuple(asked.options), language=asked.language)
    settings = choices.caller_settings(site.settings, caller, asked)
    if thread.turns and not asked.is_given:
        settings = await asyncio.to_thread(keep_filters, settings, thread.turns[-1].run)
    # Danger may stand in any of the reader's own words.
    earlier = [*(turn.question for turn in thread.turns), asked.question]
    live = await site.desk.start_run(caller, question, settings, earlier=earlier)
    try:
        turn = await asyncio.to_thread(
            _store_of(site).add_turn, thread, live.id, asked.question, alone, caller.workspace
        )
    except (ThreadMoved, UnknownThread):
        await site.desk.cancel_run(live)
        raise _moved(len(thread.turns) + 1) from None
    return replies.TurnStarted(
        danger=reports.DangerView.of(live.danger),
        run_id=live.id,
        status=live.status,
        events=f"/api/v1/runs/{live.id}/events",
        turn=_turn_view(turn),
    )


@router.get("/{id}/changes")
async def list_changes(id: ThreadId, site: At, caller: Who) -> replies.ChangeList:
    """What changed between the answers to a question that was asked again."""
    thread = await _read_thread(site, caller, id)
    changes = []
    for before, after in pairwise(thread.turns):
        if before.standalone != after.standalone:
            continue
        views = [await load_run(site.desk, caller, turn.run) for turn in (before, after)]
        old, new = (None if v.solution is None else (v.id, v.solution.answer) for v in views)
        if old and new:
            change = compare_answers(after.standalone, old, new)
            changes.append(replies.ChangeView.from_value(change))
    return replies.ChangeList(changes=changes)


@router.get("/{id}/export", response_class=Response)
async def export_thread(id: ThreadId, site: At, caller: Who, to: Format = "markdown") -> Response:
    """All answered turns with their references, as one file."""
    thread = await _read_thread(site, caller, id)
    answers = []
    for turn in thread.turns:
        view = await load_run(site.desk, caller, turn.run)
        if view.solution is not None:
            answers.append(exported_answer(view, turn.question))
    return await export_response(answers, to, id)


@router.delete("/{id}", status_code=204)
async def delete_thread(id: ThreadId, site: At, caller: Who) -> None:
    """Delete a conversation with the words of its questions; its runs stay."""
    await _read_thread(site, caller, id)
    await asyncio.to_thread(_store_of(site).delete_thread, id, caller.workspace)


def _store_of(site: ServerState) -> ThreadStore:
    return ThreadStore(site.settings.home)


async def _read_thread(site: ServerState, caller: Caller, id: str) -> Thread:
    """Raises `RefusedRequest` (404), also for a thread that the caller may not see."""
    try:
        thread = await asyncio.to_thread(_store_of(site).read_thread, id, caller.workspace)
    except UnknownThread:
        thread = None
    if thread is None or not await _is_visible(site, caller, thread):
        fix = "GET /api/v1/threads lists those that there are"
        raise RefusedRequest(404, "unknown_thread", f"there is no thread {id!r}", fix=fix)
    return thread


async def _is_visible(site: ServerState, caller: Caller, thread: Thread) -> bool:
    for turn in thread.turns:
        if not await is_visible_run(site.desk, caller, turn.run):
            return False
    return True


async def _make_standalone(
    site: ServerState, caller: Caller, question: str, thread: Thread
) -> Standalone:
    settings = caller.scope.narrow_settings(site.settings)
    return await make_standalone(settings, question, thread.asked)


def _moved(turns: int) -> RefusedRequest:
    said = f"the thread has {turns} turns by now, or is gone"
    return RefusedRequest(409, "thread_moved", said, fix="read it and ask again")


def _thread_view(thread: Thread, *, old: bool = False) -> replies.ThreadView:
    turns = [_turn_view(turn) for turn in thread.turns]
    return replies.ThreadView.from_value(thread, thread_id=thread.id, turns=turns, outdated=old)


def _turn_view(turn: Turn) -> replies.TurnView:
    return replies.TurnView.from_value(turn, run_id=turn.run, rewritten_by=turn.origin)
