"""The tables of roots and files: what is known, waits, has changed, moved or is taken out."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from osler.errors import KnowledgeBaseError
from osler.kb.ingest import prepare
from osler.kb.ingest.prepare import IngestOptions
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import delete_documents
from osler.sources.patients import pseudonymize_place
from osler.sources.records import Drop

RACY = 2 * 10**9
"""Nanoseconds. A file written so shortly before it was read may have changed since
without a sign of it in its time."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Size and time of a file, which show a change without reading it."""

    size: int
    mtime: int
    """Nanoseconds since 1970."""


def stamp_of(path: Path) -> FileStamp:
    """Takes a file's stamp; of a folder read as a unit, total size and latest time."""
    if not path.is_dir():
        status = path.stat()
        return FileStamp(status.st_size, status.st_mtime_ns)
    inside = [file.stat() for file in path.rglob("*") if file.is_file()]
    latest = max((file.st_mtime_ns for file in inside), default=0)
    return FileStamp(sum(file.st_size for file in inside), latest)


@dataclass(frozen=True, slots=True)
class IngestRoot:
    """A path given to `add`, with its terms; `update` reads it again."""

    id: int
    path: Path
    how: IngestOptions


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file, or a member of an archive, as the store knows it."""

    root: int | None
    """`None` of passages that no file brought."""
    source: str
    path: str
    """On disk; of a member, the archive's, "!" and the member's name. In `emr`, hashes."""
    member: str
    fingerprint: str
    """Hash of content and reading terms: equal ones give equal documents."""
    format: str
    checksum: str
    """SHA-256 of the file on disk, in hexadecimal."""
    stamp: FileStamp

    def columns(self) -> dict[str, object]:
        """Returns the values of the table's columns, read now."""
        values = asdict(self)
        stamp: dict[str, object] = values.pop("stamp")
        return values | stamp | {"read": int(time.time())}


def disk_path(path: str, member: str) -> str:
    """Returns the path on disk of a stored file, which may be an archive's member."""
    return path.removesuffix(f"!{member}") if member else path


def _upsert(
    db: sqlite3.Connection, table: str, values: dict[str, object], only: Iterable[str] = ()
) -> int:
    """Inserts a row, or updates the one of the same source and path; returns its id.

    An update changes the columns in `only`, by default all of `values`.
    """
    changes = ", ".join(f"{name} = excluded.{name}" for name in only or values)
    (id,) = db.execute(
        f"INSERT INTO {table}({', '.join(values)}) VALUES ({', '.join('?' * len(values))})"  # noqa: S608 - names of ours
        f" ON CONFLICT(source, path) DO UPDATE SET {changes} RETURNING id",
        list(values.values()),
    ).fetchone()
    return int(id)


# Roots


def note_root(db: sqlite3.Connection, path: Path, how: IngestOptions) -> tuple[IngestRoot, bool]:
    """Stores a root; returns it, and whether it had other terms before."""
    for root in list_roots(db, how.source):
        if root.path == path and root.how == how:
            return root, False
    with write_transaction(db):
        values = asdict(how) | {"path": str(path), "format": how.fmt or ""}
        del values["fmt"]
        return IngestRoot(_upsert(db, "root", values), path, how), True


def list_roots(db: sqlite3.Connection, source: str | None) -> list[IngestRoot]:
    """Lists the roots of one source, or of all, in the order in which they were added."""
    rows = db.execute(
        "SELECT id, path, source, nullif(format, ''), licence, illustrative, trust, only, chunk"
        " FROM root WHERE ?1 IS NULL OR source = ?1 ORDER BY id",
        (source,),
    )
    return [
        IngestRoot(
            id,
            Path(path),
            IngestOptions(name, fmt, licence, bool(sample), trust, bool(only), chunk),
        )
        for id, path, name, fmt, licence, sample, trust, only, chunk in rows
    ]


def paths_within(db: sqlite3.Connection, root: IngestRoot) -> frozenset[Path]:
    """The paths inside the root that were added to its source too: each has files of its own,
    which would else have the terms and the ids of both in turn."""
    first = f"{str(root.path).rstrip(os.sep)}{os.sep}"
    rows = db.execute(
        "SELECT path FROM root WHERE source = ? AND path > ? AND path < ?",
        (root.how.source, first, f"{first[:-1]}{chr(ord(os.sep) + 1)}"),
    )
    return frozenset(Path(path) for (path,) in rows)


# Files


def list_held(db: sqlite3.Connection, held: str, source: str) -> dict[str, bool]:
    """Lists the documents of `held`, each with whether `source` has read its file."""
    rows = db.execute(
        "SELECT document.id, EXISTS (SELECT 1 FROM file AS read WHERE read.source = ?2"
        " AND read.complete AND (read.path = file.path OR read.fingerprint = file.fingerprint))"
        " FROM document JOIN file ON file.id = document.file WHERE document.source = ?1",
        (held, source),
    )
    return {id: bool(is_in) for id, is_in in rows}


def on_disk(source: str, path: Path) -> tuple[str, str, str]:
    """Returns the values for `ON_DISK`: the file at `path` and all members of it."""
    name = pseudonymize_place(source, str(path))
    return name, f"{name}!", f'{name}"'  # '"' is the character after "!"


ON_DISK = "(path = ? OR (path > ? AND path < ?))"


def count_documents(db: sqlite3.Connection, source: str, path: Path) -> int:
    """Returns how many documents of the source are from the file at `path`."""
    named = "SELECT count(*) FROM document WHERE file IN (SELECT id FROM file WHERE source = ?"
    row = db.execute(f"{named} AND {ON_DISK})", (source, *on_disk(source, path)))
    return int(row.fetchone()[0])


def is_settled(db: sqlite3.Connection, root: IngestRoot, path: Path) -> bool:
    """Returns whether everything in the file was read to its end and its stamp still holds."""
    rows = db.execute(
        f"SELECT complete, size, mtime, read, root FROM file WHERE source = ? AND {ON_DISK}",  # noqa: S608
        (root.how.source, *on_disk(root.how.source, path)),
    ).fetchall()
    if not rows:
        return False
    stamp = stamp_of(path)
    return all(
        complete
        and (size, mtime, of) == (stamp.size, stamp.mtime, root.id)
        and mtime < read * 10**9 - RACY
        for complete, size, mtime, read, of in rows
    )


def known_checksum(db: sqlite3.Connection, source: str, path: Path, stamp: FileStamp) -> str:
    """Returns the checksum that was taken of a file with this stamp; empty for none."""
    row = db.execute(
        f"SELECT checksum FROM file WHERE source = ? AND {ON_DISK}"  # noqa: S608
        " AND size = ? AND mtime = ? AND mtime < read * 1000000000 - ? LIMIT 1",
        (source, *on_disk(source, path), stamp.size, stamp.mtime, RACY),
    ).fetchone()
    return str(row[0]) if row else ""


def is_known(db: sqlite3.Connection, entry: FileEntry) -> bool:
    """Returns whether this content was read to its end, from this path or, for a new path, another.

    When the other path is gone, the file has moved, and its documents belong to the new one.
    """
    here = db.execute(
        "SELECT fingerprint, complete, read FROM file WHERE source = ? AND path = ?",
        (entry.source, entry.path),
    ).fetchone()
    if here is not None and (here[1] or here[2]):
        if not (here[0] == entry.fingerprint and here[1]):
            return False
        _restamp_file(db, entry, entry.path)
        return True
    twins = "SELECT path, member FROM file WHERE source = ? AND fingerprint = ? AND complete"
    rows = db.execute(twins, (entry.source, entry.fingerprint)).fetchall()
    for path, member in rows:
        if not Path(disk_path(path, member)).exists():
            _restamp_file(db, entry, path)
            break
    return bool(rows)


def _restamp_file(db: sqlite3.Connection, entry: FileEntry, path: str) -> None:
    """Records that the unchanged file at `path` is now what `entry` describes."""
    with write_transaction(db):
        if path != entry.path:
            db.execute("DELETE FROM file WHERE source = ? AND path = ?", (entry.source, entry.path))
            moved = "UPDATE file SET path = ? WHERE source = ? AND path = ?"
            db.execute(moved, (entry.path, entry.source, path))
        _upsert(db, "file", entry.columns() | {"complete": 1})


def begin_file(db: sqlite3.Connection, entry: FileEntry, name: str, reader: str) -> int:
    """Makes the row of a file that is read now, and forgets what was dropped of it before."""
    prepare.forget_place(db, entry.source, name)
    file = _upsert(db, "file", entry.columns() | {"complete": 1, "reader": reader})
    for table in ("dropped", "deleted"):
        db.execute(f"DELETE FROM {table} WHERE file = ?", (file,))  # noqa: S608 - names of ours
    return file


def removed_by_hand(db: sqlite3.Connection, entry: FileEntry) -> set[str]:
    """Lists ids of documents of this file that the user took out."""
    rows = db.execute(
        "SELECT document FROM dropped JOIN file ON file.id = dropped.file"
        " WHERE file.source = ? AND path = ? AND reason = ?",
        (entry.source, entry.path, prepare.REMOVED),
    )
    return {row[0] for row in rows}


def withdrawn_by(db: sqlite3.Connection, entry: FileEntry) -> set[str]:
    """Lists ids of documents that the file's earlier content withdraws."""
    rows = db.execute(
        "SELECT document FROM deleted JOIN file ON file.id = deleted.file"
        " WHERE file.source = ? AND path = ?",
        (entry.source, entry.path),
    )
    return {row[0] for row in rows}


def withdrawn_documents(db: sqlite3.Connection, file: int) -> set[str]:
    """Lists ids of documents that the file withdraws."""
    return {row[0] for row in db.execute("SELECT document FROM deleted WHERE file = ?", (file,))}


def queue_file(db: sqlite3.Connection, root: IngestRoot, path: Path) -> None:
    """Records that a file waits to be read, if nothing is known of it yet."""
    db.execute(
        "INSERT INTO file(source, path, fingerprint, format, complete, root)"  # noqa: S608
        " SELECT ?, ?, '', '', 0, ? WHERE NOT EXISTS"
        f" (SELECT 1 FROM file WHERE source = ? AND {ON_DISK})",
        (
            *(root.how.source, pseudonymize_place(root.how.source, str(path)), root.id),
            *(root.how.source, *on_disk(root.how.source, path)),
        ),
    )


def clear_queue(db: sqlite3.Connection, root: IngestRoot) -> None:
    """Deletes the rows that still wait: an archive's members, or a drop, stand for them now."""
    db.execute("DELETE FROM file WHERE root = ? AND NOT complete AND read = 0", (root.id,))


def has_waiting(db: sqlite3.Connection, root: IngestRoot) -> bool:
    """Returns whether a file of the root waits for another reason than being broken."""
    waiting = (
        "SELECT 1 FROM file WHERE root = ? AND NOT complete AND id NOT IN"
        " (SELECT file FROM dropped WHERE reason IN (SELECT value FROM json_each(?)))"
    )
    return db.execute(waiting, (root.id, prepare.BROKEN_JSON)).fetchone() is not None


def note_broken(db: sqlite3.Connection, entry: FileEntry, drop: Drop) -> None:
    """Records why a file could not be read; it will be tried again."""
    with write_transaction(db):
        # What an earlier reading left of it stays: fingerprint, checksum and stamp too.
        unread = {"fingerprint": "", "checksum": "", "size": -1, "mtime": -1, "complete": 0}
        values = entry.columns() | unread
        file = _upsert(db, "file", values, only=("complete", "read", "root"))
        db.execute(
            "DELETE FROM dropped WHERE file = ? AND reason IN (SELECT value FROM json_each(?))",
            (file, prepare.BROKEN_JSON),
        )
        where = pseudonymize_place(entry.source, drop.where)
        prepare.insert_drop(db, entry.source, file, replace(drop, where=where))


def requeue_removed(db: sqlite3.Connection, root: IngestRoot) -> None:
    """Marks files to be read again of which documents were taken out by hand."""
    with write_transaction(db):
        db.execute(
            "UPDATE file SET complete = 0 WHERE root = ?"
            " AND id IN (SELECT file FROM dropped WHERE reason = ?)",
            (root.id, prepare.REMOVED),
        )


def reconsider_files(db: sqlite3.Connection, source: str, gone: Iterable[str]) -> None:
    """Marks files to be read again with a document that gave way to one that is `gone`."""
    db.executemany(
        "UPDATE file SET complete = 0 WHERE id IN"
        " (SELECT file FROM dropped WHERE source = ? AND first = ?)",
        [(source, id) for id in gone],
    )


def vanished_files(
    db: sqlite3.Connection, root: IngestRoot, seen: set[str]
) -> list[tuple[int, str]]:
    """Lists ids and paths of the root's files that are neither `seen` nor on disk."""
    rows = db.execute("SELECT id, path, member FROM file WHERE root = ?", (root.id,)).fetchall()
    return [
        (id, path)
        for id, path, member in rows
        if (disk := disk_path(path, member)) not in seen and not Path(disk).exists()
    ]


def retry_dead_letters(
    db: sqlite3.Connection, source: str | None, reader: str, *, all: bool
) -> None:
    """Marks files with dead letters to be read again: those read by another version, or all."""
    with write_transaction(db):
        db.execute(
            "UPDATE file SET complete = 0 WHERE (?1 IS NULL OR source = ?1)"
            " AND (?2 OR reader != ?3) AND id IN (SELECT file FROM dropped"
            " WHERE reason IN (SELECT value FROM json_each(?4)))",
            (source, all, reader, prepare.dead_reasons(db)),
        )


# Taking out


def remove_documents(db: sqlite3.Connection, source: str, document: str | None) -> int:
    """Implements `KnowledgeBase.remove`."""
    rows = db.execute(
        "SELECT number, file, id FROM document WHERE source = ?1 AND (?2 IS NULL OR id = ?2)",
        (source, document),
    ).fetchall()
    traces = (
        "SELECT 1 FROM file WHERE source = ?1 UNION SELECT 1 FROM dropped WHERE source = ?1"
        " UNION SELECT 1 FROM root WHERE source = ?1"
    )
    left = document is None and db.execute(traces, (source,)).fetchone()
    if not rows and not left:
        what = f"source {source}" if document is None else f"document {document!r} in {source}"
        raise KnowledgeBaseError(f"there is no {what}", fix="`osler kb info` lists the sources")
    removed = delete_documents(db, [number for number, _, _ in rows])
    # Remembered as drops, so that `update` does not bring the documents back.
    for _, file, id in rows:
        drop = Drop(id, prepare.REMOVED)
        prepare.insert_drop(db, source, file, drop, document=id)
    if document is None:
        for table in ("file", "dropped", "root"):
            db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))  # noqa: S608
    reconsider_files(db, source, (id for _, _, id in rows))
    return removed


def prune_files(db: sqlite3.Connection, files: Iterable[int]) -> int:
    """Deletes files with their documents; returns how many passages went."""
    removed = 0
    for file in files:
        rows = db.execute(
            "SELECT number, source, id FROM document WHERE file = ?", (file,)
        ).fetchall()
        removed += delete_documents(db, [number for number, _, _ in rows])
        taken_back = db.execute(
            "SELECT source, document FROM deleted WHERE file = ?", (file,)
        ).fetchall()
        db.execute("DELETE FROM file WHERE id = ?", (file,))
        for source, id in {(row[1], row[2]) for row in rows} | set(taken_back):
            reconsider_files(db, source, [id])
    return removed
