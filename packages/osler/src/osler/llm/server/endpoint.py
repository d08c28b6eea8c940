"""The address of a model server, the errors of refused requests, and bounded reading of replies.

Bodies, event streams, waits and complaints are read within limits.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2

from osler.errors import BadConfig, ModelError, ModelUnreachable, PromptTooLong


class KeyRefused(ModelError):
    """Raised when the server wants another key."""


class ServerBusy(ModelUnreachable):
    """Raised when the server answers, again and again, only that it cannot now."""


class RequestRefused(ModelError):
    """Raised for a refused request, with `status` and the `field` at fault, if one is named."""

    def __init__(self, message: str, *, status: int, field: str = "", fix: str = "") -> None:
        super().__init__(message, fix=fix)
        self.status = status
        self.field = field


class LongPromptRefused(RequestRefused, PromptTooLong):
    """Raised for a prompt that the model's context has no room for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """The address of a served model. Raises `BadConfig` for an impossible address or key."""

    base_url: str
    """Ends in `/v1` as a rule."""
    model: str
    api_key: str | None = field(default=None, repr=False)
    timeout_s: float = 120.0
    """Seconds for one call, from its sending to its last byte, other tries and waits included."""
    connect_s: float = 10.0
    """Seconds for a connection to come about."""
    describe_s: float = 20.0
    """Seconds in which a server must say what it is; no model has to work for that."""
    stall_s: float = 60.0
    """Seconds that a streamed reply may pause once it has begun."""
    max_concurrency: int = 8
    """Requests under way at once; more wait for their turn, which costs them no time."""
    retries: int = 3
    max_bytes: int = 64 * 1024 * 1024
    """Longest reply, after decompression."""
    section: str = "model"
    """Section of the settings that a fix names."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """More fields of each chat, such as a switch of the model's thinking."""

    def refusal(self, told: str, status: int, words: str, *, field: str = "") -> RequestRefused:
        """The error that says `told` of a refused request; `words` are the server's own."""
        if complained_context(words) is not None:
            fix = (
                "ask with fewer passages (strategy.k), or give the model a larger context"
                f' (Ollama: {self.section}.request = ["options.num_ctx=16384"])'
            )
            return LongPromptRefused(told, status=status, field=field, fix=fix)
        fix, lost = "", status == httpx2.codes.NOT_FOUND
        if lost and words.lstrip().startswith("{"):
            fix = f"set {self.section}.name to a model that the server has"
        elif lost or is_web_page(words):
            fix = f"check {self.section}.url: an API's address ends in /v1 as a rule"
        return RequestRefused(told, status=status, field=field, fix=fix)

    def __post_init__(self) -> None:
        try:
            url = httpx2.URL(self.base_url)
        except httpx2.InvalidURL as error:
            raise BadConfig("the server's address is not a URL", fix=self.address_fix) from error
        if url.scheme not in {"http", "https"} or not url.host or url.userinfo or url.query:
            raise BadConfig("the server's address is not a plain http(s) URL", fix=self.address_fix)
        key = self.api_key or ""
        if not key.isascii() or not key.isprintable() or " " in key:
            raise BadConfig("the key has characters that no header can carry", fix=self.key_fix)

    @property
    def address_fix(self) -> str:
        return f'set {self.section}.url = "http://HOST:PORT/v1"'

    @property
    def key_fix(self) -> str:
        return f"set the environment variable OPENAI_API_KEY, or {self.section}.key_file"

    def bound_try(self, left: float, *, hasty: bool) -> tuple[float, str]:
        """Seconds for the next try of a call that has `left`, and how a message names the bound."""
        if hasty and self.describe_s < self.timeout_s:
            return self.describe_s, f"{self.describe_s:g} s"
        # Only the language models' own bound can be set.
        key = f" ({self.section}.timeout_s)" if self.section.startswith(("model", "roles")) else ""
        return left, f"{self.timeout_s:g} s{key}"

    @property
    def host(self) -> str:
        return httpx2.URL(self.base_url).netloc.decode("ascii")

    def url_of(self, path: str, *, root: bool = False) -> str:
        """Returns the address of a path; `root`: not under `/v1`."""
        base = self.base_url.rstrip("/")
        return (base.removesuffix("/v1") if root else base) + path


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock of a server client; a test hands in its own."""

    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ticks: Callable[[], float] = time.monotonic
    """Seconds from any beginning; never runs backwards."""
    now: Callable[[], float] = time.time
    """Seconds since the epoch, for servers that name a date to wait for."""


def join_fields(body: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The body with more fields; those within a field of both are joined, as Ollama's options."""
    joined = dict(body)
    for name, value in more.items():
        known = joined.get(name)
        if isinstance(known, Mapping) and isinstance(value, Mapping):
            joined[name] = join_fields(known, value)
        else:
            joined[name] = value
    return joined


def tls_fix(error: ssl.SSLError, section: str) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            "give the server a certificate that this machine trusts, or name the file of its"
            " authority in the environment variable SSL_CERT_FILE"
        )
    return f'if the server speaks plain http, set {section}.url = "http://…"'


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


def mapping_at(holder: Any, *keys: str) -> Mapping[str, Any]:
    """The mapping at these keys, one within the other; an empty one where there is none."""
    for key in keys:
        holder = holder.get(key) if isinstance(holder, Mapping) else None
    return holder if isinstance(holder, Mapping) else {}


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
    field = _part_of_error(text, "param")
    if isinstance(field, str):
        return field
    complaint = read_complaint(text)
    named = _UNSUPPORTED.match(complaint) or _INVALID.search(complaint)
    return named[1] if named else ""


def refuses_key(text: str) -> bool:
    """Whether a complaint of another status than 401 is about the key: LiteLLM's proxy, without a
    database of keys, says so of each but its own."""
    return bool(_part_of_error(text, "type") == "no_db_connection")


def _part_of_error(text: str, name: str) -> Any:
    """A part of the error that a reply is; `None` where it has none."""
    try:
        return json.loads(text)["error"][name]
    except (ValueError, RecursionError, LookupError, TypeError):
        return None


def extract_code(reply: Any) -> int:
    """Returns the status in an error that came inside a reply; 0 when there is none."""
    code = mapping_at(reply, "error").get("code")
    if isinstance(code, str) and code.isascii() and code.isdigit():
        return int(code[:3])
    return code if isinstance(code, int) else 0
