"""The server's database beside the runs' folders: owners of runs, and keys.

One SQLite file in `home/serve`. A run that ended is in its own folder, as the command line
keeps it; one that failed or was cancelled has no folder, and its events stand here.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, get_args

from osler.audit.checkpoints import LEDGER
from osler.errors import BadArgument, BadConfig, KnowledgeBaseBusy, StorageFailed
from osler.kb.store.access import LockMode, hold_lock, write_transaction
from osler.text import read_packaged
from osler_serve.replies import Status

STATUSES: tuple[Status, ...] = get_args(Status)
# Whose runs those are that no key made.
WORKSPACE = "default"
# Seconds that a server waits for another that is just starting on the same home.
_START = 10.0
# Seconds that a used statement is kept beyond its time: no good again once a clock is set back.
_KEPT = 3_600.0
_COLUMNS = "id, workspace, caller, created, status, strategy, question, code, detail"
_RUNS = (
    f"SELECT fixed, ended, events, {_COLUMNS}, coalesce(reach, '')"  # noqa: S608
    " FROM run LEFT JOIN reach USING (id) LEFT JOIN sum USING (id)"
)
_KEYS = (
    "SELECT fixed, key.*, coalesce(scope, '')"
    " FROM key LEFT JOIN scope USING (id) LEFT JOIN sum USING (id)"
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """A run, as the ledger has it."""

    id: str
    workspace: str
    caller: str
    created: str
    """ISO 8601, UTC."""
    status: Status
    strategy: str
    question: str
    """Empty where runs are not kept."""
    code: str = ""
    detail: str = ""
    """Why it failed."""
    reach: str = ""
    """JSON of what it could find (`scopes.RunReach`); "" = not known."""


@dataclass(frozen=True, slots=True)
class StoredKey:
    id: str
    name: str
    workspace: str
    hash: bytes = field(repr=False)
    created: str
    runs: int | None = None
    minute: int | None = None
    scope: str = ""
    """JSON of what it may do (`scopes.KeyScope`); "" = the default scope."""


@dataclass(frozen=True, slots=True)
class RunClaim:
    """Which server of the home works on a run that is not over."""

    id: str
    worker: str
    caller: str
    reserved: int
    """Tokens of the key's day that it may spend."""
    tries: int
    """Servers that died over it."""
    request: str = field(repr=False)
    """JSON of what another server needs to work on it (`shared_runs.StoredRequest`)."""


class Ledger:
    """Every method blocks for a moment, and any thread may call it; those that only read do not
    wait for a disk that flushes what others write.

    Raises `BadConfig` where the file cannot be opened.
    """

    def __init__(self, folder: Path) -> None:
        self._lock, self._read_lock = threading.Lock(), threading.Lock()
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = folder / LEDGER
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            path.chmod(0o600)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA secure_delete=ON")
            # What was acknowledged outlives a power cut.
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(read_packaged(__package__, "ledger.sql"))
            self._reader = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            fix = "set home to a folder that can be written"
            raise BadConfig(f"{folder} cannot hold {LEDGER}: {error}", fix=fix) from error

    def close(self) -> None:
        with self._lock, self._read_lock:
            self._reader.close()
            self._db.close()

    @contextmanager
    def _lock_database(self, *, reading: bool = False) -> Iterator[sqlite3.Connection]:
        with self._read_lock if reading else self._lock:
            try:
                yield self._reader if reading else self._db
            except sqlite3.IntegrityError:
                raise
            except sqlite3.Error as error:
                raise StorageFailed(
                    f"the server's record cannot be read or written: {error}",
                    fix="check free disk space and write permissions",
                ) from error

    def check_writable(self) -> None:
        """Writes a row. Raises `StorageFailed`."""
        with self._lock_database() as db:
            db.execute("INSERT OR REPLACE INTO probe(rowid, at) VALUES (1, ?)", (time.time(),))

    @contextmanager
    def hold_open(self, is_kept: Callable[[str], bool]) -> Iterator[int]:
        """Says to other servers on this home that one is alive; yields the number of runs that
        a dead one left.

        Only who comes to a home without a living server marks runs as interrupted.
        """
        left = 0
        try:
            with hold_lock(self._folder):
                left = self.mark_interrupted(is_kept)
        except KnowledgeBaseBusy:
            pass
        with hold_lock(self._folder, LockMode.TOGETHER, wait=_START):
            yield left

    # Runs

    def begin_runs(self, begun: Iterable[tuple[LedgerEntry, RunClaim | None]]) -> None:
        """All of them, or none: the disk is flushed once."""
        with self._lock_database() as db, write_transaction(db):
            for entry, claim in begun:
                _begin(db, entry, claim)

    def end_run(
        self, id: str, status: Status, *, code: str = "", detail: str = "", events: str = ""
    ) -> None:
        with self._lock_database() as db, write_transaction(db):
            db.execute("DELETE FROM claim WHERE id = ?", (id,))
            _end(db, id, status, code, detail, events)

    def mark_interrupted(self, is_kept: Callable[[str], bool]) -> int:
        """Marks what a server before this one did not bring to an end; returns how many.

        A run that `is_kept` finished, and only its end was not noted.
        """
        left = 0
        with self._lock_database() as db, write_transaction(db):
            db.execute("DELETE FROM claim")
            open_runs = "SELECT id, code, detail, events FROM run WHERE status IN (?, ?)"
            for id, *rest in db.execute(open_runs, ("queued", "running")).fetchall():
                if is_kept(id):
                    _end(db, id, "finished", *rest)
                else:
                    _end(db, id, "interrupted", "interrupted", "the server stopped", rest[-1])
                    left += 1
        return left

    def delete_ended(self, before: str) -> int:
        """Deletes the entries of runs that ended, with ids below `before`; how many."""
        with self._lock_database() as db:
            return db.execute(
                "DELETE FROM run WHERE id < ? AND status NOT IN ('queued', 'running')", (before,)
            ).rowcount

    def delete_run(self, id: str) -> None:
        """Deletes the entry of a run that ended."""
        with self._lock_database() as db:
            db.execute(
                "DELETE FROM run WHERE id = ? AND status NOT IN ('queued', 'running')", (id,)
            )

    def find_run(self, id: str) -> LedgerEntry | None:
        with self._lock_database(reading=True) as db:
            row = db.execute(f"{_RUNS} WHERE id = ?", (id,)).fetchone()
        return _check_run(row) if row else None

    def run_lines(self, id: str) -> list[str]:
        """The lines of a run that has no folder."""
        with self._lock_database(reading=True) as db:
            row = db.execute(f"{_RUNS} WHERE id = ?", (id,)).fetchone()
        if row:
            _check_run(row)
        return str(row[2]).split("\n") if row and row[2] else []

    def list_runs(self, workspace: str, *, before: str, limit: int) -> list[LedgerEntry]:
        """The newest first; those with an id below `before`, where one is given. A damaged one is
        left out, and logged."""
        with self._lock_database(reading=True) as db:
            rows = db.execute(
                f"{_RUNS} WHERE workspace = ? AND (? = '' OR id < ?) ORDER BY id DESC LIMIT ?",
                (workspace, before, before, limit),
            ).fetchall()
        return list(_whole_runs(rows))

    # Runs of several servers

    def find_claim(self, id: str) -> RunClaim | None:
        with self._lock_database(reading=True) as db:
            row = db.execute("SELECT * FROM claim WHERE id = ?", (id,)).fetchone()
        return RunClaim(*row) if row else None

    def take_claims(self, dead: str, worker: str) -> list[RunClaim]:
        """Makes the runs of the server `dead` those of `worker`; returns them."""
        with self._lock_database() as db:
            taken = "UPDATE claim SET worker = ?, tries = tries + 1 WHERE worker = ? RETURNING *"
            return [RunClaim(*row) for row in db.execute(taken, (worker, dead)).fetchall()]

    def count_elsewhere(self, caller: str, worker: str) -> tuple[int, int]:
        """Unfinished runs of the caller at other servers, and the tokens that they may spend."""
        with self._lock_database(reading=True) as db:
            found = "SELECT count(*), coalesce(sum(reserved), 0) FROM claim"
            row = db.execute(f"{found} WHERE caller = ? AND worker <> ?", (caller, worker))
            runs, reserved = row.fetchone()
        return runs, reserved

    # Keys

    def add_key(self, key: StoredKey) -> None:
        """Raises `BadArgument` for a name that is taken."""
        try:
            with self._lock_database() as db, write_transaction(db):
                db.execute(
                    "INSERT INTO key VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (key.id, key.name, key.workspace, key.hash, key.created, key.runs, key.minute),
                )
                db.execute("INSERT INTO scope VALUES (?, ?)", (key.id, key.scope))
                db.execute("INSERT INTO sum VALUES (?, ?, '')", (key.id, _sum_of(*astuple(key))))
        except sqlite3.IntegrityError as error:
            fix = "choose another name, or `osler serve key rm` it first"
            raise BadArgument(f"there is a key {key.name!r} already", fix=fix) from error

    def find_key(self, id: str) -> StoredKey | None:
        with self._lock_database(reading=True) as db:
            row = db.execute(f"{_KEYS} WHERE id = ?", (id,)).fetchone()
        return _check_key(row) if row else None

    def list_keys(self) -> list[StoredKey]:
        with self._lock_database(reading=True) as db:
            return [_check_key(row) for row in db.execute(f"{_KEYS} ORDER BY name").fetchall()]

    def drop_key(self, name: str) -> bool:
        with self._lock_database() as db:
            return db.execute("DELETE FROM key WHERE name = ? OR id = ?", (name, name)).rowcount > 0

    # Tokens

    def spent_tokens(self, key: str, day: str) -> int:
        """What the key spent on that day."""
        with self._lock_database(reading=True) as db:
            row = db.execute(
                "SELECT tokens FROM spent WHERE key = ? AND day = ?", (key, day)
            ).fetchone()
        return int(row[0]) if row else 0

    def add_spent(self, key: str, day: str, tokens: int) -> None:
        with self._lock_database() as db:
            db.execute(
                "INSERT INTO spent VALUES (?, ?, ?)"
                " ON CONFLICT(key, day) DO UPDATE SET tokens = tokens + excluded.tokens",
                (key, day, tokens),
            )

    # Signed statements

    def use_statement(self, name: str, until: float, now: float) -> bool:
        """Whether the statement is used for the first time, at any server of this home; `until`
        (Unix time) it is valid."""
        mark = hashlib.sha256(name.encode(errors="surrogatepass")).digest()
        with self._lock_database() as db, write_transaction(db):
            db.execute("DELETE FROM statement WHERE until < ?", (now - _KEPT,))
            added = db.execute("INSERT OR IGNORE INTO statement VALUES (?, ?)", (mark, until))
            return added.rowcount > 0


def _begin(db: sqlite3.Connection, entry: LedgerEntry, claim: RunClaim | None) -> None:
    if claim is not None:
        db.execute("INSERT INTO claim VALUES (?, ?, ?, ?, ?, ?)", astuple(claim))
    db.execute("INSERT INTO reach VALUES (?, ?)", (entry.id, entry.reach))
    db.execute(
        f"INSERT INTO run({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        astuple(entry)[:-1],
    )
    ended = _sum_of(entry.status, entry.code, entry.detail, "")
    db.execute("INSERT INTO sum VALUES (?, ?, ?)", (entry.id, _sum_of_run(entry), ended))


def _end(
    db: sqlite3.Connection, id: str, status: Status, code: str, detail: str, events: str
) -> None:
    told = (status, code, detail, events)
    db.execute(
        "UPDATE run SET status = ?, code = ?, detail = ?, events = ? WHERE id = ?", (*told, id)
    )
    db.execute("UPDATE sum SET ended = ? WHERE id = ?", (_sum_of(*told), id))


# A disk may turn a bit of a column: who may read what, and whose a run is, must not come of it.
def _sum_of(*values: str | bytes | int | None) -> bytes:
    return hashlib.sha256(repr(values).encode(errors="surrogatepass")).digest()


def _sum_of_run(entry: LedgerEntry) -> bytes:
    """Of what stays as it was when the run began."""
    return _sum_of(
        entry.id,
        entry.workspace,
        entry.caller,
        entry.created,
        entry.strategy,
        entry.question,
        entry.reach,
    )


def _check_run(row: tuple[Any, ...]) -> LedgerEntry:
    """Raises `StorageFailed` where the row is not what was written; rows without a sum are of an
    earlier version."""
    fixed, ended, events, *columns = row
    entry = LedgerEntry(*columns)
    told = _sum_of(entry.status, entry.code, entry.detail, events)
    if fixed is not None and (fixed, ended) != (_sum_of_run(entry), told):
        raise StorageFailed(
            f"the server's record of the run {entry.id} is damaged",
            fix="check the disk, and put the newest backup back",
        )
    return entry


def _whole_runs(rows: Iterable[tuple[Any, ...]]) -> Iterator[LedgerEntry]:
    for row in rows:
        try:
            yield _check_run(row)
        except StorageFailed as error:
            _log.error("%s", error)


def _check_key(row: tuple[Any, ...]) -> StoredKey:
    fixed, *columns = row
    key = StoredKey(*columns)
    if fixed is not None and fixed != _sum_of(*astuple(key)):
        raise StorageFailed(
            f"the server's record of the key {key.name!r} ({key.id}) is damaged",
            fix=f"check the disk, `osler serve key rm {key.id}`, and make a new one",
        )
    return key
