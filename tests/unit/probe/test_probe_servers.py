"""The probe of servers that nobody here wrote, by doubles that answer as each was seen to, and as
its source says.

llama-cpp-python 0.3.36 ends a streamed reply, without a reason, when the next request comes.
`transformers serve` 5.23 has no list of models where no hub cache is, names its model with the
hub's revision, and ignores formats and log-probabilities.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from loopback_servers import (
    LoopbackReply,
    LoopbackRequest,
    chat_chunk,
    encode_event,
    json_reply,
    reply_head,
    serve_loopback,
    stream_reply,
)

from osler.llm.core.base import Message, Sampling
from osler.llm.server.client import Endpoint, connect_server
from osler.llm.server.connection import ServerClient
from osler.probe import advise, is_same_model, probe_model
from osler.settings import ModelSettings, Settings

WORDS = "Oral iron treats iron deficiency anaemia."


def pieces_of(words: str) -> list[str]:
    first, *rest = words.split(" ")
    return [first, *(f" {word}" for word in rest)]


# llama-cpp-python


class InterruptingServer:
    """One reply at a time; a request that comes ends the one that is being written."""

    def __init__(self) -> None:
        self.interrupted = 0
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = [line for line in head.split("\r\n") if line.startswith("content-length:")]
        await reader.readexactly(int(length[0].split(":")[1]) if length else 0)
        if "post /v1/chat/completions" not in head:
            found = "/v1/models" in head
            listed = {"data": [{"id": "small"}]} if found else {"detail": "Not Found"}
            writer.write(json_reply(listed, 200 if found else 404))
        else:
            self._waiting += 1
            async with self._turn:
                self._waiting -= 1
                await self._write_reply(writer)
        await writer.drain()
        writer.close()

    async def _write_reply(self, writer: asyncio.StreamWriter) -> None:
        writer.write(reply_head(kind="text/event-stream"))
        for piece in pieces_of(WORDS):
            writer.write(encode_event(chat_chunk(piece)))
            await asyncio.sleep(0.02)
            if self._waiting:
                self.interrupted += 1
                writer.write(encode_event(b"[DONE]"))
                return
        writer.write(encode_event(chat_chunk(finish="stop")) + encode_event(b"[DONE]"))


@asynccontextmanager
async def serve_interrupting() -> AsyncIterator[tuple[str, InterruptingServer]]:
    place = InterruptingServer()
    server = await asyncio.start_server(place.serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    async with server:
        yield f"http://{host}:{port}/v1", place


async def test_calls_that_end_one_another_are_made_one_at_a_time() -> None:
    async with serve_interrupting() as (url, place):
        model = await connect_server(Endpoint(base_url=url, model="small"))
        asked = [model.complete([Message("user", "?")], Sampling(max_tokens=32)) for _ in range(12)]
        replies = await asyncio.gather(*asked)
    assert {reply.text for reply in replies} == {WORDS}
    assert 1 <= place.interrupted <= 8


async def test_the_probe_of_such_a_server_advises_one_call_at_a_time() -> None:
    async with serve_interrupting() as (url, _):
        chosen = ModelSettings(kind="openai", url=url, name="small")
        found = await probe_model(chosen)
    assert found.ok, found.rows()
    assert found.beside is False
    assert "model.parallel = 1" in advise(Settings(model=chosen), chosen, found).lines()
    (speed,) = (row for row in found.rows() if row.name == "speed")
    assert speed.detail == "not told: the server does not count the tokens of its replies"


async def test_a_server_that_answers_to_any_name_is_told() -> None:
    def answer(asked: LoopbackRequest) -> LoopbackReply | bytes:
        match asked.path:
            case "/v1/models":
                return json_reply({"data": [{"id": "small"}]})
            case "/v1/chat/completions":
                told = [*map(chat_chunk, pieces_of(WORDS)), chat_chunk(finish="stop")]
                return stream_reply([{**one, "model": asked.body["model"]} for one in told])
            case _:
                return json_reply({"detail": "Not Found"}, 404)

    async with serve_loopback(answer) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name="other")
        found = await probe_model(chosen, minute=10.0)
    (fault,) = found.faults
    assert (fault.name, fault.status) == ("the model's name", "warn")
    assert fault.detail == "the server lists small, not other; it may answer to any name"
    assert "small" in fault.fix


# transformers serve


def answer_as_transformers(asked: LoopbackRequest) -> LoopbackReply | bytes:
    match asked.path:
        case "/v1/models":
            return json_reply(b"Internal Server Error", 500, kind="text/plain")
        case "/v1/chat/completions" if asked.body["model"] != "models/small:small.gguf":
            pinned = "Server is pinned to 'models/small:small.gguf'; requested 'other'."
            return json_reply({"detail": pinned}, 400)
        case "/v1/chat/completions":
            return stream_reply(list(_chunks(WORDS)), done=False)
        case _:
            return json_reply({"detail": "Not Found"}, 404)


def _chunks(words: str) -> list[dict[str, Any]]:
    told = [chat_chunk(""), *map(chat_chunk, pieces_of(words))]
    usage = {"prompt_tokens": 40, "completion_tokens": 8, "total_tokens": 48}
    ended = {**chat_chunk(finish="stop"), "usage": usage}
    return [{**one, "model": "models/small@main"} for one in (*told, ended)]


async def probe_transformers(name: str) -> Any:
    async with serve_loopback(answer_as_transformers) as place:
        chosen = ModelSettings(kind="openai", url=place.url, name=name)
        return await probe_model(chosen, minute=10.0)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The waits between tries, which have tests of their own, are short."""
    monkeypatch.setattr(ServerClient, "wait_of", lambda *_: 0.001)


@pytest.mark.usefixtures("hasty")
async def test_a_server_whose_list_of_models_is_broken_is_asked_all_the_same() -> None:
    found = await probe_transformers("models/small:small.gguf")
    assert found.ok, found.rows()
    assert (found.scores, found.logprobs, found.formats) == (False, False, ())
    assert not found.faults


@pytest.mark.usefixtures("hasty")
async def test_another_model_is_told_in_the_server_s_words() -> None:
    (fault,) = (await probe_transformers("other")).rows()
    assert "Server is pinned to 'models/small:small.gguf'; requested 'other'" in fault.detail


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("models/small:small.gguf", "models/small@main", True),
        ("Qwen/Qwen3-8B", f"Qwen/Qwen3-8B@{'0a' * 20}", True),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-4B@main", False),
        ("hf.co/a/small-GGUF:Q4_K_M", "hf.co/a/small-GGUF:Q8_0", False),
    ],
)
def test_a_revision_or_a_file_makes_no_other_model(asked: str, served: str, same: bool) -> None:
    assert is_same_model(asked, served) is same


# LiteLLM's proxy


async def test_a_key_that_a_proxy_without_a_database_does_not_know_is_told_as_such() -> None:
    """LiteLLM 1.108: status 400, and not a word of the key."""
    error = {"message": "No connected db.", "type": "no_db_connection", "code": "400"}

    def answer(asked: LoopbackRequest) -> bytes:
        return json_reply({"error": error}, 400)

    async with serve_loopback(answer) as place:
        found = await probe_model(ModelSettings(kind="openai", url=place.url, name="small"))
    (fault,) = found.rows()
    assert "key refused (400: No connected db.)" in fault.detail
    assert "OPENAI_API_KEY" in fault.fix
