"""Opening, locking, writing and reading the file of a knowledge base.

Several processes may read while one writes. Who writes holds `kb.lock` for the
whole job, so that a second writer is refused at once and not after an hour.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from enum import StrEnum
from pathlib import Path

from osler.errors import KnowledgeBaseBusy, KnowledgeBaseError, translate_os_errors
from osler.kb.store.durable import sync_path
from osler.kb.store.passages import add_seals
from osler.kb.store.works import add_work_tables

FILE, LOCK = "kb.sqlite", "kb.lock"
WAIT = 60.0
"""Seconds a connection waits for SQLite's own short locks."""
_WRITERS_CACHE = 1 << 16
"""KiB that a transaction may change before it writes: a file of 30,000 records fits."""
_AGAIN = 0.1
"""Seconds between two tries for the writer's lock."""


def open_connection(folder: Path, *, writable: bool = False) -> sqlite3.Connection:
    """Opens a connection in autocommit mode that any thread may use, one at a time."""
    if writable:
        db = _open_sqlite(folder, "mode=rw")
        # What is deleted is overwritten: it may be a patient's.
        db.execute("PRAGMA secure_delete=ON")
        db.execute(f"PRAGMA cache_size=-{_WRITERS_CACHE}")
        return db
    db = _open_sqlite(folder, "mode=ro")
    try:
        db.execute("PRAGMA schema_version")
    except sqlite3.Error as error:
        db.close()
        # A reader in WAL mode must make a small file beside the database. In a
        # folder that may not be written to (a container image, a DVD) it cannot;
        # without a log there is no writer either, and the file may be taken as it is.
        if not isinstance(error, sqlite3.OperationalError) or _has_log(folder):
            raise
        db = _open_sqlite(folder, "immutable=1")
    return db


def _has_log(folder: Path) -> bool:
    log = folder / f"{FILE}-wal"
    return log.exists() and log.stat().st_size > 0


def _open_sqlite(folder: Path, how: str) -> sqlite3.Connection:
    uri = f"{(folder / FILE).resolve().as_uri()}?{how}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT, check_same_thread=False)
    db.execute("PRAGMA foreign_keys=ON")
    return db


@contextmanager
def write_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commits everything in the block or nothing, whatever ends it. Inside another one it is
    committed with that, and a failure undoes both."""
    if db.in_transaction:
        try:
            yield
        except BaseException:
            db.rollback()
            raise
        return
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


@contextmanager
def read_transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Reads everything in the block at one moment, whatever others write meanwhile."""
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.rollback()  # nothing was written, and after damage there is no commit


class LockMode(StrEnum):
    """Exclusive or shared hold of the writer's lock."""

    ALONE = "EXCLUSIVE"
    """Nobody else writes or builds."""
    TOGETHER = "SHARED"
    """Others may build as well; nobody adds or removes."""


@contextmanager
def hold_lock(
    folder: Path,
    mode: LockMode = LockMode.ALONE,
    *,
    wait: float = 0.0,
    waiting: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Holds the writer's lock. The system lets go of it when the process dies.

    While somebody else holds it, `waiting` is called once and it is tried again for
    `wait` seconds. Raises `KnowledgeBaseBusy` when that was not long enough.
    """
    with closing(_lock_file(folder)) as lock:
        until = time.monotonic() + wait
        reported = False
        while not _take_lock(lock, folder, mode):
            if not reported and waiting and wait > 0:
                waiting()
            reported = True
            if time.monotonic() >= until:
                raise busy_error(folder)
            time.sleep(_AGAIN)
        yield


def busy_error(folder: Path) -> KnowledgeBaseBusy:
    return KnowledgeBaseBusy(
        f"another process is writing to {folder}",
        fix="wait until it has ended, then run the command again",
    )


def _take_lock(lock: sqlite3.Connection, folder: Path, mode: LockMode) -> bool:
    """Tries to take the lock; returns False when somebody else holds it."""
    try:
        if mode is LockMode.ALONE:
            lock.execute("BEGIN EXCLUSIVE")
        else:
            lock.execute("BEGIN")
            lock.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
            raise _not_writable_error(folder, error) from error
        if lock.in_transaction:
            lock.rollback()
        return False
    return True


def _lock_file(folder: Path) -> sqlite3.Connection:
    try:
        return sqlite3.connect(folder / LOCK, isolation_level=None, timeout=0)
    except sqlite3.OperationalError as error:
        raise _not_writable_error(folder, error) from error


def _not_writable_error(folder: Path, error: sqlite3.Error) -> KnowledgeBaseError:
    return KnowledgeBaseError(
        f"{folder} cannot be written to: {error}", fix="check the folder's permissions"
    )


@contextmanager
def open_for_writing(
    folder: Path,
    mode: LockMode = LockMode.ALONE,
    *,
    wait: float = 0.0,
    waiting: Callable[[], None] | None = None,
) -> Iterator[sqlite3.Connection]:
    """Opens a writing connection under `hold_lock`, with SQLite's errors translated."""
    with (
        hold_lock(folder, mode, wait=wait, waiting=waiting),
        translate_errors(folder),
        closing(open_connection(folder, writable=True)) as db,
    ):
        # In WAL mode NORMAL loses no consistency on power failure, at most the last commits: what
        # was written is flushed once, before anybody hears that it is done.
        db.execute("PRAGMA synchronous=NORMAL")
        add_work_tables(db)
        add_seals(db)
        yield db
        if (log := folder / f"{FILE}-wal").exists():
            sync_path(log)
            sync_path(folder)


_DAMAGED = (
    "`osler kb snapshot NAME --restore` goes back (without NAME all are listed); or rebuild it"
)
_FIXES = {
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_IOERR: "check that the disk is there, has room and works",
    sqlite3.SQLITE_FULL: "free some disk space",
    sqlite3.SQLITE_CANTOPEN: "check the folder's permissions and of the file in it",
    sqlite3.SQLITE_READONLY: "check the folder's permissions and of the file in it",
}


@contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Turns errors of SQLite and of the disk into `KnowledgeBaseError`."""
    failed = f"the knowledge base in {folder} failed"
    fix = "check that the disk is there, has room and may be written"
    try:
        with translate_os_errors(failed, KnowledgeBaseError, fix):
            yield
    except sqlite3.Error as error:
        # The lowest byte is the error; what is above it tells the kind.
        code = getattr(error, "sqlite_errorcode", -1) & 0xFF
        raise KnowledgeBaseError(
            f"{failed}: {error}",
            fix=_FIXES.get(code, "run `osler kb info --verify`"),
        ) from error


class ReaderPool:
    """Read-only connections, as many as are in use at one time, kept for the next."""

    def __init__(
        self, folder: Path, connect: Callable[[Path], sqlite3.Connection] = open_connection
    ) -> None:
        self._folder, self._connect = folder, connect
        self._idle: list[sqlite3.Connection] = []
        self._closed = False

    @contextmanager
    def borrow(self) -> Iterator[sqlite3.Connection]:
        """Lends a connection of one's own. Raises `KnowledgeBaseError` for SQLite's errors."""
        with translate_errors(self._folder):
            try:
                db = self._idle.pop()
            except IndexError:  # asking first whether there is one would race with other threads
                db = self._connect(self._folder)
            try:
                yield db
            except BaseException:
                db.close()
                raise
            self._idle.append(db)
            if self._closed:
                self.close()

    def close(self) -> None:
        """Closes what is idle now, and what is in use when it comes back."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
