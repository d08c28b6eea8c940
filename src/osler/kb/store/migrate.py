"""From an older schema to the next: each step within the caller's one transaction."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from typing import Final

from osler.kb.ingest.prepare import mark_of
from osler.sources.catalogue import trust_of

_MEMBER = re.compile(r"(.+?\.(?:tar|tar\.\w+|tgz|tbz2?|txz|zip))!(.+)", re.IGNORECASE | re.DOTALL)

_TO_2 = """
CREATE TABLE root(
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL, format TEXT NOT NULL,
  licence TEXT NOT NULL, illustrative INTEGER NOT NULL, trust INTEGER,
  UNIQUE(source, path));
ALTER TABLE file ADD COLUMN root INTEGER REFERENCES root(id) ON DELETE SET NULL;
ALTER TABLE file ADD COLUMN member TEXT NOT NULL DEFAULT '';
ALTER TABLE file ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
ALTER TABLE file ADD COLUMN size INTEGER NOT NULL DEFAULT -1;
ALTER TABLE file ADD COLUMN mtime INTEGER NOT NULL DEFAULT -1;
ALTER TABLE file ADD COLUMN read INTEGER NOT NULL DEFAULT 0;
ALTER TABLE file ADD COLUMN reader TEXT NOT NULL DEFAULT '';
ALTER TABLE document ADD COLUMN year INTEGER;
ALTER TABLE document ADD COLUMN lang TEXT NOT NULL DEFAULT 'en';
ALTER TABLE document ADD COLUMN kinds TEXT NOT NULL DEFAULT '';
ALTER TABLE document ADD COLUMN retracted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document ADD COLUMN trust INTEGER NOT NULL DEFAULT 2;
ALTER TABLE document ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document ADD COLUMN origin TEXT NOT NULL DEFAULT '';
ALTER TABLE document ADD COLUMN checksum TEXT NOT NULL DEFAULT '';
ALTER TABLE document ADD COLUMN added INTEGER NOT NULL DEFAULT 0;
ALTER TABLE document ADD COLUMN mark BLOB NOT NULL DEFAULT x'';
ALTER TABLE document ADD COLUMN digest BLOB NOT NULL DEFAULT x'';
CREATE INDEX document_mark ON document(mark);
ALTER TABLE dropped ADD COLUMN document TEXT NOT NULL DEFAULT '';
ALTER TABLE dropped ADD COLUMN first TEXT NOT NULL DEFAULT '';
ALTER TABLE dropped ADD COLUMN record INTEGER;
ALTER TABLE dropped ADD COLUMN line INTEGER;
ALTER TABLE dropped ADD COLUMN at INTEGER NOT NULL DEFAULT 0;
CREATE TABLE deleted(
  source TEXT NOT NULL, document TEXT NOT NULL,
  file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
  PRIMARY KEY(source, document, file)) WITHOUT ROWID;
CREATE INDEX deleted_file ON deleted(file);
CREATE TABLE lease(
  passage INTEGER PRIMARY KEY REFERENCES passage(number) ON DELETE CASCADE,
  worker TEXT NOT NULL, expires REAL NOT NULL);
UPDATE document SET (year, lang, kinds) = (
  SELECT year, language, kind FROM passage WHERE document = document.number AND n = 0)
"""

_TO_3 = """
ALTER TABLE root ADD COLUMN only INTEGER NOT NULL DEFAULT 0;
CREATE INDEX dropped_first ON dropped(source, first) WHERE first != '';
UPDATE dropped SET document = place, first = place WHERE reason = 'duplicate document id'
"""

_TO_4 = "ALTER TABLE root ADD COLUMN chunk TEXT NOT NULL DEFAULT 'omni'"


def to_2(db: sqlite3.Connection) -> None:
    """Provenance, trust and filters of documents; roots of files; leases."""
    for statement in _TO_2.split(";\n"):
        db.execute(statement)
    _name_members(db)
    for source, path in db.execute("SELECT DISTINCT source, path FROM file").fetchall():
        _give_root(db, source, path)
    for (source,) in db.execute("SELECT DISTINCT source FROM document").fetchall():
        db.execute("UPDATE document SET trust = ? WHERE source = ?", (trust_of(source), source))
    _mark(db)


def to_3(db: sqlite3.Connection) -> None:
    """Roots that take only their own source from an export; what a drop gave way to."""
    for statement in _TO_3.split(";\n"):
        db.execute(statement)


def to_4(db: sqlite3.Connection) -> None:
    """How the texts of a root are cut."""
    db.execute(_TO_4)


def _name_members(db: sqlite3.Connection) -> None:
    for file, path in db.execute("SELECT id, path FROM file").fetchall():
        if found := _MEMBER.fullmatch(path):
            db.execute("UPDATE file SET member = ? WHERE id = ?", (found[2], file))


def _give_root(db: sqlite3.Connection, source: str, path: str) -> None:
    """What was named to `add` is forgotten: each file on disk counts as named itself."""
    found = _MEMBER.fullmatch(path)
    disk = found[1] if found else path
    licence, illustrative = db.execute(
        "SELECT passage.licence, passage.illustrative FROM file"
        " JOIN document ON document.file = file.id"
        " JOIN passage ON passage.document = document.number"
        " WHERE file.source = ? AND file.path = ? LIMIT 1",
        (source, path),
    ).fetchone() or ("", 0)
    db.execute(
        "INSERT OR IGNORE INTO root(source, path, format, licence, illustrative)"
        " VALUES (?, ?, '', ?, ?)",
        (source, disk, licence, illustrative),
    )
    db.execute(
        "UPDATE file SET root = (SELECT id FROM root WHERE source = ?1 AND path = ?2)"
        " WHERE source = ?1 AND path = ?3",
        (source, disk, path),
    )


def _mark(db: sqlite3.Connection) -> None:
    for number, title in db.execute("SELECT number, title FROM document"):
        texts = db.execute("SELECT text FROM passage WHERE document = ? ORDER BY n", (number,))
        mark = mark_of(title, [text for (text,) in texts])
        db.execute("UPDATE document SET mark = ? WHERE number = ?", (mark, number))


STEPS: Final[dict[int, Callable[[sqlite3.Connection], None]]] = {1: to_2, 2: to_3, 3: to_4}
"""What leads from a schema to the one after it."""
