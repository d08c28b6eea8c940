"""Several graphs as one: concepts that are the same thing are fused, and come apart again.

Concepts with one identifier are one from the start. Others are fused by mappings that a
source states, and by preferred names that are the same in another vocabulary. Nothing is
moved: a merge is a row that says how and why, reading follows the rows, and taking them
away restores the graph as it was.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from osler.kb.graph import files
from osler.kb.graph.normal import normal
from osler.kb.graph.store import Graph
from osler.text import is_cjk

BY_MAPPING, BY_NAME = "mapping", "name"
_LEAST = 4
"""Letters of a name that is enough to be the same by; "CAT" is a gene, an animal and a scan."""


@dataclass(frozen=True, slots=True)
class Merge:
    one: str
    other: str
    how: str
    """`mapping` or `name`."""
    why: str
    """The mapping's source, or the name."""


@dataclass(frozen=True, slots=True)
class Fused:
    merges: int
    refused: int
    """Merges that would have made two concepts of one vocabulary the same."""


def fuse(graph: Graph, *, sources: Sequence[str] = ("sssom",), names: bool = True) -> Fused:
    """Fuses by the mappings of `sources`, then by names; what was fused before stays.

    `xref` is a possible source, but a cross-reference of an ontology is often to something
    broader. No two concepts of one vocabulary become one: that merge is refused.
    """
    with files.writing(graph.folder) as db:
        groups = _Groups(db)
        refused = 0
        for one, other, how, why in _proposed(db, sources, names):
            if groups.find(one) == groups.find(other):
                continue
            if groups.join(one, other):
                db.execute(
                    "INSERT OR IGNORE INTO merge VALUES (?, ?, ?, ?)", (one, other, how, why)
                )
            else:
                refused += 1
        _regroup(db)
        (merges,) = db.execute("SELECT count(*) FROM merge").fetchone()
        return Fused(merges, refused)


def separate(graph: Graph, merges: Sequence[Merge] | None = None) -> int:
    """Takes back these merges, or all; returns how many there were."""
    with files.writing(graph.folder) as db:
        if merges is None:
            gone = db.execute("DELETE FROM merge").rowcount
        else:
            gone = sum(
                db.execute(
                    "DELETE FROM merge WHERE one = (SELECT n FROM concept WHERE id = ?)"
                    " AND other = (SELECT n FROM concept WHERE id = ?) AND how = ?",
                    (merge.one, merge.other, merge.how),
                ).rowcount
                for merge in merges
            )
        _regroup(db)
        return gone


def merges(graph: Graph) -> list[Merge]:
    """Every merge in force, in order of identifiers."""
    query = (
        "SELECT one.id, other.id, how, why FROM merge JOIN concept AS one ON one.n = merge.one"
        " JOIN concept AS other ON other.n = merge.other ORDER BY 1, 2, 3"
    )
    with graph.reading() as db:
        return [Merge(*row) for row in db.execute(query)]


class _Groups:
    """Disjoint sets of concepts, none with two of one vocabulary."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._parent: dict[int, int] = {}
        self._held: dict[int, set[str]] = {}
        for one, other in db.execute("SELECT one, other FROM merge ORDER BY one, other"):
            self.join(one, other)

    def find(self, number: int) -> int:
        root = number
        while (above := self._parent.get(root, root)) != root:
            root = above
        self._parent[number] = root
        return root

    def join(self, one: int, other: int) -> bool:
        a, b = sorted((self.find(one), self.find(other)))
        mine, yours = self._vocabularies(a), self._vocabularies(b)
        if a == b or mine & yours:
            return False
        self._parent[b] = a
        self._held[a] = mine | yours
        return True

    def _vocabularies(self, root: int) -> set[str]:
        if root not in self._held:
            row = self._db.execute("SELECT id FROM concept WHERE n = ?", (root,)).fetchone()
            self._held[root] = {row[0].partition(":")[0]}
        return self._held[root]

    def heads(self) -> Iterator[tuple[int, int]]:
        for number in sorted(self._parent):
            yield number, self.find(number)


def _regroup(db: sqlite3.Connection) -> None:
    """`fused` follows from `merge`, always."""
    groups = _Groups(db)
    members = defaultdict(list)
    for number, head in groups.heads():
        members[head].append(number)
    db.execute("DELETE FROM fused")
    rows = [(n, head) for head, found in members.items() if len(found) > 1 for n in found]
    db.executemany("INSERT INTO fused VALUES (?, ?)", rows)


def _proposed(
    db: sqlite3.Connection, sources: Sequence[str], names: bool
) -> Iterator[tuple[int, int, str, str]]:
    mapped = (
        "SELECT one.n, other.n FROM mapping JOIN word ON word.n = mapping.source"
        " JOIN concept AS one ON one.id = mapping.one"
        " JOIN concept AS other ON other.id = mapping.other"
        " WHERE word.text = ? ORDER BY mapping.one, mapping.other"
    )
    for source in sources:
        for one, other in db.execute(mapped, (source,)).fetchall():
            yield one, other, BY_MAPPING, source
    if names:
        yield from _same_names(db)


def _same_names(db: sqlite3.Connection) -> Iterator[tuple[int, int, str, str]]:
    """Pairs with one preferred name, where that is nobody else's in the vocabulary of either."""
    db.execute("CREATE TEMP TABLE preferred (norm TEXT, vocabulary TEXT, concept INTEGER)")
    rows = db.execute("SELECT n, id, text FROM concept JOIN name ON concept = n WHERE rank = 0")
    db.executemany("INSERT INTO preferred VALUES (?, ?, ?)", _preferred(rows))
    # Counted by concept: one may have its preferred name from several sources.
    alone = (
        "SELECT norm, min(concept) FROM preferred GROUP BY norm, vocabulary"
        " HAVING count(DISTINCT concept) = 1 ORDER BY norm, 2"
    )
    first: tuple[str, int] | None = None
    for norm, concept in db.execute(alone).fetchall():
        if first is not None and first[0] == norm:
            yield first[1], concept, BY_NAME, norm
        else:
            first = norm, concept
    db.execute("DROP TABLE temp.preferred")


def _preferred(rows: Iterator[tuple[int, str, str]]) -> Iterator[tuple[str, str, int]]:
    for number, id, text in rows:
        norm = normal(text)
        if len(norm) >= _LEAST or any(map(is_cjk, norm)):
            yield norm, id.partition(":")[0], number
