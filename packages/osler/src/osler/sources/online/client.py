"""Search services, and HTTP GET for them: cached, rate-limited, retried, bounded in time and size.

| event                                  | result                                               |
|----------------------------------------|------------------------------------------------------|
| it is in the cache and not too old     | the reply, without a call                            |
| offline, and not in the cache          | `Offline`                                            |
| a private address, another scheme      | `AddressRefused`, at every redirect too              |
| 429, 500, 502, 503, 504, a broken line | retries as `Retry-After` asks; then `ServiceRefused` |
| another status or type, too large,     | `ServiceRefused` (a `SourceUnavailable`) with why    |
| too slow, too many redirects           |                                                      |

Keys are passed separately (`secret`): they are in no cache key, message or stored address, and
they are not sent to another host after a redirect.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import ssl
import time
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import KW_ONLY, dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

import httpx2

from osler.errors import SourceUnavailable
from osler.llm.server.endpoint import retry_after
from osler.sources.formats.json_lines import items_at, value_at
from osler.sources.online.address_guard import GuardedTransport, Resolve, resolve_host
from osler.sources.online.cache import CachedReply, ReplyCache
from osler.sources.records import Document


class SearchService(Protocol):
    """A search service on the internet."""

    @property
    def name(self) -> str:
        """For messages and as the finder of hits: "wikipedia", "pubmed", "searxng"."""

    async def find(self, query: str, *, k: int) -> list[Document]:
        """At most `k` documents, in the service's order; [] when it knows none.

        Raises `SourceUnavailable` when it cannot be reached or sends an unreadable reply.
        """


def read_json(reply: CachedReply, name: str) -> dict[str, Any]:
    """The object in the reply. Raises `SourceUnavailable` for anything else."""
    try:
        value = json.loads(reply.body)
    except (ValueError, RecursionError) as error:
        raise unreadable_reply(name, "no JSON") from error
    if not isinstance(value, dict):
        raise unreadable_reply(name, "no JSON object")
    return value


def dated_kind(kind: str, at: float) -> str:
    """The kind of a document with the day on which it was fetched."""
    day = datetime.fromtimestamp(at, UTC).date().isoformat()
    return f"{kind}, retrieved {day}" if kind else f"retrieved {day}"


def unreadable_reply(name: str, what: str) -> SourceUnavailable:
    return SourceUnavailable(f"{name} sends {what}", fix="check the address in the settings")


def text_at(value: Any, *path: str) -> str:
    """The text or number at a path of keys, as text; "" if absent."""
    leaf = value_at(value, *path)
    return str(leaf) if isinstance(leaf, str | int) and not isinstance(leaf, bool) else ""


def list_at(value: Any, *path: str) -> list[dict[str, Any]]:
    """The objects in the list at a path of keys."""
    return [item for item in items_at(value, *path) if isinstance(item, dict)]


AGENT = "osler/0.1 (medical question answering from cited evidence; local installation)"

_BUSY = frozenset({429, 500, 502, 503, 504})
_MOVED = frozenset({301, 302, 303, 307, 308})
# Seconds between two tries: doubled from the first to the last.
_FIRST_WAIT, _LAST_WAIT = 1.0, 30.0

Sleep = Callable[[float], Awaitable[object]]
Clock = Callable[[], float]


class Offline(SourceUnavailable):
    """The settings forbid calls, and the reply is not in the cache."""


@dataclass(frozen=True, slots=True)
class ReplyLimits:
    """Limits of one reply."""

    bytes: int = 8 * 2**20
    """After decompression."""
    seconds: float = 20.0
    """From sending the request to the last byte, for each try."""
    redirects: int = 5
    retries: int = 3
    longest_wait: float = 60.0
    """Seconds of `Retry-After` that are waited for; a server that asks for more is given up."""


class TokenBucket:
    """A token bucket that holds one token: at most `rate` calls in any second."""

    def __init__(self, rate: float, *, sleep: Sleep, clock: Clock) -> None:
        self._gap, self._sleep, self._clock = 1 / rate, sleep, clock
        self._free_at = float("-inf")

    async def take_token(self) -> None:
        """Waits for the next free slot; callers are served in the order in which they came."""
        now = self._clock()
        turn = max(now, self._free_at)
        self._free_at = turn + self._gap
        if turn > now:
            await self._sleep(turn - now)


@dataclass(frozen=True)
class HttpCall:
    """One GET request."""

    url: str
    params: Mapping[str, str] = field(default_factory=dict)
    secret: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Parameters that must not be logged or stored."""
    secret_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    types: tuple[str, ...] = ("application/json",)
    """Media types that are accepted."""
    known_as: str = ""
    """Name of the reply in the cache, where the parameters change and the reply does not."""

    @property
    def key(self) -> str:
        params = [f"{k}={v}" for k, v in sorted(self.params.items())]
        text = "\n".join([self.url, *([self.known_as] if self.known_as else params)])
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def host(self) -> str:
        return httpx2.URL(self.url).host


@dataclass(eq=False)
class OnlineClient:
    """The one HTTP client of online sources. Holds no connection between calls."""

    cache: ReplyCache | None = None
    _: KW_ONLY
    offline: bool = False
    private_hosts: frozenset[str] = frozenset()
    days: float = 30.0
    agent: str = AGENT
    bounds: ReplyLimits = ReplyLimits()
    resolve: Resolve = resolve_host
    sleep: Sleep = asyncio.sleep
    clock: Clock = time.time
    steady_clock: Clock = time.monotonic
    """That is never set back: calls would wait for as long."""
    rng: random.Random = field(default_factory=random.Random)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Made once: loading the certificates takes a tenth of a second."""
        return httpx2.create_ssl_context()

    def make_bucket(self, rate: float) -> TokenBucket:
        return TokenBucket(rate, sleep=self.sleep, clock=self.steady_clock)

    async def get(self, call: HttpCall, *, bucket: TokenBucket | None = None) -> CachedReply:
        """The reply, from the cache or from the server. Raises as in the table above."""
        if self.cache:
            days, now = None if self.offline else self.days, self.clock()
            kept = await asyncio.to_thread(self.cache.get_reply, call.key, now=now, days=days)
            if kept:
                return kept
        if self.offline:
            raise Offline(
                f"{call.host}: offline, and this was never fetched",
                fix="set net.offline = false, or ask what was asked before",
            )
        reply = await self._fetch_reply(call, bucket)
        if self.cache:
            await asyncio.to_thread(self.cache.put_reply, call.key, reply)
        return reply

    @asynccontextmanager
    async def read(
        self, call: HttpCall, *, bucket: TokenBucket | None = None
    ) -> AsyncIterator[CachedReply]:
        """As `get`, for a block that reads the reply. One that cannot be read there, as an error
        that came in place of records, is not kept: the next question asks the server anew."""
        reply = await self.get(call, bucket=bucket)
        try:
            yield reply
        except SourceUnavailable:
            if self.cache:
                await asyncio.to_thread(self.cache.drop_reply, call.key)
            raise

    async def _fetch_reply(self, call: HttpCall, bucket: TokenBucket | None) -> CachedReply:
        for attempt in range(self.bounds.retries + 1):
            if bucket:
                await bucket.take_token()
            outcome = await self._try_once(call)
            if isinstance(outcome, CachedReply):
                return outcome
            delay = outcome.asked or 0.0
            if attempt == self.bounds.retries or delay > self.bounds.longest_wait:
                tries = f"{attempt + 1} of {self.bounds.retries + 1} tries"
                raise _refusal_of(call, f"{outcome.why}, {tries}")
            # Half of the wait is random: clients that failed together must not return together.
            grown = min(_LAST_WAIT, _FIRST_WAIT * 2**attempt) * self.rng.uniform(0.5, 1)
            await self.sleep(grown if outcome.asked is None else delay)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _try_once(self, call: HttpCall) -> CachedReply | _ServerBusy:
        transport = GuardedTransport(self.private_hosts, resolve=self.resolve, tls=self._tls)
        headers = {"User-Agent": self.agent, "Accept-Encoding": "gzip"}
        try:
            async with (
                asyncio.timeout(self.bounds.seconds),
                httpx2.AsyncClient(
                    transport=transport, headers=headers, timeout=None, trust_env=False
                ) as client,
            ):
                return await self._follow_redirects(client, call)
        except TimeoutError as error:
            raise _refusal_of(call, f"no whole reply within {self.bounds.seconds:g} s") from error
        except httpx2.InvalidURL as error:
            raise _refusal_of(call, "a redirect to an invalid address") from error
        except httpx2.ConnectError as error:
            raise _refusal_of(call, "no connection") from error
        except httpx2.TransportError as error:
            return _ServerBusy(f"the connection broke ({type(error).__name__})")

    async def _follow_redirects(
        self, client: httpx2.AsyncClient, call: HttpCall
    ) -> CachedReply | _ServerBusy:
        url = httpx2.URL(call.url).copy_merge_params({**call.params, **call.secret})
        home = (url.scheme, url.host, url.port)
        for _ in range(self.bounds.redirects + 1):
            own = dict(call.secret_headers) if (url.scheme, url.host, url.port) == home else {}
            async with client.stream("GET", url, headers=own) as response:
                if response.status_code not in _MOVED:
                    return await self._read_reply(call, url, response)
                target = url.join(response.headers.get("location", ""))
            if url.scheme == "https" and target.scheme != "https":
                raise _refusal_of(call, "a redirect from https to plain http")
            url = target
        raise _refusal_of(call, f"more than {self.bounds.redirects} redirects")

    async def _read_reply(
        self, call: HttpCall, url: httpx2.URL, response: httpx2.Response
    ) -> CachedReply | _ServerBusy:
        status = response.status_code
        if status in _BUSY:
            wait = retry_after(response.headers.get("retry-after", ""), now=self.clock())
            return _ServerBusy(f"the server answers {status}", wait)
        if status != httpx2.codes.OK:
            raise _refusal_of(call, f"the server answers {status}", status)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in call.types:
            raise _refusal_of(call, f"the server sends {kind or 'no type'}, not {call.types[0]}")
        body = await self._read_body(call, response)
        final_url = str(url.copy_with(query=None)) if call.secret else str(url)
        return CachedReply(final_url, kind, body, self.clock())

    async def _read_body(self, call: HttpCall, response: httpx2.Response) -> bytes:
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in {"identity", "", "gzip", "x-gzip"}:
            raise _refusal_of(call, f"the reply is packed with {encoding}, which was not asked for")
        # 32 + 15: either header of zlib, and the largest window.
        unpacker = zlib.decompressobj(wbits=47) if "gzip" in encoding else None
        body = bytearray()
        try:
            async for piece in response.aiter_raw():
                room = self.bounds.bytes + 1 - len(body)
                body += unpacker.decompress(piece, room) if unpacker else piece
                if len(body) > self.bounds.bytes:
                    raise _refusal_of(call, f"the reply is larger than {self.bounds.bytes:,} bytes")
        except zlib.error as error:
            raise _refusal_of(call, "the reply cannot be unpacked") from error
        return bytes(body)


class ServiceRefused(SourceUnavailable):
    """A service that refused or failed; `status` is the HTTP status, 0 for none."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class _ServerBusy:
    why: str
    # Seconds that the server asks to wait.
    asked: float | None = None


def _refusal_of(call: HttpCall, why: str, status: int = 0) -> ServiceRefused:
    error = ServiceRefused(f"{call.host}: {why}", fix="try again later, or set net.offline = true")
    error.status = status
    return error
