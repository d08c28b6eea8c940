"""The graph of names and chunks on which HippoRAG and KAG's hybrid retriever walk.

Its nodes are the entities behind the names in chunks (`canon`) and the chunks themselves.
Edges stand between a chunk and what it names, between the ends of a stated relation, and
between entities that a vocabulary of the concept graph relates. Where a model wrote knowledge
points, these and their questions are nodes too (KAG-Thinker App. 14): a point beside its chunk,
its core entities and its questions. It is rebuilt from the extracted rows whenever those have
changed, so nothing in it can outlive its text.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osler.extract import publish
from osler.extract import store as extracted
from osler.extract.dictionary import TOGETHER
from osler.extract.indexes.canon import EntityClasses, NameClaim, concept_name, resolve_entities
from osler.graph.chains import random_walk
from osler.graph.derive import LONGEST, normalize_name, unit_spans
from osler.graph.files import FILE, Array
from osler.graph.link import Dictionary, is_too_short
from osler.graph.store import Graph
from osler.kb.search.base import PassageFilter, Ranking, fetch_allowed
from osler.kb.search.exact import allowed_by
from osler.kb.store import access
from osler.kb.store.passages import Scope, in_scope, read_meta

# Residual that a walk may leave at a node, per edge.
_PRECISION = 1e-5


@dataclass(frozen=True)
class EntityGraph:
    """One state of the graph. Nodes from `entities.count` on are the passages, in order."""

    entities: EntityClasses
    passages: NDArray[np.int64]
    """Their numbers."""
    arrays: dict[str, Array]
    """`start` and `to`, as of the concept graph, over entities and passages."""
    held: NDArray[np.int64]
    """Number of passages that name each entity."""
    layered: dict[str, Array]
    """The same with knowledge points and questions, whose nodes stand behind the passages'."""
    questions: Mapping[str, int]
    """Nodes of the questions, by their normal forms."""

    def named_entities(self, text: str, ignored: frozenset[str] = frozenset()) -> dict[int, str]:
        """The entities named in a text, each with the words that name it; the longest name wins
        where several begin at one place."""
        units, found, place = unit_spans(text), dict[int, str](), 0
        while place < len(units):
            size, entity = self._longest_name(units, text, place, ignored)
            if entity is not None:
                words = text[units[place][1] : units[place + size - 1][2]]
                found.setdefault(entity, words)
            place += size
        return found

    def _longest_name(
        self, units: list[tuple[str, int, int]], text: str, place: int, ignored: frozenset[str]
    ) -> tuple[int, int | None]:
        for size in range(min(LONGEST, len(units) - place), 0, -1):
            norm = normalize_name(text[units[place][1] : units[place + size - 1][2]])
            entity = self.entities[norm]
            if entity is not None and norm not in ignored and not is_too_short(norm):
                return size, entity
        return 1, None

    def of_concept(self, id: str) -> int | None:
        return self.entities[concept_name(id)]

    def entity_weight(self, entity: int) -> float:
        """Inverse document frequency of an entity's names."""
        return float(np.log1p(len(self.passages) / max(1, int(self.held[entity]))))

    def rank_by_names(self, entities: Iterable[int]) -> Ranking:
        """Passages that name any of these entities, by the sum of the entities' weights."""
        shares: dict[int, float] = {}
        start, to, first = self.arrays["start"], self.arrays["to"], self.entities.count
        for entity in dict.fromkeys(entities):
            beside = to[start[entity] : start[entity + 1]]
            for node in np.unique(beside[beside >= first]).tolist():
                shares[node] = shares.get(node, 0.0) + self.entity_weight(entity)
        ordered = sorted(shares.items(), key=lambda pair: (-pair[1], pair[0]))
        return [(int(self.passages[node - first]), share) for node, share in ordered]

    def rank_by_walk(
        self,
        seeds: Mapping[int, float],
        restart: float,
        also: Mapping[int, float] | None = None,
        *,
        layered: bool = False,
    ) -> Ranking:
        """Passages by personalised PageRank from the seeds.

        `seeds`: weights of entities, and of questions where the walk is `layered`, over points and
        questions too; `also`: weights of passages, by number.
        """
        places = {int(number): row for row, number in enumerate(self.passages)} if also else {}
        first = self.entities.count
        starts = {node: weight for node, weight in seeds.items() if weight > 0}
        for number, weight in (also or {}).items():
            if number in places and weight > 0:
                starts[first + places[number]] = weight
        if not starts:
            return []
        shares = random_walk(
            self.layered if layered else self.arrays,
            list(starts),
            restart=restart,
            precision=_PRECISION,
            weights=list(starts.values()),
        )[first : first + len(self.passages)]
        rows = np.flatnonzero(shares)
        rows = rows[np.lexsort((rows, -shares[rows]))]
        return [(int(self.passages[row]), float(shares[row])) for row in rows]


@dataclass
class EntityGraphs:
    """The entity graph of an open knowledge base, in step with the extracted items.

    The concept graph beside it, where there is one, adds names and relations of vocabularies.
    Thread-safe; the first caller after a change waits while the graph is read. The owner of
    `readers` closes them.
    """

    folder: Path
    readers: access.ReaderPool
    _graph: Graph | None = None
    _held: tuple[str, EntityGraph] | None = None
    _loading: threading.Lock = field(default_factory=threading.Lock)

    def close(self) -> None:
        if self._graph is not None:
            self._graph.close()
        self._graph = self._held = None

    @property
    def graph(self) -> Graph | None:
        """The concept graph; `None` while there is none."""
        if self._graph is None and (self.folder / FILE).is_file():
            self._graph = Graph.open(self.folder)
        return self._graph

    def load_current(self) -> EntityGraph:
        """The current graph, rebuilt when the extracted rows or the concept graph changed."""
        with self._loading, self.readers.borrow() as db:
            graph = self.graph
            mark = f"{read_meta(db, 'extracted')} {graph.version if graph else ''}"
            if self._held is None or self._held[0] != mark:
                self._held = mark, load_entity_graph(db, graph)
            return self._held[1]

    def link_entities(self, text: str, ignored: frozenset[str] = frozenset()) -> list[int]:
        """The entities that a text names, by names of chunks or of a vocabulary."""
        web = self.load_current()
        found, graph = dict.fromkeys(web.named_entities(text, ignored)), self.graph
        for mention in Dictionary(graph, ignored).find_mentions(text) if graph else ():
            known = [web.of_concept(id) for id in mention.concepts]
            found.update(dict.fromkeys(entity for entity in known if entity is not None))
        return list(found)

    def filter_ranking(self, ranking: Ranking, *, k: int, within: PassageFilter) -> Ranking:
        """The `k` best passages that pass the filter."""
        with self.readers.borrow() as db:
            meets = allowed_by(db, within)

            def allowed_part(found: Ranking) -> Ranking:
                passed = _passages_within(db, [number for number, _ in found], within.sources)
                return meets([pair for pair in found if pair[0] in passed])

            return fetch_allowed(lambda n: ranking[:n], allowed_part, k)[:k]


def _passages_within(db: sqlite3.Connection, numbers: Sequence[int], scope: Scope) -> set[int]:
    rows = db.execute(
        "SELECT number, source FROM passage WHERE number IN (SELECT value FROM json_each(?))",
        (json.dumps(numbers),),
    )
    return {number for number, source in rows if in_scope(source, scope)}


def load_entity_graph(db: sqlite3.Connection, graph: Graph | None) -> EntityGraph:
    """Builds the graph from all names and relations of chunks. Blocks: seconds for a million
    names."""
    if not extracted.has_extractions(db):
        return _build_graph(resolve_entities(()), [], [], [], [])
    claims, named = list[NameClaim](), list[tuple[int, str]]()
    for number, claim in _read_claims(db):
        claims.append(claim)
        named.append((number, claim.name))
    if graph:
        claims += _by_names(graph, {claim.name for claim in claims if not claim.concepts})
    entities = resolve_entities(claims, _concept_heads(graph) if graph else None)
    related = [
        (one, other)
        for subject, object_ in _read_relations(db)
        if (one := entities[subject]) is not None and (other := entities[object_]) is not None
    ]
    if graph:
        related += _by_vocabularies(graph, entities)
    mentions = [(number, entities.of[name]) for number, name in named]
    points = list(_read_points(db))
    passages = sorted({*(number for number, _ in named), *(point.passage for point in points)})
    return _build_graph(entities, passages, mentions, related, points)


@dataclass(frozen=True, slots=True)
class _Point:
    """A knowledge point of one chunk, by normal forms."""

    passage: int
    name: str
    entities: tuple[str, ...]
    questions: tuple[str, ...]


def _read_points(db: sqlite3.Connection) -> Iterator[_Point]:
    rows = db.execute(
        "SELECT passage, norm, json_extract(body, '$[0].entities', '$[0].questions')"
        " FROM extracted_item WHERE kind = 'point' AND norm != '' ORDER BY n"
    )
    for number, norm, content in rows:
        about, asked = json.loads(content)
        questions = tuple(filter(None, map(normalize_name, asked or ())))
        yield _Point(number, norm, tuple(map(normalize_name, about or ())), questions)


def _read_claims(db: sqlite3.Connection) -> Iterator[tuple[int, NameClaim]]:
    rows = db.execute(
        "SELECT passage, norm, json_extract(body, '$[0].concepts', '$[0].standard',"
        " '$[0].synonyms', '$[0].type') FROM extracted_item WHERE kind = 'entity' AND norm != ''"
        " ORDER BY n"
    )
    for number, norm, content in rows:
        ids, standard, synonyms, kind = json.loads(content)
        others = tuple(filter(None, map(normalize_name, synonyms)))
        yield number, NameClaim(norm, tuple(ids), normalize_name(standard), others, kind)


def _read_relations(db: sqlite3.Connection) -> Iterator[tuple[str, str]]:
    """The ends of stated relations; co-mentions are left out, since their chunk connects them
    already."""
    rows = db.execute(
        "SELECT json_extract(body, '$[0].subject', '$[0].object') FROM extracted_item"
        " WHERE kind = 'relation' AND json_extract(body, '$[0].predicate') NOT IN (?, ?)",
        tuple(TOGETHER.values()),
    )
    for (content,) in rows:
        subject, object_ = json.loads(content)
        yield normalize_name(subject), normalize_name(object_)


def _by_names(graph: Graph, norms: set[str]) -> Iterator[NameClaim]:
    """Concepts that the concept graph knows for names which their extractor did not link."""
    query = (
        "SELECT alias.norm, concept.id FROM alias JOIN concept ON concept.n = alias.concept"
        " WHERE alias.norm IN (SELECT value FROM json_each(?)) ORDER BY 1, 2"
    )
    with graph.open_reader() as db:
        for norm, id in db.execute(query, (json.dumps(sorted(norms)),)):
            yield NameClaim(norm, (id,))


def _concept_heads(graph: Graph) -> dict[str, str]:
    query = (
        "SELECT member.id, head.id FROM fused JOIN concept AS member ON member.n = fused.member"
        " JOIN concept AS head ON head.n = fused.head"
    )
    with graph.open_reader() as db:
        return dict(db.execute(query))


def _by_vocabularies(graph: Graph, entities: EntityClasses) -> Iterator[tuple[int, int]]:
    """Relations of vocabularies between entities that texts name."""
    ids = json.dumps([name[1:] for name in entities.of if name.startswith("=")])
    query = (
        "WITH here AS MATERIALIZED (SELECT n, id FROM concept"
        " WHERE id IN (SELECT value FROM json_each(?)))"
        " SELECT DISTINCT one.id, two.id FROM here AS one JOIN edge ON edge.subject = one.n"
        " JOIN here AS two ON two.n = edge.object"
        " WHERE edge.source NOT IN (SELECT n FROM word WHERE text LIKE ? || '%')"
    )
    with graph.open_reader() as db:
        for one, two in db.execute(query, (ids, publish.SOURCE)):
            yield entities.of[concept_name(one)], entities.of[concept_name(two)]


def _build_graph(
    entities: EntityClasses,
    passages: Sequence[int],
    mentions: Sequence[tuple[int, int]],
    related: Sequence[tuple[int, int]],
    points: Sequence[_Point],
) -> EntityGraph:
    """Builds the arrays: a mention counts once per passage, a relation as often as it is stated."""
    row = {number: entities.count + place for place, number in enumerate(passages)}
    said = sorted({(row[number], entity) for number, entity in mentions})
    # Entities come first, so that an entity's number is its node.
    nodes = entities.count + len(passages)
    arrays = _both_ways([*said, *related], nodes)
    names = {point.name: None for point in points}
    asked = {question: None for point in points for question in point.questions}
    point_of = {name: nodes + n for n, name in enumerate(names)}
    question_of = {text: nodes + len(names) + n for n, text in enumerate(asked)}
    beside = set[tuple[int, int]]()
    for point in points:
        about = [entities.of[name] for name in point.entities if name in entities.of]
        others = (row[point.passage], *about, *(question_of[text] for text in point.questions))
        beside.update((point_of[point.name], other) for other in others)
    every = nodes + len(names) + len(asked)
    return EntityGraph(
        entities,
        np.array(passages, np.int64),
        arrays,
        np.bincount([entity for _, entity in said], minlength=entities.count),
        _both_ways([*said, *related, *sorted(beside)], every) if points else arrays,
        question_of,
    )


def _both_ways(edges: Sequence[tuple[int, int]], nodes: int) -> dict[str, Array]:
    """Compressed rows of a graph seen from both ends of each edge."""
    pairs = np.array(edges, np.int64).reshape(-1, 2)
    # No self-loops: a walk would be trapped there.
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    start = np.concatenate([pairs[:, 0], pairs[:, 1]])
    to = np.concatenate([pairs[:, 1], pairs[:, 0]])
    counted = np.bincount(start, minlength=nodes)
    return {
        "start": np.concatenate([[0], np.cumsum(counted)]).astype(np.int64),
        "to": to[np.lexsort((to, start))].astype(np.int32),
    }
