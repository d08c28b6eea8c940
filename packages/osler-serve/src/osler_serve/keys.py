"""Keys: how they are made, and whose a request is. Only their hashes are stored."""

from __future__ import annotations

import hmac
import math
import re
import secrets
import time
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from osler.errors import BadArgument, BadConfig, StorageFailed
from osler.settings import ServeSettings
from osler.settings.sections import is_loopback
from osler_serve.clinic.hook_tokens import PREFIX, read_hook_clients
from osler_serve.clinic.launch_flow import read_launch_servers
from osler_serve.clinic.launch_sessions import LaunchSession, LaunchSessions, hash_secret
from osler_serve.ledger import WORKSPACE, Ledger, StoredKey
from osler_serve.problems import RefusedRequest
from osler_serve.scopes import KeyScope, local_scope, read_scope

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
    scope: KeyScope = field(default_factory=KeyScope)
    running: int = 0
    reserved: int = 0
    """Tokens that its unfinished runs may still spend."""
    elsewhere: int = 0
    """Requests of the last minute at other servers of the home, as they last told."""
    _asked: deque[float] = field(default_factory=deque)

    def count_asked(self, now: float) -> int:
        """Requests of the last minute here."""
        # A sliding window: a burst at the turn of a minute counts as one burst.
        while self._asked and now - self._asked[0] >= _MINUTE:
            self._asked.popleft()
        return len(self._asked)

    def count_request(self, now: float) -> None:
        """Counts one request. Raises `RefusedRequest` (429) above the rate."""
        if self.count_asked(now) + self.elsewhere >= self.minute:
            wait = _MINUTE - (now - self._asked[0]) if self._asked else 1.0
            raise RefusedRequest(
                429, "rate_limited", f"over {self.minute} requests in a minute", retry_after=wait
            )
        self._asked.append(now)

    def describe_room(self, now: float) -> tuple[str, str]:
        """The values of `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers):
        what it may do, and what is left of that."""
        left = max(0, self.minute - len(self._asked) - self.elsewhere)
        wait = math.ceil(_MINUTE - (now - self._asked[0])) if self._asked else 0
        policy = f'"requests";q={self.minute};w={_MINUTE:.0f}, "runs";q={self.runs}'
        return policy, f'"requests";r={left};t={wait}, "runs";r={max(0, self.runs - self.running)}'


def new_key(
    ledger: Ledger,
    name: str,
    *,
    workspace: str = WORKSPACE,
    runs: int | None = None,
    minute: int | None = None,
    scope: KeyScope = KeyScope(),  # noqa: B008 - frozen
) -> str:
    """The key, shown only once. Raises `BadArgument` for an invalid name or workspace."""
    for what in (name, workspace):
        if not _NAME.fullmatch(what):
            fix = "use letters, digits and ._-, at most 64"
            raise BadArgument(f"{what!r} is not a valid name for a key or a workspace", fix=fix)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    when = datetime.now(UTC).isoformat(timespec="seconds")
    ledger.add_key(
        StoredKey(id, name, workspace, hash_secret(secret), when, runs, minute, scope.to_json())
    )
    return f"osk_{id}_{secret}"


class FailedKeys:
    """Counts wrong keys by address and key, and sends away who tries on.

    The right key of somebody else behind the same address stays good: what is counted is the
    tries of one key. All keys of an address together have ten times the room.
    """

    most_kept = 4_096

    def __init__(self, most: int) -> None:
        self._most = most
        self._failed: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def check(self, address: str, key: str) -> None:
        """Raises `RefusedRequest` (429)."""
        now = time.monotonic()
        tries = self._tries(address, key, now)
        if len(tries) >= self._most:
            said = "too many wrong keys"
            wait = _MINUTE - (now - tries[0])
            raise RefusedRequest(429, "too_many_failed_keys", said, retry_after=wait)

    def count(self, address: str, key: str) -> None:
        """Counts a wrong one. Raises `RefusedRequest` (429) where the address had too many."""
        now = time.monotonic()
        every = self._tries(address, "", now)
        for tries in (self._tries(address, key, now), every):
            tries.append(now)
        if len(every) > 10 * self._most:
            every.popleft()
            said = "too many wrong keys"
            raise RefusedRequest(429, "too_many_failed_keys", said, retry_after=_MINUTE)

    def _tries(self, address: str, key: str, now: float) -> deque[float]:
        tries = self._failed.setdefault((address, key), deque())
        self._failed.move_to_end((address, key))
        while tries and now - tries[0] >= _MINUTE:
            tries.popleft()
        while len(self._failed) > self.most_kept:  # who invents keys must not fill the memory
            self._failed.popitem(last=False)
        return tries


class Authenticator:
    """Finds the caller of a request. As soon as there is a key, every request needs one."""

    def __init__(self, ledger: Ledger, limits: ServeSettings) -> None:
        self._ledger = ledger
        self._alone = not reachable_names(limits)
        self._limits = limits
        self._local = Caller(
            "local", WORKSPACE, limits.caller_runs, limits.caller_minute, local_scope(limits)
        )
        self._throttle = FailedKeys(limits.failed_keys)
        self._callers: dict[str, Caller] = {}
        self._hooks = read_hook_clients(limits.hook_clients, ledger.use_statement)
        self.launcher = read_launch_servers(limits.launch_servers)
        self.sessions = LaunchSessions()
        self._launched: WeakKeyDictionary[LaunchSession, Caller] = WeakKeyDictionary()
        self._open = False
        self._looked = float("-inf")

    def local_caller(self) -> Caller:
        """This machine's own caller, for interfaces other than sockets."""
        return self._local

    def count_asked(self) -> dict[str, int]:
        """By caller, the requests of the last minute here."""
        now = time.monotonic()
        return {one.id: one.count_asked(now) for one in (self._local, *self._callers.values())}

    def note_elsewhere(self, told: Mapping[str, int]) -> None:
        """By caller, the requests of the last minute at other servers of the home."""
        for one in (self._local, *self._callers.values()):
            one.elsewhere = told.get(one.id, 0)

    async def fetch_hook_keys(self, authorization: str | None, path: str) -> None:
        """Fetches the public keys of the record system that signed, where it has them elsewhere."""
        _, _, given = (authorization or "").partition(" ")
        if self._hooks and path.startswith(PREFIX) and given.count(".") == 2:
            await self._hooks.fetch_keys(given.strip())

    def authenticate_request(
        self,
        authorization: str | None,
        address: str = "",
        host: str = "",
        path: str = "",
        cookies: str | None = None,
        *,
        proxied: bool = False,
    ) -> Caller:
        """`host`, `path`: of the address that was called, for which a record system signs.
        `proxied`: whether a proxy hands it on, from whomever.

        Raises `RefusedRequest`: 401 for a key that is absent or wrong, and 429 after too many
        wrong ones from the address."""
        if authorization is None and (launched := self.sessions.find(cookies)):
            return self.launched_caller(launched)
        is_mine = not proxied and self._needs_no_key()
        if authorization is None and is_mine:
            return self._local
        scheme, _, given = (authorization or "").partition(" ")
        if self._hooks and path.startswith(PREFIX) and given.count(".") == 2:
            try:
                return self._hook_caller(*self._hooks.verify(given.strip(), host, path))
            except RefusedRequest:  # the right one of another client there stays good
                self._throttle.count(address, given[-16:])
                raise
        found = _FORM.fullmatch(given.strip()) if scheme.lower() == "bearer" else None
        if found is None:
            if is_mine:  # OpenAI's clients send a key even where none is wanted
                return self._local
            raise RefusedRequest(401, "no_key", "an API key is required", fix=NEEDED)
        self._throttle.check(address, found.group(1))
        row = self._ledger.find_key(found.group(1))
        # Compared also where there is no such key, so that time does not tell which ids exist.
        stored = row.hash if row else bytes(32)
        if not hmac.compare_digest(stored, hash_secret(found.group(2))) or row is None:
            self._throttle.count(address, found.group(1))
            raise RefusedRequest(401, "wrong_key", "unknown key", fix=NEEDED)
        return self._keyed_caller(row)

    def caller_of_run(self, id: str, workspace: str) -> Caller:
        """Whose a run is that another server took on, so that its bounds count it here."""
        if id == self._local.id:
            return self._local
        with suppress(StorageFailed):  # a damaged key counts as one that is gone
            if row := self._ledger.find_key(id):
                return self._keyed_caller(row)
        return Caller(id, workspace, self._limits.caller_runs, 1)

    def launched_caller(self, session: LaunchSession) -> Caller:
        """A record system's user, with one patient open."""
        if session not in self._launched:
            runs, minute = self._limits.caller_runs, self._limits.caller_minute
            made = Caller(session.id, session.workspace, runs, minute, session.scope)
            self._launched[session] = made
        return self._launched[session]

    @contextmanager
    def count_failed(self, address: str) -> Iterator[None]:
        """Within it a refusal counts like a wrong key. Raises `RefusedRequest` (429) at once where
        the address had too many."""
        self._throttle.check(address, "launch")
        try:
            yield
        except RefusedRequest:
            self._throttle.count(address, "launch")
            raise

    def _hook_caller(self, issuer: str, workspace: str) -> Caller:
        """A record system that signed its request: it may call hooks, and nothing else."""
        if issuer not in self._callers:
            runs, minute = self._limits.caller_runs, self._limits.caller_minute
            scope = KeyScope(verbs=("hooks",))
            self._callers[issuer] = Caller(issuer, workspace, runs, minute, scope)
        return self._callers[issuer]

    def _keyed_caller(self, row: StoredKey) -> Caller:
        if row.id not in self._callers:
            self._callers[row.id] = Caller(
                row.id,
                row.workspace,
                row.runs or self._limits.caller_runs,
                row.minute or self._limits.caller_minute,
                read_scope(row.scope),
            )
        return self._callers[row.id]

    def _needs_no_key(self) -> bool:
        """Whether no key is wanted; looked up at most once a second. Where others reach the
        server, taking the last key away does not open it."""
        if not self._alone:
            return False
        now = time.monotonic()
        if now - self._looked >= 1.0:
            self._open, self._looked = not self._ledger.list_keys(), now
        return self._open


def reachable_names(limits: ServeSettings) -> list[str]:
    """The address and the names under which others reach the server: by a proxy, of its names."""
    return [name for name in (limits.host, *limits.hosts) if not is_loopback(name)]


def check_binding(limits: ServeSettings, ledger: Ledger) -> None:
    """Raises `BadConfig` for an address or a name that others reach, while there is no key."""
    if (reached := reachable_names(limits)) and not ledger.list_keys():
        raise BadConfig(
            f"{reached[0]} can be reached by others, and there is no key",
            fix="make one first: osler serve key add NAME",
        )
