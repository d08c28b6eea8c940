"""Replies of record systems, their public keys, and what a request did not bring: bounded, without
redirects, from addresses that the settings allow."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from osler.errors import BadConfig, SourceUnavailable
from osler.settings.sections import is_loopback
from osler_serve.clinic.hook_wire import HookRequest
from osler_serve.problems import RefusedRequest

PublicKey = dict[str, Any]
T = TypeVar("T")
_SECONDS = 3.0
_MOST_BYTES = 64 * 1024
_MOST_RECORD = 4 * 1024 * 1024
_MOST_KEYS = 20
_FRESH, _STALE = 600.0, 3_600.0
"""Seconds after which keys are fetched again, and after which old ones are good no more."""
_PAUSE = 30.0
"""Seconds between two fetches, whatever a statement names."""


async def fetch_json(
    url: str,
    *,
    headers: dict[str, str] | None = None,
    form: dict[str, str] | None = None,
    most: int = _MOST_BYTES,
) -> dict[str, Any]:
    """The JSON object at the address; with `form`, the reply to it.

    Raises `SourceUnavailable` without a reply of at most `most` bytes within three seconds.
    """
    host, body = urlsplit(url).netloc, b""
    wanted = {"Accept": "application/json", **(headers or {})}
    try:
        async with (
            asyncio.timeout(2 * _SECONDS),
            httpx2.AsyncClient(timeout=_SECONDS, follow_redirects=False) as client,
            client.stream("POST" if form else "GET", url, headers=wanted, data=form) as reply,
        ):
            if reply.status_code != 200:
                raise SourceUnavailable(f"{host} answers {reply.status_code}")
            async for piece in reply.aiter_bytes():
                body += piece
                if len(body) > most:
                    raise SourceUnavailable(f"{host} sends more than {most:,} bytes")
        found = json.loads(body)
    except (httpx2.HTTPError, ValueError, RecursionError, TimeoutError) as error:
        raise SourceUnavailable(f"{host} gives no JSON: {type(error).__name__}") from error
    if not isinstance(found, dict):
        raise SourceUnavailable(f"{host} gives no JSON object")
    return found


def read_clinic_file(path: Path, parse: Callable[[str], T]) -> T:
    """What a file of the settings holds. Raises `BadConfig` naming the file."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # no text, no TOML, or not of the form
        problem = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise BadConfig(f"{path}: {problem}", fix="see docs/guide/clinic.md") from error


def is_safe_address(address: str) -> bool:
    """Whether what is sent there stays secret: over TLS, or on this machine."""
    parts = urlsplit(address)
    plain = parts.scheme == "http" and is_loopback(parts.hostname or "")
    return bool(parts.hostname) and not parts.username and (parts.scheme == "https" or plain)


@dataclass
class RemoteKeySet:
    """The public keys (JWKS) at one address, kept. For one event loop."""

    address: str
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, PublicKey] = field(default_factory=dict)
    _fetched: float = float("-inf")
    _tried: float = float("-inf")
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def find_key(self, kid: str) -> PublicKey | None:
        """The key of this name, as it was fetched last."""
        is_stale = self.clock() - self._fetched > _STALE
        return None if is_stale else self._keys.get(kid)

    async def refresh(self, kid: str) -> None:
        """Fetches the keys where they are old or this one is not among them, at most twice a
        minute. What fails leaves the old ones."""
        async with self._turn:  # whoever waits here finds them fetched
            now = self.clock()
            is_fresh = now - self._fetched < _FRESH and kid in self._keys
            if is_fresh or now - self._tried < _PAUSE:
                return
            self._tried = now
            try:
                found = await fetch_json(self.address)
            except SourceUnavailable:
                return
            self._keys, self._fetched = _read_keys(found), self.clock()


def _read_keys(found: dict[str, Any]) -> dict[str, PublicKey]:
    """Public keys for signatures, by name."""
    given = found.get("keys")
    listed = given[:_MOST_KEYS] if isinstance(given, list) else []
    return {
        str(one["kid"]): one
        for one in listed
        if isinstance(one, dict)
        and "kid" in one
        and "d" not in one
        and one.get("kty") in ("EC", "RSA")
        and one.get("use", "sig") == "sig"
    }


# Of SMART App Launch 1 ("patient/Observation.read") and 2 ("patient/Observation.rs?status=final").
_SCOPE = re.compile(r"(?:patient|user|system)/(\*|[A-Za-z]+)\.(\*|read|write|c?r?u?d?s?)(?:\?.*)?")


def allows_reading(scopes: str, resource: str, *, search: bool) -> bool:
    """Whether SMART scopes, in the spelling of either version, allow a read or a search."""
    for scope in scopes.split():
        found = _SCOPE.fullmatch(scope)
        if found is None or found[1] not in ("*", resource):
            continue
        if found[2] in ("*", "read") or (
            found[2] != "write" and ("s" if search else "r") in found[2]
        ):
            return True
    return False


def kind_of(template: str) -> str:
    """The type of resource that answers a template: for a search, its list."""
    return "Bundle" if "?" in template else template.split("/")[0]


async def read_missing(
    asked: HookRequest, templates: Mapping[str, str], trusted: Collection[str]
) -> dict[str, dict[str, Any]]:
    """What the templates name. Raises `RefusedRequest` (412) where it cannot be had."""
    if not templates:
        return {}
    server, pass_ = (asked.fhirServer or "").rstrip("/"), asked.fhirAuthorization
    names = ", ".join(f"{name} ({kind_of(asked_for)})" for name, asked_for in templates.items())
    if pass_ is None or server not in {one.rstrip("/") for one in trusted}:
        problem = f"the request lacks the prefetch of {names}"
        raise _cannot_check(problem, "send it; or name the FHIR server in serve.fhir_servers")
    headers = {"Authorization": f"Bearer {pass_.access_token}", "Accept": "application/fhir+json"}
    read = {}
    for name, template in templates.items():
        path = template.replace("{{context.patientId}}", asked.context.patientId)
        resource, is_search = urlsplit(path).path.split("/")[0], "?" in path
        if not allows_reading(pass_.scope, resource, search=is_search):
            problem = f"the prefetch of {name} is absent, and the token does not reach {resource}"
            raise _cannot_check(problem, "send it, or widen the scope")
        try:
            read[name] = await fetch_json(f"{server}/{path}", headers=headers, most=_MOST_RECORD)
            if (kind := read[name].get("resourceType")) != kind_of(template):
                raise SourceUnavailable(f"{server} sends {kind}")
        except SourceUnavailable as error:
            problem = f"the prefetch of {name} is absent: {error.message}"
            raise _cannot_check(problem, "send it, or renew the token") from error
    return read


def _cannot_check(said: str, fix: str) -> RefusedRequest:
    return RefusedRequest(412, "missing_prefetch", said, fix=fix)
