"""Servers on loopback that clients are tried on, and time that passes at once.

`serve_named_hosts` is called by the names of others and can misbehave; `NetworkFactory` makes a
way out that finds it under every name that ends in ".test". `serve_posts` runs in a thread, for
clients that are called without an event loop.
"""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from loopback_servers import (
    HOLD,
    JSON,
    LoopbackReply,
    LoopbackRequest,
    json_reply,
    serve_loopback,
)

from osler.sources.online.cache import ReplyCache
from osler.sources.online.client import OnlineClient, ReplyLimits

HOSTS = frozenset({"en.wiki.test", "zh.wiki.test", "ncbi.test", "searx.test", "bing.test"})
# 2023-11-14 in the tests' clock.
START = 1_700_000_000.0


@dataclass(frozen=True)
class NamedHostRequest:
    """One request as the server saw it."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]

    @property
    def host(self) -> str:
        return self.headers.get("host", "").partition(":")[0]


# The bytes of a whole reply, or `None` to say nothing at all.
Answer = Callable[[NamedHostRequest], bytes | None]


@dataclass
class NamedHostServer:
    """A server that was started, and the requests that it saw."""

    port: int = 0
    asked: list[NamedHostRequest] = field(default_factory=list)

    def url_of(self, host: str, path: str = "") -> str:
        return f"http://{host}:{self.port}{path}"


@asynccontextmanager
async def serve_named_hosts(answer: Answer) -> AsyncIterator[NamedHostServer]:
    """A server on loopback that is called by other names; `None` keeps the client waiting."""
    server = NamedHostServer()

    def answer_named(request: LoopbackRequest) -> LoopbackReply | bytes:
        target = urlsplit(request.path)
        params = {name: values[0] for name, values in parse_qs(target.query).items()}
        named = NamedHostRequest(target.path, params, request.headers)
        server.asked.append(named)
        reply = answer(named)
        return HOLD if reply is None else reply

    async with serve_loopback(answer_named) as place:
        server.port = urlsplit(place.url).port or 0
        yield server


def whole_reply(body: object, status: int = 200, *, kind: str = JSON, more: str = "") -> bytes:
    """A reply: bytes and text as they are, anything else as JSON."""
    sent = body.encode() if isinstance(body, str) else body
    return json_reply(sent, status, kind=kind, more=more)


def redirect_reply(to: str, status: int = 302) -> bytes:
    return whole_reply(b"", status, more=f"Location: {to}\r\n")


@dataclass
class SleepingClock:
    """A clock that only sleeping moves."""

    now: float = START
    slept: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@dataclass
class NetworkFactory:
    """Makes the way out of a test."""

    folder: Path
    time: SleepingClock = field(default_factory=SleepingClock)

    def __call__(self, **more: Any) -> OnlineClient:
        options: dict[str, Any] = {
            "cache": ReplyCache(self.folder),
            "private_hosts": HOSTS,
            "resolve": resolve_to_loopback,
            "sleep": self.time.sleep,
            "clock": self.time.clock,
            "steady_clock": self.time.clock,
            "bounds": ReplyLimits(seconds=2.0),
        }
        return OnlineClient(**{**options, **more})


async def resolve_to_loopback(host: str, port: int) -> list[str]:
    """Every name of the tests is this machine; addresses are themselves."""
    return ["127.0.0.1"] if host.endswith(".test") else [host.strip("[]")]


@dataclass(frozen=True)
class PostRequest:
    path: str
    key: str
    """The header's, "" where there was none."""
    body: Any


@dataclass(frozen=True)
class PostReply:
    """A reply; `body` is JSON unless it is bytes, which are sent as they are."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass
class PostServer:
    url: str
    """Ends in `/v1`."""
    asked: list[PostRequest] = field(default_factory=list)


@contextmanager
def serve_posts(answer: Callable[[PostRequest], PostReply | None]) -> Iterator[PostServer]:
    """Answers POSTs as `answer` says; `None` hangs up without a word."""
    place = PostServer("")

    class PostHandler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = PostRequest(self.path, self.headers.get("Authorization", ""), json.loads(body))
            place.asked.append(asked)
            reply = answer(asked)
            if reply is None:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.content)))
            self.end_headers()
            self.wfile.write(reply.content)

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), PostHandler)
    server.daemon_threads = True
    place.url = f"http://127.0.0.1:{server.server_port}/v1"
    # A short poll: `shutdown` waits for it at the end of every test.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield place
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
