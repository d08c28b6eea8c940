"""The extracted rows in the knowledge base's own file.

They reference the passages by foreign keys: deleting a passage deletes its items in the same
transaction, and a snapshot contains both. The first run creates the tables. Items are also kept
by key, so that a chunk that returns with the same words costs nothing; entries no longer in use
are deleted by the next complete run.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from osler.extract import ExtractionOutcome, items
from osler.extract.items import ExtractedItems, Item
from osler.graph.derive import normalize_name
from osler.graph.files import has_table
from osler.kb.store import access
from osler.types import Usage

# Seconds.
_PATIENCE = 600.0
# `meta.extracted` gets a new random value on each change, by which derived data (`publish`) notices
# that it is out of date.
_TABLES = (
    """CREATE TABLE IF NOT EXISTS extracted(
  passage INTEGER NOT NULL REFERENCES passage(number) ON DELETE CASCADE,
  extractor TEXT NOT NULL, key TEXT NOT NULL, failed TEXT NOT NULL, drops TEXT NOT NULL,
  cut INTEGER NOT NULL, calls INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY(passage, extractor)) WITHOUT ROWID""",
    """CREATE TABLE IF NOT EXISTS extracted_item(
  n INTEGER PRIMARY KEY, passage INTEGER NOT NULL, extractor TEXT NOT NULL,
  kind TEXT NOT NULL, norm TEXT NOT NULL, body TEXT NOT NULL,
  FOREIGN KEY(passage, extractor) REFERENCES extracted(passage, extractor) ON DELETE CASCADE)""",
    """CREATE INDEX IF NOT EXISTS extracted_item_of ON extracted_item(passage, extractor)""",
    """CREATE INDEX IF NOT EXISTS extracted_item_norm ON extracted_item(norm, kind)""",
    """CREATE TABLE IF NOT EXISTS extracted_kept(
  key TEXT PRIMARY KEY, items TEXT NOT NULL, drops TEXT NOT NULL, cut INTEGER NOT NULL)
  WITHOUT ROWID""",
    """CREATE TRIGGER IF NOT EXISTS extracted_came AFTER INSERT ON extracted BEGIN
  INSERT OR REPLACE INTO meta VALUES ('extracted', hex(randomblob(8))); END""",
    """CREATE TRIGGER IF NOT EXISTS extracted_went AFTER DELETE ON extracted BEGIN
  INSERT OR REPLACE INTO meta VALUES ('extracted', hex(randomblob(8))); END""",
)


Kept = dict[str, ExtractedItems]
"""Known results by key."""


@dataclass(frozen=True, slots=True)
class ExtractedPassage:
    """A chunk with its outcome."""

    number: int
    """Passage number."""
    key: str
    outcome: ExtractionOutcome


@dataclass(frozen=True, slots=True)
class AnchoredItem:
    """An item with its passage."""

    passage: str
    """Its id."""
    extractor: str
    item: Item


@dataclass(frozen=True, slots=True)
class ExtractorAccount:
    """Totals of one extractor."""

    extractor: str
    chunks: int
    failed: int
    cut: int
    usage: Usage
    kinds: tuple[tuple[str, int], ...]
    """Items by kind."""
    drops: tuple[tuple[str, int], ...]


@contextmanager
def open_for_reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Opens a knowledge base's file for reading, in one transaction."""
    with (
        access.translate_errors(folder),
        closing(access.open_connection(folder)) as db,
        access.read_transaction(db),
    ):
        yield db


@contextmanager
def open_for_batch(folder: Path) -> Iterator[sqlite3.Connection]:
    """Opens it for the one transaction of a batch, while others may build.

    A finished batch waits for a process that is adding texts.
    """
    with (
        access.open_for_writing(folder, access.LockMode.TOGETHER, wait=_PATIENCE) as db,
        access.write_transaction(db),
    ):
        yield db


def has_extractions(db: sqlite3.Connection) -> bool:
    """Whether the tables of extracted items exist."""
    return has_table(db, "extracted_came")


def create_tables(db: sqlite3.Connection) -> None:
    """Creates missing tables in the caller's transaction."""
    for statement in _TABLES:
        db.execute(statement)


def stored_keys(db: sqlite3.Connection, extractor: str) -> dict[int, str]:
    """The key under which each passage was last extracted, without failures."""
    if not has_extractions(db):
        return {}
    rows = db.execute(
        "SELECT passage, key FROM extracted WHERE extractor = ? AND failed = ''", (extractor,)
    )
    return dict(rows)


def known_results(db: sqlite3.Connection, keys: Iterable[str]) -> Kept:
    """The known results among `keys`."""
    if not has_extractions(db):
        return {}
    wanted = json.dumps(sorted(set(keys)))
    rows = db.execute(
        "SELECT * FROM extracted_kept WHERE key IN (SELECT value FROM json_each(?))", (wanted,)
    )
    return {
        key: ExtractedItems(items.load_items(held), tuple(json.loads(drops).items()), cut)
        for key, held, drops, cut in rows
    }


def is_kept(db: sqlite3.Connection, key: str) -> bool:
    query = "SELECT 1 FROM extracted_kept WHERE key = ?"
    return has_extractions(db) and db.execute(query, (key,)).fetchone() is not None


def write_results(db: sqlite3.Connection, extractor: str, done: Sequence[ExtractedPassage]) -> int:
    """Stores chunks in the caller's transaction, replacing the extractor's earlier results.

    Returns the number written; passages deleted meanwhile are skipped.
    """
    create_tables(db)
    written = 0
    for one in done:
        held = db.execute("SELECT 1 FROM passage WHERE number = ?", (one.number,)).fetchone()
        if held is None:
            continue
        written += 1
        _replace_items(db, extractor, one)
    return written


def _replace_items(db: sqlite3.Connection, extractor: str, one: ExtractedPassage) -> None:
    found, usage = one.outcome.found, one.outcome.usage
    # Deleting the row deletes its items and index entries by foreign keys.
    of = (one.number, extractor)
    # Counts by reason, kept for `osler kb extract --json` and the totals.
    drops = json.dumps(dict(found.drops), ensure_ascii=False)
    db.execute("DELETE FROM extracted WHERE passage = ? AND extractor = ?", of)
    db.execute(
        "INSERT INTO extracted VALUES (?,?,?,?,?, ?,?,?,?,?,?)",
        (
            *(*of, one.key, one.outcome.failed, drops),
            *(found.cut, usage.calls, usage.prompt_tokens, usage.completion_tokens),
            *(usage.seconds, int(time.time())),
        ),
    )
    if one.outcome.failed:
        return
    db.executemany(
        "INSERT INTO extracted_item(passage, extractor, kind, norm, body) VALUES (?,?,?,?,?)",
        [
            (*of, item.kind, normalize_name(item_name(item)), items.dump_items([item]))
            for item in found.items
        ],
    )
    db.execute(
        "INSERT OR REPLACE INTO extracted_kept VALUES (?, ?, ?, ?)",
        (one.key, items.dump_items(found.items), drops, found.cut),
    )


def item_name(item: Item) -> str:
    """The name by which an item is found."""
    match item.kind:
        case "entity" | "point":
            return item.name
        case "relation":
            return f"{item.subject} {item.predicate} {item.object}"
        case "table" | "heading":
            return item.title
        case "summary":
            return item.about[0]


def sweep_results(db: sqlite3.Connection) -> int:
    """Deletes known results that no chunk uses any more; returns their number."""
    if not has_extractions(db):
        return 0
    return db.execute(
        "DELETE FROM extracted_kept WHERE key NOT IN (SELECT key FROM extracted)"
    ).rowcount


def of_passage(db: sqlite3.Connection, id: str, *, extractor: str = "") -> list[AnchoredItem]:
    """The items of a chunk in the order of extraction."""
    return list(_read_items(db, "passage.id = ? AND ? IN ('', i.extractor)", (id, extractor)))


def all_items(db: sqlite3.Connection) -> Iterator[AnchoredItem]:
    return _read_items(db, "?", (1,))


def _read_items(
    db: sqlite3.Connection, where: str, values: Sequence[object]
) -> Iterator[AnchoredItem]:
    if not has_extractions(db):
        return
    rows = db.execute(
        "SELECT passage.id, i.extractor, i.body FROM extracted_item AS i"  # noqa: S608
        f" JOIN passage ON passage.number = i.passage WHERE {where} ORDER BY i.passage, i.n",
        values,
    )
    for id, extractor, body in rows:
        for item in items.load_items(body):
            yield AnchoredItem(id, extractor, item)


def extractor_accounts(db: sqlite3.Connection) -> list[ExtractorAccount]:
    """The totals of each extractor, in alphabetical order."""
    if not has_extractions(db):
        return []
    kinds: dict[str, list[tuple[str, int]]] = {}
    counted = "SELECT extractor, kind, count(*) FROM extracted_item GROUP BY 1, 2 ORDER BY 1, 2"
    for extractor, kind, count in db.execute(counted):
        kinds.setdefault(extractor, []).append((kind, count))
    drops: dict[str, list[tuple[str, int]]] = {}
    lost = (
        "SELECT extractor, d.key, sum(d.value) FROM extracted, json_each(drops) AS d GROUP BY 1, 2"
        " ORDER BY 1, 3 DESC, 2"
    )
    for extractor, reason, count in db.execute(lost):
        drops.setdefault(extractor, []).append((reason, count))
    rows = db.execute(
        "SELECT extractor, count(*), sum(failed != ''), sum(cut), sum(calls), sum(prompt_tokens),"
        " sum(completion_tokens), sum(seconds) FROM extracted GROUP BY 1 ORDER BY 1"
    )
    return [
        ExtractorAccount(
            name,
            chunks,
            failed,
            cut,
            Usage(calls, read, written, seconds=seconds),
            tuple(kinds.get(name, ())),
            tuple(drops.get(name, ())),
        )
        for name, chunks, failed, cut, calls, read, written, seconds in rows
    ]


def find_problems(db: sqlite3.Connection) -> Iterator[str]:
    """Reports items without a chunk and items outside their chunk; reads everything."""
    if not has_extractions(db):
        return
    orphans = (
        "SELECT count(*) FROM extracted WHERE passage NOT IN (SELECT number FROM passage)",
        "SELECT count(*) FROM extracted_item AS i WHERE NOT EXISTS (SELECT 1 FROM extracted AS e"
        " WHERE e.passage = i.passage AND e.extractor = i.extractor)",
    )
    for query in orphans:
        (count,) = db.execute(query).fetchone()
        if count:
            yield f"{count} extracted items belong to no passage"
    texts: Mapping[str, int] = dict(db.execute("SELECT id, length(text) FROM passage"))
    for one in all_items(db):
        if not 0 <= one.item.start < one.item.end <= texts.get(one.passage, 0):
            yield f"an extracted {one.item.kind} lies outside {one.passage}"
