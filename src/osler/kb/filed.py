"""The rows of files and of what was dropped: what is known, replaced, taken out."""

from __future__ import annotations

import json
import sqlite3
import time
from dataclasses import dataclass

from osler.errors import KnowledgeBaseError
from osler.kb.access import transaction
from osler.kb.records import Drop
from osler.kb.store import delete_documents

DUPLICATE, EMPTY, UNKNOWN = "duplicate document id", "no text", "unknown format"
WITHDRAWN = "withdrawn by its publisher"
BROKEN = frozenset({"malformed file", "truncated or damaged", "decompression bomb", "not readable"})
"""Reasons for which a whole file, and not one record of it, is dropped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, or a member of an archive, as the store knows it."""

    source: str
    path: str
    fingerprint: str
    """Of its content and of how it is read: equal ones give equal documents."""
    format: str


def is_known(db: sqlite3.Connection, entry: Entry) -> bool:
    """Whether this content was read to its end, from this path or, for a new path, another."""
    here = db.execute(
        "SELECT fingerprint, complete FROM file WHERE source = ? AND path = ?",
        (entry.source, entry.path),
    ).fetchone()
    if here is not None:
        return bool(here[0] == entry.fingerprint and here[1])
    twin = "SELECT 1 FROM file WHERE source = ? AND fingerprint = ? AND complete"
    return db.execute(twin, (entry.source, entry.fingerprint)).fetchone() is not None


def insert(db: sqlite3.Connection, entry: Entry, *, complete: bool) -> int:
    """The file's row number. One that is not `complete` is read again when next added."""
    cursor = db.execute(
        "INSERT INTO file(source, path, fingerprint, format, complete) VALUES (?, ?, ?, ?, ?)",
        (entry.source, entry.path, entry.fingerprint, entry.format, complete),
    )
    return cursor.lastrowid or 0


def insert_drop(db: sqlite3.Connection, source: str, file: int | None, drop: Drop) -> None:
    db.execute(
        "INSERT INTO dropped(source, file, place, reason, line, at) VALUES (?, ?, ?, ?, ?, ?)",
        (source, file, drop.where, drop.reason, drop.line, int(time.time())),
    )


def forget(db: sqlite3.Connection, entry: Entry, name: str) -> int:
    """Takes out what an earlier content of this path left; returns how many passages went."""
    documents = db.execute(
        "SELECT number FROM document JOIN file ON file.id = document.file"
        " WHERE file.source = ? AND path = ?",
        (entry.source, entry.path),
    ).fetchall()
    gone = delete_documents(db, [row[0] for row in documents])
    db.execute("DELETE FROM file WHERE source = ? AND path = ?", (entry.source, entry.path))
    _forget_place(db, entry.source, name)
    if gone:
        _reconsider_duplicates(db, entry.source)
    return gone


def note_passed_over(db: sqlite3.Connection, source: str, drop: Drop) -> None:
    """Writes down a file of which nothing was read; once, however often it is met."""
    with transaction(db):
        _forget_place(db, source, drop.where)
        insert_drop(db, source, None, drop)


def note_broken(db: sqlite3.Connection, entry: Entry, drop: Drop) -> None:
    """Writes down why a file could not be read; it will be tried again."""
    with transaction(db):
        row = db.execute(
            "UPDATE file SET complete = 0 WHERE source = ? AND path = ? RETURNING id",
            (entry.source, entry.path),
        ).fetchone()
        file = row[0] if row else insert(db, entry, complete=False)
        db.execute(
            "DELETE FROM dropped WHERE file = ? AND reason IN (SELECT value FROM json_each(?))",
            (file, json.dumps(sorted(BROKEN))),
        )
        insert_drop(db, entry.source, file, drop)


def remove(db: sqlite3.Connection, source: str, document: str | None) -> int:
    """See `KnowledgeBase.remove`."""
    rows = db.execute(
        "SELECT number, file FROM document WHERE source = ? AND ? IN ('', id)",
        (source, document or ""),
    ).fetchall()
    traces = "SELECT 1 FROM file WHERE source = ?1 UNION SELECT 1 FROM dropped WHERE source = ?1"
    left = document is None and db.execute(traces, (source,)).fetchone()
    if not rows and not left:
        what = f"source {source}" if document is None else f"document {document} in {source}"
        raise KnowledgeBaseError(f"there is no {what}", fix="`osler kb info` lists the sources")
    gone = delete_documents(db, [number for number, _ in rows])
    if document is None:
        db.execute("DELETE FROM file WHERE source = ?", (source,))
        db.execute("DELETE FROM dropped WHERE source = ?", (source,))
    db.executemany("UPDATE file SET complete = 0 WHERE id = ?", [(file,) for _, file in rows])
    _reconsider_duplicates(db, source)
    return gone


def _forget_place(db: sqlite3.Connection, source: str, place: str) -> None:
    db.execute(
        "DELETE FROM dropped WHERE file IS NULL AND source = ? AND place = ?", (source, place)
    )


def _reconsider_duplicates(db: sqlite3.Connection, source: str) -> None:
    """Files with a dropped double are read again when next added: its original may be gone."""
    db.execute(
        "UPDATE file SET complete = 0 WHERE source = ?"
        " AND id IN (SELECT file FROM dropped WHERE reason = ?)",
        (source, DUPLICATE),
    )
