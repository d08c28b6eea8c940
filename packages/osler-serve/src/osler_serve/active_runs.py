"""A run that a server works on, and who waits for one."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from osler.methods.omni.dossier import SavedPlan
from osler.settings import Settings
from osler.types import DangerNotice, Question, Solution
from osler_serve.keys import Caller
from osler_serve.replies import Status


def name_run(when: datetime) -> str:
    """Its second, its place within it and eight digits of chance: lists go by these names."""
    place = when.microsecond * 0x10000 // 1_000_000
    return f"{when:%Y%m%d-%H%M%S}-{place:04x}{secrets.token_hex(4)}"


@dataclass
class ActiveRun:
    """A run of this process."""

    id: str
    caller: Caller
    question: Question
    settings: Settings
    created: str
    plan: SavedPlan | None = None
    """The source plan that it was given; `None` = the strategy makes its own."""
    danger: DangerNotice | None = None
    """The first words to the asker, before the run has a place."""
    status: Status = "queued"
    lines: list[str] = field(default_factory=list)
    """Its events as they are stored; the number of one is its place, from 1."""
    solution: Solution | None = None
    code: str = ""
    detail: str = ""
    seconds: float | None = None
    reserved: int = 0
    """Tokens of the key's day that it may spend."""
    spent: int = 0
    tries: int = 0
    """How often it was begun before, at servers that died."""
    task: asyncio.Task[None] | None = None
    at_end: list[Callable[[], None]] = field(default_factory=list)
    """What watchers want done when it is over, however it ends."""
    share: Callable[[str], None] = lambda _: None
    """Tells other servers a line."""
    _bell: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_over(self) -> bool:
        return self.status not in ("queued", "running")

    def append_line(self, line: str) -> None:
        self.lines.append(line)
        self.share(line)
        self.wake_watchers()

    def wake_watchers(self) -> None:
        """Wakes all who wait for the next line."""
        # A fresh event for those who come later: nobody can miss a line between two waits.
        bell, self._bell = self._bell, asyncio.Event()
        bell.set()

    def wait_for_line(self) -> Coroutine[None, None, object]:
        """Ends when there may be something new since this call."""
        # The bell of this moment: `asyncio.wait_for` begins a coroutine a turn of the loop later.
        return self._bell.wait()


def line_of_end(status: Status, code: str, detail: str) -> str:
    """The last line of a run without an answer."""
    said = {"code": code, "detail": detail, "type": f"run.{status}"}
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


class FairRoom:
    """So many places. Callers take turns at a free one: who asked most does not keep others out."""

    def __init__(self, places: int) -> None:
        self._free = places
        # The first caller is the next to have a turn.
        self._waiting: OrderedDict[str, deque[tuple[str, asyncio.Future[None]]]] = OrderedDict()

    @asynccontextmanager
    async def hold_place(self, caller: str, name: str = "") -> AsyncIterator[None]:
        """A place, when it is the caller's turn; `name` is of what waits."""
        if self._free and not self._waiting:
            self._free -= 1
        else:
            await self._wait(caller, name)
        try:
            yield
        finally:
            self._pass_on()

    async def _wait(self, caller: str, name: str) -> None:
        place = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append((name, place))
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            caller, queue = self._waiting.popitem(last=False)
            while queue and queue[0][1].done():  # who gave up takes no turn
                queue.popleft()
            if queue:
                queue.popleft()[1].set_result(None)
                if queue:
                    self._waiting[caller] = queue
                return
        self._free += 1

    def list_waiting(self) -> list[str]:
        """The names of those that wait, in the order in which they get a place."""
        queues = [
            [name for name, place in queue if not place.done()] for queue in self._waiting.values()
        ]
        rounds = max(map(len, queues), default=0)
        return [queue[turn] for turn in range(rounds) for queue in queues if turn < len(queue)]
