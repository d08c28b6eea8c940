"""The clients against a server that runs, and against the API's own description."""

from __future__ import annotations

import inspect
import json
import re
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from osler_serve.client import AsyncClient, Client
from osler_serve.client.calls import ApiCall, ApiOperations, BlockingCalls, StreamPlace
from osler_serve.client.http_client import ServerRefused, ServerUnreachable

pytest.importorskip("fastapi", reason='not installed: pip install "osler[serve]"')

from served import ServedOsler, serve_osler

from osler_serve.cli.serve import report_page

QUESTION = "Which drug is given first, into the outer thigh, at once?"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedOsler]:
    with serve_osler(tmp_path_factory.mktemp("served"), page=report_page) as running:
        yield running


@pytest.fixture
def osler(place: ServedOsler) -> Iterator[Client]:
    with Client(place.url) as client:
        yield client


class RequestLog(ApiOperations, BlockingCalls):
    """Notes what each method would send."""

    def __init__(self) -> None:
        self.sent: list[ApiCall[Any]] = []

    def _send_call(self, call: ApiCall[Any], reply: type) -> None:
        self.sent.append(call)


def call_each_method() -> dict[str, ApiCall[Any]]:
    """Every method once, each text the name of its argument."""
    log, made = RequestLog(), {}
    for name, method in inspect.getmembers(ApiOperations, inspect.isfunction):
        if name.startswith("_"):
            continue
        wanted = [
            p.name
            for p in inspect.signature(method).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"
        ]
        getattr(log, name)(*(f"<{one}>" for one in wanted))
        made[name] = log.sent[-1]
    return made


def reply_type(method: str) -> str:
    """As its annotation names it."""
    stated = inspect.signature(getattr(ApiOperations, method)).return_annotation
    return str(stated).removeprefix("ApiCall[").removesuffix("]").rpartition(".")[2]


def described_reply(operation: dict[str, Any]) -> str:
    """The type that stands for the reply of the API's description."""
    status = next(one for one in operation["responses"] if one.startswith("2"))
    if status == "204":
        return "None"
    content = operation["responses"][status].get("content", {})
    if "application/json" not in content or "$ref" not in str(content):
        return "bytes"
    return str(content["application/json"]["schema"]["$ref"]).rpartition("/")[2]


def test_each_operation_of_the_api_has_its_method_and_each_method_an_operation(
    place: ServedOsler,
) -> None:
    described = httpx2.get(f"{place.url}/openapi.json", timeout=60).json()
    operations = {
        (verb.upper(), re.sub(r"\{\w+\}", "{}", path)): one
        for path, ways in described["paths"].items()
        for verb, one in ways.items()
        if not {"openai", "clinic"} & set(one["tags"])  # their clients are others'
    }
    called = set()
    for name, call in call_each_method().items():
        operation = (call.method, re.sub(r"%3C\w+%3E", "{}", call.path))
        one = operations[operation]
        called.add(operation)
        asked = {given["name"] for given in one.get("parameters", []) if given["in"] == "query"}
        assert set(call.query or {}) <= asked
        assert reply_type(name) == described_reply(one), name
        if call.body is not None:
            reference = json.dumps(one["requestBody"]).partition("#/components/schemas/")[2]
            form = described["components"]["schemas"][reference.partition('"')[0]]
            assert set(call.body) <= set(form["properties"])
            assert set(form.get("required", [])) <= set(call.body)
    streamed = {("GET", "/api/v1/runs/{}/events")}
    assert called | streamed == set(operations)


def test_a_question_is_answered_with_its_evidence(osler: Client) -> None:
    run = osler.ask(QUESTION, strategy="rag")
    assert run.answer is not None
    assert run.answer.text.startswith("Adrenaline is given first.")
    cited = run.evidence[0].passage.id
    assert osler.get_passage(cited, context=1).passage.id == cited
    assert b"Adrenaline" in osler.export_run(run.run_id)
    assert b"<html" in osler.read_report(run.run_id)
    assert osler.judge_run(run.run_id, "helpful").verdict == "helpful"
    types = [event["type"] for event in osler.stream_events(run.run_id)]
    assert (types[0], types[-1]) == ("run.started", "run.finished")
    assert len(list(osler.stream_events(run.run_id, after=2))) == len(types) - 2


def test_a_thread_is_begun_asked_in_and_deleted(osler: Client) -> None:
    thread = osler.create_thread().thread_id
    turn = osler.ask_in_thread(thread, QUESTION)
    assert [*osler.stream_events(turn.run_id)][-1]["type"] == "run.finished"
    assert osler.get_thread(thread).turns[0].question == QUESTION
    assert osler.delete_thread(thread) is None
    with pytest.raises(ServerRefused) as refused:
        osler.get_thread(thread)
    assert (refused.value.status, refused.value.code) == (404, "unknown_thread")


def test_a_refusal_says_what_the_server_said(osler: Client) -> None:
    with pytest.raises(ServerRefused, match="no source") as refused:
        osler.search("x", sources=["nowhere"])
    assert refused.value.status == 422
    with pytest.raises(ServerRefused):
        next(osler.stream_events("20260102-030405-0123456789ab"))


def test_a_server_that_is_not_there_is_said(tmp_path: Path) -> None:
    with Client("http://127.0.0.1:9", timeout=2) as nobody, pytest.raises(ServerUnreachable):
        nobody.check_alive()


async def test_the_other_client_awaits_the_same(place: ServedOsler) -> None:
    async with AsyncClient(place.url) as osler:
        run = await osler.ask(QUESTION, strategy="rag")
        assert run.answer is not None
        assert run.answer.text.startswith("Adrenaline is given first.")
        found = await osler.search("adrenaline", k=2)
        assert len(found.hits) == 2
        assert b"osler_" in await osler.read_metrics()
        with pytest.raises(ServerRefused):
            await osler.get_run("20260102-030405-0123456789ab")


class BreakingServer(socketserver.ThreadingTCPServer):
    """Tells three events, each over a connection of its own that then breaks off."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, parts: list[str | None]) -> None:
        super().__init__(("127.0.0.1", 0), BreakingReply)
        self.parts, self.asked = parts, list[str]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class BreakingReply(socketserver.StreamRequestHandler):
    server: BreakingServer

    def handle(self) -> None:
        lines = iter(self.rfile.readline, b"\r\n")
        after = [line for line in lines if line.lower().startswith(b"last-event-id")]
        self.server.asked.append(after[0].split(b": ")[1].strip().decode())
        part = self.server.parts.pop(0)
        if part is None:
            self.wfile.write(
                b"HTTP/1.1 503 Not now\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            )
            return
        head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        self.wfile.write(f"{head}{len(part):x}\r\n{part}\r\n".encode())


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch) -> Iterator[BreakingServer]:
    monkeypatch.setattr(StreamPlace, "pauses", (0.0, 0.0))
    kinds = ["run.started", "retrieval.done", "run.finished"]
    told = [f'id: {n}\ndata: {{"type":"{kind}"}}\n\n' for n, kind in enumerate(kinds, 1)]
    with BreakingServer([told[0], told[1], None, told[2]]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_stream_that_breaks_off_is_read_on_after_its_last_event(breaking: BreakingServer) -> None:
    with Client(breaking.url) as osler:
        types = [event["type"] for event in osler.stream_events("one")]
    assert types == ["run.started", "retrieval.done", "run.finished"]
    assert breaking.asked == ["0", "1", "2", "2"]


async def test_the_awaited_stream_is_read_on_too(breaking: BreakingServer) -> None:
    async with AsyncClient(breaking.url) as osler:
        types = [event["type"] async for event in osler.stream_events("one")]
    assert types == ["run.started", "retrieval.done", "run.finished"]


def test_a_stream_that_breaks_off_again_and_again_is_given_up(breaking: BreakingServer) -> None:
    breaking.parts[1:] = [": ping\n\n"] * 5
    with Client(breaking.url) as osler, pytest.raises(ServerUnreachable):
        list(osler.stream_events("one"))
    assert breaking.asked == ["0", "1", "1"]
