"""Keys: how they are made, and whose a request is. Only their hashes are stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from ipaddress import ip_address

from osler.app.config import ServeSettings
from osler.errors import BadConfig
from osler.serve.ledger import WORKSPACE, Ledger, StoredKey
from osler.serve.problems import RefusedRequest

_FORM = re.compile(r"osk_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MINUTE = 60.0
NEEDED = "add one with `osler serve key add NAME`, and send it as `Authorization: Bearer KEY`"


@dataclass(slots=True)
class Caller:
    """The client of a request: a key, or this machine without one. Counts its requests."""

    id: str
    workspace: str
    runs: int
    """Unfinished runs at once, at most."""
    minute: int
    """Requests in a minute, at most."""
    running: int = 0
    _asked: deque[float] = field(default_factory=deque)

    def count_request(self, now: float) -> None:
        """Counts one request. Raises `RefusedRequest` (429) above the rate."""
        # A sliding window: a burst at the turn of a minute counts as one burst.
        while self._asked and now - self._asked[0] >= _MINUTE:
            self._asked.popleft()
        if len(self._asked) >= self.minute:
            wait = _MINUTE - (now - self._asked[0])
            raise RefusedRequest(
                429, "rate_limited", f"over {self.minute} requests in a minute", retry_after=wait
            )
        self._asked.append(now)


def new_key(
    ledger: Ledger,
    name: str,
    *,
    workspace: str = WORKSPACE,
    runs: int | None = None,
    minute: int | None = None,
) -> str:
    """The key, told this once. Raises `BadConfig` for a name or workspace that is none."""
    for what in (name, workspace):
        if not _NAME.fullmatch(what):
            fix = "use letters, digits and ._-, at most 64"
            raise BadConfig(f"{what!r} is not a valid name for a key or a workspace", fix=fix)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    ledger.add_key(StoredKey(id, name, workspace, _hash_secret(secret), when, runs, minute))
    return f"osk_{id}_{secret}"


def _hash_secret(secret: str) -> bytes:
    """256 bits of chance need no slow hash: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).digest()


class Authenticator:
    """Finds the caller of a request. As soon as there is a key, every request needs one."""

    def __init__(self, ledger: Ledger, limits: ServeSettings) -> None:
        self._ledger = ledger
        self._loopback = is_loopback(limits.host)
        self._limits = limits
        self._local = Caller("local", WORKSPACE, limits.caller_runs, limits.caller_minute)
        self._callers: dict[str, Caller] = {}
        self._open = False
        self._looked = float("-inf")

    def local_caller(self) -> Caller:
        """This machine's own caller, for doors that are no sockets."""
        return self._local

    def authenticate_request(self, authorization: str | None) -> Caller:
        """Raises `RefusedRequest`: 401 for a key that is absent or wrong."""
        if authorization is None and self._needs_no_key():
            return self._local
        scheme, _, given = (authorization or "").partition(" ")
        found = _FORM.fullmatch(given.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            if self._needs_no_key():  # OpenAI's clients send a key even where none is wanted
                return self._local
            raise RefusedRequest(401, "no_key", "an API key is required", fix=NEEDED)
        row = self._ledger.find_key(found.group(1))
        # Compared also where there is no such key, so that time does not tell which ids exist.
        stored = row.hash if row else bytes(32)
        if not hmac.compare_digest(stored, _hash_secret(found.group(2))) or row is None:
            raise RefusedRequest(401, "wrong_key", "unknown key", fix=NEEDED)
        return self._keyed_caller(row)

    def _keyed_caller(self, row: StoredKey) -> Caller:
        if row.id not in self._callers:
            self._callers[row.id] = Caller(
                row.id,
                row.workspace,
                row.runs or self._limits.caller_runs,
                row.minute or self._limits.caller_minute,
            )
        return self._callers[row.id]

    def _needs_no_key(self) -> bool:
        """Whether no key is wanted; looked up at most once a second. Where others reach the
        server, taking the last key away does not open it."""
        if not self._loopback:
            return False
        now = time.monotonic()
        if now - self._looked >= 1.0:
            self._open, self._looked = not self._ledger.list_keys(), now
        return self._open


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address; a name that is not "localhost" is not."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_binding(host: str, ledger: Ledger) -> None:
    """Raises `BadConfig` for an address that others reach, while there is no key."""
    if not is_loopback(host) and not ledger.list_keys():
        raise BadConfig(
            f"{host} can be reached by others, and there is no key",
            fix="make one first: osler serve key add NAME",
        )
