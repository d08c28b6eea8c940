"""MCP 2026-07-28: tasks, and forms for missing facts, by the official SDK's client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal

import httpx2
import pytest
from served import ServedOsler, serve_osler

from osler_serve.keys import new_key
from osler_serve.ledger import Ledger
from osler_serve.mcp_tasks import EXTENSION
from osler_serve.scopes import KeyScope

mcp = pytest.importorskip("mcp")

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim  # noqa: E402
from mcp.types import ElicitResult, Request, RequestParams, Result  # noqa: E402

QUESTION = "Which drug is given first in anaphylaxis?"
AGE_AND_SEX = {"age": 70, "sex": "female"}


class TaskHandle(Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str
    status_message: str


class TaskState(Result):
    task_id: str
    status: str
    result: dict[str, Any] | None = None


class ByTask(RequestParams):
    task_id: str


class GetTask(Request[ByTask, Literal["tasks/get"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: ByTask


class CancelTask(Request[ByTask, Literal["tasks/cancel"]]):
    name_param: ClassVar[str | None] = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: ByTask


class WaitsForTasks(ClientExtension):
    """A client that polls a task to its end."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self.handles: list[TaskHandle] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=TaskHandle, resolve=self._follow)]

    async def _follow(self, handle: TaskHandle, ctx: ClaimContext) -> Any:
        self.handles.append(handle)
        while True:
            asked = GetTask(params=ByTask(task_id=handle.task_id))
            state = await ctx.session.send_request(asked, TaskState)
            if state.result is not None:
                return mcp.types.CallToolResult.model_validate(state.result)
            assert state.status == "working"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("served")) as running:
        yield running


def client_of(place: ServedOsler, **how: Any) -> Any:
    return mcp.Client(f"{place.url}/mcp", **{"mode": "2026-07-28", **how})


async def test_a_question_is_a_task_whose_answer_is_fetched(place: ServedOsler) -> None:
    waits = WaitsForTasks()
    async with client_of(place, mode="auto", extensions=[waits]) as client:  # server/discover
        assert client.protocol_version == "2026-07-28"
        assert EXTENSION in (client.server_capabilities.extensions or {})
        done = await client.call_tool("answer_question", {"question": QUESTION})
    (handle,) = waits.handles
    assert handle.status == "working"
    assert done.structured_content["run_id"] == handle.task_id
    assert done.structured_content["status"] == "finished"
    assert done.structured_content["answer"]["text"]
    assert done.is_error is False
    kept = httpx2.get(f"{place.url}/api/v1/runs/{handle.task_id}").json()
    assert kept["answer"] == done.structured_content["answer"]


async def test_emergency_contacts_stand_in_the_handle(place: ServedOsler) -> None:
    waits = WaitsForTasks()
    async with client_of(place, extensions=[waits]) as client:
        given = {"question": "I want to kill myself tonight."}
        done = await client.call_tool("answer_question", given)
    assert done.structured_content["danger"]["text"] == waits.handles[0].status_message


async def test_a_client_without_tasks_waits_as_ever(place: ServedOsler) -> None:
    async with client_of(place) as client:
        done = await client.call_tool("answer_question", {"question": QUESTION})
        assert done.structured_content["status"] == "finished"
        asked = GetTask(params=ByTask(task_id=done.structured_content["run_id"]))
        with pytest.raises(mcp.MCPError, match="did not declare") as refused:
            await client.session.send_request(asked, TaskState)
    assert refused.value.code == -32021


@pytest.mark.parametrize("request_type", [GetTask, CancelTask])
async def test_a_task_that_is_not_there_is_refused(place: ServedOsler, request_type: Any) -> None:
    async with client_of(place, extensions=[WaitsForTasks()]) as client:
        asked = request_type(params=ByTask(task_id="no-such-run"))
        with pytest.raises(mcp.MCPError) as refused:
            await client.session.send_request(asked, TaskState)
    assert refused.value.code == -32602


async def test_what_the_tool_refuses_is_no_task(place: ServedOsler) -> None:
    waits = WaitsForTasks()
    async with client_of(place, extensions=[waits]) as client:
        done = await client.call_tool("answer_question", {"question": QUESTION, "strategy": "x"})
    assert done.is_error
    assert not waits.handles


async def test_another_workspace_s_task_is_not_there(tmp_path: Path) -> None:
    from mcp.client.streamable_http import streamable_http_client

    with serve_osler(tmp_path) as place:
        ledger = Ledger(tmp_path / "serve")
        keys = [new_key(ledger, name, workspace=name) for name in ("north", "south")]
        keys.append(new_key(ledger, "reads", workspace="north", scope=KeyScope(verbs=("read",))))
        ledger.close()

        async def ask(key: str, run: str = "") -> str:
            waits = WaitsForTasks()
            async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {key}"}) as http:
                wire = streamable_http_client(f"{place.url}/mcp", http_client=http)
                async with mcp.Client(wire, mode="2026-07-28", extensions=[waits]) as client:
                    if not run:
                        await client.call_tool("answer_question", {"question": QUESTION})
                        return waits.handles[0].task_id
                    asked = GetTask(params=ByTask(task_id=run))
                    try:
                        return str((await client.session.send_request(asked, TaskState)).status)
                    except mcp.MCPError as refused:
                        return str(refused)

        run = await ask(keys[0])
        assert await ask(keys[0], run) == "completed"
        assert "no run" in await ask(keys[1], run)
        assert "may not ask" in await ask(keys[2], run)


async def answer_form(context: Any, params: Any) -> ElicitResult:
    """A user who knows the weight and the creatinine."""
    assert set(params.requested_schema["properties"]) == {"weight", "creatinine"}
    assert "kg" in params.requested_schema["properties"]["weight"]["description"]
    return ElicitResult(action="accept", content={"weight": 60.0, "creatinine": 3.0})


@pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
async def test_missing_facts_are_asked_of_the_user(place: ServedOsler, mode: str) -> None:
    given = {"formula_id": "cockcroft-gault", "inputs": AGE_AND_SEX}
    how = {"elicitation_callback": answer_form}
    async with mcp.Client(f"{place.url}/mcp", mode=mode, **how) as client:
        done = await client.call_tool("calculate", given)
    if mode == "legacy":  # each request stands alone here: nobody can be asked in between
        assert done.is_error
    else:
        assert done.structured_content["value"] == pytest.approx(16.5, abs=0.1)
        assert done.structured_content["inputs"]["weight"] == 60.0


async def test_a_user_who_declines_gets_the_names_of_what_is_missing(place: ServedOsler) -> None:
    async def decline(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="decline")

    given = {"formula_id": "cockcroft-gault", "inputs": AGE_AND_SEX}
    async with client_of(place, elicitation_callback=decline) as client:
        done = await client.call_tool("calculate", given)
    assert done.is_error
    assert "weight" in done.content[0].text


async def test_a_client_that_cannot_ask_is_told_what_is_missing(place: ServedOsler) -> None:
    async with client_of(place) as client:
        given = {"formula_id": "cockcroft-gault", "inputs": AGE_AND_SEX}
        done = await client.call_tool("calculate", given)
    assert done.is_error
    assert "weight" in done.content[0].text
