"""A small SQLite file in home that several processes share."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from osler.errors import StorageFailed


class HomeStore:
    """Opens the file anew for each use; every method blocks. Raises `StorageFailed`."""

    def __init__(self, path: Path, tables: str) -> None:
        self._path, self._tables = path, tables

    @contextmanager
    def open_to_read(self) -> Iterator[sqlite3.Connection]:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=30, isolation_level=None)) as db:
                # Deleted words are overwritten, not only unlinked.
                db.execute("PRAGMA secure_delete = ON")
                # The journal's end is the commit: after a power cut it must not come back.
                db.execute("PRAGMA synchronous = EXTRA")
                db.executescript(self._tables)
                yield db
        except (OSError, sqlite3.OperationalError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise StorageFailed(
                f"{self._path}: {error}", fix="free disk space, or fix the permissions"
            ) from error

    @contextmanager
    def open_to_write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, undone where the caller fails."""
        with self.open_to_read() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")
