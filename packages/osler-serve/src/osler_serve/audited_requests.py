"""Every request on record before its reply goes out: who asked what, and what was shown."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from typing import Any

from starlette.types import Message, Scope, Send

from osler.audit.entries import content_of, write_entry
from osler.errors import StorageFailed
from osler.settings import Settings
from osler_serve.keys import Caller
from osler_serve.problems import RefusedRequest, refusal_response

_STREAM = b"text/event-stream"
# Replies of a flood, which the log must not be filled with.
_UNRECORDED = (429, 421)


class AuditedRequests:
    """Watches the replies of a server whose settings name an audit log."""

    def __init__(self, settings: Settings, is_open: Callable[[Scope], bool]) -> None:
        self._settings = settings
        self._is_open = is_open

    def watch(self, scope: Scope, send: Send) -> Send:
        """What replies are to be sent with in place of `send`."""
        if self._settings.audit.log == "off" or self._is_open(scope):
            return send
        return _RecordedReply(self._settings, scope, send)


class _RecordedReply:
    """Holds a reply until its entry is written; of a stream, its first and its last message."""

    def __init__(self, settings: Settings, scope: Scope, send: Send) -> None:
        self._settings, self._scope, self._send = settings, scope, send
        self._held: list[Message] = []
        self._status = 0
        self._streams = self._refused = False
        self._hash = hashlib.sha256()
        self._first = b""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            await self._begin(message)
            return
        if self._refused:
            return
        body = message.get("body", b"")
        self._hash.update(body)
        self._first = self._first or body
        if message.get("more_body", False):
            await (self._send(message) if self._streams else self._hold(message))
            return
        if self._status not in _UNRECORDED:
            try:
                await self._record("request.ended" if self._streams else "request")
            except StorageFailed as error:
                if self._streams:  # half of it is out: it is broken off without an end
                    raise
                await self._refuse(error)
                return
        for held in (*self._held, message):
            await self._send(held)

    async def _begin(self, start: Message) -> None:
        self._status = start["status"]
        kind = dict(start.get("headers", [])).get(b"content-type", b"")
        self._streams = kind.startswith(_STREAM)
        if not self._streams:
            self._held.append(start)
            return
        try:
            await self._record("request.begun")
        except StorageFailed as error:
            self._refused = True
            await self._refuse(error)
            return
        await self._send(start)

    async def _hold(self, message: Message) -> None:
        self._held.append(message)

    async def _refuse(self, error: StorageFailed) -> None:
        refused = RefusedRequest(
            503, "not_on_record", "the audit log cannot be written", fix=error.fix, retry_after=5.0
        )
        reply = refusal_response(refused, self._scope["path"])
        await reply(self._scope, _receive_nothing, self._send)

    async def _record(self, what: str) -> None:
        caller = self._scope.get("osler.caller")
        asked = self._scope["query_string"] + b"\n" + self._scope.get("osler.body", b"")
        text = asked.decode("utf-8", "backslashreplace").strip()
        entry = {
            "what": what,
            "method": self._scope["method"],
            "path": self._scope["path"],
            "key": caller.id if isinstance(caller, Caller) else "",
            "workspace": caller.workspace if isinstance(caller, Caller) else "",
            "address": (self._scope.get("client") or ("",))[0],
            "status": self._status,
            "asked": content_of(self._settings, text) if text else "",
            **self._shown(what),
        }
        await asyncio.to_thread(write_entry, self._settings, entry)

    def _shown(self, what: str) -> dict[str, Any]:
        if what == "request.begun":
            return {}
        shown: dict[str, Any] = {"shown": f"sha256:{self._hash.hexdigest()}"}
        try:
            said = json.loads(self._first)
        except ValueError:
            return shown
        run = said.get("run_id") if isinstance(said, dict) else None
        return {**shown, "run": run} if isinstance(run, str) else shown


async def record_tool(
    settings: Settings, caller: Caller, name: str, arguments: dict[str, Any], result: Any
) -> None:
    """Of a call of a tool over standard input and output; over HTTP the request that carries the
    call is on record already."""
    if settings.audit.log == "off":
        return
    shown = result.model_dump_json() if hasattr(result, "model_dump_json") else repr(result)
    entry = {
        "what": "tool",
        "tool": name,
        "key": caller.id,
        "workspace": caller.workspace,
        "asked": content_of(settings, json.dumps(arguments, ensure_ascii=False, sort_keys=True)),
        "shown": f"sha256:{hashlib.sha256(shown.encode()).hexdigest()}",
    }
    await asyncio.to_thread(write_entry, settings, entry)


async def _receive_nothing() -> Message:
    return {"type": "http.disconnect"}
