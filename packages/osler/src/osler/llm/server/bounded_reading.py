"""Bounded reading of a server's reply: bodies, event streams, waits, complaints."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

_LONGEST_EVENT = 4 * 1024 * 1024
"""Bytes of one event or line of a stream."""
_CONTEXT = re.compile(
    r"(?:context|n_ctx)[^0-9]{0,60}?([1-9][0-9]{2,6})\b|([1-9][0-9]{2,6})[ -]token context",
    re.IGNORECASE,
)
_LONGEST_COMPLAINT = 300
"""Characters of a server's own words that a message quotes."""
_UNSUPPORTED = re.compile(r"[`'\"]?([a-z_]+)[`'\"]? (?:is|are) not supported")
"""How a complaint without `param` begins."""
_INVALID = re.compile(r"'loc': [(\[]'body', '([a-z_]+)'")
"""FastAPI's place of what is wrong, which llama-cpp-python's server tells with status 500."""
STREAMS = ("text/event-stream", "application/x-ndjson")
DONE = "[DONE]"
"""End of an event stream of the OpenAI interface."""


class BadReply(ValueError):
    """Raised for a reply that breaks the interface; its text says what is wrong."""


def kind_of(response: httpx2.Response) -> str:
    """Returns the media type without its parameters; "no type" when there is none."""
    header = str(response.headers.get("content-type", ""))
    return header.partition(";")[0].strip().lower() or "no type"


async def read_body(response: httpx2.Response, *, most: int) -> str:
    """Reads the decoded text of a body, no further than `most` bytes after decompression.

    Raises `BadReply` for a longer one, so that neither an endless reply nor a
    compressed one that unpacks without end fills the memory.
    """
    pieces, read = [], 0
    # Bytes are counted after decompression: the size that a header states may be any.
    async for piece in response.aiter_bytes():
        read += len(piece)
        if read > most:
            raise BadReply(f"the reply is longer than {most:,} bytes")
        pieces.append(piece)
    return b"".join(pieces).decode(response.encoding or "utf-8", errors="replace")


async def read_events(response: httpx2.Response, *, most: int) -> AsyncGenerator[str, None]:
    """Yields the data of each event (or line, of newline-delimited JSON), as it comes.

    Raises `BadReply` when all of them together are longer than `most` bytes.
    """
    read = 0
    lines = kind_of(response) == STREAMS[1]
    async with aclosing(_read_lines(response) if lines else _read_event_data(response)) as stream:
        async for data in stream:
            read += len(data)
            if read > most:
                raise BadReply(f"the reply is longer than {most:,} bytes")
            yield data


async def _read_event_data(response: httpx2.Response) -> AsyncGenerator[str, None]:
    try:
        async for event in httpx2.EventSource(response, max_event_size=_LONGEST_EVENT):
            if event.data:
                yield event.data
    except httpx2.SSEError as error:
        raise BadReply(f"the event stream is broken: {error}") from error


async def _read_lines(response: httpx2.Response) -> AsyncGenerator[str, None]:
    """Yields lines, which end at a line feed alone: a JSON text may hold other breaks."""
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
    """Parses JSON. Raises `BadReply` for broken text and for nesting beyond reason."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadReply(f"{what} is broken JSON ({error}): {text[:80]!r}") from error


def retry_after(header: str, *, now: float) -> float | None:
    """Parses a `Retry-After` header, a number or a date against `now`, to seconds.

    `now` is in seconds since the epoch. None for what is neither; never negative.
    """
    header = header.strip()
    if header.isascii() and header.isdigit():
        # Nine digits of seconds are longer than any wait, and more might overflow a float.
        return float(header[:9])
    try:
        date = parsedate_to_datetime(header)
    except ValueError:
        return None
    return max(0.0, date.replace(tzinfo=date.tzinfo or UTC).timestamp() - now)


def read_complaint(text: str) -> str:
    """Extracts a server's error message, on one line and shortened."""
    if is_web_page(text):
        return "a web page"
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        reply = text
    return extract_complaint(reply)


def is_web_page(text: str) -> bool:
    return text.lstrip()[:20].lower().startswith(("<!doctype html", "<html"))


def complained_context(words: str) -> int | None:
    """The length of the context that a server's refusal names; `None` where it is about none."""
    found = _CONTEXT.search(words)
    return int(found[1] or found[2]) if found else None


def extract_complaint(reply: Any) -> str:
    """Extracts the error message of a parsed reply."""
    if isinstance(reply, dict):
        reply = reply.get("error") or reply.get("message") or reply.get("detail") or reply
    if isinstance(reply, dict):
        reply = reply.get("message") or reply
    return " ".join(str(reply).split())[:_LONGEST_COMPLAINT]


def refused_field(text: str) -> str:
    """Returns the request's field that a complaint is about; empty when it names none."""
    try:
        field = json.loads(text)["error"]["param"]
    except (ValueError, RecursionError, LookupError, TypeError):
        field = None
    if isinstance(field, str):
        return field
    complaint = read_complaint(text)
    named = _UNSUPPORTED.match(complaint) or _INVALID.search(complaint)
    return named[1] if named else ""


def refuses_key(text: str) -> bool:
    """Whether a complaint of another status than 401 is about the key: LiteLLM's proxy, without a
    database of keys, says so of each but its own."""
    try:
        return bool(json.loads(text)["error"]["type"] == "no_db_connection")
    except (ValueError, RecursionError, LookupError, TypeError):
        return False


def extract_code(reply: Any) -> int:
    """Returns the status in an error that came inside a reply; 0 when there is none."""
    error = reply.get("error") if isinstance(reply, dict) else None
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and code.isascii() and code.isdigit():
        return int(code[:3])
    return code if isinstance(code, int) else 0
