"""Events over HTTP (server-sent events): numbered, so that a client can read on."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from osler.serve.run_manager import ActiveRun, RunManager

MEDIA = "text/event-stream"
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_TYPE = re.compile(r'"type":"([a-z._]+)"\}$')
PING = b": ping\n\n"
QUEUED = b'event: run.queued\ndata: {"type":"run.queued"}\n\n'


async def stream_active(desk: RunManager, live: ActiveRun, after: int) -> AsyncIterator[bytes]:
    """The events after number `after`, to the run's end; a comment when there is long none.

    Who watches a run that waits for its turn is told so at once, outside the numbers: it is
    no event of the run.
    """
    if live.status == "queued":
        yield QUEUED
    async for item in desk.follow_lines(live, after, ping=desk.limits.ping_seconds):
        yield PING if item is None else frame_event(*item)


async def stream_recorded(lines: Sequence[str], after: int) -> AsyncIterator[bytes]:
    """The same of a run that is over."""
    for number, line in enumerate(lines[after:], after + 1):
        yield frame_event(number, line)


def frame_event(number: int, line: str) -> bytes:
    """One event. A line holds no line break, so nothing in it can end it."""
    found = _TYPE.search(line)
    name = found.group(1) if found else "message"
    return f"id: {number}\nevent: {name}\ndata: {line}\n\n".encode()
