"""The events of a run as server-sent events, while it runs and ever after."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence

from osler_serve.run_manager import ActiveRun, RunManager

SSE_MEDIA = "text/event-stream"
SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_TYPE = re.compile(r'"type":"([a-z._]+)"\}$')
SSE_PING = b": ping\n\n"
PING_SECONDS = 15.0
"""Between keep-alive events on an idle stream: proxies close one that is silent for 60."""
_QUEUED = b'event: run.queued\ndata: {"type":"run.queued"}\n\n'


async def stream_active(desk: RunManager, live: ActiveRun, after: int) -> AsyncIterator[bytes]:
    """The events after number `after`, to the run's end; a comment when there is long none.

    A client that watches a waiting run learns so at once, outside the numbering: it is
    no event of the run.
    """
    if live.status == "queued":
        yield _QUEUED
    async for item in desk.follow_lines(live, after, ping=PING_SECONDS):
        yield SSE_PING if item is None else frame_event(*item)


async def stream_recorded(lines: Sequence[str], after: int) -> AsyncIterator[bytes]:
    """The same of a run that is over."""
    for number, line in enumerate(lines[after:], after + 1):
        yield frame_event(number, line)


# The format of the WHATWG: id, event, data, an empty line.
def frame_event(number: int, line: str) -> bytes:
    """One event. A line holds no line break, so nothing in it can end it."""
    found = _TYPE.search(line)
    name = found.group(1) if found else "message"
    return f"id: {number}\nevent: {name}\ndata: {line}\n\n".encode()
