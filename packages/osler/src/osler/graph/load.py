"""Bulk loading: a stream of facts goes into the tables in bounded memory.

Rows by numbers, and numbers as names, are read here as well.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from osler.graph import files, items
from osler.graph.derive import normalize_name
from osler.graph.files import INDEX_IN
from osler.graph.items import (
    EXAMPLES,
    ConceptMapping,
    Definition,
    Direction,
    Edge,
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


class _Loader:
    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.drops: Counter[str] = Counter()
        self.examples: list[Drop] = []
        self.names: list[Name] = []
        self.definitions: list[tuple[str, int, str, str]] = []
        self.types: list[tuple[str, int, str]] = []
        self.relations: list[tuple[str, int, str, int, str, str]] = []
        self.mappings: list[tuple[str, str, int]] = []
        self.words: dict[str, int] = dict(db.execute("SELECT text, n FROM word"))
        (self.next,) = db.execute("SELECT coalesce(max(n), 0) + 1 FROM concept").fetchone()

    def count_drop(self, drop: Drop) -> None:
        """Counts a drop by its reason, and keeps the first few of each."""
        self.drops[drop.reason] += 1
        if self.drops[drop.reason] <= EXAMPLES:
            self.examples.append(drop)

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
            self.count_drop(item)

    def _add_definition(self, concept: str, source: int, text: str, place: str) -> None:
        if text:
            self.definitions.append((concept, source, text, place))
        else:
            self.count_drop(Drop(place or concept, "definition without text"))

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
                self.count_drop(Drop(place or id, "name without text or id"))
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
                self.count_drop(Drop(f"{place}: {id}" if place else id, reason))


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
    drops = tuple(loader.drops.most_common()), tuple(loader.examples)
    return ImportReport(concepts, names, definitions, relations, mappings, *drops)


def count_rows(db: sqlite3.Connection) -> tuple[int, int, int, int, int]:
    """Counts of concepts, names, definitions, relations and mappings."""
    tables = ("concept", "name", "definition", "edge", "mapping")
    counts = [db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]  # noqa: S608
    return counts[0], counts[1], counts[2], counts[3], counts[4]


# Whose definition of a concept comes first (Omni-RAG §3.2); any other vocabulary follows.
_DEFINERS = ("MSH", "NCI", "ICF", "CSP", "HPO")

_NAME_OF = "(SELECT text FROM name WHERE concept = {column} ORDER BY rank, text LIMIT 1)"


def version_stamp(db: sqlite3.Connection) -> str:
    (version,) = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    return f"{files.SCHEMA}.{version}"


def read_members(db: sqlite3.Connection, id: str) -> list[int]:
    """The head's number, then those fused with it; [] when nothing has this identifier."""
    id = id.encode(errors="replace").decode()
    query = "SELECT n FROM concept WHERE id = ?"
    # "CUI:C0011849", as texts about UMLS have it, is UMLS:C0011849 here.
    row = (
        db.execute(query, (id,)).fetchone()
        or db.execute(query, (items.parse_curie(id),)).fetchone()
    )
    if row is None:
        return []
    fused = db.execute("SELECT head FROM fused WHERE member = ?", row).fetchone()
    if fused is None:
        return [row[0]]
    others = db.execute("SELECT member FROM fused WHERE head = ? ORDER BY member", fused)
    return list(dict.fromkeys([fused[0], *(number for (number,) in others)]))


def placeholders_for(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def read_texts(db: sqlite3.Connection, query: str, values: Sequence[object]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row[0] for row in db.execute(query, values)))


def ids_of(db: sqlite3.Connection, numbers: Iterable[int]) -> dict[int, str]:
    # One parameter of JSON: SQLite allows only so many of its own.
    wanted = json.dumps(sorted({int(number) for number in numbers}))
    return dict(
        db.execute(
            "SELECT n, id FROM concept WHERE n IN (SELECT value FROM json_each(?))", (wanted,)
        )
    )


def word_numbers(db: sqlite3.Connection, texts: Sequence[str]) -> list[int]:
    query = "SELECT n FROM word WHERE text IN (SELECT value FROM json_each(?))"
    return [number for (number,) in db.execute(query, (json.dumps(list(texts)),))]


def read_definitions(db: sqlite3.Connection, members: Sequence[int]) -> tuple[tuple[str, str], ...]:
    rows = db.execute(
        "SELECT DISTINCT word.text, definition.text FROM definition"  # noqa: S608
        f" JOIN word ON word.n = definition.source WHERE concept IN ({placeholders_for(members)})",
        members,
    )
    return tuple(sorted(rows, key=lambda row: (definer_rank(row[0]), row)))


def definer_rank(source: str) -> int:
    return _DEFINERS.index(source) if source in _DEFINERS else len(_DEFINERS)


Row = tuple[int, int, int, int]


def read_edge_rows(
    db: sqlite3.Connection,
    members: Sequence[int],
    kinds: Sequence[int],
    direction: Direction,
    limit: int | None,
) -> Iterator[Row]:
    chosen = f" AND predicate IN ({placeholders_for(kinds)})" if kinds else ""
    for end in ("subject", "object"):
        if direction == ("in" if end == "subject" else "out"):
            continue
        yield from db.execute(
            "SELECT subject, predicate, object, source FROM edge"  # noqa: S608
            f" WHERE {end} IN ({placeholders_for(members)}){chosen} LIMIT ?",
            (*members, *kinds, -1 if limit is None else limit),
        )


def read_edges(db: sqlite3.Connection, rows: Sequence[Row]) -> list[Edge]:
    """Edges with identifiers and names of the heads; each triple once, none to itself."""
    ends = {number for row in rows for number in (row[0], row[2])}
    heads = db.execute(
        "SELECT value, head.id, "  # noqa: S608
        + _NAME_OF.format(column="head.n")
        + " FROM json_each(?) LEFT JOIN fused ON fused.member = value"
        " JOIN concept AS head ON head.n = coalesce(fused.head, value)",
        (json.dumps(list(ends)),),
    )
    labels: dict[int, tuple[str, str]] = {number: (id, name) for number, id, name in heads}
    words: dict[int, str] = dict(
        db.execute(
            "SELECT n, text FROM word WHERE n IN (SELECT value FROM json_each(?))",
            (json.dumps(list({number for row in rows for number in (row[1], row[3])})),),
        )
    )
    edges: dict[tuple[str, str, str], Edge] = {}
    for one, predicate, two, source in rows:
        (subject, subject_name), (object_, object_name) = labels[one], labels[two]
        kind = words[predicate]
        if subject != object_ or one == two:
            edge = Edge(subject, kind, object_, subject_name, object_name, words[source])
            edges.setdefault((subject, kind, object_), edge)
    return list(edges.values())
