"""A bounded HTTP client for one model server: waits, retries, and no key in any message.

| what happens                                   | what it becomes                               |
|------------------------------------------------|-----------------------------------------------|
| no such host; TLS that fails                   | `ModelUnreachable`, at once                   |
| refused connection, none within `connect_s`    | again, up to `retries`, `ModelUnreachable`    |
| 408, 429, 500, 502, 503, 504, also in a stream | the same, and not before `Retry-After`        |
| hung up, in mid-reply too                      | the same: asking again changes nothing there  |
| hung up before the first event of a stream     | asked again, whole, for the reason            |
| 500 that names a field it does not support     | `RequestRefused`, with that field             |
| a stream that has begun pauses for `stall_s`   | `ModelUnreachable`: it is still at work on it |
| all of it not done within `timeout_s`          | `ModelUnreachable`                            |
| 401, 403                                       | `KeyRefused`                                  |
| a redirect                                     | `ModelError` that names where to              |
| any other status but 200                       | `RequestRefused`, with the server's words      |
| 200 with no JSON, too long, broken             | `ModelError` that says which                  |

Every message names the address and what mends it. The key is in the request's header
and nowhere else: it is taken out of whatever a server says. A call that is cancelled
closes its connection.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from random import Random
from typing import Any, TypeVar

import httpx2

from osler.errors import ModelError, ModelUnreachable
from osler.llm.server import endpoint
from osler.llm.server.endpoint import BadReply, tls_fix
from osler.llm.server.endpoint import Clock as Clock
from osler.llm.server.endpoint import Endpoint as Endpoint
from osler.llm.server.endpoint import KeyRefused as KeyRefused
from osler.llm.server.endpoint import RequestRefused as RequestRefused
from osler.llm.server.endpoint import ServerBusy as ServerBusy
from osler.llm.server.replies import (
    BusyAnswer,
    ChatGatherer,
    SilentStream,
    Turns,
    without_streaming,
)

T = TypeVar("T")

_BUSY = frozenset({408, 429, 500, 502, 503, 504})
_LONGEST_WAIT = 60.0
"""Seconds; a server that asks for more patience is taken at its word and left."""
_FIRST_WAIT, _LAST_WAIT = 1.0, 30.0
"""Seconds; the bounds between which the wait before another try grows."""
_LONGEST_COMPLAINT = 64 * 1024
_SHORTEST_KEY = 8
"""Letters of a key that is taken out; servers on this machine take "local" and "test" for one, and
these words stand in answers."""
"""Bytes read of a reply that is an error anyway."""


class ServerClient:
    """One server and one model of it. Holds no connection, so it needs no closing.

    `rng` spreads the waits between tries; `clock` is for tests.
    """

    def __init__(
        self, endpoint: Endpoint, *, rng: Random | None = None, clock: Clock | None = None
    ) -> None:
        self.endpoint = endpoint
        self.clock = clock or Clock()
        self._rng = rng or Random()
        # Loading the authorities takes as long as several requests; no redirect needs them.
        secure = endpoint.base_url.lower().startswith("https:")
        self._tls: ssl.SSLContext | bool = httpx2.create_ssl_context() if secure else False
        self.turns = Turns(endpoint.max_concurrency)

    def __repr__(self) -> str:
        return f"ServerClient({self.name!r})"

    @property
    def model(self) -> str:
        return self.endpoint.model

    @property
    def name(self) -> str:
        """The model and the host that serves it."""
        return f"{self.endpoint.model}@{self.endpoint.host}"

    async def post(self, path: str, body: dict[str, Any], *, root: bool = False) -> dict[str, Any]:
        """Returns the JSON object that a POST is answered with. Raises as the table above says."""
        async with self.open() as line:
            reply = await line.request_json(path, body, root=root)
            if not isinstance(reply, dict):
                raise BadReply(f"{path} did not answer a JSON object")
            return reply

    @asynccontextmanager
    async def open(self) -> AsyncIterator[ServerSession]:
        """Opens a session for one operation. Errors in its replies name the model."""
        key = self.endpoint.api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        # No timeouts of the client's own: `_call_timed` and `_iterate_unstalled` bound each call.
        async with httpx2.AsyncClient(headers=headers, verify=self._tls, timeout=None) as client:
            try:
                yield ServerSession(self, client)
            except BadReply as error:
                message = self.without_key(str(error))
                raise ModelError(f"{self.name}: {message}", fix=self._reachable_fix) from error

    def wait_of(self, asked: float | None, attempt: int) -> float:
        """Returns the seconds before the next try: the server's wish, else longer each time, by
        chance.

        The chance is over the whole range ("full jitter"), so that many callers who were
        turned away together do not come back together.
        """
        grown = min(_LAST_WAIT, _FIRST_WAIT * 2**attempt)
        return self._rng.uniform(0, grown) if asked is None else asked

    def without_key(self, text: str) -> str:
        """Removes the key, which some servers quote in their complaint."""
        key = self.endpoint.api_key
        if not key or len(key) < _SHORTEST_KEY:
            return text
        return text.replace(key, "[key]").replace(json.dumps(key)[1:-1], "[key]")

    def unreachable_error(
        self, url: str, what: str, *, busy: bool = False, fix: str = ""
    ) -> ModelUnreachable:
        kind = ServerBusy if busy else ModelUnreachable
        return kind(f"{url}: {self.without_key(what)}", fix=fix or self._reachable_fix)

    @property
    def _reachable_fix(self) -> str:
        at = f"{self.endpoint.base_url} ({self.endpoint.section}.url)"
        return f"check that a model server runs at {at}"


class ServerSession:
    """Requests over connections that end with the session."""

    def __init__(self, api: ServerClient, client: httpx2.AsyncClient) -> None:
        self._api = api
        self._client = client

    async def request_json(
        self,
        path: str,
        body: dict[str, Any] | None = None,
        *,
        root: bool = False,
        hasty: bool = False,
    ) -> Any:
        """Returns the JSON in the reply; POST with a body, else GET. `root`: not under `/v1`.

        `hasty` does not try again where there is no connection, and waits `describe_s` at most.
        """
        url = self._api.endpoint.url_of(path, root=root)

        async def request_once() -> Any:
            async with self._send_request(url, body) as response:
                if busy := await self._check_status(url, response):
                    return busy
                return await self._read_json(url, response)

        return await self._retry_while_busy(url, request_once, hasty=hasty)

    async def gather_stream(
        self,
        path: str,
        body: dict[str, Any],
        make: Callable[[], ChatGatherer],
        *,
        root: bool = False,
    ) -> ChatGatherer:
        """Returns a streamed reply, gathered; a new `make()` collects each try.

        The connection is closed as soon as the gatherer wants no more. Raises as above.
        """
        url = self._api.endpoint.url_of(path, root=root)

        streams = True

        async def gather_once() -> ChatGatherer | BusyAnswer:
            nonlocal streams
            asked = body if streams else without_streaming(body)
            try:
                async with self._send_request(url, asked) as response:
                    busy = await self._check_status(url, response)
                    return busy or await self._read_stream(url, response, make())
            except SilentStream as error:
                if not streams:
                    raise BadReply("the stream had no reply in it") from error
            # Whole it says why: at the next try too, where the connection was lost with the stream.
            streams = False
            return await gather_once()

        return await self._retry_while_busy(url, gather_once)

    async def _retry_while_busy(
        self, url: str, once: Callable[[], Awaitable[T | BusyAnswer]], *, hasty: bool = False
    ) -> T:
        api, limit = self._api, self._api.endpoint.timeout_s
        tries = 1 + api.endpoint.retries
        spent = 0.0
        for attempt in range(tries):
            # The gate is held for a try alone: who waits for the server lets others through.
            async with api.turns.take():
                began = api.clock.ticks()
                seconds, within = api.endpoint.bound_try(limit - spent, hasty=hasty)
                answer = await self._call_timed(url, once, seconds, within)
                if isinstance(answer, BusyAnswer) and answer.interrupted:
                    api.turns.note_interruption()
                spent += api.clock.ticks() - began
            if not isinstance(answer, BusyAnswer):
                return answer
            wait = api.wait_of(answer.asked, attempt)
            # Counted before it is waited for: a wait that would end past the limit is not begun.
            spent += wait
            over = wait > _LONGEST_WAIT or spent >= limit or (hasty and answer.absent)
            if over or attempt + 1 == tries:
                why = f"{answer.why}, {attempt + 1} of {tries} tries"
                raise api.unreachable_error(url, why, busy=not answer.absent)
            await api.clock.sleep(wait)
        raise AssertionError("unreachable: the last try returns or raises")

    async def _call_timed(
        self, url: str, once: Callable[[], Awaitable[T | BusyAnswer]], seconds: float, within: str
    ) -> T | BusyAnswer:
        try:
            async with asyncio.timeout(seconds):
                return await once()
        except TimeoutError as error:
            raise self._api.unreachable_error(url, f"no reply within {within}") from error
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            return self._explain_no_connection(url, error)
        except httpx2.TransportError as error:
            return BusyAnswer(f"the server hung up ({type(error).__name__})")
        except httpx2.RequestError as error:
            raise BadReply(f"the reply of {url} cannot be decoded: {error}") from error

    def _explain_no_connection(self, url: str, error: httpx2.TransportError) -> BusyAnswer:
        """Tells a server that may be starting from a lasting fault, which raises."""
        unreachable = self._api.unreachable_error
        cause: BaseException | None = error
        while cause:
            if isinstance(cause, ssl.SSLError):
                what, section = f"TLS failed: {cause}", self._api.endpoint.section
                raise unreachable(url, what, fix=tls_fix(cause, section)) from error
            if isinstance(cause, socket.gaierror):
                what = f"no such host: {cause.strerror}"
                raise unreachable(
                    url, what, fix=f"check the host; {self._api.endpoint.address_fix}"
                ) from error
            cause = cause.__cause__ or cause.__context__
        return BusyAnswer(f"no connection: {str(error) or type(error).__name__}", absent=True)

    @asynccontextmanager
    async def _send_request(
        self, url: str, body: dict[str, Any] | None
    ) -> AsyncIterator[httpx2.Response]:
        method, connect = ("GET" if body is None else "POST"), self._api.endpoint.connect_s
        timeout = httpx2.Timeout(None, connect=connect)
        async with self._client.stream(method, url, json=body, timeout=timeout) as response:
            yield response

    async def _check_status(self, url: str, response: httpx2.Response) -> BusyAnswer | None:
        """Returns None for status 200 and a busy answer for faults that may pass; raises for the
        rest.
        """
        status, words = response.status_code, ""
        if status == httpx2.codes.OK:
            return None
        if response.is_redirect:
            raise self._redirect_error(url, response)
        try:
            words = await endpoint.read_body(response, most=_LONGEST_COMPLAINT)
        except BadReply:
            words = "(a long page)"
        words = self._api.without_key(words)
        answer = f"{status}: {endpoint.read_complaint(words)}".rstrip(": ")
        field = endpoint.refused_field(words)
        if status in _BUSY and not (status == httpx2.codes.INTERNAL_SERVER_ERROR and field):
            header = response.headers.get("retry-after", "")
            wait = endpoint.retry_after(header, now=self._api.clock.now())
            return BusyAnswer(f"the server answers {answer}", wait)
        if status in {401, 403} or endpoint.refuses_key(words):
            raise KeyRefused(f"{url}: key refused ({answer})", fix=self._api.endpoint.key_fix)
        problem = f"{url} answered {answer}"
        raise self._api.endpoint.refusal(problem, status, words, field=field)

    def _redirect_error(self, url: str, response: httpx2.Response) -> RequestRefused:
        """Refuses the redirect: the key is not carried elsewhere on a server's word."""
        status = response.status_code
        try:
            to = response.url.join(response.headers["location"])
            target = str(to.copy_with(username=None, password=None, query=None, fragment=None))
        except (KeyError, httpx2.InvalidURL):
            target = "an address that is none"
        target = self._api.without_key(target)
        return RequestRefused(
            f"{url} answered {status}, a redirect to {target}, which is not followed",
            status=status,
            fix=f"if you trust that address, set {self._api.endpoint.section}.url to it",
        )

    async def _read_json(self, url: str, response: httpx2.Response) -> Any:
        kind = endpoint.kind_of(response)
        if "json" not in kind:
            raise BadReply(f"{url} answered {kind}, not JSON: it may be a proxy or a web page")
        text = await endpoint.read_body(response, most=self._api.endpoint.max_bytes)
        reply = endpoint.parse_json(self._api.without_key(text), f"the reply of {url}")
        return self._find_late_error(url, reply) or reply

    async def _read_stream(
        self, url: str, response: httpx2.Response, gathered: ChatGatherer
    ) -> ChatGatherer | BusyAnswer:
        if endpoint.kind_of(response) not in endpoint.STREAMS:
            chunk = await self._read_json(url, response)
            if isinstance(chunk, BusyAnswer):
                return chunk
            gathered.take_whole(chunk)
            return gathered
        async with aclosing(self._iterate_unstalled(url, response)) as events:
            async for data in events:
                if data.strip() == endpoint.DONE:
                    break
                chunk = endpoint.parse_json(self._api.without_key(data), f"an event of {url}")
                if trouble := self._find_late_error(url, chunk):
                    return trouble
                if gathered.take_piece(chunk):
                    return gathered
        if gathered.broken_off():
            return BusyAnswer("the reply broke off", interrupted=True)
        return gathered

    async def _iterate_unstalled(
        self, url: str, response: httpx2.Response
    ) -> AsyncGenerator[str, None]:
        """Yields events while they come. The first may take long: a prompt is read before it."""
        stall, waits = self._api.endpoint.stall_s, None
        async with aclosing(
            endpoint.read_events(response, most=self._api.endpoint.max_bytes)
        ) as events:
            while True:
                try:
                    async with asyncio.timeout(waits):
                        data = await anext(events, None)
                except TimeoutError as error:
                    why = f"the reply stalled for {stall:g} s"
                    raise self._api.unreachable_error(url, why) from error
                except httpx2.TransportError as error:
                    raise (SilentStream() if waits is None else error) from error
                if data is None and waits is None:
                    raise SilentStream
                if data is None:
                    return
                waits = stall
                yield data

    def _find_late_error(self, url: str, reply: Any) -> BusyAnswer | None:
        """Finds an error that a server only reported after it had answered 200."""
        if not isinstance(reply, dict) or not reply.get("error"):
            return None
        words, code = endpoint.extract_complaint(reply), endpoint.extract_code(reply)
        if code in _BUSY:
            return BusyAnswer(f"the server answers {code}: {words}")
        raise RequestRefused(f"{url} answered with an error: {words}", status=code or 200)
