"""JSON to a server and back, for what is no language model: embeddings and reranking.

What happens becomes what `llm/openai.py` makes of it: `ModelUnreachable` where nobody
answers in time or for long, `KeyRefused`, and `ModelError` with the server's own words.
The key is in the request's header and nowhere else.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from random import Random
from typing import Any

import httpx2

from osler.errors import ModelError, ModelUnreachable
from osler.llm.openai import Endpoint, KeyRefused

Sleep = Callable[[float], Awaitable[object]]

_BUSY = frozenset({429, 500, 502, 503, 504})
_FIRST_WAIT, _LAST_WAIT, _LONGEST_WAIT = 1.0, 30.0, 60.0
"""Seconds; a server that asks for more patience than the last is taken at its word and left."""


@dataclass(frozen=True, slots=True)
class _Busy:
    why: str
    asked: float | None = None


@dataclass(frozen=True)
class Door:
    """One path of one server. Holds no connection, so it needs no closing."""

    endpoint: Endpoint
    section: str
    """Of the settings, for what to mend: "embedder"."""
    sleep: Sleep = asyncio.sleep
    rng: Random = field(default_factory=Random)

    @property
    def name(self) -> str:
        return f"{self.endpoint.model}@{self.endpoint.host}"

    @cached_property
    def _tls(self) -> Any:
        return httpx2.create_ssl_context()

    async def ask_all(self, path: str, bodies: Sequence[Mapping[str, Any]]) -> list[Any]:
        """The JSON of each reply, in order; so many at once as the endpoint allows.

        The first failure gives the others up.
        """
        key = self.endpoint.api_key
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        gate = asyncio.Semaphore(self.endpoint.max_concurrency)
        async with httpx2.AsyncClient(headers=headers, verify=self._tls, timeout=None) as client:

            async def one(body: Mapping[str, Any]) -> Any:
                async with gate:
                    return await self._ask(client, path, body)

            try:
                async with asyncio.TaskGroup() as group:
                    tasks = [group.create_task(one(body)) for body in bodies]
            except ExceptionGroup as failed:
                first = next(_leaves(failed))
                raise first from first.__cause__
        return [task.result() for task in tasks]

    async def _ask(self, client: httpx2.AsyncClient, path: str, body: Mapping[str, Any]) -> Any:
        tries = self.endpoint.retries + 1
        for attempt in range(tries):
            answer = await self._once(client, path, body)
            if not isinstance(answer, _Busy):
                return self._read(path, answer)
            if attempt == tries - 1 or (answer.asked or 0) > _LONGEST_WAIT:
                raise self._unreachable(f"{answer.why}, {attempt + 1} of {tries} tries")
            grown = min(_LAST_WAIT, _FIRST_WAIT * 2**attempt) * self.rng.uniform(0.5, 1)
            await self.sleep(grown if answer.asked is None else answer.asked)
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _once(
        self, client: httpx2.AsyncClient, path: str, body: Mapping[str, Any]
    ) -> httpx2.Response | _Busy:
        url, limit = self.endpoint.base_url.rstrip("/") + path, self.endpoint.timeout_s
        try:
            async with asyncio.timeout(limit):
                response = await client.post(url, json=body)
        except TimeoutError as error:
            raise self._unreachable(f"no reply within {limit:g} s") from error
        except httpx2.ConnectError as error:
            raise self._unreachable(f"no connection: {error}") from error
        except httpx2.TransportError as error:
            return _Busy(f"the server hung up ({type(error).__name__})")
        except httpx2.RequestError as error:
            raise ModelError(f"{self.name}: the reply cannot be decoded: {error}") from error
        if response.status_code in _BUSY:
            told = response.headers.get("retry-after", "").strip()
            asked = float(told) if told.isascii() and told.isdigit() else None
            return _Busy(f"the server answers {response.status_code}", asked)
        return response

    def _read(self, path: str, response: httpx2.Response) -> Any:
        status, key = response.status_code, self.endpoint.api_key
        if status in {401, 403}:
            raise KeyRefused(
                f"{self.name}: key refused ({status})", fix=f"set {self.section}.key_file"
            )
        text = response.text.replace(key, "[key]") if key else response.text
        if status != httpx2.codes.OK:
            words = " ".join(text.split())[:300]
            raise ModelError(
                f"{self.name}: {path} answered {status}: {words}",
                fix=f"check {self.section}.url and {self.section}.name",
            )
        try:
            return json.loads(text)
        except ValueError as error:
            raise ModelError(f"{self.name}: {path} answered what is no JSON: {error}") from error

    def _unreachable(self, what: str) -> ModelUnreachable:
        return ModelUnreachable(
            f"{self.name}: {what}",
            fix=f"check that the server runs at {self.endpoint.base_url} ({self.section}.url)",
        )


def numbered(reply: Any, key: str, count: int) -> list[Mapping[str, Any]]:
    """The objects of the list `reply[key]`, by their `index`, one for each of `count` texts.

    Raises `ModelError` for a list that lacks some, has some twice, or is none.
    """
    told = reply.get(key) if isinstance(reply, Mapping) else None
    if not isinstance(told, list) or not all(isinstance(one, Mapping) for one in told):
        raise ModelError(f"the server's reply has no list of {key}")
    indexes = [one.get("index", i) for i, one in enumerate(told)]
    placed = {i: one for i, one in zip(indexes, told, strict=True) if isinstance(i, int)}
    if len(told) != count or placed.keys() != set(range(count)):
        raise ModelError(f"the server's reply has {len(told)} {key} for {count} texts")
    return [placed[i] for i in range(count)]


def _leaves(group: BaseExceptionGroup[Any]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error
