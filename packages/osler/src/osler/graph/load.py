"""Bulk loading: a stream of facts goes into the tables in bounded memory."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter

from osler.graph.derive import normalize_name
from osler.graph.files import INDEX_IN
from osler.graph.items import (
    EXAMPLES,
    ConceptMapping,
    Definition,
    ImportReport,
    Item,
    Name,
    Relation,
    SemanticType,
    Stream,
)
from osler.sources.records import Drop
from osler.text import one_line

_BATCH = 20_000
# Definitions, types and relations may come before the names that they speak of.
_WAITING = """
CREATE TEMP TABLE new_alias (norm TEXT, concept INTEGER);
CREATE TEMP TABLE new_definition (id TEXT, source INTEGER, text TEXT, place TEXT);
CREATE TEMP TABLE new_typed (id TEXT, type INTEGER, place TEXT);
CREATE TEMP TABLE new_edge (one TEXT, predicate INTEGER, two TEXT, source INTEGER,
    note TEXT, place TEXT);
"""
_PLACE = {
    "definition": (
        "INSERT OR IGNORE INTO definition SELECT concept.n, new.source, new.text"
        " FROM new_definition AS new JOIN concept USING (id) ORDER BY 1, 2, 3"
    ),
    "typed": (
        "INSERT OR IGNORE INTO typed SELECT concept.n, new.type"
        " FROM new_typed AS new JOIN concept USING (id) ORDER BY 1, 2"
    ),
    "resolved": (
        "CREATE TEMP TABLE resolved AS"
        " SELECT one.n AS one, new.predicate, two.n AS two, new.source,"
        " CASE WHEN one.n IS NULL OR two.n IS NULL OR new.note <> '' THEN new.rowid END AS row"
        " FROM new_edge AS new LEFT JOIN concept AS one ON one.id = new.one"
        " LEFT JOIN concept AS two ON two.id = new.two"
    ),
    "edge": (
        "INSERT OR IGNORE INTO edge SELECT one, predicate, two, source FROM resolved"
        " WHERE one IS NOT NULL AND two IS NOT NULL ORDER BY 1, 2, 3, 4"
    ),
    "note": (
        "INSERT OR IGNORE INTO note SELECT r.one, r.predicate, r.two, r.source, new.note"
        " FROM resolved AS r JOIN new_edge AS new ON new.rowid = r.row"
        " WHERE r.one IS NOT NULL AND r.two IS NOT NULL AND new.note <> ''"
    ),
    "alias": "INSERT OR IGNORE INTO alias SELECT norm, concept FROM new_alias ORDER BY 1, 2",
}
_DANGLING = {
    "definition of an unknown concept": (
        "SELECT place, id FROM new_definition WHERE id NOT IN (SELECT id FROM concept)"
    ),
    "type of an unknown concept": (
        "SELECT place, id FROM new_typed WHERE id NOT IN (SELECT id FROM concept)"
    ),
    "relation with an unknown end": (
        "SELECT new.place, CASE WHEN r.one IS NULL THEN new.one ELSE new.two END"
        " FROM resolved AS r JOIN new_edge AS new ON new.rowid = r.row"
        " WHERE r.one IS NULL OR r.two IS NULL"
    ),
}


class _Drops:
    """Drops counted by reason, with a few examples of each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: list[Drop] = []

    def count_drop(self, drop: Drop) -> None:
        self.counts[drop.reason] += 1
        if self.counts[drop.reason] <= EXAMPLES:
            self.examples.append(drop)


class _Loader:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.drops = _Drops()
        self.names: list[Name] = []
        self.definitions: list[tuple[str, int, str, str]] = []
        self.types: list[tuple[str, int, str]] = []
        self.relations: list[tuple[str, int, str, int, str, str]] = []
        self.mappings: list[tuple[str, str, int]] = []
        self.words: dict[str, int] = dict(db.execute("SELECT text, n FROM word"))
        (self.next,) = db.execute("SELECT coalesce(max(n), 0) + 1 FROM concept").fetchone()

    def word_number(self, text: str) -> int:
        """The number of a predicate, a source, a type or a language: there are few of them."""
        number = self.words.get(text)
        if number is None and (line := one_line(text)) != text:
            return self.word_number(line)
        if number is None:
            number = self.words[text] = len(self.words) + 1
            self.db.execute("INSERT INTO word VALUES (?, ?)", (number, text))
        return number

    def take_item(self, item: Item) -> None:
        if isinstance(item, Name):  # by far the most are names and relations
            self.names.append(item)
        elif isinstance(item, Relation):
            one, predicate, two, source, note, place = item
            kinds = self.word_number(predicate), self.word_number(source)
            note = _single_line(note) if note else ""
            self.relations.append(
                (_single_line(one), kinds[0], _single_line(two), kinds[1], note, place)
            )
        elif isinstance(item, Definition):
            concept, text, source, place = item
            self._add_definition(
                _single_line(concept), self.word_number(source), _single_line(text), place
            )
        elif isinstance(item, SemanticType):
            concept, type_, place = item
            self.types.append((_single_line(concept), self.word_number(type_), place))
        elif isinstance(item, ConceptMapping):
            one, two, source, _ = item
            self.mappings.append((_single_line(one), _single_line(two), self.word_number(source)))
        else:
            self.drops.count_drop(item)

    def _add_definition(self, concept: str, source: int, text: str, place: str) -> None:
        if text:
            self.definitions.append((concept, source, text, place))
        else:
            self.drops.count_drop(Drop(place or concept, "definition without text"))

    def flush_rows(self) -> None:
        many = self.db.executemany
        self._flush_names()
        many("INSERT INTO new_definition VALUES (?, ?, ?, ?)", self.definitions)
        many("INSERT INTO new_typed VALUES (?, ?, ?)", self.types)
        many("INSERT INTO new_edge VALUES (?, ?, ?, ?, ?, ?)", self.relations)
        many("INSERT OR IGNORE INTO mapping VALUES (?, ?, ?)", self.mappings)
        for batch in (self.definitions, self.types, self.relations, self.mappings):
            batch.clear()

    def _flush_names(self) -> None:
        wanted = list({_single_line(name.concept) for name in self.names})
        known: dict[str, int] = dict(
            self.db.execute(
                "SELECT id, n FROM concept WHERE id IN (SELECT value FROM json_each(?))",
                (json.dumps(wanted),),
            )
        )
        fresh, rows, aliases = [], [], []
        for raw_id, raw_text, source, rank, language, place in self.names:
            id, text = _single_line(raw_id), _single_line(raw_text)
            if not (text and id):
                self.drops.count_drop(Drop(place or id, "name without text or id"))
                continue
            number = known.get(id)
            if number is None:
                number = known[id] = self.next
                self.next += 1
                fresh.append((number, id))
            rows.append((number, rank, text, self.word_number(source), self.word_number(language)))
            aliases.append((normalize_name(text), number))
        self.db.executemany("INSERT INTO concept VALUES (?, ?)", fresh)
        self.db.executemany("INSERT OR IGNORE INTO name VALUES (?, ?, ?, ?, ?)", rows)
        self.db.executemany("INSERT INTO new_alias VALUES (?, ?)", aliases)
        self.names.clear()

    def place_pending(self) -> None:
        (had,) = self.db.execute("SELECT EXISTS (SELECT 1 FROM edge)").fetchone()
        if not had:  # sorted once at the end, an index costs a fraction of row by row
            self.db.execute("DROP INDEX edge_in")
        for statement in _PLACE.values():
            self.db.execute(statement)
        self.db.execute(INDEX_IN)
        for reason, statement in _DANGLING.items():
            for place, id in self.db.execute(statement):
                self.drops.count_drop(Drop(f"{place}: {id}" if place else id, reason))


def _single_line(text: str) -> str:
    """`one_line`, with a short cut for ASCII text that is one line already."""
    if text.isascii() and text.isprintable():
        return " ".join(text.split()) if " " in text else text
    return one_line(text)


def load_stream(db: sqlite3.Connection, stream: Stream) -> ImportReport:
    """Loads all facts of the stream; a fact that is there already is not stored again."""
    before = count_rows(db)
    for statement in filter(str.strip, _WAITING.split(";")):
        db.execute(statement)
    loader = _Loader(db)
    for number, item in enumerate(stream, 1):
        loader.take_item(item)
        if number % _BATCH == 0:
            loader.flush_rows()
    loader.flush_rows()
    loader.place_pending()
    for table in ("new_alias", "new_definition", "new_typed", "new_edge", "resolved"):
        db.execute(f"DROP TABLE temp.{table}")
    concepts, names, definitions, relations, mappings = (
        now - then for now, then in zip(count_rows(db), before, strict=True)
    )
    drops = tuple(loader.drops.counts.most_common()), tuple(loader.drops.examples)
    return ImportReport(concepts, names, definitions, relations, mappings, *drops)


def count_rows(db: sqlite3.Connection) -> tuple[int, int, int, int, int]:
    """Counts of concepts, names, definitions, relations and mappings."""
    tables = ("concept", "name", "definition", "edge", "mapping")
    counts = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]  # noqa: S608
    return counts[0], counts[1], counts[2], counts[3], counts[4]
