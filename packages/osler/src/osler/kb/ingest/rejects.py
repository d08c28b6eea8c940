"""Records that became no document: deliberate drops, and dead letters.

A dead letter is what was to be read and could not be. Both are rows of one table.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from osler.kb.store.access import write_transaction
from osler.sources.patients.patient import pseudonymize_place
from osler.sources.records import Drop

# The reasons are stored in the table and compared with what is there: their wording is part of
# the schema.
DUPLICATE, UNKNOWN = "duplicate document id", "unknown format"
DOUBLE = "same title and text as another document"
REMOVED = "taken out by hand"
OLDER, WITHDRAWN = "a newer version is there", "withdrawn by its publisher"
BROKEN = frozenset(
    {
        *("malformed file", "truncated or damaged", "decompression bomb", "not readable"),
        "too large for one document",
        *("encrypted", "needs osler[pdf]", "needs osler[parquet]", "needs osler[xlsx]"),
    }
)
"""Reasons for which a whole file, and not one record of it, is dropped."""
BROKEN_JSON = json.dumps(sorted(BROKEN))
_UNREADABLE = BROKEN | {
    *("unknown format", "unknown compression", "unsafe path in an archive"),
    *("archive in an archive", "name is not text", "line too long", "no record", "no id"),
    *("not GB18030", "neither UTF-8 nor GB18030", "unreadable page", "page without text"),
    *("no PMID", "no citation", "malformed row", "not JSON", "not UTF-8", "not a JSON object"),
}


def is_dead(reason: str) -> bool:
    """Returns whether it was to be read and could not be, rather than left out on purpose."""
    return reason in _UNREADABLE or reason.startswith("malformed")


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A file or a record of it that was to be read and could not be."""

    source: str
    path: str
    """Path of the file on disk; the place of a drop that belongs to no file."""
    member: str
    """In an archive; empty for a plain file."""
    place: str
    record: int | None
    """Number of the record in the file, from 1; `None` = the file as a whole."""
    line: int | None
    reason: str
    at: int
    """Seconds since 1970, UTC."""


def list_dead_letters(db: sqlite3.Connection, source: str | None) -> Iterator[DeadLetter]:
    """Yields dead letters, the latest first."""
    reasons = [row[0] for row in db.execute("SELECT DISTINCT reason FROM dropped")]
    rows = db.execute(
        "SELECT dropped.source, coalesce(path, place), coalesce(member, ''), place, record, line,"
        " reason, at FROM dropped LEFT JOIN file ON file.id = dropped.file"
        " WHERE (?1 IS NULL OR dropped.source = ?1)"
        " AND reason IN (SELECT value FROM json_each(?2)) ORDER BY at DESC, dropped.rowid",
        (source, json.dumps(list(filter(is_dead, reasons)))),
    )
    for where, path, member, *rest in rows:
        yield DeadLetter(where, path.removesuffix(f"!{member}") if member else path, member, *rest)


def insert_drop(
    db: sqlite3.Connection,
    source: str,
    file: int | None,
    drop: Drop,
    *,
    document: str = "",
    first: str = "",
    record: int | None = None,
) -> None:
    """Stores a drop; `first` is the id of the document that stands where `document` does not."""
    db.execute(
        "INSERT INTO dropped(source, file, place, reason, document, first, record, line, at)"
        " VALUES (?,?,?,?, ?,?,?,?,?)",
        (
            *(source, file, drop.where, drop.reason),
            *(document, first, record, drop.line, int(time.time())),
        ),
    )


def note_passed_over(db: sqlite3.Connection, source: str, drop: Drop) -> None:
    """Records a file of which nothing was read; once, however often it is met."""
    known = "SELECT 1 FROM dropped WHERE file IS NULL AND source = ? AND place = ? AND reason = ?"
    stored = replace(drop, where=pseudonymize_place(source, drop.where))
    if db.execute(known, (source, stored.where, drop.reason)).fetchone():
        return
    with write_transaction(db):
        forget_place(db, source, drop.where)
        insert_drop(db, source, None, stored)


def forget_place(db: sqlite3.Connection, source: str, name: str) -> None:
    db.execute(
        "DELETE FROM dropped WHERE file IS NULL AND source = ? AND place = ?",
        (source, pseudonymize_place(source, name)),
    )
