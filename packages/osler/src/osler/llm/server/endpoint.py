"""The address of a model server, and the errors of refused requests."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from osler.errors import BadConfig, ModelError, ModelUnreachable, PromptTooLong
from osler.llm.server import bounded_reading


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
        if bounded_reading.complained_context(words) is not None:
            fix = (
                "ask with fewer passages (strategy.k), or give the model a larger context"
                f' (Ollama: {self.section}.request = ["options.num_ctx=16384"])'
            )
            return LongPromptRefused(told, status=status, field=field, fix=fix)
        fix, lost = "", status == httpx2.codes.NOT_FOUND
        if lost and words.lstrip().startswith("{"):
            fix = f"set {self.section}.name to a model that the server has"
        elif lost or bounded_reading.is_web_page(words):
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
