"""Who has which patient open, after a launch: in memory, until the record system's token ends."""

from __future__ import annotations

import hashlib
import io
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from osler.kb.ingest.chunk import document_passages
from osler.retrieve.open_records import OPEN_RECORDS
from osler.sources.catalogue import EMR
from osler.sources.patients import hash_pseudonym, use_secret
from osler.sources.records import Document, Section
from osler.types import Passage
from osler_serve.clinic.launch_flow import LaunchedRecord
from osler_serve.clinic.records.fhir import Fhir
from osler_serve.scopes import KeyScope

COOKIE = "osler_launch"
_MOST = 1_024
_VERBS = ("ask", "plan", "search", "read", "runs", "calculate")


@dataclass(frozen=True, eq=False)
class LaunchSession:
    """One user with one patient."""

    id: str
    """Of the user at the record system, as the audit log has it."""
    system: str
    workspace: str
    record: str
    """Document id of the record."""
    passages: tuple[Passage, ...]
    unread: tuple[str, ...]
    ends: datetime
    until: float

    @property
    def scope(self) -> KeyScope:
        """What is open to all, and this record."""
        return KeyScope(sources=("public", EMR), verbs=_VERBS, patients=(self.record,))


@dataclass
class LaunchSessions:
    """By the hash of the cookie's secret. For one event loop."""

    clock: Callable[[], float] = time.monotonic
    _open: dict[bytes, LaunchSession] = field(default_factory=dict)

    def open(self, session: LaunchSession) -> str:
        """The cookie's secret; beyond 1,024 sessions the oldest ends."""
        self.end_stale()
        while len(self._open) >= _MOST:
            self._end(next(iter(self._open)))
        secret = secrets.token_urlsafe(32)
        OPEN_RECORDS.hold(session.record, session.passages)
        self._open[hash_secret(secret)] = session
        return secret

    def find(self, cookies: str | None) -> LaunchSession | None:
        """The session of a request's cookies."""
        if not self._open:
            return None
        self.end_stale()
        return self._open.get(hash_secret(read_cookie(cookies, COOKIE)))

    def close(self, cookies: str | None) -> None:
        self._end(hash_secret(read_cookie(cookies, COOKIE)))

    def end_stale(self) -> None:
        """Ends those whose time is over."""
        now = self.clock()
        for key in [key for key, one in self._open.items() if one.until <= now]:
            self._end(key)

    def _end(self, key: bytes) -> None:
        ended = self._open.pop(key, None)
        if ended and all(one.record != ended.record for one in self._open.values()):
            OPEN_RECORDS.drop(ended.record)


def make_session(found: LaunchedRecord, kb: Path, now: float) -> LaunchSession:
    """The record without what identifies the patient, under an id of this user's own. Blocks."""
    with use_secret(kb, ()):  # the same patient of another user or record system is another record
        id = hash_pseudonym("\n".join((found.system, found.user, found.patient)))
        record = _read_document(found, id)
    return LaunchSession(
        f"launch:{found.user}",
        found.system,
        found.workspace,
        f"{EMR}:{id}",
        tuple(document_passages(record, EMR)),
        found.unread,
        datetime.now(UTC) + timedelta(seconds=found.seconds),
        now + found.seconds,
    )


def _read_document(found: LaunchedRecord, id: str) -> Document:
    stream = io.BytesIO(json.dumps(found.bundle).encode())
    for one in Fhir().parse(stream, id):
        if isinstance(one, Document):
            return replace(one, id=id)
    empty = "The record holds nothing coded that can be read."
    return Document(id=id, title="Patient", sections=(Section(empty),), kind="Patient")


def read_cookie(cookies: str | None, name: str) -> str:
    """The cookie of this name; "" if absent."""
    try:
        found = SimpleCookie(cookies or "").get(name)
    except CookieError:
        return ""
    return found.value if found else ""


def hash_secret(secret: str) -> bytes:
    """256 bits of chance need no slow hash: there is nothing to guess."""
    return hashlib.sha256(secret.encode()).digest()
