"""Middleware around every endpoint: checks the host name, the key and the size of a request.

Plain ASGI, around everything, MCP included.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import secrets
import time
from collections.abc import Mapping
from contextlib import ExitStack
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from osler.errors import OslerError
from osler.settings import ServeSettings
from osler.settings.sections import is_loopback
from osler_serve.admission import Admission
from osler_serve.audited_requests import AuditedRequests
from osler_serve.keys import Authenticator
from osler_serve.metrics import ServerMetrics
from osler_serve.problems import RefusedRequest, refusal_for, refusal_response
from osler_serve.upload_queue import UploadQueue

# Probes bear no key and are not counted against a caller.
OPEN_TO_ALL = frozenset({"/healthz", "/readyz"})
# A browser comes with what its record system gave it, and no key.
_LAUNCH = frozenset({"/launch", "/launch/callback"})
# With `/assets/`, the empty page: a browser opens it without a key, and what it shows it asks for
# with one.
_PAGE = frozenset({"/", "/icon.svg"})
_HEADERS = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
# What proxies add. One that is not set up adds none, and speaks HTTP/1.0, which clients do not.
_FORWARDED = frozenset(
    {
        *("forwarded", "via", "x-real-ip", "x-forwarded-for"),
        *("x-forwarded-host", "x-forwarded-proto", "x-forwarded-server"),
    }
)
_HEADER_LINES = 100
# Of a form around a file.
_FORM_BYTES = 4_096
# A file may take so many times longer to arrive than another request.
_UPLOAD_PATIENCE = 12
_UPLOADS = "/api/v1/uploads/"
_HOST = re.compile(r"(\[[0-9A-Fa-f:.%]+\]|[^:\[\]]*)(?::\d{1,5})?")


class AuthMiddleware:
    def __init__(
        self,
        app: ASGIApp,
        gate: Authenticator,
        limits: ServeSettings,
        metrics: ServerMetrics,
        pace: Admission,
        audit: AuditedRequests,
        uploads: UploadQueue,
    ) -> None:
        self._app = app
        self._gate = gate
        self._pace = pace
        self._audit = audit
        self._uploads = uploads
        self._limits = limits
        self._metrics = metrics
        self._names = {*limits.hosts, limits.host.strip("[]"), "localhost", "127.0.0.1", "::1"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._pace.note_request()
        sender = _HeaderSender(send, scope)
        recorded = self._audit.watch(scope, sender)
        began = time.perf_counter()
        try:
            with ExitStack() as held:
                checked = await self._check_request(scope, receive, held)
                await self._app(scope, checked, recorded)
        except OslerError as error:
            if sender.status:  # half a reply is out: all that is left is to break it off
                raise
            reply = refusal_response(refusal_for(error), scope["path"])
            await reply(scope, receive, recorded)
        except Exception:
            sender.status = 500  # what the handler around this one replies
            raise
        finally:
            route = getattr(scope.get("route"), "path", "other")
            # Nothing was sent and nothing failed: the client has gone.
            self._metrics.count_request(route, sender.status or 499, time.perf_counter() - began)

    async def _check_request(self, scope: Scope, receive: Receive, held: ExitStack) -> Receive:
        """The request's body behind a new `receive`, once all is in order; `held` gets what the
        request occupies until its end."""
        headers = _read_headers(scope)
        self._check_host(headers)
        if is_open_to_all(scope):
            return receive
        address = (scope.get("client") or ("",))[0]
        await self._gate.fetch_hook_keys(headers.get("authorization"), scope["path"])
        caller = self._gate.authenticate_request(
            headers.get("authorization"),
            address,
            headers.get("host", ""),
            scope["path"],
            headers.get("cookie"),
            proxied=not _FORWARDED.isdisjoint(headers) or scope.get("http_version") == "1.0",
        )
        caller.count_request(time.monotonic())
        scope["osler.caller"] = caller
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            return receive
        if scope["path"].startswith(_UPLOADS):
            held.enter_context(self._uploads.hold_place(caller))
        return await self._read_body(scope, headers, receive)

    def _check_host(self, headers: Mapping[str, str]) -> None:
        """A page of another site can make a browser call this machine, under its own name
        (rebinding) or ours (a form): neither gets in."""
        name = _host_name(headers.get("host", ""))
        if name not in self._names and not (is_loopback(name) or self._binds_everywhere):
            raise RefusedRequest(421, "wrong_host", "unknown Host header", fix="set serve.hosts")
        origin = headers.get("origin")
        if origin is not None and origin_host(origin) != headers.get("host", ""):
            raise RefusedRequest(403, "wrong_origin", "cross-origin requests are refused")

    @property
    def _binds_everywhere(self) -> bool:
        """Listening on every address, it has more names than it can know; keys guard it."""
        return self._limits.host.strip("[]") in ("0.0.0.0", "::")  # noqa: S104  compared with

    async def _read_body(
        self, scope: Scope, headers: Mapping[str, str], receive: Receive
    ) -> Receive:
        is_upload = scope["path"].startswith(_UPLOADS)
        patience = self._limits.client_seconds * (_UPLOAD_PATIENCE if is_upload else 1)
        limit = self._limits.body_kib * 1024
        if is_upload:
            limit = self._limits.upload_mib * 2**20 + _FORM_BYTES
        if int(headers.get("content-length") or 0) > limit:
            raise _body_too_large(limit)
        body = bytearray()
        try:
            async with asyncio.timeout(patience):
                while True:
                    message = await receive()
                    body += message.get("body", b"")
                    if len(body) > limit:
                        raise _body_too_large(limit)
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            problem = f"the request took over {patience:g} s to arrive"
            raise RefusedRequest(408, "too_slow", problem) from None
        # What is on record of a file is its hash.
        scope["osler.body"] = bytes(body)
        if is_upload:
            digest = await asyncio.to_thread(hashlib.sha256, body)
            scope["osler.body"] = f"sha256:{digest.hexdigest()}".encode()
        return _BodyReplay(bytes(body), receive)


class _BodyReplay:
    """The body that was read, then whatever else comes: that the client has gone."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}


class _HeaderSender:
    """Adds what every reply bears."""

    def __init__(self, send: Send, scope: Scope) -> None:
        self._send, self._scope = send, scope
        self._id = _request_id(scope)
        self.status = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            given = list(message.get("headers", []))
            there = {name.lower() for name, _ in given}
            given += [pair for pair in _HEADERS.items() if pair[0] not in there]
            given.append((b"x-request-id", self._id))
            if (caller := self._scope.get("osler.caller")) is not None:
                policy, left = caller.describe_room(time.monotonic())
                given += [(b"ratelimit-policy", policy.encode()), (b"ratelimit", left.encode())]
            message = {**message, "headers": given}
        await self._send(message)


def _is_page_route(scope: Scope) -> bool:
    path: str = scope["path"]
    return scope["method"] == "GET" and (path in _PAGE or path.startswith("/assets/"))


def is_open_to_all(scope: Scope) -> bool:
    """Whether it needs no key: probes, the empty page, a launch."""
    return is_unrecorded(scope) or (scope["method"] == "GET" and scope["path"] in _LAUNCH)


def is_unrecorded(scope: Scope) -> bool:
    """Whether the audit log has no use for it."""
    return scope["path"] in OPEN_TO_ALL or _is_page_route(scope)


def _body_too_large(limit: int) -> RefusedRequest:
    return RefusedRequest(413, "too_large", f"a request has at most {limit:,} bytes")


def _read_headers(scope: Scope) -> dict[str, str]:
    """By name. Raises `RefusedRequest` for more of them than any client sends."""
    given = scope["headers"]
    if len(given) > _HEADER_LINES:
        raise RefusedRequest(
            400, "too_many_headers", f"a request has at most {_HEADER_LINES} headers"
        )
    if sum(name == b"host" for name, _ in given) > 1:
        raise RefusedRequest(400, "two_hosts", "a request names one host")
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in given}


def _request_id(scope: Scope) -> bytes:
    """The client's own, where it is short and plain."""
    given = next((v for n, v in scope["headers"] if n.lower() == b"x-request-id"), b"")
    plain = 0 < len(given) <= 64 and given.replace(b"-", b"").isalnum()
    return given if plain else secrets.token_hex(8).encode()


def _host_name(given: str) -> str:
    """The name of a Host header, without its port. Raises `RefusedRequest` for what is none."""
    # Matched as a whole: "localhost:80.evil.com" is neither "localhost" nor a name.
    if (found := _HOST.fullmatch(given)) is None:
        raise RefusedRequest(
            421, "wrong_host", "invalid Host header", fix="correct the client's URL"
        )
    return found.group(1).strip("[]")


def origin_host(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
