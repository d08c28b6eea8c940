"""Waiting for another thread or task, without a sleep: each tells that it has come so far."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress


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
