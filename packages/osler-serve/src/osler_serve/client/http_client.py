"""`Client` and `AsyncClient` for a server of Osler.

```python
with Client("http://127.0.0.1:8642", key="osk_…") as osler:
    run = osler.ask("What is given first in anaphylaxis?")
    print(run.answer.text)
```
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import httpx2
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from osler.errors import OslerError
from osler_serve.client.calls import (
    ApiCall,
    ApiOperations,
    AwaitedCalls,
    BlockingCalls,
    EventReader,
    Json,
    StreamPlace,
    given_query,
)
from osler_serve.replies import RunReport

HOME = "http://127.0.0.1:8642"


class ServerRefused(OslerError):
    """The server's reply is an error (RFC 9457)."""

    def __init__(self, status: int, problem: Json) -> None:
        detail = str(problem.get("detail") or problem.get("title") or f"status {status}")
        super().__init__(detail, fix=str(problem.get("fix") or ""))
        self.status = status
        self.code = str(problem.get("code") or "")
        self.retry_after: float | None = problem.get("retry_after")
        """Seconds after which another try may help."""
        self.danger: Json | None = problem.get("danger")
        """Emergency contacts; show them first."""


class ServerUnreachable(OslerError):
    """The server does not answer, or not in time."""


class Client(ApiOperations, BlockingCalls, AbstractContextManager["Client"]):
    """Sends a request and waits for its reply. Not for several threads at once."""

    def __init__(self, url: str = HOME, *, key: str = "", timeout: float = 60.0) -> None:
        self._http = httpx2.Client(base_url=url, headers=_headers(key), timeout=timeout)

    def ask(self, question: str, **how: Any) -> RunReport:
        """The finished run with its answer; `how` as for `start_run`. A run that fails has no
        answer: its `status` and `error` say why."""
        run = self.start_run(question, **how).run_id
        for _ in self.stream_events(run):
            pass
        return self.get_run(run)

    def stream_events(self, run: str, *, after: int = 0) -> Iterator[Json]:
        """The run's events as they happen, each a dictionary with its `type`. A stream that breaks
        off is opened again after the last event that came."""
        place = StreamPlace(after)
        while True:
            try:
                yield from self._read_events(run, place)
                return
            except httpx2.HTTPError as error:
                if place.is_over:
                    return
                if (pause := place.pause_before_next()) is None:
                    raise _unreachable(self._http.base_url, error) from error
                time.sleep(pause)

    def _read_events(self, run: str, place: StreamPlace) -> Iterator[Json]:
        reader, asked = EventReader(), _stream_request(run, place)
        with self._http.stream(**asked) as reply:
            if reply.status_code >= 400:
                reply.read()
            _require_open(place, reply)
            for line in reply.iter_lines():
                if (found := reader.read_line(line)) and found[0]:
                    yield place.read_event(*found)

    def close(self) -> None:
        self._http.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _send_call(self, call: ApiCall[Any], reply: type) -> Any:
        try:
            return _read_reply(self._http.request(**_request_of(call)), reply)
        except httpx2.HTTPError as error:
            raise _unreachable(self._http.base_url, error) from error


class AsyncClient(ApiOperations, AwaitedCalls, AbstractAsyncContextManager["AsyncClient"]):
    """The same for asyncio: each method is awaited."""

    def __init__(self, url: str = HOME, *, key: str = "", timeout: float = 60.0) -> None:
        self._http = httpx2.AsyncClient(base_url=url, headers=_headers(key), timeout=timeout)

    async def ask(self, question: str, **how: Any) -> RunReport:
        """As `Client.ask`."""
        run = (await self.start_run(question, **how)).run_id
        async for _ in self.stream_events(run):
            pass
        return await self.get_run(run)

    async def stream_events(self, run: str, *, after: int = 0) -> AsyncIterator[Json]:
        """As `Client.stream_events`."""
        place = StreamPlace(after)
        while True:
            try:
                async for event in self._read_events(run, place):
                    yield event
                return
            except httpx2.HTTPError as error:
                if place.is_over:
                    return
                if (pause := place.pause_before_next()) is None:
                    raise _unreachable(self._http.base_url, error) from error
                await asyncio.sleep(pause)

    async def _read_events(self, run: str, place: StreamPlace) -> AsyncIterator[Json]:
        reader, asked = EventReader(), _stream_request(run, place)
        async with self._http.stream(**asked) as reply:
            if reply.status_code >= 400:
                await reply.aread()
            _require_open(place, reply)
            async for line in reply.aiter_lines():
                if (found := reader.read_line(line)) and found[0]:
                    yield place.read_event(*found)

    async def aclose(self) -> None:
        await self._http.aclose()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def _send_call(self, call: ApiCall[Any], reply: type) -> Any:
        try:
            return _read_reply(await self._http.request(**_request_of(call)), reply)
        except httpx2.HTTPError as error:
            raise _unreachable(self._http.base_url, error) from error


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _request_of(call: ApiCall[Any]) -> dict[str, Any]:
    sent = {"params": given_query(call.query), "json": to_jsonable_python(call.body)}
    files = {"files": {"file": call.file}} if call.file else {}
    return {"method": call.method, "url": call.path, **sent, **files}


def _stream_request(run: str, place: StreamPlace) -> dict[str, Any]:
    headers = {"Last-Event-ID": str(place.after)}
    path = f"/api/v1/runs/{run}/events"
    return {"method": "GET", "url": path, "headers": headers, "timeout": None}


def _require_open(place: StreamPlace, reply: httpx2.Response) -> None:
    """Raises `ServerRefused`, or where the stream was open before and the server just stops or
    starts, what has it opened again."""
    if reply.status_code == 503 and place.was_open:
        raise httpx2.RemoteProtocolError("the server is not ready")
    if reply.status_code >= 400:
        raise _refusal(reply)
    place.was_open = True


def _read_reply(found: httpx2.Response, reply: type) -> Any:
    if found.status_code >= 400:
        raise _refusal(found)
    if issubclass(reply, BaseModel):
        # A newer server may tell more.
        return reply.model_validate_json(found.content, extra="ignore")
    return found.content if reply is bytes else None


def _refusal(reply: httpx2.Response) -> ServerRefused:
    try:
        problem = reply.json()
    except ValueError:  # a proxy answered
        problem = {}
    return ServerRefused(reply.status_code, problem if isinstance(problem, dict) else {})


def _unreachable(address: httpx2.URL, error: httpx2.HTTPError) -> ServerUnreachable:
    problem = f"{address} does not answer: {error or type(error).__name__}"
    return ServerUnreachable(problem, fix="is `osler serve` running there?")
