"""The folder on disk: one SQLite file in WAL mode, and its tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from osler.errors import KnowledgeBaseError, KnowledgeBaseMismatch, KnowledgeBaseMissing
from osler.kb.access import FILE, connect, locked, transaction, translated

SCHEMA = 1
"""Raised when a table changes, or when `osler.text.words` does: the index holds its tokens."""

# Row numbers of passages are never used twice (AUTOINCREMENT): a reader that holds
# an older copy of the vectors must find its row or none, never another passage.
# The full-text table keeps no copy of the text; its rows are deleted by naming
# their words again, which `SCHEMA` keeps the same.
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL,
  fingerprint TEXT NOT NULL, format TEXT NOT NULL, complete INTEGER NOT NULL,
  UNIQUE(source, path));
CREATE INDEX file_fingerprint ON file(source, fingerprint);
CREATE TABLE document(
  number INTEGER PRIMARY KEY, source TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL,
  file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
  UNIQUE(source, id));
CREATE INDEX document_file ON document(file);
CREATE TABLE passage(
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
  source TEXT NOT NULL, title TEXT NOT NULL, section TEXT NOT NULL,
  page INTEGER, year INTEGER, url TEXT NOT NULL, code TEXT NOT NULL, kind TEXT NOT NULL,
  licence TEXT NOT NULL, language TEXT NOT NULL, illustrative INTEGER NOT NULL,
  document INTEGER NOT NULL REFERENCES document(number) ON DELETE CASCADE,
  n INTEGER NOT NULL, size INTEGER NOT NULL);
CREATE INDEX passage_document ON passage(document, n);
CREATE TABLE dropped(
  source TEXT NOT NULL, file INTEGER REFERENCES file(id) ON DELETE CASCADE,
  place TEXT NOT NULL, reason TEXT NOT NULL);
CREATE INDEX dropped_file ON dropped(file);
CREATE INDEX dropped_place ON dropped(source, place) WHERE file IS NULL;
CREATE TABLE vector(
  passage INTEGER PRIMARY KEY REFERENCES passage(number) ON DELETE CASCADE,
  value BLOB NOT NULL);
CREATE VIRTUAL TABLE lexical USING fts5(words, source, content='', tokenize='porter unicode61');
CREATE VIRTUAL TABLE term USING fts5vocab(lexical, 'row');
"""


def create(folder: Path) -> None:
    """An empty knowledge base in `folder`, which is made when it is not there.

    Raises `KnowledgeBaseError` when the folder holds one already or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise KnowledgeBaseError(
            f"{folder} cannot be made: {error.strerror}", fix="choose another folder"
        ) from error
    with locked(folder), translated(folder):
        if _has_tables(folder / FILE):
            raise KnowledgeBaseError(
                f"{folder} holds a knowledge base already", fix="open it, or choose another folder"
            )
        with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
            db.execute("PRAGMA journal_mode=WAL")
            with transaction(db):
                for statement in TABLES.split(";\n"):
                    db.execute(statement)
                db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))


def check(folder: Path) -> None:
    """Raises `KnowledgeBaseMissing` or `KnowledgeBaseMismatch` unless `folder` can be opened."""
    if not (folder / FILE).is_file() or not _has_tables(folder / FILE):
        raise KnowledgeBaseMissing(
            f"there is no knowledge base in {folder}",
            fix="run `osler kb build --sample` or `osler kb add PATH --source SOURCE`",
        )
    with translated(folder), closing(connect(folder)) as db:
        try:
            found = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        except sqlite3.OperationalError as error:
            raise _not_ours(folder) from error
    if found is None:
        raise _not_ours(folder)
    if found[0] != str(SCHEMA):
        raise KnowledgeBaseMismatch(
            f"{folder} has schema {found[0]}, this version of Osler reads schema {SCHEMA}",
            fix="make a new folder with `osler kb add`, or use the version that made this one",
        )


def _has_tables(file: Path) -> bool:
    """False for no file and for one whose making was cut short; it is made in one commit."""
    if not file.is_file() or file.stat().st_size == 0:
        return False
    with translated(file.parent):
        try:
            with closing(connect(file.parent)) as db:
                return db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise _not_ours(file.parent) from error
            raise


def _not_ours(folder: Path) -> KnowledgeBaseMismatch:
    return KnowledgeBaseMismatch(
        f"{folder / FILE} is not a knowledge base of Osler's", fix="choose another folder"
    )
