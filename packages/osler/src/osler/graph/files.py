"""The file of a graph: its tables, and connections for reading and for writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path

from osler.errors import KnowledgeBaseMismatch, KnowledgeBaseMissing
from osler.kb.store.access import WAIT, hold_lock, translate_errors

FILE = "graph.sqlite"
COMMUNITIES = "graph.communities"
"""The file of what `osler.graph.communities` found, beside it."""
SCHEMA = "1"

# Every relation is found from both ends without a second look: the rows are the indexes.
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE word (n INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE concept (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE name (
    concept INTEGER NOT NULL, rank INTEGER NOT NULL, text TEXT NOT NULL,
    source INTEGER NOT NULL, language INTEGER NOT NULL,
    PRIMARY KEY (concept, rank, text, source)) WITHOUT ROWID;
CREATE TABLE alias (norm TEXT NOT NULL, concept INTEGER NOT NULL,
    PRIMARY KEY (norm, concept)) WITHOUT ROWID;
CREATE TABLE definition (
    concept INTEGER NOT NULL, source INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (concept, source, text)) WITHOUT ROWID;
CREATE TABLE typed (concept INTEGER NOT NULL, type INTEGER NOT NULL,
    PRIMARY KEY (concept, type)) WITHOUT ROWID;
CREATE TABLE edge (
    subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    source INTEGER NOT NULL,
    PRIMARY KEY (subject, predicate, object, source)) WITHOUT ROWID;
CREATE TABLE note (
    subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    source INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (subject, predicate, object, source, text)) WITHOUT ROWID;
CREATE TABLE mapping (one TEXT NOT NULL, other TEXT NOT NULL, source INTEGER NOT NULL,
    PRIMARY KEY (one, other, source)) WITHOUT ROWID;
CREATE TABLE merge (one INTEGER NOT NULL, other INTEGER NOT NULL, how TEXT NOT NULL,
    why TEXT NOT NULL, PRIMARY KEY (one, other, how)) WITHOUT ROWID;
CREATE TABLE fused (member INTEGER PRIMARY KEY, head INTEGER NOT NULL);
CREATE INDEX fused_in ON fused (head);
"""
_META = "INSERT INTO meta VALUES ('schema', '1'), ('version', '0');"
INDEX_IN = "CREATE INDEX IF NOT EXISTS edge_in ON edge (object, predicate, subject, source)"


def create_graph(folder: Path) -> None:
    """Creates an empty graph, unless there is one. Raises `KnowledgeBaseError`."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder), translate_errors(folder):
        if (folder / FILE).exists() and (folder / FILE).stat().st_size:
            return
        with closing(_connect(folder, "rwc")) as db:
            db.execute("PRAGMA page_size=8192")
            db.executescript("\n".join(("BEGIN;", _TABLES, f"{INDEX_IN};", _META, "COMMIT;")))


def check_graph(folder: Path) -> None:
    """Raises `KnowledgeBaseMissing` without a graph, `KnowledgeBaseMismatch` for another schema."""
    if not (folder / FILE).is_file():
        raise KnowledgeBaseMissing(
            f"{folder} holds no graph", fix="run `osler kb graph add PATH` first"
        )
    with translate_errors(folder), closing(_connect(folder, "ro")) as db:
        try:
            schema = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        except sqlite3.DatabaseError:
            schema = None
    if schema is None or schema[0] != SCHEMA:
        raise KnowledgeBaseMismatch(
            f"{folder / FILE} is not a graph that this version reads",
            fix="delete it and run `osler kb graph add PATH` again",
        )


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    uri = f"{(folder / FILE).resolve().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT, check_same_thread=False)
    db.execute("PRAGMA mmap_size=4000000000")
    return db


@contextmanager
def open_writer(
    folder: Path, *, changes: bool = True, held: bool = False
) -> Iterator[sqlite3.Connection]:
    """Opens the one writer, in one transaction: an exception leaves the graph as it was.

    With `changes` the graph gets a new version, which makes its derived arrays outdated.
    `held`: the caller has the folder's lock already.
    """
    with (
        nullcontext() if held else hold_lock(folder),
        translate_errors(folder),
        closing(_connect(folder, "rw")) as db,
    ):
        # A rollback journal copies only the pages that were there before: a first
        # import, which is most of all writing, is written once and not twice.
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute("PRAGMA cache_size=-200000")
        db.execute("PRAGMA temp_store=FILE")
        db.execute("PRAGMA threads=2")  # for sorting
        with db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            if changes:
                db.execute("UPDATE meta SET value = value + 1 WHERE key = 'version'")


def open_reader(folder: Path) -> sqlite3.Connection:
    db = _connect(folder, "ro")
    db.execute("PRAGMA cache_size=-32000")
    return db
