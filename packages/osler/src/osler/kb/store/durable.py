"""Flushing to disk: what was written counts as there only once the disk has said so."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from osler.errors import StorageFailed

_PROBE = 1 << 16
"""Bytes of a trial write: more than what file systems keep free for small files."""


def sync_path(path: Path) -> None:
    """Flushes a file, or the names in a folder, to disk. Raises `OSError`."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_folders(folder: Path) -> None:
    """Makes a folder and those above it that are missing, each with its name on disk.

    Raises `OSError`.
    """
    if not folder.is_dir():
        make_folders(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_path(folder.parent)


def sync_tree(folder: Path) -> None:
    """Flushes all that is below a folder, and the folder. Raises `OSError`."""
    for path in folder.rglob("*"):
        sync_path(path)
    sync_path(folder)


def write_private(path: Path, data: bytes) -> None:
    """Makes a file for its owner alone, on disk with its name; never seen half written.

    Whoever is second leaves the first one's. Raises `OSError`.
    """
    make_folders(path.parent)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(draft, path)
        sync_path(path.parent)
    finally:
        with suppress(OSError):
            draft.unlink()


def move_folder(draft: Path, folder: Path) -> None:
    """Gives a folder of files its name once its contents are on disk; whole or not at all.

    Raises `OSError`, also where the disk fails to confirm the name: then neither is left.
    """
    sync_tree(draft)
    draft.rename(folder)
    try:
        sync_path(folder.parent)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def probe_folder(folder: Path) -> None:
    """Writes, flushes and deletes a small file. Raises `OSError`."""
    make_folders(folder)
    path = folder / f".probe-{os.getpid()}"
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE))
            file.flush()
            os.fsync(file.fileno())
    finally:
        with suppress(OSError):
            path.unlink()


class HomeStore:
    """A small SQLite file in home that several processes share, opened anew for each use.

    Every method blocks. Raises `StorageFailed`.
    """

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
        except (OSError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            raise StorageFailed(
                f"{self._path}: {error}", fix="free disk space, or fix the permissions"
            ) from error

    @contextmanager
    def open_to_write(self) -> Iterator[sqlite3.Connection]:
        """One transaction, undone where the caller fails."""
        with self.open_to_read() as db, db:
            db.execute("BEGIN IMMEDIATE")
            yield db
