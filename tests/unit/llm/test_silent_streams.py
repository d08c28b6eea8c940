"""Servers that begin a stream before they look at the request: asked again, whole, they say why.

The double answers as the server of llama-cpp-python 0.3.36 does: a stream of status 200 that ends
without a word, and for the same request without a stream its complaint, of status 500 or 400.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from loopback_servers import (
    EVENTS,
    FakeTime,
    LoopbackReply,
    LoopbackRequest,
    chat_chunk,
    json_reply,
    reply_head,
    serve_loopback,
    stream_reply,
)

from osler.errors import ModelUnreachable
from osler.llm.core.base import Message, Sampling
from osler.llm.server.client import Endpoint, OpenAIModel, connect_server
from osler.llm.server.connection import RequestRefused, ServerBusy, ServerClient
from osler.llm.server.dialects import ServerProfile
from osler.llm.server.endpoint import refused_field

QUERY = [Message("user", "What treats iron deficiency anaemia?")]
NO_LOGPROBS = "logprobs is not supported for models created with logits_all=False"
TOO_LONG = (
    "This model's maximum context length is 2048 tokens. However, you requested 3100 tokens (3000"
    " in the messages, 100 in the completion). Please reduce the length of the messages."
)
NO_SCHEMA = (
    "1 validation error:\n  {'type': 'literal_error', 'loc': ('body', 'response_format', 'type'),"
    " 'msg': \"Input should be 'text' or 'json_object'\", 'input': 'json_schema'}\n\n"
    '  File "app.py", line 376, in create_chat_completion'
)
SILENT = reply_head(kind=EVENTS, more="Transfer-Encoding: chunked\r\n")
"""Of chunks the last is missing."""
EMPTY = stream_reply([], done=False)
"""Ended in good order: what it does with a prompt that is too long."""


def answer_as_llama_cpp_python(asked: LoopbackRequest) -> LoopbackReply | bytes:
    match asked.path:
        case "/v1/models":
            return json_reply({"object": "list", "data": [{"id": "small", "owned_by": "me"}]})
        case "/v1/chat/completions":
            return _answer_chat(asked.body)
        case _:
            return json_reply({"detail": "Not Found"}, 404)


def _answer_chat(body: dict[str, Any]) -> bytes:
    why: tuple[int, str, str | None, str] | None = None
    if body.get("response_format", {}).get("type") == "json_schema":
        # Seen before the stream is begun.
        error = {"message": NO_SCHEMA, "type": "internal_server_error", "param": None, "code": None}
        return json_reply({"error": error}, 500)
    if body.get("logprobs"):
        why = (500, "internal_server_error", None, NO_LOGPROBS)
    elif sum(len(turn["content"]) for turn in body["messages"]) > 2048:
        why = (400, "invalid_request_error", "messages", TOO_LONG)
    if why is None:
        return stream_reply([chat_chunk(""), chat_chunk("Oral"), chat_chunk(" iron.", "stop")])
    status, kind, param, words = why
    error = {"message": words, "type": kind, "param": param, "code": None}
    silent = SILENT if status == 500 else EMPTY
    return silent if body["stream"] else json_reply({"error": error}, status)


async def test_what_it_has_no_log_probabilities_for_is_asked_without_them() -> None:
    time = FakeTime()
    async with serve_loopback(answer_as_llama_cpp_python) as place:
        endpoint = Endpoint(base_url=place.url, model="small")
        model = await connect_server(endpoint, clock=time.clock)
        reply = await model.complete(QUERY, Sampling(max_tokens=20))
        whole = [one for one in place.bodies_of("/v1/chat/completions") if not one["stream"]]
    assert reply.text == "Oral iron."
    assert model.server.without == {"logprobs"}
    assert not model.server.logprobs
    assert time.naps == []
    assert not model.server.kinds
    assert len(whole) == 1
    assert "stream_options" not in whole[0]


async def test_a_prompt_that_is_too_long_is_told_in_the_server_s_words() -> None:
    async with serve_loopback(answer_as_llama_cpp_python) as place:
        model = await connect_server(Endpoint(base_url=place.url, model="small"))
        with pytest.raises(RequestRefused, match="context length is 2048 tokens"):
            await model.complete([Message("user", "word " * 600)], Sampling(max_tokens=100))


async def test_the_reason_is_asked_for_again_where_the_connection_was_lost_with_the_stream() -> (
    None
):
    """It closes a connection after such a stream, which a client may still take for open."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if b'"stream":true' in await read_request(reader):
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
            writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
            await read_request(reader)
        else:
            error = {"message": TOO_LONG, "type": "invalid_request_error", "param": "messages"}
            writer.write(json_reply({"error": error}, 400))
        writer.close()

    async def read_request(reader: asyncio.StreamReader) -> bytes:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        return await reader.readexactly(length)

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        endpoint = Endpoint(base_url=f"http://{host}:{port}/v1", model="small")
        model = OpenAIModel(ServerClient(endpoint, clock=FakeTime().clock), ServerProfile())
        with pytest.raises(RequestRefused, match="context length is 2048 tokens"):
            await model.complete(QUERY, Sampling(max_tokens=100))


async def test_a_stream_that_stays_silent_is_a_server_that_hangs_up() -> None:
    def answer(asked: LoopbackRequest) -> LoopbackReply | bytes:
        return SILENT if asked.body and asked.body["stream"] else b""

    async with serve_loopback(answer) as place:
        endpoint = Endpoint(base_url=place.url, model="small", retries=1)
        with pytest.raises(ModelUnreachable, match="hung up") as caught:
            await connect_server(endpoint, clock=FakeTime().clock)
    assert isinstance(caught.value, ServerBusy)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        (NO_LOGPROBS, "logprobs"),
        ("'seed' is not supported by this model", "seed"),
        ("Internal error: CUDA is not supported", ""),
        ("out of memory", ""),
        (NO_SCHEMA, "response_format"),
    ],
)
def test_a_complaint_names_the_field_where_it_begins_with_it(words: str, field: str) -> None:
    assert refused_field(json.dumps({"error": {"message": words, "param": None}})) == field
    assert refused_field(json.dumps({"detail": words})) == field


def test_a_complaint_of_fastapi_names_the_field() -> None:
    detail = [{"type": "literal_error", "loc": ["body", "stop", 0], "msg": "no", "input": "x"}]
    assert refused_field(json.dumps({"detail": detail})) == "stop"
