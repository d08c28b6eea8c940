"""Whom to call stands first at the HTTP API, the OpenAI-compatible endpoint and MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from danger_dialogues import DIALOGUES, expected_words
from served import (
    FixedModel,
    ServedOsler,
    fill_knowledge_base,
    read_stream,
    serve_osler,
    start_run,
)
from waiting import AwaitableEvent

from osler.types import DangerKind

openai = pytest.importorskip("openai")
mcp = pytest.importorskip("mcp")

Kinds = tuple[DangerKind, ...]
CRY, CRY_KINDS = DIALOGUES[0]
CALM = "What is asthma?"
dialogues = pytest.mark.parametrize(("question", "kinds"), DIALOGUES)


@pytest.fixture(scope="module")
def client(place: ServedOsler) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{place.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def no_knowledge(home: Path) -> None:
    """Leaves the knowledge base away."""


def said_first(text: str, question: str) -> bool:
    """Whether the text begins with the notice in the question's language."""
    return expected_words(question) in text[:600] and text.startswith("**")


def test_the_dialogues_are_ten_in_both_languages_and_with_look_alikes() -> None:
    assert len(DIALOGUES) == 10
    assert sum(not kinds for _, kinds in DIALOGUES) >= 3


# ---------------------------------------------------------------- HTTP API


@dialogues
def test_the_api_says_it_at_once_in_the_stream_and_in_the_report(
    place: ServedOsler, http: httpx2.Client, question: str, kinds: Kinds
) -> None:
    begun = http.post("/api/v1/runs", json={"question": question}).json()
    events = read_stream(http, begun["run_id"])
    place.wait_for_runs()
    report = http.get(f"/api/v1/runs/{begun['run_id']}").json()
    assert begun["danger"] == report["danger"]
    if not kinds:
        assert report["danger"] is None
        assert next(name for _, name, _ in events) == "run.started"
        return
    assert next(iter(report)) == "danger"
    assert tuple(report["danger"]["kinds"]) == kinds
    assert expected_words(question) in report["danger"]["text"]
    assert [name for _, name, _ in events][:2] == ["run.danger", "run.started"]
    assert events[0][2]["notice"] == report["danger"]
    page = http.get(f"/runs/{begun['run_id']}/report.html").text
    assert page.index('class="danger"') < page.index('id="answer"')


def test_a_plan_bears_it(http: httpx2.Client) -> None:
    asked = {"question": CRY, "planner": "original"}
    assert tuple(http.post("/api/v1/plan", json=asked).json()["danger"]["kinds"]) == CRY_KINDS
    asked["question"] = CALM
    assert http.post("/api/v1/plan", json=asked).json()["danger"] is None


def test_it_is_said_where_no_knowledge_base_is(home: Path) -> None:
    with (
        serve_osler(home, fill=no_knowledge) as place,
        httpx2.Client(base_url=place.url, timeout=20) as http,
    ):
        run = start_run(http, CRY)
        names = [name for _, name, _ in read_stream(http, run)]
        assert names == ["run.danger", "run.failed"]
        place.wait_for_runs()
        report = http.get(f"/api/v1/runs/{run}").json()
        assert report["status"] == "failed"
        assert tuple(report["danger"]["kinds"]) == CRY_KINDS


def test_it_is_said_while_the_model_is_silent_and_after_the_time_is_up(home: Path) -> None:
    gate = AwaitableEvent()
    with (
        serve_osler(home, model=FixedModel(gate=gate), serve={"run_seconds": 2.0}) as place,
        httpx2.Client(base_url=place.url, timeout=20) as http,
    ):
        begun = http.post("/api/v1/runs", json={"question": CRY}).json()
        assert begun["danger"]
        going = http.get(f"/api/v1/runs/{begun['run_id']}").json()
        assert going["danger"] == begun["danger"]
        assert read_stream(http, begun["run_id"])[-1][2]["code"] == "timeout"
        place.wait_for_runs()
        over = http.get(f"/api/v1/runs/{begun['run_id']}").json()
        assert over["error"]["code"] == "timeout"
        assert over["danger"] == begun["danger"]


def test_who_is_turned_away_is_told_whom_to_call_all_the_same(home: Path) -> None:
    gate = AwaitableEvent()
    bounds = {"runs": 1, "waiting": 0}
    with (
        serve_osler(home, model=FixedModel(gate=gate), serve=bounds) as place,
        httpx2.Client(base_url=place.url, timeout=20) as http,
    ):
        start_run(http, CALM)
        refused = http.post("/api/v1/runs", json={"question": CRY})
        assert refused.status_code == 503
        assert tuple(refused.json()["danger"]["kinds"]) == CRY_KINDS
        assert "danger" not in http.post("/api/v1/runs", json={"question": CALM}).json()
        said = {"model": "osler/rag", "messages": [{"role": "user", "content": CRY}]}
        told = http.post("/v1/chat/completions", json=said).json()["error"]["message"]
        assert told.startswith("This may be an emergency.")
        gate.set()
        place.wait_for_runs()


@pytest.mark.parametrize(
    ("path", "field"),
    [("api/v1/runs", "foo"), ("api/v1/threads/none/turns", "foo"), ("v1/chat/completions", "n")],
)
def test_a_request_that_is_not_valid_is_told_whom_to_call_all_the_same(
    http: httpx2.Client, path: str, field: str
) -> None:
    def refuse(question: str) -> dict[str, Any]:
        said: dict[str, Any] = {"question": question}
        if path.startswith("v1"):
            parts = [{"type": "text", "text": question}, {"type": "image_url"}]
            turns = [{"role": "user", "content": one} for one in (question, parts)]
            said = {"model": "osler/rag", "messages": turns}
        reply = http.post(f"/{path}", json={**said, field: 2})
        assert reply.status_code == 422
        told: dict[str, Any] = reply.json()
        return told

    calm, told = refuse(CALM), refuse(CRY)
    assert "danger" not in calm
    if path.startswith("v1"):
        assert not calm["error"]["message"].startswith("This may be")
        assert told["error"]["message"].startswith("This may be an emergency.")
    else:
        assert tuple(told["danger"]["kinds"]) == CRY_KINDS


@pytest.mark.parametrize("body", [b"[1]", b'{"question": "\\ud800", "a": 1}', b'{"messages": [3]}'])
def test_a_body_without_a_question_is_refused_as_it_is(http: httpx2.Client, body: bytes) -> None:
    sent = {"Content-Type": "application/json"}
    for path in ("api/v1/runs", "v1/chat/completions"):
        assert http.post(f"/{path}", content=body, headers=sent).status_code == 422


# ---------------------------------------------------------------- OpenAI


@dialogues
def test_a_chat_completion_begins_with_it(client: Any, question: str, kinds: Kinds) -> None:
    asked = [{"role": "user", "content": question}]
    reply = client.chat.completions.create(model="osler/rag", messages=asked)
    message = reply.choices[0].message
    assert said_first(message.content, question) == bool(kinds)
    assert (reply.model_dump()["osler"]["danger"] is not None) == bool(kinds)
    for note in message.annotations or []:
        cited = note.url_citation
        piece = message.content[cited.start_index : cited.end_index]
        assert piece == "Adrenaline is given first."


@dialogues
def test_a_stream_begins_with_it(client: Any, question: str, kinds: Kinds) -> None:
    asked = [{"role": "user", "content": question}]
    chunks = client.chat.completions.create(model="osler/rag", messages=asked, stream=True)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert said_first(deltas[0].content, question) == bool(kinds)
    whole = client.chat.completions.create(model="osler/rag", messages=asked)
    assert "".join(delta.content or "" for delta in deltas) == whole.choices[0].message.content


def test_it_is_streamed_before_the_model_says_a_word(home: Path) -> None:
    model = FixedModel(gate=AwaitableEvent())
    body = {"model": "osler/rag", "messages": [{"role": "user", "content": CRY}], "stream": True}
    with (
        serve_osler(home, model=model) as place,
        httpx2.Client(base_url=place.url, timeout=20) as http,
        http.stream("POST", "/v1/chat/completions", json=body) as reply,
    ):
        lines = reply.iter_lines()
        first = json.loads(next(line for line in lines if line.startswith("data: "))[6:])
        assert said_first(first["choices"][0]["delta"]["content"], CRY)
        assert not model.gate.is_set()  # type: ignore[union-attr]
        model.gate.set()  # type: ignore[union-attr]
        assert any("[DONE]" in line for line in lines)


def test_a_run_that_fails_still_answers_with_it(home: Path) -> None:
    with (
        serve_osler(home, fill=no_knowledge) as place,
        openai.OpenAI(base_url=f"{place.url}/v1", api_key="none", max_retries=0) as client,
    ):
        asked = [{"role": "user", "content": CRY}]
        reply = client.chat.completions.create(model="osler/rag", messages=asked)
        assert said_first(reply.choices[0].message.content, CRY)
        assert reply.model_dump()["osler"]["error"]
        with pytest.raises(openai.APIStatusError):
            client.chat.completions.create(
                model="osler/rag", messages=[{"role": "user", "content": CALM}]
            )


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ([("user", CRY), ("assistant", "…")], True),
        ([("user", CRY), *[("user", CALM)] * 4], True),
        ([("user", CRY), *[("user", CALM)] * 5], False),
        ([("assistant", CRY), ("system", CRY)], False),
        ([("user", CALM)], False),
    ],
)
def test_the_last_turns_of_the_user_count_and_nobody_else_s(
    client: Any, earlier: list[tuple[str, str]], told: bool
) -> None:
    turns = [{"role": role, "content": text} for role, text in (*earlier, ("user", CALM))]
    reply = client.chat.completions.create(model="osler/rag", messages=turns)
    assert said_first(reply.choices[0].message.content, CALM) == told


def test_what_a_model_wrote_that_may_not_word_medicine_is_in_no_reasoning(home: Path) -> None:
    mute = {role: {"writes": "no"} for role in ("planner", "reader")}
    set_up: dict[str, Any] = {"roles": mute, "strategy": {"kind": "tc-rag"}}
    model = FixedModel(reply="Thought: arsenic is given first")
    with (
        serve_osler(home, model=model, **set_up) as place,
        openai.OpenAI(base_url=f"{place.url}/v1", api_key="none", max_retries=0) as client,
    ):
        asked = [{"role": "user", "content": "Which drug is given first in anaphylaxis?"}]
        reply = client.chat.completions.create(model="osler/tc-rag", messages=asked)
        told = reply.model_dump()
        assert set(told["osler"]["notes_of"]) >= {"planner"}
        reasoning = told["choices"][0]["message"]["reasoning_content"]
        assert "may not word medicine" in reasoning
        assert "arsenic" not in reasoning
        stream = client.chat.completions.create(model="osler/tc-rag", messages=asked, stream=True)
        assert "arsenic" not in "".join(
            getattr(chunk.choices[0].delta, "reasoning_content", None) or "" for chunk in stream
        )


# ---------------------------------------------------------------- MCP


@dialogues
async def test_mcp_gives_it_first(place: ServedOsler, question: str, kinds: Kinds) -> None:
    async with mcp.Client(f"{place.url}/mcp") as client:
        said = await client.call_tool("answer_question", {"question": question})
    told = said.structured_content
    assert next(iter(json.loads(said.content[0].text))) == "danger"
    assert (told["danger"] is not None) == bool(kinds)
    if kinds:
        assert expected_words(question) in told["danger"]["text"]


async def test_a_tool_that_is_refused_says_it_first(home: Path) -> None:
    gate = AwaitableEvent()
    with serve_osler(home, model=FixedModel(gate=gate), serve={"runs": 1, "waiting": 0}) as place:
        async with httpx2.AsyncClient(base_url=place.url, timeout=20) as http:
            await http.post("/api/v1/runs", json={"question": CALM})
        async with mcp.Client(f"{place.url}/mcp") as client:
            said = await client.call_tool("answer_question", {"question": CRY})
        gate.set()
        await asyncio.to_thread(place.wait_for_runs)
    text = said.content[0].text
    assert said.is_error
    # The SDK writes the tool's name before what the tool says.
    assert 0 <= text.find("This may be an emergency.") < text.index("all places are taken")


def test_a_mistake_in_one_s_own_rules_stops_the_server_before_it_serves(home: Path) -> None:
    from osler.errors import BadConfig

    bad = home / "bad.toml"
    bad.write_text('[lists.a]\nen = ["b"]\n[[rules]]\nname = "n"\n', encoding="utf-8")
    fill_knowledge_base(home)
    with (
        pytest.raises(BadConfig, match='rule "n": kind'),
        serve_osler(home, danger={"rules": str(bad)}),
    ):
        pass


def test_a_run_about_danger_that_failed_is_answered_and_counted_as_failed(home: Path) -> None:
    with (
        serve_osler(home, fill=no_knowledge) as place,
        httpx2.Client(base_url=place.url, timeout=20) as http,
    ):
        asked = {"model": "osler/rag", "messages": [{"role": "user", "content": CRY}]}
        reply = http.post("/v1/chat/completions", json=asked)
        place.wait_for_runs()
        assert reply.status_code == 200
        assert said_first(reply.json()["choices"][0]["message"]["content"], CRY)
        assert reply.json()["osler"]["status"] == "failed"
        assert reply.json()["osler"]["error"]["code"]
        counted = http.get("/metrics").text
        assert 'osler_runs_total{status="failed",strategy="rag"} 1.0' in counted
