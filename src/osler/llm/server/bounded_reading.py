"""Bytes of a server's reply, read within bounds: bodies, event streams, waits, complaints."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

_LONGEST_EVENT = 4 * 1024 * 1024
"""Bytes of one event or line of a stream."""
_LONGEST_COMPLAINT = 300
"""Characters of a server's own words that a message quotes."""
STREAMS = ("text/event-stream", "application/x-ndjson")
DONE = "[DONE]"
"""What an event stream of the OpenAI interface ends with."""


class BadReply(ValueError):
    """A reply that is not what the interface promises; its text says what is wrong."""


def kind_of(response: httpx2.Response) -> str:
    """The media type without its parameters; "no type" when none is told."""
    told = str(response.headers.get("content-type", ""))
    return told.partition(";")[0].strip().lower() or "no type"


async def read_body(response: httpx2.Response, *, most: int) -> str:
    """The decoded text of a body, read no further than `most` bytes after decompression.

    Raises `BadReply` for a longer one, so that neither an endless reply nor a
    compressed one that unpacks without end fills the memory.
    """
    pieces, read = [], 0
    async for piece in response.aiter_bytes():
        read += len(piece)
        if read > most:
            raise BadReply(f"the reply is longer than {most:,} bytes")
        pieces.append(piece)
    return b"".join(pieces).decode(response.encoding or "utf-8", errors="replace")


async def read_events(response: httpx2.Response, *, most: int) -> AsyncGenerator[str, None]:
    """The data of each event (or line, of newline-delimited JSON), as it comes.

    Raises `BadReply` when all of them together are longer than `most` bytes.
    """
    read = 0
    lines = kind_of(response) == STREAMS[1]
    async with aclosing(_read_lines(response) if lines else _read_event_data(response)) as stream:
        async for told in stream:
            read += len(told)
            if read > most:
                raise BadReply(f"the reply is longer than {most:,} bytes")
            yield told


async def _read_event_data(response: httpx2.Response) -> AsyncGenerator[str, None]:
    try:
        async for event in httpx2.EventSource(response, max_event_size=_LONGEST_EVENT):
            if event.data:
                yield event.data
    except httpx2.SSEError as error:
        raise BadReply(f"the event stream is broken: {error}") from error


async def _read_lines(response: httpx2.Response) -> AsyncGenerator[str, None]:
    """Lines end at a line feed alone: inside a JSON text other breaks may stand as they are."""
    left = b""
    async for piece in response.aiter_bytes():
        *whole, left = (left + piece).split(b"\n")
        if len(left) > _LONGEST_EVENT:
            raise BadReply(f"a line of the reply is longer than {_LONGEST_EVENT:,} bytes")
        for line in whole:
            if line.strip():
                yield line.decode("utf-8", errors="replace")
    if left.strip():
        yield left.decode("utf-8", errors="replace")


def parse_json(text: str, what: str) -> Any:
    """The JSON. Raises `BadReply` for what is none, or is nested beyond reason."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"{what} is broken JSON ({error}): {text[:80]!r}") from error


def retry_after(told: str, *, now: float) -> float | None:
    """Seconds to wait from a `Retry-After` header: a number, or a date against `now`.

    `now` is in seconds since the epoch. None for what is neither; never negative.
    """
    told = told.strip()
    if told.isascii() and told.isdigit():
        return float(told[:9])
    try:
        date = parsedate_to_datetime(told)
    except ValueError:
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


def read_complaint(text: str) -> str:
    """What the server says is wrong, on one line and shortened."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        told = text
    return extract_complaint(told)


def extract_complaint(told: Any) -> str:
    """The same of a reply that is parsed already."""
    if isinstance(told, dict):
        told = told.get("error") or told.get("message") or told.get("detail") or told
    if isinstance(told, dict):
        told = told.get("message") or told
    return " ".join(str(told).split())[:_LONGEST_COMPLAINT]


def refused_field(text: str) -> str:
    """The request's field that a complaint is about; empty when it names none."""
    try:
        told = json.loads(text)["error"]["param"]
    except (ValueError, RecursionError, LookupError, TypeError):
        return ""
    return told if isinstance(told, str) else ""


def extract_code(told: Any) -> int:
    """The status in an error that came inside a reply; 0 when there is none."""
    error = told.get("error") if isinstance(told, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit():
        return int(code[:3])
    return code if isinstance(code, int) else 0
