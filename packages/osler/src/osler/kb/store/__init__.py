"""The folder on disk: one SQLite file in WAL mode, and its tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from osler.errors import (
    KnowledgeBaseError,
    KnowledgeBaseMismatch,
    KnowledgeBaseMissing,
    translate_os_errors,
)
from osler.kb.store.access import (
    FILE,
    hold_lock,
    open_connection,
    translate_errors,
    write_transaction,
)
from osler.kb.store.works import add_work_tables
from osler.sources.patients import make_secret

SCHEMA = 4
"""Raised when a table changes, or when `osler.text.split_words` does: the index holds its tokens.
A knowledge base of another schema is refused."""

# Row numbers of passages are never used twice (AUTOINCREMENT): a reader that holds
# an older copy of the vectors must find its row or none, never another passage.
# The full-text table keeps no copy of the text; its rows are deleted by naming
# their words again, which `SCHEMA` keeps the same.
# `root` is what the user asked to be added, and how; `file` what was found there.
# A file waits (complete = 0, read = 0), is read (complete = 1) or has failed.
# `mark` is a hash of a document's words, equal for doubles; `digest` one of its passages
# and columns: a document of a changed file whose digest stays keeps its rows and vectors.
# Times are whole seconds since 1970, in UTC; `mtime` is in nanoseconds.
TABLES = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE root(
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL, format TEXT NOT NULL,
  licence TEXT NOT NULL, illustrative INTEGER NOT NULL, trust INTEGER,
  only INTEGER NOT NULL DEFAULT 0, chunk TEXT NOT NULL DEFAULT 'omni',
  UNIQUE(source, path));
CREATE TABLE file(
  id INTEGER PRIMARY KEY, source TEXT NOT NULL, path TEXT NOT NULL,
  fingerprint TEXT NOT NULL, format TEXT NOT NULL, complete INTEGER NOT NULL,
  root INTEGER REFERENCES root(id) ON DELETE SET NULL, member TEXT NOT NULL DEFAULT '',
  checksum TEXT NOT NULL DEFAULT '', size INTEGER NOT NULL DEFAULT -1,
  mtime INTEGER NOT NULL DEFAULT -1, read INTEGER NOT NULL DEFAULT 0,
  reader TEXT NOT NULL DEFAULT '',
  UNIQUE(source, path));
CREATE INDEX file_fingerprint ON file(source, fingerprint);
CREATE TABLE document(
  number INTEGER PRIMARY KEY, source TEXT NOT NULL, id TEXT NOT NULL, title TEXT NOT NULL,
  file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
  year INTEGER, lang TEXT NOT NULL DEFAULT 'en', kinds TEXT NOT NULL DEFAULT '',
  retracted INTEGER NOT NULL DEFAULT 0, trust INTEGER NOT NULL DEFAULT 2,
  version INTEGER NOT NULL DEFAULT 0, origin TEXT NOT NULL DEFAULT '',
  checksum TEXT NOT NULL DEFAULT '', added INTEGER NOT NULL DEFAULT 0,
  mark BLOB NOT NULL DEFAULT x'', digest BLOB NOT NULL DEFAULT x'',
  UNIQUE(source, id));
CREATE INDEX document_file ON document(file);
CREATE INDEX document_mark ON document(mark);
CREATE TABLE passage(
  number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, text TEXT NOT NULL,
  source TEXT NOT NULL, title TEXT NOT NULL, section TEXT NOT NULL,
  page INTEGER, year INTEGER, url TEXT NOT NULL, code TEXT NOT NULL, kind TEXT NOT NULL,
  licence TEXT NOT NULL, language TEXT NOT NULL, illustrative INTEGER NOT NULL,
  document INTEGER NOT NULL REFERENCES document(number) ON DELETE CASCADE,
  n INTEGER NOT NULL, size INTEGER NOT NULL, seal BLOB);
CREATE INDEX passage_document ON passage(document, n);
CREATE TABLE dropped(
  source TEXT NOT NULL, file INTEGER REFERENCES file(id) ON DELETE CASCADE,
  place TEXT NOT NULL, reason TEXT NOT NULL,
  document TEXT NOT NULL DEFAULT '', first TEXT NOT NULL DEFAULT '',
  record INTEGER, line INTEGER, at INTEGER NOT NULL DEFAULT 0);
CREATE INDEX dropped_file ON dropped(file);
CREATE INDEX dropped_first ON dropped(source, first) WHERE first != '';
CREATE INDEX dropped_place ON dropped(source, place) WHERE file IS NULL;
CREATE TABLE deleted(
  source TEXT NOT NULL, document TEXT NOT NULL,
  file INTEGER NOT NULL REFERENCES file(id) ON DELETE CASCADE,
  PRIMARY KEY(source, document, file)) WITHOUT ROWID;
CREATE INDEX deleted_file ON deleted(file);
CREATE TABLE lease(
  passage INTEGER PRIMARY KEY REFERENCES passage(number) ON DELETE CASCADE,
  worker TEXT NOT NULL, expires REAL NOT NULL);
CREATE TABLE vector(
  passage INTEGER PRIMARY KEY REFERENCES passage(number) ON DELETE CASCADE,
  value BLOB NOT NULL);
CREATE VIRTUAL TABLE lexical USING fts5(words, source, content='', tokenize='porter unicode61');
CREATE VIRTUAL TABLE term USING fts5vocab(lexical, 'row');
"""


def create_store(folder: Path) -> None:
    """Creates an empty knowledge base in `folder`, which is made when it is not there.

    Raises `KnowledgeBaseError` when the folder holds one already or cannot be written.
    """
    fix = "choose another folder"
    with translate_os_errors(f"{folder} cannot be made", KnowledgeBaseError, fix):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with hold_lock(folder), translate_errors(folder):
        if _has_tables(folder / FILE):
            raise KnowledgeBaseError(
                f"{folder} holds a knowledge base already", fix="open it, or choose another folder"
            )
        with closing(sqlite3.connect(folder / FILE, isolation_level=None)) as db:
            (folder / FILE).chmod(0o600)  # as its log is then
            db.execute("PRAGMA journal_mode=WAL")
            make_secret(folder)
            with write_transaction(db):
                for statement in TABLES.split(";\n"):
                    db.execute(statement)
                add_work_tables(db)
                db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))


def check_store(folder: Path) -> None:
    """Raises `KnowledgeBaseMissing` or `KnowledgeBaseMismatch` unless `folder` can be opened."""
    if not (folder / FILE).is_file() or not _has_tables(folder / FILE):
        raise KnowledgeBaseMissing(
            f"there is no knowledge base in {folder}",
            fix="run `osler kb build --sample` or `osler kb add PATH --source SOURCE`",
        )
    version = _read_version(folder)
    if version != str(SCHEMA):
        raise KnowledgeBaseMismatch(
            f"{folder} has schema {version}, this version of Osler reads schema {SCHEMA}",
            fix="make a new folder with `osler kb add`, or use the version that made this one",
        )


def _read_version(folder: Path) -> str:
    with translate_errors(folder), closing(open_connection(folder)) as db:
        try:
            row = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        except sqlite3.OperationalError as error:
            raise _not_ours_error(folder) from error
    if row is None:
        raise _not_ours_error(folder)
    return str(row[0])


def _has_tables(file: Path) -> bool:
    """Returns False for no file and for one whose creation, one commit, was cut short."""
    if not file.is_file() or file.stat().st_size == 0:
        return False
    with translate_errors(file.parent):
        try:
            with closing(open_connection(file.parent)) as db:
                return db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode == sqlite3.SQLITE_NOTADB:
                raise _not_ours_error(file.parent) from error
            raise


def _not_ours_error(folder: Path) -> KnowledgeBaseMismatch:
    return KnowledgeBaseMismatch(
        f"{folder / FILE} is not a knowledge base of Osler's", fix="choose another folder"
    )
