"""Real HTTP servers on loopback that say what a test wants, broken things too.

    async with loopback(lambda asked: said({"data": []})) as place:
        ... place.url ... place.asked ...

What is served is bytes: a server that hangs up in mid-reply, stalls, drips without an end
or speaks no HTTP at all is the bytes it sends and what it does then.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from typing import Any, Literal

from osler.llm.server.connection import Clock

JSON, EVENTS, LINES = "application/json", "text/event-stream", "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class LoopbackRequest:
    """A request: its path with the query, its headers in lower case, the JSON of its body."""

    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "")


@dataclass(frozen=True, slots=True)
class LoopbackReply:
    """Bytes to send, and what to do then: hang up, keep the client waiting, or repeat `drip`."""

    sent: bytes = b""
    then: Literal["close", "hold", "drip"] = "close"
    drip: bytes = b" "
    after: float = 0.0
    """Seconds of work before the first byte."""


# Never a word.
HOLD = LoopbackReply(then="hold")

Answers = Callable[[LoopbackRequest], LoopbackReply | bytes]


@dataclass
class LoopbackServer:
    """A server that was started, and what has happened there."""

    answer: Answers
    url: str = ""
    """Ends in `/v1`."""
    asked: list[LoopbackRequest] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """A request is being kept waiting."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """The client went away while it was kept waiting."""
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def bodies_of(self, path: str) -> list[Any]:
        """Bodies of the requests for a path, in order."""
        return [one.body for one in self.asked if one.path == path]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self.tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            try:
                await self._send_answer(
                    reader, writer, self._find_answer(await _read_request(reader))
                )
            finally:
                self.at_once -= 1
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    def _find_answer(self, asked: LoopbackRequest | None) -> LoopbackReply:
        if asked is None:
            return LoopbackReply(json_reply({"error": "that is no HTTP"}, 400))
        self.asked.append(asked)
        answer = self.answer(asked)
        return LoopbackReply(answer) if isinstance(answer, bytes) else answer

    async def _send_answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: LoopbackReply
    ) -> None:
        if answer.after:
            await asyncio.sleep(answer.after)
        writer.write(answer.sent)
        await writer.drain()
        if answer.then == "close":
            return
        self.arrived.set()
        try:
            if answer.then == "hold":
                await reader.read()
            # A reset ends in an exception or a closing writer, without an end of file.
            while answer.then == "drip" and not (
                reader.at_eof() or reader.exception() or writer.is_closing()
            ):
                writer.write(answer.drip)
                await writer.drain()
                await asyncio.sleep(0.005)
        finally:
            self.left.set()


async def _read_request(reader: asyncio.StreamReader) -> LoopbackRequest | None:
    """Reads one request; `None` for what is not HTTP, such as TLS."""
    # A TLS client hello begins with 0x16, HTTP with the letter of a method.
    letter = await reader.readexactly(1)
    if not letter.isalpha():
        return None
    rest = await reader.readuntil(b"\r\n\r\n")
    first, *lines = (letter + rest).decode().strip().split("\r\n")
    headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    method, path, _ = first.split(" ")
    return LoopbackRequest(method, path, headers, json.loads(body) if body else None)


@asynccontextmanager
async def serve_loopback(
    answer: Answers, *, tls: SSLContext | None = None
) -> AsyncIterator[LoopbackServer]:
    """A server on a free port of 127.0.0.1, gone with the block."""
    place = LoopbackServer(answer)
    server = await asyncio.start_server(place.serve, "127.0.0.1", 0, ssl=tls)
    host, port = server.sockets[0].getsockname()
    place.url = f"{'https' if tls else 'http'}://{host}:{port}/v1"
    async with server:
        yield place
        await asyncio.gather(*place.tasks)


def json_reply(body: object, status: int = 200, *, kind: str = JSON, more: str = "") -> bytes:
    """A whole reply: `body` as it is if bytes, else as JSON; `more` are header lines."""
    sent = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    return reply_head(status, kind=kind, more=f"Content-Length: {len(sent)}\r\n{more}") + sent


def reply_head(status: int = 200, *, kind: str = JSON, more: str = "") -> bytes:
    """The beginning of a reply that ends where the connection does, unless `more` says else."""
    return (
        f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\n{more}Connection: close\r\n\r\n".encode()
    )


def stream_reply(events: Iterable[object], *, done: bool = True) -> bytes:
    """A reply of server-sent events: each as it is if bytes, else as JSON."""
    return (
        reply_head(kind=EVENTS)
        + b"".join(map(encode_event, events))
        + (encode_event(b"[DONE]") if done else b"")
    )


def encode_event(told: object) -> bytes:
    data = told if isinstance(told, bytes) else json.dumps(told, ensure_ascii=False).encode()
    return b"data: " + data + b"\n\n"


def chat_reply(content: object, entries: object = None, **more: object) -> dict[str, Any]:
    """A chat's reply; `entries` are the facts about its tokens."""
    told = {} if entries is None else {"logprobs": {"content": entries}}
    message = {"role": "assistant", "content": content}
    return {"choices": [{"message": message, "finish_reason": "stop", **told}], **more}


def chat_chunk(content: object = None, finish: object = None, **more: object) -> dict[str, Any]:
    """An event of a streamed chat; `more` goes into its choice."""
    delta = {} if content is None else {"content": content}
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish, **more}]}


def token_entry(text: str, logprob: object = -0.5, *, raw: bytes | None = None) -> dict[str, Any]:
    """The entry of a token in a reply; `raw` are its bytes, if given."""
    spelt = {} if raw is None else {"bytes": list(raw)}
    return {"token": text, "logprob": logprob, "top_logprobs": [], **spelt}


def answer_chats_only(*answers: LoopbackReply | bytes) -> Answers:
    """A server of no known kind: these answers to chats, in order, the last for good; else 404."""
    left = list(answers)

    def answer_chat(asked: LoopbackRequest) -> LoopbackReply | bytes:
        if asked.path != "/v1/chat/completions":
            return json_reply({"error": "not here"}, 404)
        return left.pop(0) if len(left) > 1 else left[0]

    return answer_chat


@dataclass
class FakeTime:
    """A clock that only a sleep moves on, and no sleep takes any time."""

    at: float = 0.0
    naps: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.at += seconds

    def read_ticks(self) -> float:
        return self.at

    @property
    def clock(self) -> Clock:
        """For a `ServerClient` or `connect`; it counts from 1970, as dates do."""
        return Clock(self.sleep, self.read_ticks, self.read_ticks)
