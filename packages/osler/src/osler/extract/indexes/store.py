"""The rows of the indexes, in the knowledge base's own file.

They reference the extracted rows, as those reference the passages: an entry is deleted in the
transaction in which its chunk is deleted or extracted again. A row of `index_of` records that an
extractor's items of a passage are in an index; items without such a row are pending.

`make_indexes` brings them in step with the extracted items; only new items are read and encoded.
Each batch is one transaction, so that a killed run resumes where it stopped. Other processes may
read, search and build meanwhile, and add texts between two batches.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from osler.errors import ModelError
from osler.extract import store as extracted
from osler.extract.indexes import KINDS, VERSION, Kind, entry_texts
from osler.graph.files import has_table
from osler.kb.search.base import Floats, unit_problem
from osler.kb.store.passages import (
    Progress,
    ignore_progress,
    read_by_number,
    source_token,
    tokens_of,
)
from osler.text import language_of

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

# `meta.indexed` gets a new random value on each change, by which caches of vectors notice it.
_TABLES = (
    """CREATE TABLE IF NOT EXISTS index_kind(
  kind TEXT PRIMARY KEY, encoder TEXT NOT NULL, dimension INTEGER NOT NULL,
  version INTEGER NOT NULL, seconds REAL NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS index_of(
  passage INTEGER NOT NULL, extractor TEXT NOT NULL,
  kind TEXT NOT NULL REFERENCES index_kind(kind) ON DELETE CASCADE,
  PRIMARY KEY(passage, extractor, kind),
  FOREIGN KEY(passage, extractor) REFERENCES extracted(passage, extractor) ON DELETE CASCADE)
  WITHOUT ROWID""",
    "CREATE INDEX IF NOT EXISTS index_of_kind ON index_of(kind)",
    """CREATE TABLE IF NOT EXISTS index_entry(
  n INTEGER PRIMARY KEY AUTOINCREMENT, passage INTEGER NOT NULL, extractor TEXT NOT NULL,
  kind TEXT NOT NULL, text TEXT NOT NULL, words TEXT NOT NULL, source TEXT NOT NULL,
  FOREIGN KEY(passage, extractor, kind) REFERENCES index_of(passage, extractor, kind)
  ON DELETE CASCADE)""",
    "CREATE INDEX IF NOT EXISTS index_entry_of ON index_entry(passage, extractor, kind)",
    "CREATE INDEX IF NOT EXISTS index_entry_kind ON index_entry(kind)",
    """CREATE TABLE IF NOT EXISTS index_vector(
  entry INTEGER PRIMARY KEY REFERENCES index_entry(n) ON DELETE CASCADE,
  value BLOB NOT NULL)""",
    """CREATE VIRTUAL TABLE IF NOT EXISTS index_words USING fts5(words, kind, source,
  content='index_entry', content_rowid='n', tokenize='porter unicode61')""",
    """CREATE TRIGGER IF NOT EXISTS index_entry_came AFTER INSERT ON index_entry BEGIN
  INSERT INTO index_words(rowid, words, kind, source)
  VALUES (new.n, new.words, new.kind, new.source); END""",
    """CREATE TRIGGER IF NOT EXISTS index_entry_went AFTER DELETE ON index_entry BEGIN
  INSERT INTO index_words(index_words, rowid, words, kind, source)
  VALUES ('delete', old.n, old.words, old.kind, old.source); END""",
    """CREATE TRIGGER IF NOT EXISTS index_of_came AFTER INSERT ON index_of BEGIN
  INSERT OR REPLACE INTO meta VALUES ('indexed', hex(randomblob(8))); END""",
    """CREATE TRIGGER IF NOT EXISTS index_of_went AFTER DELETE ON index_of BEGIN
  INSERT OR REPLACE INTO meta VALUES ('indexed', hex(randomblob(8))); END""",
)

_PENDING = (
    "SELECT {what} FROM extracted AS e WHERE failed = '' AND NOT EXISTS"
    " (SELECT 1 FROM index_of AS i WHERE i.passage = e.passage AND i.extractor = e.extractor"
    " AND i.kind = ?)"
)


@dataclass(frozen=True, slots=True)
class IndexRecord:
    """The state of an index."""

    kind: Kind
    encoder: str
    """Identity of its encoder."""
    dimension: int
    version: int
    """Version of its texts (`kinds.VERSION`)."""


@dataclass(frozen=True, slots=True)
class IndexCost:
    """Size and cost of an index."""

    kind: str
    items: int
    """Number of entries; of "chunk" passages, of "graph" names and relations."""
    vectors: int
    bytes: int
    """Size of texts, words and vectors, without SQLite's own overhead."""
    seconds: float | None
    """Time of all runs that made it; `None` when not measured."""
    pending: int
    """Extracted chunks that are not in it yet."""


@dataclass(frozen=True, slots=True)
class PendingPassage:
    """A chunk whose items by one extractor are missing from an index."""

    passage: int
    """Its passage number."""
    extractor: str
    key: str
    """Key of the extraction; the index accepts the items only while it is current."""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    text: str
    vector: Floats | None
    """`None` in a language unknown to the encoder."""


def has_indexes(db: sqlite3.Connection) -> bool:
    return has_table(db, "index_of_went")


def made_indexes(db: sqlite3.Connection) -> dict[Kind, IndexRecord]:
    """The existing indexes, in the order of `KINDS`."""
    if not has_indexes(db):
        return {}
    rows = db.execute("SELECT kind, encoder, dimension, version FROM index_kind")
    held = {kind: IndexRecord(kind, *rest) for kind, *rest in rows}
    return {kind: held[kind] for kind in KINDS if kind in held}


def begin_index(db: sqlite3.Connection, kind: Kind, encoder: str, dimension: int) -> None:
    """Creates the tables, and empties an index of another encoder or version.

    Runs in the caller's transaction.
    """
    extracted.create_tables(db)  # an index of nothing yet hangs on its tables all the same
    for statement in _TABLES:
        db.execute(statement)
    wanted = IndexRecord(kind, encoder, dimension, VERSION)
    if made_indexes(db).get(kind, wanted) != wanted:
        drop_index(db, kind)
    db.execute(
        "INSERT OR IGNORE INTO index_kind VALUES (?, ?, ?, ?, 0)",
        (kind, encoder, dimension, VERSION),
    )


def drop_index(db: sqlite3.Connection, kind: Kind) -> int:
    """Drops an index; returns its number of entries. Runs in the caller's transaction."""
    if not has_indexes(db):
        return 0
    (count,) = db.execute("SELECT count(*) FROM index_entry WHERE kind = ?", (kind,)).fetchone()
    db.execute("DELETE FROM index_kind WHERE kind = ?", (kind,))
    return int(count)


def pending_passages(db: sqlite3.Connection, kind: Kind) -> list[PendingPassage]:
    """The chunks missing from an index, in passage order."""
    if not extracted.has_extractions(db):
        return []
    query = _PENDING.format(what="passage, extractor, key") + " ORDER BY passage, extractor"
    return [PendingPassage(*row) for row in db.execute(query, (kind,))]


def write_entries(
    db: sqlite3.Connection,
    kind: Kind,
    source: dict[int, str],
    done: Sequence[tuple[PendingPassage, Sequence[IndexEntry]]],
    seconds: float,
) -> int:
    """Stores entries in the caller's transaction; returns their number.

    `source`: source of each passage. Chunks extracted again or deleted meanwhile are left to the
    next run; nothing is stored in an index that was dropped.
    """
    if kind not in made_indexes(db):
        return 0
    written = 0
    for todo, found in done:
        of = (todo.passage, todo.extractor)
        # The items may have been replaced while they were being encoded.
        there = "SELECT 1 FROM extracted WHERE passage = ? AND extractor = ? AND key = ?"
        if db.execute(there, (*of, todo.key)).fetchone() is None:
            continue
        new = "INSERT OR IGNORE INTO index_of VALUES (?, ?, ?)"
        if not db.execute(new, (*of, kind)).rowcount:
            continue  # another process was first
        for entry in found:
            _put_entry(db, (*of, kind), entry, source_token(source[todo.passage]))
            written += 1
    db.execute("UPDATE index_kind SET seconds = seconds + ? WHERE kind = ?", (seconds, kind))
    return written


def _put_entry(
    db: sqlite3.Connection, of: tuple[int, str, Kind], entry: IndexEntry, source: str
) -> None:
    row = db.execute(
        "INSERT INTO index_entry(passage, extractor, kind, text, words, source)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        (*of, entry.text, tokens_of(entry.text), source),
    )
    if entry.vector is not None:
        db.execute(
            "INSERT INTO index_vector VALUES (?, ?)", (row.lastrowid, entry.vector.tobytes())
        )


def _of_chunks(db: sqlite3.Connection) -> IndexCost:
    count, size = db.execute(
        "SELECT count(*), coalesce(sum(length(CAST(text AS BLOB))), 0) FROM passage"
    ).fetchone()
    vectors, dense = db.execute(
        "SELECT count(*), coalesce(sum(length(value)), 0) FROM vector"
    ).fetchone()
    return IndexCost("chunk", count, vectors, size + dense, None, 0)


def _of_graph(db: sqlite3.Connection) -> list[IndexCost]:
    if not extracted.has_extractions(db):
        return []
    count, size = db.execute(
        "SELECT count(*), coalesce(sum(length(CAST(body AS BLOB))), 0) FROM extracted_item"
        " WHERE kind IN ('entity', 'relation')"
    ).fetchone()
    return [IndexCost("graph", count, 0, size, None, 0)]


def find_problems(db: sqlite3.Connection) -> Iterator[str]:
    """Reports entries missing from the full-text index, and words without an entry.

    Everything else is guarded by foreign keys, which are checked for all tables together.
    """
    if not has_indexes(db):
        return
    parted = {
        "entries of an index are not in its words": (
            "SELECT count(*) FROM index_entry WHERE n NOT IN (SELECT id FROM index_words_docsize)"
        ),
        "words of an index belong to no entry": (
            "SELECT count(*) FROM index_words_docsize WHERE id NOT IN (SELECT n FROM index_entry)"
        ),
    }
    for what, query in parted.items():
        (count,) = db.execute(query).fetchone()
        if count:
            yield f"{count} {what}"


# Chunks in one transaction.
_BATCH = 128


@dataclass(frozen=True, slots=True)
class IndexReport:
    """Result of bringing one index in step."""

    kind: Kind
    chunks: int
    """Chunks added to the index."""
    items: int
    """Index entries made from them."""
    seconds: float


def make_indexes(
    folder: Path,
    kinds: Iterable[Kind],
    encoder: Encoder | None,
    progress: Progress | None = None,
) -> list[IndexReport]:
    """Makes these indexes, or brings them in step; from now on they are kept in step.

    Without an encoder they contain words alone. An index made by another encoder is made anew.
    Idempotent. Blocks. Raises `KnowledgeBaseError`, and `ModelError` for unusable vectors.
    """
    tell = progress or ignore_progress
    return [_make_index(folder, kind, encoder, tell) for kind in dict.fromkeys(kinds)]


def follow_indexes(
    folder: Path, encoder: Encoder | None, progress: Progress | None = None
) -> list[IndexReport]:
    """Brings the existing indexes in step; see `make_indexes`."""
    return make_indexes(folder, kept_kinds(folder), encoder, progress)


def kept_kinds(folder: Path) -> tuple[Kind, ...]:
    with extracted.open_for_reading(folder) as db:
        return tuple(made_indexes(db))


def drop_indexes(folder: Path, kinds: Iterable[Kind]) -> int:
    """Drops indexes; returns the number of their entries."""
    with extracted.open_for_batch(folder) as db:
        return sum(drop_index(db, kind) for kind in dict.fromkeys(kinds))


def index_costs(folder: Path) -> list[IndexCost]:
    """Size and cost of the chunks, of each index, and of the graph of names, in this order."""
    with extracted.open_for_reading(folder) as db:
        found = [_of_chunks(db)]
        for kind in made_indexes(db):
            count, size = db.execute(
                "SELECT count(*), coalesce(sum(size), 0) FROM (SELECT"
                " length(CAST(text AS BLOB)) + length(CAST(words AS BLOB)) AS size"
                " FROM index_entry WHERE kind = ?)",
                (kind,),
            ).fetchone()
            vectors, dense = db.execute(
                "SELECT count(*), coalesce(sum(length(value)), 0) FROM index_vector"
                " JOIN index_entry ON n = entry WHERE kind = ?",
                (kind,),
            ).fetchone()
            (seconds,) = db.execute(
                "SELECT seconds FROM index_kind WHERE kind = ?", (kind,)
            ).fetchone()
            (left,) = db.execute(_PENDING.format(what="count(*)"), (kind,)).fetchone()
            found.append(IndexCost(kind, count, vectors, size + dense, seconds, left))
        return [*found, *_of_graph(db)]


def _make_index(
    folder: Path, kind: Kind, encoder: Encoder | None, progress: Progress
) -> IndexReport:
    identity, dimension = (encoder.identity, encoder.dimension) if encoder else ("", 0)
    with extracted.open_for_batch(folder) as db:
        begin_index(db, kind, identity, dimension)
        todo = pending_passages(db, kind)
    # Short transactions: other writers get in between two batches.
    begun, items = time.perf_counter(), 0
    progress(kind, 0, len(todo))
    for start in range(0, len(todo), _BATCH):
        items += _index_batch(folder, kind, encoder, todo[start : start + _BATCH])
        progress(kind, min(start + _BATCH, len(todo)), len(todo))
    return IndexReport(kind, len(todo), items, time.perf_counter() - begun)


def _index_batch(
    folder: Path, kind: Kind, encoder: Encoder | None, todo: Sequence[PendingPassage]
) -> int:
    begun = time.perf_counter()
    with extracted.open_for_reading(folder) as db:
        passages = read_by_number(db, {one.passage for one in todo})
        todo = [one for one in todo if one.passage in passages]  # others went meanwhile
        texts = []
        for one in todo:
            passage = passages[one.passage]
            found = extracted.of_passage(db, passage.id, extractor=one.extractor)
            texts.append(entry_texts(kind, passage, [each.item for each in found]))
    vectors = iter(_encode_texts(encoder, [text for each in texts for text in each]))
    done = [(one, [next(vectors) for _ in each]) for one, each in zip(todo, texts, strict=True)]
    with extracted.open_for_batch(folder) as db:
        source = {number: passage.source for number, passage in passages.items()}
        return write_entries(db, kind, source, done, time.perf_counter() - begun)


def _encode_texts(encoder: Encoder | None, texts: Sequence[str]) -> list[IndexEntry]:
    """Encodes texts; a text in a language unknown to the encoder gets no vector."""
    wanted = [
        n for n, text in enumerate(texts) if encoder and language_of(text) in encoder.languages
    ]
    found = [IndexEntry(text, None) for text in texts]
    if not encoder or not wanted:
        return found
    vectors = encoder.encode([texts[n] for n in wanted], kind="passage")
    if problem := unit_problem(vectors, (len(wanted), encoder.dimension)):
        raise ModelError(f"encoder {encoder.identity} gave vectors {problem}")
    for n, vector in zip(wanted, vectors, strict=True):
        found[n] = IndexEntry(texts[n], vector)
    return found
