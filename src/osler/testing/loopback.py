"""A server on loopback that is called by the names of others, and time that passes at once.

For tests of what calls out: `serve_named_hosts` speaks HTTP byte by byte, so that it can misbehave, and
`NetworkFactory` makes a way out that finds it under every name that ends in ".test".
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from osler.sources.online.cache import ReplyCache
from osler.sources.online.client import OnlineClient, ReplyLimits

HOSTS = frozenset({"en.wiki.test", "zh.wiki.test", "ncbi.test", "searx.test", "bing.test"})
START = 1_700_000_000.0
"""2023-11-14 in the tests' clock."""


@dataclass(frozen=True)
class NamedHostRequest:
    """One request as the server saw it."""

    path: str
    params: dict[str, str]
    headers: dict[str, str]

    @property
    def host(self) -> str:
        return self.headers.get("host", "").partition(":")[0]


Answer = Callable[[NamedHostRequest], bytes | None]
"""The bytes of a whole reply, or `None` to say nothing at all."""


@dataclass
class NamedHostServer:
    answer: Answer
    port: int = 0
    asked: list[NamedHostRequest] = field(default_factory=list)
    tasks: set[asyncio.Task[Any]] = field(default_factory=set)

    def url_of(self, host: str, path: str = "") -> str:
        return f"http://{host}:{self.port}{path}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self.tasks.add(task)
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            first, *lines = head.strip().split("\r\n")
            target = urlsplit(first.split(" ")[1])
            params = {k: v[0] for k, v in parse_qs(target.query).items()}
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
            asked = NamedHostRequest(target.path, params, headers)
            self.asked.append(asked)
            said = self.answer(asked)
            if said is None:
                await reader.read()  # until the client gives up
            else:
                writer.write(said)
                await writer.drain()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def serve_named_hosts(answer: Answer) -> AsyncIterator[NamedHostServer]:
    place = NamedHostServer(answer)
    server = await asyncio.start_server(place.serve, "127.0.0.1", 0)
    place.port = server.sockets[0].getsockname()[1]
    async with server:
        yield place
        await asyncio.gather(*place.tasks)


def whole_reply(
    body: object, status: int = 200, *, kind: str = "application/json", more: str = ""
) -> bytes:
    """A reply: bytes and text as they are, anything else as JSON."""
    sent = body if isinstance(body, bytes) else None
    if sent is None:
        sent = (body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)).encode()
    head = f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(sent)}\r\n{more}"
    return f"{head}Connection: close\r\n\r\n".encode() + sent


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
            "bounds": ReplyLimits(seconds=2.0),
        }
        return OnlineClient(**{**options, **more})


async def resolve_to_loopback(host: str, port: int) -> list[str]:
    """Every name of the tests is this machine; addresses are themselves."""
    return ["127.0.0.1"] if host.endswith(".test") else [host.strip("[]")]
