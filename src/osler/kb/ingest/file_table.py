"""The rows of roots and files: what is known, waits, has changed or moved, is taken out."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from osler.errors import KnowledgeBaseError
from osler.kb.ingest import rejects
from osler.kb.ingest.prepare import IngestOptions
from osler.kb.store.access import write_transaction
from osler.kb.store.passages import delete_documents
from osler.sources.patients.pseudonymize import pseudonymize_place
from osler.sources.records import Drop

RACY = 2 * 10**9
"""Nanoseconds. A file written so shortly before it was read may have changed since
without a sign of it in its time."""


@dataclass(frozen=True, slots=True)
class FileStamp:
    """What tells without reading it that a file has changed."""

    size: int
    mtime: int
    """Nanoseconds since 1970."""


def stamp_of(path: Path) -> FileStamp:
    """Of a folder that is one unit: the sum of sizes and the latest time of its files."""
    if not path.is_dir():
        found = path.stat()
        return FileStamp(found.st_size, found.st_mtime_ns)
    inside = [file.stat() for file in path.rglob("*") if file.is_file()]
    latest = max((file.st_mtime_ns for file in inside), default=0)
    return FileStamp(sum(file.st_size for file in inside), latest)


@dataclass(frozen=True, slots=True)
class IngestRoot:
    """What the user named to `add`, with the terms; `update` reads it again."""

    id: int
    path: Path
    how: IngestOptions


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file, or a member of an archive, as the store knows it."""

    root: int
    source: str
    path: str
    """On disk; of a member, the archive's, "!" and the member's name. In `emr`, hashes."""
    member: str
    fingerprint: str
    """Of its content and of how it is read: equal ones give equal documents."""
    format: str
    checksum: str
    """SHA-256 of the file on disk, in hexadecimal."""
    stamp: FileStamp


# Roots


def note_root(db: sqlite3.Connection, path: Path, how: IngestOptions) -> tuple[IngestRoot, bool]:
    """The root of this path, and whether it had other terms before."""
    terms = (how.fmt or "", how.licence, how.illustrative, how.trust, how.only, how.chunk)
    held = db.execute(
        "SELECT id, format, licence, illustrative, trust, only, chunk FROM root"
        " WHERE source = ? AND path = ?",
        (how.source, str(path)),
    ).fetchone()
    if held and tuple(held[1:]) == terms:
        return IngestRoot(held[0], path, how), False
    with write_transaction(db):
        (id,) = db.execute(
            "INSERT INTO root(source, path, format, licence, illustrative, trust, only, chunk)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT(source, path) DO UPDATE SET"
            " format = excluded.format, licence = excluded.licence,"
            " illustrative = excluded.illustrative, trust = excluded.trust, only = excluded.only,"
            " chunk = excluded.chunk"
            " RETURNING id",
            (how.source, str(path), *terms),
        ).fetchone()
    return IngestRoot(id, path, how), True


def list_roots(db: sqlite3.Connection, source: str | None) -> list[IngestRoot]:
    """Those of one source, or of all, in the order in which they were added."""
    rows = db.execute(
        "SELECT id, path, source, format, licence, illustrative, trust, only, chunk FROM root"
        " WHERE ?1 IS NULL OR source = ?1 ORDER BY id",
        (source,),
    )
    return [
        IngestRoot(
            id,
            Path(path),
            IngestOptions(name, fmt or None, licence, bool(sample), trust, bool(only), chunk),
        )
        for id, path, name, fmt, licence, sample, trust, only, chunk in rows
    ]


# Files


def on_disk(source: str, path: Path) -> tuple[str, str, str]:
    """Values for `ON_DISK`: the file at `path` and all members of it."""
    name = pseudonymize_place(source, str(path))
    return name, f"{name}!", f'{name}"'  # '"' is the character after "!"


ON_DISK = "(path = ? OR (path > ? AND path < ?))"


def is_settled(db: sqlite3.Connection, root: IngestRoot, path: Path) -> bool:
    """Whether all in the file was read to its end and its stamp is still the same."""
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
    """The checksum that was taken of a file with this stamp; empty for none."""
    row = db.execute(
        f"SELECT checksum FROM file WHERE source = ? AND {ON_DISK}"  # noqa: S608
        " AND size = ? AND mtime = ? AND mtime < read * 1000000000 - ? LIMIT 1",
        (source, *on_disk(source, path), stamp.size, stamp.mtime, RACY),
    ).fetchone()
    return str(row[0]) if row else ""


def is_known(db: sqlite3.Connection, entry: FileEntry) -> bool:
    """Whether this content was read to its end, from this path or, for a new path, another.

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
    found = db.execute(twins, (entry.source, entry.fingerprint)).fetchall()
    for path, member in found:
        if not Path(path.removesuffix(f"!{member}") if member else path).exists():
            _restamp_file(db, entry, path)
            break
    return bool(found)


def _restamp_file(db: sqlite3.Connection, entry: FileEntry, path: str) -> None:
    """What the file at `path` holds is, unchanged, what `entry` says."""
    with write_transaction(db):
        if path != entry.path:
            db.execute("DELETE FROM file WHERE source = ? AND path = ?", (entry.source, entry.path))
        db.execute(
            "UPDATE file SET path = ?, member = ?, root = ?, checksum = ?, size = ?, mtime = ?,"
            " read = ? WHERE source = ? AND path = ?",
            (
                *(entry.path, entry.member, entry.root, entry.checksum),
                *(entry.stamp.size, entry.stamp.mtime, int(time.time()), entry.source, path),
            ),
        )


def begin_file(db: sqlite3.Connection, entry: FileEntry, name: str, reader: str) -> int:
    """The row of a file that is read now; what was dropped of it before is forgotten."""
    rejects.forget_place(db, entry.source, name)
    (file,) = db.execute(
        "INSERT INTO file(source, path, fingerprint, format, complete, root, member, checksum,"
        " size, mtime, read, reader) VALUES (?,?,?,?,1, ?,?,?, ?,?,?,?)"
        " ON CONFLICT(source, path) DO UPDATE SET fingerprint = excluded.fingerprint,"
        " format = excluded.format, complete = 1, root = excluded.root, member = excluded.member,"
        " checksum = excluded.checksum, size = excluded.size, mtime = excluded.mtime,"
        " read = excluded.read, reader = excluded.reader RETURNING id",
        (
            *(entry.source, entry.path, entry.fingerprint, entry.format),
            *(entry.root, entry.member, entry.checksum),
            *(entry.stamp.size, entry.stamp.mtime, int(time.time()), reader),
        ),
    ).fetchone()
    db.execute("DELETE FROM dropped WHERE file = ?", (file,))
    db.execute("DELETE FROM deleted WHERE file = ?", (file,))
    return int(file)


def removed_by_hand(db: sqlite3.Connection, entry: FileEntry) -> set[str]:
    """Ids of documents of this file that the user took out."""
    rows = db.execute(
        "SELECT document FROM dropped JOIN file ON file.id = dropped.file"
        " WHERE file.source = ? AND path = ? AND reason = ?",
        (entry.source, entry.path, rejects.REMOVED),
    )
    return {row[0] for row in rows}


def withdrawn_by(db: sqlite3.Connection, entry: FileEntry) -> set[str]:
    """Ids of documents that what this file held before takes back."""
    where = "SELECT id FROM file WHERE source = ? AND path = ?"
    row = db.execute(where, (entry.source, entry.path)).fetchone()
    return withdrawn_documents(db, row[0]) if row else set()


def withdrawn_documents(db: sqlite3.Connection, file: int) -> set[str]:
    """Ids of documents that the file takes back."""
    return {row[0] for row in db.execute("SELECT document FROM deleted WHERE file = ?", (file,))}


def queue_file(db: sqlite3.Connection, root: IngestRoot, path: Path) -> None:
    """Writes down that a file waits to be read, if nothing is known of it yet."""
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
    """All that waited has been looked at: an archive's members, or a drop, stand for it now."""
    db.execute("DELETE FROM file WHERE root = ? AND NOT complete AND read = 0", (root.id,))


def note_broken(db: sqlite3.Connection, entry: FileEntry, drop: Drop) -> None:
    """Writes down why a file could not be read; it will be tried again."""
    with write_transaction(db):
        (file,) = db.execute(
            "INSERT INTO file(source, path, fingerprint, format, complete, root, member, read)"
            " VALUES (?, ?, '', ?, 0, ?, ?, ?) ON CONFLICT(source, path)"
            " DO UPDATE SET complete = 0, read = excluded.read, root = excluded.root RETURNING id",
            (
                *(entry.source, entry.path, entry.format),
                *(entry.root, entry.member, int(time.time())),
            ),
        ).fetchone()
        db.execute(
            "DELETE FROM dropped WHERE file = ? AND reason IN (SELECT value FROM json_each(?))",
            (file, json.dumps(sorted(rejects.BROKEN))),
        )
        where = pseudonymize_place(entry.source, drop.where)
        rejects.insert_drop(db, entry.source, file, replace(drop, where=where))


def retry_dead_letters(
    db: sqlite3.Connection, source: str | None, reader: str, *, all: bool
) -> None:
    """Files with dead letters are read again: those that another version of Osler read, or all."""
    reasons = [row[0] for row in db.execute("SELECT DISTINCT reason FROM dropped")]
    with write_transaction(db):
        db.execute(
            "UPDATE file SET complete = 0 WHERE (?1 IS NULL OR source = ?1)"
            " AND (?2 OR reader != ?3) AND id IN (SELECT file FROM dropped"
            " WHERE reason IN (SELECT value FROM json_each(?4)))",
            (source, all, reader, json.dumps(list(filter(rejects.is_dead, reasons)))),
        )


# Taking out


def remove_documents(db: sqlite3.Connection, source: str, document: str | None) -> int:
    """See `KnowledgeBase.remove`."""
    rows = db.execute(
        "SELECT number, file, id FROM document WHERE source = ? AND ? IN ('', id)",
        (source, document or ""),
    ).fetchall()
    traces = (
        "SELECT 1 FROM file WHERE source = ?1 UNION SELECT 1 FROM dropped WHERE source = ?1"
        " UNION SELECT 1 FROM root WHERE source = ?1"
    )
    left = document is None and db.execute(traces, (source,)).fetchone()
    if not rows and not left:
        what = f"source {source}" if document is None else f"document {document} in {source}"
        raise KnowledgeBaseError(f"there is no {what}", fix="`osler kb info` lists the sources")
    gone = delete_documents(db, [number for number, _, _ in rows])
    for _, file, id in rows:
        drop = Drop(id, rejects.REMOVED)
        rejects.insert_drop(db, source, file, drop, document=id)
    if document is None:
        for table in ("file", "dropped", "root"):
            db.execute(f"DELETE FROM {table} WHERE source = ?", (source,))  # noqa: S608
    rejects.reconsider_files(db, source, (id for _, _, id in rows))
    return gone


def prune_files(db: sqlite3.Connection, files: Iterable[int]) -> int:
    """Takes out files with their documents; returns how many passages went."""
    gone = 0
    for file in files:
        rows = db.execute(
            "SELECT number, source, id FROM document WHERE file = ?", (file,)
        ).fetchall()
        gone += delete_documents(db, [number for number, _, _ in rows])
        taken_back = db.execute(
            "SELECT source, document FROM deleted WHERE file = ?", (file,)
        ).fetchall()
        db.execute("DELETE FROM file WHERE id = ?", (file,))
        for source, id in {(row[1], row[2]) for row in rows} | set(taken_back):
            rejects.reconsider_files(db, source, [id])
    return gone
