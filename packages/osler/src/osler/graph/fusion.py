"""Fusion of graphs: concepts that are the same thing are merged, reversibly.

Concepts with one identifier are one from the start. Others are fused by mappings that a
source states, and by preferred names that are the same in another vocabulary. Nothing is
moved: a merge is a row that says how and why, reading follows the rows, and taking them
away restores the graph as it was.

Descriptions of concepts are taken from an encyclopaedia's articles (TC-RAG App. 8.5).
"""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from osler.graph import files
from osler.graph.derive import normalize_name
from osler.graph.items import Definition
from osler.graph.store import Graph
from osler.text import has_cjk, one_line, split_sentences
from osler.types import Passage

BY_MAPPING, BY_NAME, BY_SYNONYM = "mapping", "name", "synonym"
# Letters of a name that may prove two concepts equal; "CAT" is a gene, an animal and a scan.
_LEAST = 4


@dataclass(frozen=True, slots=True)
class FusionReport:
    merges: int
    refused: int
    """Merges that would have made two concepts of one vocabulary the same."""


@dataclass(frozen=True, slots=True)
class AttachReport:
    merges: int
    unmatched: tuple[tuple[str, str], ...]
    """Identifier and name of concepts without a counterpart in another vocabulary."""
    ambiguous: int
    """How many of the unmatched share their names with several others."""


def fuse_concepts(
    graph: Graph, *, sources: Sequence[str] = ("sssom",), names: bool = True
) -> FusionReport:
    """Fuses by the mappings of `sources`, then by names; what was fused before stays.

    `xref` is a possible source, but a cross-reference of an ontology is often to something
    broader. No two concepts of one vocabulary become one: that merge is refused.
    """
    with files.open_writer(graph.folder) as db:
        groups = _Groups(db)
        refused = 0
        for one, other, how, why in _propose_merges(db, sources, names):
            if groups.find_root(one) == groups.find_root(other):
                continue
            if groups.join_groups(one, other):
                db.execute(
                    "INSERT OR IGNORE INTO merge VALUES (?, ?, ?, ?)", (one, other, how, why)
                )
            else:
                refused += 1
        _write_groups(db)
        (merges,) = db.execute("SELECT count(*) FROM merge").fetchone()
        return FusionReport(merges, refused)


def attach_vocabulary(graph: Graph, vocabulary: str) -> AttachReport:
    """Fuses each concept of a vocabulary with the one concept of another that has its name.

    So DrugBank's descriptions and interactions come to the concepts of UMLS (Omni-RAG
    §3.2). The preferred name is tried first, then the synonyms, each in order; a name that
    several others have, or too short a one, decides nothing.
    """
    with files.open_writer(graph.folder) as db:
        groups, merged, ambiguous = _Groups(db), 0, 0
        unmatched: list[tuple[str, str]] = []
        prefix = f"{vocabulary}:"
        own = db.execute(
            "SELECT n, id FROM concept WHERE substr(id, 1, ?) = ? AND n NOT IN"
            " (SELECT member FROM fused) ORDER BY n",
            (len(prefix), prefix),
        ).fetchall()
        for number, id in own:
            names = db.execute(
                "SELECT DISTINCT text, rank FROM name WHERE concept = ? ORDER BY rank, text",
                (number,),
            ).fetchall()
            several = False
            for name, rank in names:
                others = _find_bearers(db, name, prefix)
                several = several or len(others) > 1
                if len(others) == 1 and groups.join_groups(number, others[0]):
                    how = BY_SYNONYM if rank else BY_NAME
                    one, other = sorted((number, others[0]))
                    db.execute(
                        "INSERT OR IGNORE INTO merge VALUES (?, ?, ?, ?)", (one, other, how, name)
                    )
                    merged += 1
                    break
            else:
                unmatched.append((id, names[0][0]))
                ambiguous += several
        _write_groups(db)
        return AttachReport(merged, tuple(unmatched), ambiguous)


def _find_bearers(db: sqlite3.Connection, name: str, prefix: str) -> list[int]:
    """Concepts of other vocabularies with this name, one of each fused group."""
    norm = normalize_name(name)
    if not _is_distinctive(norm):
        return []
    query = (
        "SELECT DISTINCT coalesce(fused.head, alias.concept) FROM alias"
        " JOIN concept ON concept.n = alias.concept"
        " LEFT JOIN fused ON fused.member = alias.concept"
        " WHERE alias.norm = ? AND substr(concept.id, 1, ?) <> ? ORDER BY 1 LIMIT 2"
    )
    return [number for (number,) in db.execute(query, (norm, len(prefix), prefix))]


def separate_concepts(graph: Graph) -> int:
    """Takes back all merges, and returns how many were in force."""
    with files.open_writer(graph.folder) as db:
        count = db.execute("DELETE FROM merge").rowcount
        _write_groups(db)
        return count


Node = TypeVar("Node", int, str)


class DisjointSets(Generic[Node]):
    """Disjoint sets, each represented by its smallest member, whatever the order of the joins."""

    def __init__(self) -> None:
        self.parent: dict[Node, Node] = {}

    def find_root(self, node: Node) -> Node:
        root = node
        while (above := self.parent.get(root, root)) != root:
            root = above
        while node != root:  # so that the next look is short
            self.parent[node], node = root, self.parent.get(node, root)
        self.parent.setdefault(root, root)
        return root

    def join_sets(self, one: Node, other: Node) -> None:
        first, second = sorted((self.find_root(one), self.find_root(other)))
        self.parent[second] = first


class _Groups(DisjointSets[int]):
    """Sets of concepts, none with two of one vocabulary."""

    def __init__(self, db: sqlite3.Connection) -> None:
        super().__init__()
        self._db = db
        self._held: dict[int, set[str]] = {}
        for one, other in db.execute("SELECT one, other FROM merge ORDER BY one, other"):
            self.join_groups(one, other)

    def join_groups(self, one: int, other: int) -> bool:
        a, b = self.find_root(one), self.find_root(other)
        mine, yours = self._vocabularies_of(a), self._vocabularies_of(b)
        if a == b or mine & yours:
            return False
        self.join_sets(a, b)
        self._held[min(a, b)] = mine | yours
        return True

    def _vocabularies_of(self, root: int) -> set[str]:
        if root not in self._held:
            row = self._db.execute("SELECT id FROM concept WHERE n = ?", (root,)).fetchone()
            self._held[root] = {row[0].partition(":")[0]}
        return self._held[root]


def _write_groups(db: sqlite3.Connection) -> None:
    """Rewrites the table `fused`, which follows from `merge`."""
    groups = _Groups(db)
    members = defaultdict(list)
    for number in sorted(groups.parent):
        members[groups.find_root(number)].append(number)
    db.execute("DELETE FROM fused")
    rows = [(n, head) for head, numbers in members.items() if len(numbers) > 1 for n in numbers]
    db.executemany("INSERT INTO fused VALUES (?, ?)", rows)


def _propose_merges(
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
    """Pairs with one preferred name, where no other concept of either vocabulary has it."""
    db.execute("CREATE TEMP TABLE preferred (norm TEXT, vocabulary TEXT, concept INTEGER)")
    rows = db.execute("SELECT n, id, text FROM concept JOIN name ON concept = n WHERE rank = 0")
    db.executemany("INSERT INTO preferred VALUES (?, ?, ?)", _preferred_names(rows))
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


def _preferred_names(rows: Iterator[tuple[int, str, str]]) -> Iterator[tuple[str, str, int]]:
    for number, id, text in rows:
        norm = normalize_name(text)
        if _is_distinctive(norm):
            yield norm, id.partition(":")[0], number


def _is_distinctive(norm: str) -> bool:
    return len(norm) >= _LEAST or has_cjk(norm)


LONGEST = 500
"""Characters of a description."""
# The addition that tells articles of one name apart: "Mercury (element)".
_ASIDE = re.compile(r"\s*[(（][^()（）]*[)）]$")


@dataclass(frozen=True, slots=True)
class DescriptionReport:
    described: int
    """Concepts that have a description of this text now and had none of it before."""
    unknown: int
    """Articles whose title no concept has."""
    ambiguous: int
    """Articles whose title several concepts have: they describe none."""


def describe_concepts(graph: Graph, documents: Iterable[tuple[Passage, ...]]) -> DescriptionReport:
    """Adds the first sentences of each article as a definition of the concept with its title.

    `documents`: the passages of each article, in order. The definition's source is the
    passage's id, so that it opens; definitions of vocabularies come before it (Omni-RAG
    §3.2). Describing twice changes nothing.
    """
    definitions: list[Definition] = []
    unknown = ambiguous = 0
    for passages in documents:
        if not passages:
            continue
        first = passages[0]
        concepts = _find_titled(graph, first.title)
        if len(concepts) == 1:
            definitions.append(
                Definition(concepts[0], _first_sentences(first.text), first.id, first.id)
            )
        elif concepts:
            ambiguous += 1
        else:
            unknown += 1
    return DescriptionReport(
        graph.add(definitions).definitions if definitions else 0, unknown, ambiguous
    )


def _find_titled(graph: Graph, title: str) -> list[str]:
    if not title.strip():
        return []
    matches = graph.find_exact(title) or graph.find_exact(_ASIDE.sub("", title))
    # A preferred name decides against a synonym that another concept has as well.
    preferred = [m for m in matches if (c := graph.get_concept(m.concept)) and c.name == m.name]
    return [match.concept for match in (preferred if len(preferred) == 1 else matches)]


def _first_sentences(text: str) -> str:
    line = one_line(text)
    spans = split_sentences(line)
    ends = [end for _, end in spans if end <= LONGEST]
    return line[: ends[-1]] if ends else line[: LONGEST - 1].rstrip() + "…"
