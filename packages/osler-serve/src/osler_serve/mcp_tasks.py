"""MCP's extension for tasks (2026-07-28): a question as a handle, its answer fetched later.

A client that declares `io.modelcontextprotocol/tasks` gets from `answer_question` a task at once,
in place of a reply minutes later. The task is the run: its id is the run's, it outlives the
connection, and the page and the API show the same. See
https://modelcontextprotocol.github.io/ext-tasks/specification/2026-07-28/tasks.html
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.server.mcpserver import Context, require_client_extension
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS, CallToolRequestParams, RequestParams
from pydantic import Field, ValidationError

from osler.errors import OslerError
from osler.questions import parse_question
from osler.runs.threads import standalone_of
from osler.settings import STRATEGIES
from osler_serve import choices, replies, schemas
from osler_serve.active_runs import ActiveRun
from osler_serve.audited_requests import record_tool
from osler_serve.chat_wire import TURNS
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest
from osler_serve.reading_tools import At
from osler_serve.run_views import RunView, load_run, stop_run
from osler_serve.state import ServerState

EXTENSION = "io.modelcontextprotocol/tasks"
_TOOL = "answer_question"
_MODERN = frozenset({"2026-07-28"})
_POLL_MS = 1_000

AskedQuestion = Annotated[replies.Words, Field(min_length=1, max_length=8_000)]
StrategyName = Annotated[str, Field(json_schema_extra={"enum": [*STRATEGIES]})]
RunSeconds = Annotated[float, Field(gt=0, le=120)]
EarlierQuestions = Annotated[
    list[AskedQuestion],
    Field(
        max_length=100,
        description="The person's questions before this one, the oldest first: one that leans on"
        " them is made to stand alone.",
    ),
]


class AnswerArguments(schemas.Filters):
    """What `answer_question` takes."""

    question: AskedQuestion
    strategy: StrategyName | None = None
    max_seconds: RunSeconds = 120.0
    earlier: EarlierQuestions = Field(default_factory=list)


async def start_answer(site: ServerState, caller: Caller, asked: AnswerArguments) -> ActiveRun:
    """Raises `RefusedRequest`."""
    settings = choices.caller_settings(
        site.settings,
        caller,
        asked,
        strategy=asked.strategy,
        limits=schemas.RunLimits(seconds=asked.max_seconds),
    )
    said = [*asked.earlier[-TURNS:], asked.question]
    alone = await standalone_of(caller.scope.narrow_settings(site.settings), said)
    # Danger may stand in any of the person's own words.
    return await site.desk.start_run(
        caller, parse_question(alone.text), settings, earlier=said if asked.earlier else ()
    )


class TaskParams(RequestParams):
    task_id: Annotated[str, Field(max_length=100)]


class RunTasks(Extension):
    """Makes a task of each question, for clients that declare that they can wait so."""

    identifier = EXTENSION

    def __init__(self, at: At) -> None:
        self._at = at

    def methods(self) -> list[MethodBinding]:
        return [
            MethodBinding(method, TaskParams, handler, _MODERN)
            for method, handler in (
                ("tasks/get", self._get_task),
                ("tasks/cancel", self._cancel_task),
                ("tasks/update", self._update_task),
            )
        ]

    async def intercept_tool_call(
        self,
        params: CallToolRequestParams,
        ctx: ServerRequestContext[Any, Any],
        call_next: CallNext,
    ) -> HandlerResult:
        if params.name != _TOOL or not _declares_tasks(ctx):
            return await call_next(ctx)
        site, caller = self._find_caller(ctx)
        try:
            asked = AnswerArguments.model_validate(params.arguments or {})
            caller.scope.require_verb("ask")
            live = await start_answer(site, caller, asked)
        except (ValidationError, OslerError):
            return await call_next(ctx)  # refused there, in words
        task = _describe_task(await load_run(site.desk, caller, live.id))
        await self._record(ctx, params.arguments or {}, task)
        return {"resultType": "task", **task}

    async def _get_task(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> Any:
        _, _, view = await self._load(ctx, params)
        task = _describe_task(view)
        if task["status"] == "completed":
            task["result"] = _tool_result(view)
        await self._record(ctx, {"taskId": params.task_id}, task)
        return {"resultType": "complete", **task}

    async def _cancel_task(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> Any:
        site, caller, view = await self._load(ctx, params)
        await stop_run(site.desk, caller, view.id)
        return {"resultType": "complete"}

    async def _update_task(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> Any:
        """No task asks for input while it runs: whatever is sent is passed over."""
        await self._load(ctx, params)
        return {"resultType": "complete"}

    async def _load(
        self, ctx: ServerRequestContext[Any, Any], params: TaskParams
    ) -> tuple[ServerState, Caller, RunView]:
        require_client_extension(ctx, EXTENSION)
        site, caller = self._find_caller(ctx)
        try:
            caller.scope.require_verb("ask")
            return site, caller, await load_run(site.desk, caller, params.task_id)
        except RefusedRequest as refused:
            raise MCPError(INVALID_PARAMS, str(refused)) from refused

    def _find_caller(self, ctx: ServerRequestContext[Any, Any]) -> tuple[ServerState, Caller]:
        return self._at(Context(request_context=ctx))

    async def _record(
        self, ctx: ServerRequestContext[Any, Any], given: dict[str, Any], task: dict[str, Any]
    ) -> None:
        if ctx.request is None:
            site, caller = self._find_caller(ctx)
            await record_tool(site.settings, caller, _TOOL, given, json.dumps(task))


def _declares_tasks(ctx: ServerRequestContext[Any, Any]) -> bool:
    able = ctx.session.client_capabilities
    return bool(able and able.extensions and EXTENSION in able.extensions)


def _describe_task(view: RunView) -> dict[str, Any]:
    """The run as a task. What has no answer is `completed` too: its result says why."""
    working, cancelled = view.status in ("queued", "running"), view.status == "cancelled"
    status = "working" if working else "cancelled" if cancelled else "completed"
    created = datetime.fromisoformat(view.created)
    now = datetime.now(UTC) if view.seconds is None else created + timedelta(seconds=view.seconds)
    # Emergency contacts come first, long before the answer.
    said = view.danger.text if view.danger else f"run {view.id}: {view.status}"
    return {
        "taskId": view.id,
        "status": status,
        "statusMessage": said,
        "createdAt": created.isoformat(),
        "lastUpdatedAt": max(created, now).isoformat(),  # the clock may have been set back
        "ttlMs": None,
        "pollIntervalMs": _POLL_MS,
    }


def _tool_result(view: RunView) -> dict[str, Any]:
    """As `answer_question` itself would have replied."""
    report = view.report().model_dump(mode="json")
    text = json.dumps(report, ensure_ascii=False, indent=2)
    return {
        "content": [{"type": "text", "text": text}],
        "structuredContent": report,
        "isError": view.status != "finished",
    }
