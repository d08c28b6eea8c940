"""The concept graph in step with what was extracted, and never ahead of it.

Names and relations of texts stand in `graph.sqlite` like any vocabulary's, under sources
"text/…", with the passage's id as a relation's note. Tables of its own hold which passage
each rests on: what rests on none any more is taken out. So the graph can be brought in step
from any state, after a kill too, by comparing which passages it holds with which are there.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from osler.extract import items, names, store
from osler.extract.items import Entity, Item
from osler.graph import files, load
from osler.graph.derive import normalize_name
from osler.graph.items import Item as Fact
from osler.graph.items import Name, Relation, SemanticType
from osler.graph.store import Graph
from osler.kb.store import access
from osler.kb.store.passages import Progress, ignore_progress, read_meta
from osler.text import language_of, one_line

SOURCE = "text/"
"""Prefix of the sources of text facts; the extractor's name follows."""
# Passages in one transaction.
_BATCH = 1000
# Of a name that a text has: any vocabulary's comes first.
_RANK = 5

_TABLES = (
    "CREATE TABLE IF NOT EXISTS text_of(passage TEXT NOT NULL, extractor TEXT NOT NULL,"
    " key TEXT NOT NULL, PRIMARY KEY(passage, extractor)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS text_name(passage TEXT NOT NULL, extractor TEXT NOT NULL,"
    " concept TEXT NOT NULL, text TEXT NOT NULL, type TEXT NOT NULL,"
    " PRIMARY KEY(passage, extractor, concept, text, type)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS text_name_of ON text_name(concept, text)",
    "CREATE TABLE IF NOT EXISTS text_edge(passage TEXT NOT NULL, extractor TEXT NOT NULL,"
    " subject TEXT NOT NULL, predicate TEXT NOT NULL, object TEXT NOT NULL, note TEXT NOT NULL,"
    " PRIMARY KEY(passage, extractor, subject, predicate, object, note)) WITHOUT ROWID",
    "CREATE INDEX IF NOT EXISTS text_edge_of ON text_edge(subject, predicate, object)",
)

Of = tuple[str, str]
"""A passage's id and an extractor."""


@dataclass(frozen=True, slots=True)
class PublishReport:
    """Changes made by one publication."""

    passages: int = 0
    """Whose items came in."""
    withdrawn: int = 0
    """Passages whose items went."""
    names: int = 0
    relations: int = 0
    ambiguous: int = 0
    """Relations left out: several concepts have the name of one of their ends."""


def publish_items(folder: Path, progress: Progress | None = None) -> PublishReport:
    """Brings the graph of the folder in step, and makes it when there is none.

    Running it twice changes nothing. Raises `KnowledgeBaseError`.
    """
    tell = progress or ignore_progress
    with access.translate_errors(folder), closing(access.open_connection(folder)) as db:
        if not store.has_extractions(db):
            return PublishReport()
        here, mark = _stored_keys(db), read_meta(db, "extracted")
        with Graph.create(folder) as graph:
            gone = _withdraw_gone(folder, here, held=False)
            with graph.open_reader() as reader:
                there = _published_keys(reader)
            fresh = [of for of in here if of not in there]
            tell("graph", 0, len(fresh))
            total = PublishReport(withdrawn=gone)
            for start in range(0, len(fresh), _BATCH):
                total = _publish_passages(graph, db, fresh[start : start + _BATCH], here, total)
                tell("graph", min(start + _BATCH, len(fresh)), len(fresh))
        with files.open_writer(folder, changes=False) as writer:
            writer.execute("INSERT OR REPLACE INTO meta VALUES ('extracted', ?)", (mark,))
    return total


def withdraw_items(folder: Path, db: sqlite3.Connection) -> int:
    """Takes out of the graph what rests on passages that are gone; returns how many are.

    `db` is the knowledge base's, whose writer's lock the caller holds. Costs one look where
    nothing was extracted or nothing has changed.
    """
    if not store.has_extractions(db) or not (folder / files.FILE).is_file():
        return 0
    with closing(sqlite3.connect(folder / files.FILE)) as graph:
        known = graph.execute("SELECT value FROM meta WHERE key = 'extracted'").fetchone()
    if known is None or known[0] == read_meta(db, "extracted"):
        return 0
    return _withdraw_gone(folder, _stored_keys(db), held=True)


def find_problems(folder: Path, db: sqlite3.Connection) -> Iterator[str]:
    """Reports graph facts that rest on missing passages."""
    if not (folder / files.FILE).is_file():
        return
    problems = [*files.find_problems(folder)]
    yield from problems
    here = _stored_keys(db)
    with closing(sqlite3.connect(folder / files.FILE)) as graph:
        if problems or not _has_tables(graph):
            return
        for table in ("text_of", "text_name", "text_edge"):
            rows = graph.execute(f"SELECT DISTINCT passage, extractor FROM {table}")  # noqa: S608
            if count := sum(of not in here for of in rows):
                yield f"the graph holds what {count} passages said that are gone"


def _stored_keys(db: sqlite3.Connection) -> dict[Of, str]:
    if not store.has_extractions(db):
        return {}
    rows = db.execute(
        "SELECT passage.id, extractor, key FROM extracted JOIN passage"
        " ON passage.number = extracted.passage WHERE failed = '' ORDER BY passage.number"
    )
    return {(passage, extractor): key for passage, extractor, key in rows}


def _published_keys(db: sqlite3.Connection) -> dict[Of, str]:
    if not _has_tables(db):
        return {}
    rows = db.execute("SELECT passage, extractor, key FROM text_of")
    return {(passage, extractor): key for passage, extractor, key in rows}


def _has_tables(db: sqlite3.Connection) -> bool:
    return files.has_table(db, "text_edge_of")


# What comes in


def _publish_passages(
    graph: Graph,
    db: sqlite3.Connection,
    fresh: Sequence[Of],
    keys: dict[Of, str],
    before: PublishReport,
) -> PublishReport:
    """The items of some passages, in one transaction."""
    facts, ambiguous = list[Fact](), 0
    rows, edges = list[tuple[str, ...]](), list[tuple[str, ...]]()
    for of in fresh:
        resolved = _FactResolver(graph, of)
        items = [one.item for one in store.of_passage(db, of[0], extractor=of[1])]
        facts += resolved.resolve_facts(items)
        rows += resolved.names
        edges += resolved.edges
        ambiguous += resolved.ambiguous
    with files.open_writer(graph.folder) as writer:
        for statement in _TABLES:
            writer.execute(statement)
        # From here on whoever takes texts out knows that the graph rests on some.
        writer.execute("INSERT OR IGNORE INTO meta VALUES ('extracted', '')")
        added = load.load_stream(writer, facts)
        writer.executemany(
            "INSERT OR REPLACE INTO text_of VALUES (?, ?, ?)", [(*of, keys[of]) for of in fresh]
        )
        writer.executemany("INSERT OR IGNORE INTO text_name VALUES (?,?,?,?,?)", rows)
        writer.executemany("INSERT OR IGNORE INTO text_edge VALUES (?,?,?,?,?,?)", edges)
    return PublishReport(
        before.passages + len(fresh),
        before.withdrawn,
        before.names + added.names,
        before.relations + added.relations,
        before.ambiguous + ambiguous,
    )


class _FactResolver:
    """The items of one chunk as facts of the graph."""

    def __init__(self, graph: Graph, of: Of) -> None:
        self._graph, self._of, self._source = graph, of, SOURCE + of[1]
        self.names: list[tuple[str, ...]] = []
        self.edges: list[tuple[str, ...]] = []
        self.ambiguous = 0

    def resolve_facts(self, items: Sequence[Item]) -> Iterator[Fact]:
        entities = [item for item in items if isinstance(item, Entity)]
        ids = {normalize_name(entity.name): self._resolve_concepts(entity) for entity in entities}
        for entity in entities:
            for concept in ids[normalize_name(entity.name)][:1]:
                yield from self._name_facts(concept, entity)
        for item in items:
            if item.kind == "relation":
                yield from self._relation_facts(item, ids)

    def _resolve_concepts(self, entity: Entity) -> tuple[str, ...]:
        """The extractor's concepts, else the graph's of this name, else a new one."""
        known = entity.concepts or tuple(m.concept for m in self._graph.find_exact(entity.name))
        return () if len(known) > 1 else (known or (names.text_concept_id(entity.name),))

    def _name_facts(self, concept: str, entity: Entity) -> Iterator[Fact]:
        """A name that no vocabulary gives to the concept, with the entity's type."""
        text = one_line(entity.name)
        known = self._graph.get_concept(concept)
        if known is not None and not concept.startswith(names.PREFIX):
            is_known = normalize_name(text) in map(normalize_name, known.names)
            if is_known and not _is_from_texts(self._graph, concept, text):
                return
            self.names.append((*self._of, concept, text, ""))
        else:
            self.names.append((*self._of, concept, text, entity.type))
            if entity.type:
                yield SemanticType(concept, entity.type)
        rank = _RANK + text.isupper()  # what an abbreviation is short for comes before it
        yield Name(concept, text, self._source, rank, language_of(text))

    def _relation_facts(
        self, item: items.EntityRelation, ids: dict[str, tuple[str, ...]]
    ) -> Iterator[Fact]:
        ends = []
        for name in (item.subject, item.object):
            concepts = ids.get(normalize_name(name))
            if concepts is None:  # a precise form of an entity's name: "insulin for injection"
                entity = Entity(name, "", 0, len(name))
                concepts = self._resolve_concepts(entity)
                for concept in concepts:
                    yield from self._name_facts(concept, entity)
            if not concepts:
                self.ambiguous += 1
                return
            ends.append(concepts[0])
        passage, _ = self._of
        note = f"{passage} ({one_line(item.constraint)})" if item.constraint else passage
        predicate = one_line(item.predicate)
        self.edges.append((*self._of, ends[0], predicate, ends[1], note))
        yield Relation(ends[0], predicate, ends[1], self._source, note)


def _is_from_texts(graph: Graph, concept: str, text: str) -> bool:
    query = "SELECT 1 FROM text_name WHERE concept = ? AND text = ? LIMIT 1"
    with graph.open_reader() as db:
        return _has_tables(db) and db.execute(query, (concept, text)).fetchone() is not None


# What goes


def _withdraw_gone(folder: Path, here: dict[Of, str], *, held: bool) -> int:
    with closing(sqlite3.connect(folder / files.FILE)) as db:
        gone = [of for of, key in _published_keys(db).items() if here.get(of) != key]
    if gone:
        with files.open_writer(folder, held=held) as db:
            _take_out(db, gone)
    return len(gone)


def _take_out(db: sqlite3.Connection, gone: Sequence[Of]) -> None:
    """Deletes facts that rested on these passages alone, in the caller's transaction."""
    db.execute("CREATE TEMP TABLE gone(passage TEXT, extractor TEXT)")
    db.executemany("INSERT INTO gone VALUES (?, ?)", gone)
    of_gone = "(passage, extractor) IN (SELECT passage, extractor FROM gone)"
    edges = db.execute(f"SELECT * FROM text_edge WHERE {of_gone}").fetchall()  # noqa: S608
    called = db.execute(
        f"SELECT DISTINCT concept, text, extractor FROM text_name WHERE {of_gone}"  # noqa: S608
    ).fetchall()
    for table in ("text_of", "text_name", "text_edge"):
        db.execute(f"DELETE FROM {table} WHERE {of_gone}")  # noqa: S608
    db.execute("DROP TABLE temp.gone")
    for row in edges:
        _remove_relation(db, row)
    for concept, text, extractor in called:
        _remove_name(db, concept, text, extractor)
    for concept in dict.fromkeys(row[0] for row in called):
        _tidy_concept(db, concept)


def _remove_relation(db: sqlite3.Connection, row: tuple[str, ...]) -> None:
    """The passage's note of a relation goes, and the relation when no text of this extractor
    states it any more."""
    _, extractor, subject, predicate, object_, note = row
    stated = subject, predicate, object_, SOURCE + extractor
    concept, word = "(SELECT n FROM concept WHERE id = ?)", "(SELECT n FROM word WHERE text = ?)"
    where = f"subject = {concept} AND predicate = {word} AND object = {concept} AND source = {word}"
    db.execute(f"DELETE FROM note WHERE {where} AND text = ?", (*stated, note))  # noqa: S608
    left = db.execute(
        "SELECT 1 FROM text_edge WHERE subject = ? AND predicate = ? AND object = ?"
        " AND extractor = ? LIMIT 1",
        (subject, predicate, object_, extractor),
    ).fetchone()
    if left is None:
        db.execute(f"DELETE FROM edge WHERE {where}", stated)  # noqa: S608


def _remove_name(db: sqlite3.Connection, concept: str, text: str, extractor: str) -> None:
    """The name goes when no text of this extractor has it any more."""
    left = "SELECT 1 FROM text_name WHERE concept = ? AND text = ? AND extractor = ? LIMIT 1"
    if db.execute(left, (concept, text, extractor)).fetchone() is None:
        db.execute(
            "DELETE FROM name WHERE concept = (SELECT n FROM concept WHERE id = ?) AND text = ?"
            " AND source = (SELECT n FROM word WHERE text = ?)",
            (concept, text, SOURCE + extractor),
        )


def _tidy_concept(db: sqlite3.Connection, concept: str) -> None:
    """Spellings and types of a concept as its names now are; one without names goes."""
    row = db.execute("SELECT n FROM concept WHERE id = ?", (concept,)).fetchone()
    if row is None:
        return
    (number,) = row
    texts = [text for (text,) in db.execute("SELECT text FROM name WHERE concept = ?", row)]
    kept = json.dumps(sorted({normalize_name(text) for text in texts}))
    db.execute(
        "DELETE FROM alias WHERE concept = ? AND norm NOT IN (SELECT value FROM json_each(?))",
        (number, kept),
    )
    if concept.startswith(names.PREFIX):
        types = "SELECT n FROM word WHERE text IN (SELECT type FROM text_name WHERE concept = ?)"
        db.execute(
            f"DELETE FROM typed WHERE concept = ? AND type NOT IN ({types})",  # noqa: S608
            (number, concept),
        )
    if not texts:
        for table, column in _OF_CONCEPT:
            db.execute(f"DELETE FROM {table} WHERE {column} = ?", row)  # noqa: S608


_OF_CONCEPT = (
    *(("note", end) for end in ("subject", "object")),
    *(("edge", end) for end in ("subject", "object")),
    *((table, "concept") for table in ("definition", "typed", "alias")),
    *(("merge", end) for end in ("one", "other")),
    *(("fused", end) for end in ("member", "head")),
    ("concept", "n"),
)
