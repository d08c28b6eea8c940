"""Waiting for another thread, process or task, without a sleep.

What can tell that it happened is an event; only a process that tells nothing is looked at again
and again (`wait_until`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_LOOKS_S = 0.01
"""Seconds between two looks at what tells nothing."""


class AwaitableEvent(threading.Event):
    """Opened (`set`) by any thread, and awaited (`passed`) in any event loop."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self._changing = threading.Lock()

    def set(self) -> None:
        with self._changing:
            super().set()
            waiting, self._waiting = self._waiting, []
        for loop, future in waiting:
            with suppress(RuntimeError):  # the loop was closed: nobody waits there any more
                loop.call_soon_threadsafe(_resolve_future, future)

    async def passed(self) -> None:
        """Returns once it is open."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._changing:
            if self.is_set():
                return
            self._waiting.append((loop, future))
        await future


def _resolve_future(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class TaskBarrier:
    """Nobody goes on before so many have come; later comers pass. For tasks of one loop."""

    def __init__(self, of: int) -> None:
        self._of = of
        self._come: set[object] = set()
        self._met = asyncio.Event()

    async def come(self, who: object) -> None:
        """`who` may come several times, and counts once."""
        self._come.add(who)
        if len(self._come) >= self._of:
            self._met.set()
        await self._met.wait()


def wait_until(condition: Callable[[], object], timeout: float = 30.0) -> None:
    """Returns once the condition holds; fails where it does not within `timeout` seconds."""
    never, until = threading.Event(), time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < until, f"not within {timeout:g} seconds: {condition}"
        never.wait(_LOOKS_S)
