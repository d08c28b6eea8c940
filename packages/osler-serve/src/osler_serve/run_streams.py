"""The events of a run as server-sent events, while it runs and ever after."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from osler_serve.active_runs import ActiveRun
from osler_serve.keys import Caller
from osler_serve.run_manager import RunManager
from osler_serve.run_views import RunView, active_run, load_run

SSE_MEDIA = "text/event-stream"
SSE_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_TYPE = re.compile(r'"type":"([a-z._]+)"\}$')
SSE_PING = b": ping\n\n"
PING_SECONDS = 15.0
"""Between keep-alive events on an idle stream: proxies close one that is silent for 60."""
# Seconds between two looks at another server's file.
_LOOK = 0.1


async def stream_active(desk: RunManager, live: ActiveRun, after: int) -> AsyncIterator[bytes]:
    """The events after number `after`, to the run's end; a comment when there is long none.

    A client that watches a waiting run learns so at once, outside the numbering: it is
    no event of the run.
    """
    if live.status == "queued":
        yield _frame_queued(desk.count_ahead(live.id))
    seen = after
    async for item in desk.follow_lines(live, after, ping=PING_SECONDS):
        seen = seen if item is None else item[0]
        yield SSE_PING if item is None else frame_event(*item)
    if live.tries and seen == after > len(live.lines):
        # It was begun anew and has fewer events than were seen: the end is told all the same.
        yield frame_event(len(live.lines), live.lines[-1])


async def stream_recorded(run: RunView, after: int) -> AsyncIterator[bytes]:
    """The stored events of a run that is over, after the number `after`. One that was begun anew
    may have fewer than the client saw: the last is sent again, so that it learns of the end."""
    lines, at = run.lines, after
    if after > len(lines) or run.status == "interrupted":
        at = min(after, len(lines) - 1)
    for number, line in enumerate(lines[at:], at + 1):
        yield frame_event(number, line)


async def stream_elsewhere(
    desk: RunManager, caller: Caller, id: str, after: int
) -> AsyncIterator[bytes]:
    """The same of a run that another server of this home works on, from the file that it writes.

    Where that server dies, the run begins anew here or elsewhere: the numbers go on, and the last
    event is always sent.
    """
    yield _frame_queued()
    while (live := active_run(desk, caller, id)) is None:
        place = await asyncio.to_thread(desk.shared.find_lines, id)
        if place is None:
            break
        async for item in _follow_file(place, after):
            after = after if item is None else item[0]
            yield SSE_PING if item is None else frame_event(*item)
    if live is not None:
        async for part in stream_active(desk, live, after):
            yield part
        return
    async for part in stream_recorded(await load_run(desk, caller, id), after):
        yield part


async def _follow_file(place: Path, after: int) -> AsyncIterator[tuple[int, str] | None]:
    """Its lines after the number `after`, until it is gone or has long said nothing new."""
    number, rest, silent = 0, b"", 0.0
    with suppress(FileNotFoundError), place.open("rb") as file:
        while silent < PING_SECONDS and os.path.exists(place):  # noqa: ASYNC240  no wait
            if not (more := file.read()):
                silent += _LOOK
                await asyncio.sleep(_LOOK)
                continue
            silent = 0.0
            *lines, rest = (rest + more).split(b"\n")
            for line in lines:
                number += 1
                if number > after:
                    yield number, line.decode()
    if silent:
        yield None
    else:
        await asyncio.sleep(_LOOK)


def _frame_queued(ahead: int | None = None) -> bytes:
    """`ahead`: runs of this server that are worked on before it, where that is known."""
    told = {"type": "run.queued"} if ahead is None else {"ahead": ahead, "type": "run.queued"}
    return f"event: run.queued\ndata: {json.dumps(told, separators=(',', ':'))}\n\n".encode()


# The format of the WHATWG: id, event, data, an empty line.
def frame_event(number: int, line: str) -> bytes:
    """One event. A line holds no line break, so nothing in it can end it."""
    found = _TYPE.search(line)
    name = found.group(1) if found else "message"
    return f"id: {number}\nevent: {name}\ndata: {line}\n\n".encode()
