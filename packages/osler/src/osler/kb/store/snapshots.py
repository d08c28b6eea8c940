"""Named copies of a knowledge base, and restoring one.

A snapshot is one SQLite file, `snapshots/NAME.sqlite`, written beside its place, checked,
and only then given its name. Going back writes the copy into the knowledge base in one
transaction of SQLite's: readers see the old state or the new one, and a kill leaves the old.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from osler.errors import KnowledgeBaseError, translate_os_errors
from osler.kb.store.access import (
    FILE,
    hold_lock,
    open_connection,
    open_for_writing,
    translate_errors,
    write_transaction,
)
from osler.kb.store.durable import sync_path
from osler.kb.store.passages import Progress, ignore_progress, is_sealed, read_meta, set_meta

FOLDER = "snapshots"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PAGES = 4096
"""Pages of 4 KiB that are copied between two reports of progress."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One named copy of a knowledge base."""

    name: str
    taken: int
    """Seconds since 1970, UTC."""
    snapshot: str
    """Contents of its last build (`KnowledgeBase.snapshot`); empty before the first."""
    documents: int
    passages: int
    size: int
    """Bytes on disk."""


def take_snapshot(folder: Path, name: str, progress: Progress, *, wait: float = 0.0) -> Snapshot:
    """Makes a consistent copy under a new name.

    Raises `KnowledgeBaseError` for a bad or a used name, for damage found in the copy, and
    while another process writes for longer than `wait` seconds.
    """
    target = _snapshot_path(folder, name)
    with open_for_writing(folder, wait=wait, waiting=lambda: progress("waiting", 0, None)) as db:
        if target.exists():
            raise KnowledgeBaseError(
                f"there is a snapshot {name} already", fix="choose another name"
            )
        with _draft_beside(target) as draft:
            with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
                draft.chmod(0o600)
                _copy_pages(db, copy, progress)
                copy.execute("PRAGMA journal_mode=DELETE")
                set_meta(copy, taken=str(int(time.time())), name=name)
                _check_copy(copy, name)
            sync_path(draft)
            os.replace(draft, target)
            sync_path(target.parent)
    return _describe_snapshot(target)


def list_snapshots(folder: Path) -> list[Snapshot]:
    """Lists all copies, the oldest first. Raises `KnowledgeBaseError` for an unreadable one."""
    snapshots = [_describe_snapshot(path) for path in sorted((folder / FOLDER).glob("*.sqlite"))]
    return sorted(snapshots, key=lambda snapshot: (snapshot.taken, snapshot.name))


def edit_snapshot(folder: Path, name: str, change: Callable[[sqlite3.Connection], bool]) -> bool:
    """Puts a changed copy in the place of a snapshot, where `change` says that it changed one.

    Never in place: a snapshot is read without its journal, and half a change would damage it.
    Raises `KnowledgeBaseError`.
    """
    target = _existing_path(folder, name)
    with translate_errors(folder), _draft_beside(target) as draft:
        with closing(sqlite3.connect(draft, isolation_level=None)) as copy:
            draft.chmod(0o600)
            with closing(_open_immutable(target)) as old:
                _copy_pages(old, copy, ignore_progress)
            if not change(copy):
                return False
            copy.execute("VACUUM")
            _check_copy(copy, name)
        sync_path(draft)
        os.replace(draft, target)
        sync_path(target.parent)
    return True


def drop_snapshot(folder: Path, name: str) -> None:
    """Deletes one. Raises `KnowledgeBaseError` when there is none of this name."""
    with translate_errors(folder):
        _existing_path(folder, name).unlink()


def restore_snapshot(folder: Path, name: str, progress: Progress, *, wait: float = 0.0) -> Snapshot:
    """Makes the knowledge base what it was; also one whose file is lost or damaged.

    Raises `KnowledgeBaseError` when there is no such snapshot, when it is damaged, and
    while another process writes for longer than `wait` seconds.
    """
    source = _existing_path(folder, name)
    with (
        hold_lock(folder, wait=wait, waiting=lambda: progress("waiting", 0, None)),
        translate_errors(folder),
        _draft_beside(folder / FILE) as draft,
        closing(sqlite3.connect(draft, isolation_level=None)) as copy,
    ):
        with closing(_open_immutable(source)) as old:
            _copy_pages(old, copy, progress)
        _check_copy(copy, name)
        _raise_counters(folder, copy)
        if not _write_into(folder, copy, progress):
            copy.execute("PRAGMA journal_mode=DELETE")
            copy.close()
            _put_in_place(folder, draft)
    return _describe_snapshot(source)


def _raise_counters(folder: Path, copy: sqlite3.Connection) -> None:
    """Raises the counters, so that no number is given out again for another passage.

    Who holds vectors or an index of a later state must find that it is not of this one.
    """
    passages, builds = _read_counters(folder)
    copy.execute("PRAGMA foreign_keys=OFF")
    with write_transaction(copy):
        # A copy of an empty knowledge base has no row yet.
        copy.execute(
            "INSERT INTO sqlite_sequence(name, seq) SELECT 'passage', 0 WHERE NOT EXISTS"
            " (SELECT 1 FROM sqlite_sequence WHERE name = 'passage')"
        )
        copy.execute(
            "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'passage'", (passages,)
        )
        number = max(builds, int(read_meta(copy, "builds") or 0)) + 1
        set_meta(copy, builds=str(number))
        copy.execute("DELETE FROM meta WHERE key IN ('taken', 'name')")


def _read_counters(folder: Path) -> tuple[int, int]:
    """Reads the last passage and build numbers as they are now; high guesses when damaged."""
    try:
        with closing(open_connection(folder)) as db:
            row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'passage'").fetchone()
            return (row[0] if row else 0), int(read_meta(db, "builds") or 0)
    except sqlite3.Error:
        now = int(time.time())
        return now * 1000, now


def _write_into(folder: Path, copy: sqlite3.Connection, progress: Progress) -> bool:
    """Copies into the existing file; returns False when SQLite cannot write into it."""
    try:
        with closing(open_connection(folder, writable=True)) as db:
            db.execute("PRAGMA schema_version")
            _copy_pages(copy, db, progress)
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode in _LOST:
            return False
        raise
    return True


_LOST = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CANTOPEN}


def _put_in_place(folder: Path, draft: Path) -> None:
    """Replaces a lost file, and deletes its log, which must not be taken for the copy's."""
    for ending in ("-wal", "-shm"):
        (folder / f"{FILE}{ending}").unlink(missing_ok=True)
    os.replace(draft, folder / FILE)
    sync_path(folder)
    with closing(open_connection(folder, writable=True)) as db:
        db.execute("PRAGMA journal_mode=WAL")


def _copy_pages(source: sqlite3.Connection, target: sqlite3.Connection, progress: Progress) -> None:
    def report_pages(_: int, remaining: int, total: int) -> None:
        progress("copying pages", total - remaining, total)

    source.backup(target, pages=_PAGES, progress=report_pages, sleep=0)


def _check_copy(copy: sqlite3.Connection, name: str) -> None:
    lines = [line for (line,) in copy.execute("PRAGMA quick_check(1)") if line != "ok"]
    unlike = (row[1] for row in copy.execute("SELECT * FROM passage") if not is_sealed(row))
    lines += [f"{id!r} is not as it was stored" for id in islice(unlike, 1)]
    if lines:
        raise KnowledgeBaseError(
            f"snapshot {name} would be damaged: {lines[0]}", fix="run `osler kb info --verify`"
        )


def _describe_snapshot(path: Path) -> Snapshot:
    with translate_errors(path.parent), closing(_open_immutable(path)) as db:
        documents, passages = (
            db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608
            for table in ("document", "passage")
        )
        return Snapshot(
            name=path.stem,
            taken=int(read_meta(db, "taken") or 0),
            snapshot=read_meta(db, "snapshot") if read_meta(db, "built") else "",
            documents=documents,
            passages=passages,
            size=path.stat().st_size,
        )


def _open_immutable(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    return sqlite3.connect(uri, uri=True, isolation_level=None)


def _snapshot_path(folder: Path, name: str) -> Path:
    if not _NAME.fullmatch(name):
        raise KnowledgeBaseError(
            f"{name!r} cannot name a snapshot",
            fix="use up to 64 letters, digits and -_., a letter or digit first",
        )
    return folder / FOLDER / f"{name}.sqlite"


def _existing_path(folder: Path, name: str) -> Path:
    path = _snapshot_path(folder, name)
    if not path.is_file():
        there = ", ".join(sorted(other.stem for other in path.parent.glob("*.sqlite")))
        raise KnowledgeBaseError(
            f"there is no snapshot {name}",
            fix=f"choose from {there}" if there else "take one with `osler kb snapshot NAME`",
        )
    return path


@contextmanager
def _draft_beside(target: Path) -> Iterator[Path]:
    """Yields a path to write to before the file has its name; sweeps up what a kill left."""
    problem, fix = f"{target.parent} cannot be written to", "check the folder's permissions"
    with translate_os_errors(problem, KnowledgeBaseError, fix):
        target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for left in target.parent.glob(".draft-*"):
            left.unlink()
    draft = target.parent / f".draft-{target.name}.part"
    try:
        yield draft
    finally:
        for ending in ("", "-wal", "-shm", "-journal"):
            # What stays is swept up by the next draft; why the copy failed matters more.
            with suppress(OSError):
                Path(f"{draft}{ending}").unlink()
