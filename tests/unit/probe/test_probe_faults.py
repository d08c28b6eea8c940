"""A server that is none, or whose replies are no answers: named, with the fix, and nothing more."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from competent import CompetentModel
from loopback_servers import (
    Answers,
    LoopbackReply,
    LoopbackRequest,
    chat_chunk,
    chat_reply,
    encode_event,
    json_reply,
    reply_head,
    serve_loopback,
)
from mannered import MODEL, serve_manners
from manners import Manners

from osler.doctor import Check
from osler.llm.server.endpoint import complained_context
from osler.probe import advise, probe_model
from osler.probe.findings import Findings
from osler.settings import ModelSettings, Settings

TLS = Path(__file__).parents[2] / "fixtures" / "tls"
PAGE = json_reply(b"<html><body>Welcome to nginx!</body></html>", kind="text/html")
HOSTED: dict[str, Any] = {"continues": False, "scores": False}


async def probe_at(url: str, **section: Any) -> Findings:
    chosen = ModelSettings(kind="openai", url=url, name=MODEL, timeout_s=20, **section)
    found = await probe_model(chosen, minute=5.0)
    assert advise(Settings(model=chosen), chosen, found).lines() == []
    return found


def fault_of(found: Findings) -> Check:
    """The one fault; there is nothing else to be shown."""
    assert not found.ok
    (fault,) = found.rows()
    assert fault.status == "fail"
    assert fault.fix
    assert (found.tags, found.cites, found.speed) == (None, None, None)
    return fault


def chats(answer: LoopbackReply | bytes) -> Answers:
    """A server of no kind that lists nothing, and this answer to each chat."""

    def answer_one(asked: LoopbackRequest) -> LoopbackReply | bytes:
        known = asked.path == "/v1/chat/completions"
        return answer if known else json_reply({"error": "not here"}, 404)

    return answer_one


async def test_a_server_that_is_down() -> None:
    fault = fault_of(await probe_at("http://127.0.0.1:9/v1"))
    assert "no connection" in fault.detail
    assert "check that a model server runs at http://127.0.0.1:9/v1" in fault.fix


async def test_a_web_page() -> None:
    async with serve_loopback(lambda asked: PAGE) as place:
        fault = fault_of(await probe_at(place.url))
    assert "answered text/html, not JSON: it may be a proxy or a web page" in fault.detail
    assert "model.url" in fault.fix


@pytest.mark.parametrize("manners", [{}, HOSTED, {"server": "Ollama"}])
async def test_another_model_than_named(manners: Mapping[str, Any]) -> None:
    async with serve_manners(CompetentModel(), Manners(serves="other-7b", **manners)) as place:
        if manners.get("server"):
            chosen = ModelSettings(kind="openai", url=place.url, name="named")
            found = await probe_model(chosen)
        else:
            found = await probe_at(place.url)
    fault = fault_of(found)
    assert "other-7b" in fault.detail or "the server has no model named" in fault.detail
    assert "name to" in fault.fix


@pytest.mark.parametrize("tells", [True, False])
async def test_a_context_smaller_than_the_prompt(tells: bool) -> None:
    words = "This model's maximum context length is 300 tokens. However, you requested 700 tokens."

    def answer(asked: LoopbackRequest) -> LoopbackReply | bytes:
        if asked.path != "/v1/chat/completions":
            return json_reply({"error": "not here"}, 404)
        if asked.body["max_tokens"] <= 64:
            return json_reply(chat_reply("Vitamin C.", usage={"completion_tokens": 3}))
        return json_reply({"error": {"message": words}}, 400)

    if tells:
        async with serve_manners(CompetentModel(), Manners(context=300)) as place:
            found = await probe_at(place.url)
    else:
        async with serve_loopback(answer) as place:
            found = await probe_at(place.url)
    assert not found.ok
    (fault,) = (row for row in found.rows() if row.status == "fail")
    assert fault.detail == "300 tokens: too few for a prompt with evidence"
    assert "OLLAMA_CONTEXT_LENGTH" in fault.fix


@pytest.mark.parametrize("manners", [{}, HOSTED, {"server": "Ollama"}])
async def test_an_empty_reply(manners: Mapping[str, Any]) -> None:
    async with serve_manners(CompetentModel(), Manners(silent=True, **manners)) as place:
        fault = fault_of(await probe_at(place.url))
    assert fault.detail == "an easy question is answered with nothing"


@pytest.mark.parametrize("manners", [{}, HOSTED, {"server": "Ollama"}])
async def test_endless_output(manners: Mapping[str, Any]) -> None:
    async with serve_manners(CompetentModel(), Manners(endless=True, **manners)) as place:
        fault = fault_of(await probe_at(place.url))
    assert fault.detail == "no reply ends: cut at 1024 tokens"
    assert "chat template" in fault.fix


async def test_output_that_drips_for_ever_is_cut() -> None:
    drip = encode_event(chat_chunk("word " * 400))
    begun = reply_head(kind="text/event-stream")
    async with serve_loopback(chats(LoopbackReply(begun, "drip", drip))) as place:
        fault = fault_of(await probe_at(place.url))
    assert "no reply ends" in fault.detail


@pytest.mark.parametrize("name", ["expired", "good"])
async def test_a_wrong_certificate(name: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / f"{name}.pem", TLS / "key.pem")
    async with serve_loopback(chats(json_reply(chat_reply("x"))), tls=context) as place:
        fault = fault_of(await probe_at(place.url))
    assert "TLS failed" in fault.detail
    assert "SSL_CERT_FILE" in fault.fix


async def test_a_refused_key() -> None:
    async with serve_loopback(lambda asked: json_reply({"error": "no"}, 401)) as place:
        fault = fault_of(await probe_at(place.url))
    assert "key refused" in fault.detail
    assert "OPENAI_API_KEY" in fault.fix


async def test_replies_that_are_half_json_are_no_answers() -> None:
    async with serve_loopback(chats(json_reply(b'{"choices": [{"mess'))) as place:
        assert "broken JSON" in fault_of(await probe_at(place.url)).detail


async def test_a_server_that_goes_silent_ends_with_the_minute() -> None:
    asked = 0

    def answer(one: LoopbackRequest) -> LoopbackReply | bytes:
        nonlocal asked
        if one.path != "/v1/chat/completions":
            return json_reply({"error": "not here"}, 404)
        asked += 1
        if asked <= 3:
            return json_reply(chat_reply("Oral iron.", usage={"completion_tokens": 3}))
        return LoopbackReply(then="hold")

    async with serve_loopback(answer) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=MODEL, timeout_s=20)
        found = await probe_model(chosen, minute=1.0)
    assert found.seconds < 5
    unknown = [row for row in found.rows() if row.status == "warn"]
    assert len(unknown) >= 6
    assert {row.detail for row in unknown} == {"not told: the minute was up"}


@pytest.mark.parametrize(
    ("words", "context"),
    [
        ("This model's maximum context length is 32768 tokens. However, you requested", 32768),
        ("the request exceeds the available context size (4096 tokens), try increasing it", 4096),
        ("input length exceeds maximum context length", None),
        ("Requested tokens (600) exceed context window of 512", 512),
        ("This is a 8192-token context", 8192),
        ("max_tokens must be at most 16384", None),
        ("", None),
    ],
)
def test_a_complaint_names_the_context(words: str, context: int | None) -> None:
    assert complained_context(words) == context


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("qwen3:8b", "qwen3:8b", True),
        ("qwen3", "qwen3:latest", True),
        ("Qwen/Qwen3-8B", "qwen3-8b", True),
        ("qwen3:8b", "qwen3:14b", False),
        ("claude-sonnet-4", "claude-sonnet-4-20250514", True),
    ],
)
def test_a_date_or_a_tag_makes_no_other_model(asked: str, served: str, same: bool) -> None:
    from osler.probe import is_same_model

    assert is_same_model(asked, served) is same
