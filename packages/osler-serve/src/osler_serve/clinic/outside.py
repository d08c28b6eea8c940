"""Replies of record systems: bounded, without redirects, from addresses that the settings allow."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import httpx2

from osler.errors import SourceUnavailable
from osler.settings.sections import is_loopback

PublicKey = dict[str, Any]
_SECONDS = 3.0
_MOST_BYTES = 64 * 1024
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
