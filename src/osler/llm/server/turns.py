"""Whose turn it is at a server, and what becomes of a try that failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary


class SilentStream(Exception):
    """A stream that broke off before its first event: some servers look at a request only when
    they have begun to answer it."""


@dataclass(frozen=True, slots=True)
class BusyAnswer:
    """A failed try that may be repeated."""

    why: str
    asked: float | None = None
    """Seconds that the server asks to wait."""
    absent: bool = False
    """Set when there was no connection, so no server that could be busy."""
    interrupted: bool = False
    """Set when a stream was ended in good order before its reply was."""


class Turns:
    """At most so many requests under way at once."""

    def __init__(self, at_once: int) -> None:
        # A semaphore belongs to one event loop, and a model may be used in several.
        self._gates: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore]
        self._gates = WeakKeyDictionary()
        self._at_once = at_once
        self._under_way = 0

    @asynccontextmanager
    async def take(self) -> AsyncIterator[None]:
        """Waits until another request may be under way."""
        while True:
            async with (gate := self._gate()):
                if gate is not self._gate():
                    continue  # it was made narrower in the meantime
                self._under_way += 1
                try:
                    yield
                finally:
                    self._under_way -= 1
                return

    def _gate(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        return self._gates.setdefault(loop, asyncio.Semaphore(self._at_once))

    def note_interruption(self) -> None:
        """One request at a time from now on, if another was under way: there are servers that end
        a reply when the next request comes (llama-cpp-python's, by default)."""
        if self._under_way > 1 and self._at_once > 1:
            self._at_once = 1
            self._gates.clear()


def without_streaming(body: Mapping[str, Any]) -> dict[str, Any]:
    """The request for a whole reply."""
    kept = {name: value for name, value in body.items() if name != "stream_options"}
    return kept | {"stream": False}
