"""Reading the tables of a graph: rows by numbers, and numbers as names."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence

from osler.graph import files, items
from osler.graph.items import Direction, Edge

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


def id_of(db: sqlite3.Connection, number: int) -> str:
    row = db.execute("SELECT id FROM concept WHERE n = ?", (number,)).fetchone()
    return str(row[0])


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
