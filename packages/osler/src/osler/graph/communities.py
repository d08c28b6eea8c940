"""Knowledge communities: groups of related concepts, and their descriptions.

GraphRAG (Edge et al. 2024), which TC-RAG App. 8.5 takes its carriers from. The communities
are derived, in one file that carries the version of the graph; a file of another version
is not read. What a model has written of one is kept in the graph itself, under a
mark that only a community of the same concepts has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osler.errors import KnowledgeBaseMissing, UnknownPassage
from osler.graph import files
from osler.graph.derive import unit_hash
from osler.graph.files import COMMUNITIES, Array, find_relations
from osler.graph.items import ChainStep, ConceptChain, verbalise_chain
from osler.graph.partition import LARGEST, pairs_within, partition_graph
from osler.graph.store import Graph
from osler.sources.catalogue import GRAPH
from osler.text import clean_text, language_of, split_sentences
from osler.types import Locator, Passage

PREFIX = "community."
CENTRAL = 12
"""The most linked concepts of a community; only relations with one of them are described."""
_LONGEST = 1000

Nodes = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Community:
    """Concepts that have more relations with each other than with others."""

    mark: str
    """Follows from the concepts alone: the same ones have the same mark in any graph."""
    level: int
    """0 for the largest; those of a level are parts of those of the level above."""
    size: int
    number: int
    """Its place in this version of the communities."""

    @property
    def id(self) -> str:
        """The id of its passages, up to the "#"."""
        return f"{GRAPH}:{PREFIX}{self.mark}"


@dataclass(frozen=True, slots=True)
class CommunityDigest:
    """The content of a community in brief: its most linked concepts and their relations."""

    names: tuple[str, ...]
    definitions: tuple[tuple[str, str], ...]
    """Name and first sentence of its definition."""
    relations: tuple[ConceptChain, ...]
    """Each of one step, those of the most linked concepts first."""


class Communities:
    """The communities of a graph. Every method blocks; any number of threads may call it."""

    def __init__(self, graph: Graph) -> None:
        """Raises `KnowledgeBaseMissing` when there are none, or none of this version."""
        self.graph = graph
        self._held = _read_arrays(graph)

    def __len__(self) -> int:
        return len(self._held["first"])

    def list_communities(self, *, level: int | None = None) -> Iterator[Community]:
        """Communities of a level, or of all, with at least two concepts; the largest first."""
        arrays = self._held
        sizes = arrays["last"] - arrays["first"]
        wanted = sizes > 1
        if level is not None:
            wanted &= arrays["level"] == level
        numbers = np.flatnonzero(wanted)
        for number in numbers[np.argsort(-sizes[numbers], kind="stable")].tolist():
            yield self.get_community(number)

    def find_by_mark(self, mark: str) -> Community | None:
        """The smallest community with this mark (16 hexadecimal digits), if there is one."""
        try:
            wanted = np.uint64(int(mark, 16))
        except (ValueError, OverflowError):
            return None
        numbers = np.flatnonzero(self._held["mark"] == wanted)
        return self.get_community(int(numbers[-1])) if len(numbers) and len(mark) == 16 else None

    def member_numbers(self, community: Community) -> Nodes:
        """Numbers of the community's concepts in the graph."""
        arrays = self._held
        return np.array(arrays["members"][arrays["first"][community.number] :][: community.size])

    def leaf_numbers(self) -> Nodes:
        """The smallest community of each concept number; -1 for none."""
        return self._held["leaf"]

    def list_ancestors(self, number: int) -> Iterator[int]:
        """The community's number, then those of the communities that contain it, inside out."""
        while number >= 0:
            yield int(number)
            number = self._held["parent"][number]

    def get_community(self, number: int) -> Community:
        """The community of this number."""
        arrays = self._held
        size = int(arrays["last"][number] - arrays["first"][number])
        return Community(
            f"{int(arrays['mark'][number]):016x}", int(arrays["level"][number]), size, number
        )

    # Descriptions

    def make_digest(self, community: Community, *, relations: int = 12) -> CommunityDigest:
        """Its most linked concepts, with the first sentences of three definitions."""
        nodes = self.member_numbers(community)
        arrays = self.graph.load_arrays()
        pairs, weights = pairs_within(arrays, nodes)
        degree = np.zeros(len(nodes), dtype=np.int64)
        for end in range(2):
            np.add.at(degree, pairs[:, end], weights)
        central = np.lexsort((nodes, -degree))
        chosen = _choose_covering(pairs, degree, set(central[:CENTRAL].tolist()), relations)
        ends = [(int(nodes[a]), int(nodes[b])) for a, b in chosen]
        named = nodes[central[:CENTRAL]].tolist()
        labels = {n: texts[0] for n, texts in self.graph.names_of({*named, *sum(ends, ())}).items()}
        return CommunityDigest(
            tuple(labels[n] for n in named if n in labels),
            tuple(self._read_definitions(named, labels)),
            tuple(self._read_relations(ends, labels)),
        )

    def _read_definitions(
        self, numbers: Sequence[int], labels: dict[int, str]
    ) -> Iterator[tuple[str, str]]:
        count, ids = 0, self.graph.ids_of(numbers)
        for number in numbers:
            concept = self.graph.get_concept(ids[number]) if count < 3 else None
            if concept is not None and concept.definitions:
                text = concept.definitions[0][1]
                spans = split_sentences(text)
                count += 1
                yield labels[number], text[slice(*spans[0])] if spans else text

    def _read_relations(
        self, ends: Sequence[tuple[int, int]], labels: dict[int, str]
    ) -> Iterator[ConceptChain]:
        """The first relation of each pair, from the end that states it."""
        ids, words = self.graph.ids_of({n for pair in ends for n in pair}), self.graph.read_words()
        arrays = self.graph.load_arrays()
        for one, two in ends:
            kind = find_relations(arrays, one, two)[-1]  # positive: stated from `one`
            subject, object_ = (one, two) if kind > 0 else (two, one)
            yield ConceptChain(
                (ids[subject], ids[object_]),
                (labels[subject], labels[object_]),
                (ChainStep(words[abs(kind)], True),),
                1.0,
            )

    def write_extract(self, community: Community) -> Passage:
        """A passage made of the graph itself: names, definitions, one relation a line, each a chain
        of one step."""
        digest = self.make_digest(community)
        lines = _fit_lines(community, digest)
        return _make_passage(community, "extract", "\n".join(lines), digest.names, "")

    def read_summary(self, community: Community) -> Passage | None:
        """The summary that a model has written; `None` when none has."""
        with self.graph.open_reader() as db:
            if not files.has_table(db, "summary"):  # it is made with the first one
                return None
            row = db.execute(
                "SELECT text, model FROM summary WHERE community = ?", (community.mark,)
            ).fetchone()
        if row is None:
            return None
        names = self.make_digest(community, relations=0).names
        return _make_passage(community, "summary", row[0], names, f"written by {row[1]}")

    def get_passage(self, community: Community) -> Passage:
        """The summary that a model has written, else the extract."""
        return self.read_summary(community) or self.write_extract(community)

    def store_summary(self, community: Community, text: str, model: str) -> Passage:
        """Stores a summary by a model, in place of an earlier one, and returns its passage."""
        with files.open_writer(self.graph.folder, changes=False) as db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS summary (community TEXT PRIMARY KEY,"
                " text TEXT NOT NULL, model TEXT NOT NULL) WITHOUT ROWID"
            )
            db.execute(
                "INSERT OR REPLACE INTO summary VALUES (?, ?, ?)",
                (community.mark, clean_text(text), model),
            )
        return self.get_passage(community)


def build_communities(graph: Graph, *, largest: int = LARGEST) -> Communities:
    """Finds the communities and writes their file; half a minute for three million relations.

    `largest` is the number of concepts over which a community is split further. Raises
    `CapabilityMissing` without the extra `graph`, `OSError` where the file cannot be written.
    """
    stamp = graph.version
    arrays = partition_graph(graph.load_arrays(), largest=largest)
    arrays["mark"] = _hash_members(graph, arrays)
    arrays["leaf"] = _find_leaves(arrays, len(graph.load_arrays()["heads"]))
    files.write_arrays(graph.folder, stamp, arrays, file=COMMUNITIES)
    return Communities(graph)


def find_passage(graph: Graph, id: str) -> Passage:
    """The passage of a graph's id, a concept's or a community's (`graph:community.…#extract`,
    `…#summary`).

    Raises `UnknownPassage`, whose `fix` names what the concept has.
    """
    document, _, part = id.rpartition("#")
    if not document.startswith(f"{GRAPH}:{PREFIX}"):
        return graph.get_passage(id)
    try:
        communities = Communities(graph)
    except KnowledgeBaseMissing as error:
        raise UnknownPassage(f"there is no passage {id!r}", fix=error.fix) from error
    community = communities.find_by_mark(document.removeprefix(f"{GRAPH}:{PREFIX}"))
    readers = {"extract": communities.write_extract, "summary": communities.read_summary}
    passage = readers[part](community) if community and part in readers else None
    if passage is None:
        raise UnknownPassage(f"there is no passage {id!r}", fix="search for one of its concepts")
    return passage


def _read_arrays(graph: Graph) -> dict[str, Array]:
    arrays = files.read_arrays(graph.folder, graph.version, file=COMMUNITIES)
    if arrays is None:
        there = (Path(graph.folder) / COMMUNITIES).exists()
        raise KnowledgeBaseMissing(
            "the graph has changed since its communities were found"
            if there
            else "the communities of the graph have not been found yet",
            fix="run `osler kb graph communities`",
        )
    return arrays


def _find_leaves(arrays: dict[str, Array], count: int) -> Nodes:
    leaf = np.full(count, -1, dtype=np.int32)
    ends = zip(arrays["first"].tolist(), arrays["last"].tolist(), strict=True)
    for number, (first, last) in enumerate(ends):  # parts come after their whole
        leaf[arrays["members"][first:last]] = number
    return leaf


def _hash_members(graph: Graph, arrays: dict[str, Array]) -> NDArray[np.uint64]:
    """A checksum of each community's set of identifiers: the sum of their hashes."""
    hashes = np.zeros(len(graph.load_arrays()["heads"]), dtype=np.uint64)
    with graph.open_reader() as db:
        for number, id in db.execute("SELECT n, id FROM concept"):
            hashes[number] = unit_hash(id)
    total = np.zeros(len(arrays["members"]) + 1, dtype=np.uint64)
    np.cumsum(hashes[arrays["members"]], out=total[1:])
    marks: NDArray[np.uint64] = total[arrays["last"]] - total[arrays["first"]]
    return marks


def _choose_covering(
    pairs: NDArray[np.int64], degree: NDArray[np.int64], central: set[int], most: int
) -> list[tuple[int, int]]:
    """At most `most` pairs that touch a central concept, the most linked first; pairs that
    bring a new concept go before those that bring none."""
    order = np.argsort(-(degree[pairs[:, 0]] + degree[pairs[:, 1]]), kind="stable")
    fresh: list[tuple[int, int]] = []
    known: list[tuple[int, int]] = []
    seen: set[int] = set()
    for a, b in pairs[order].tolist():
        if not central & {a, b}:
            continue
        (known if {a, b} <= seen else fresh).append((a, b))
        seen |= {a, b}
        if len(fresh) == most:
            break
    return (fresh + known)[:most]


def _fit_lines(community: Community, digest: CommunityDigest) -> Iterator[str]:
    """Lines of a description that together fit into one passage, none cut in the middle."""
    head = f"Community of {community.size} concepts: {'; '.join(digest.names)}"
    if len(head) > _LONGEST // 3:
        head = head[: _LONGEST // 3].rpartition(";")[0] or head[: _LONGEST // 3]
    room = _LONGEST - len(head)
    yield head
    definitions = [f"{name}: {text}" for name, text in digest.definitions]
    relations = [verbalise_chain(chain) for chain in digest.relations]
    for lines, share in ((definitions, room // 2), (relations, room)):
        left = share
        for line in lines:
            if len(line) < left:
                left -= len(line) + 1
                room -= len(line) + 1
                yield line


def _make_passage(
    community: Community, part: str, text: str, names: Sequence[str], written: str
) -> Passage:
    kept = clean_text(text)[:_LONGEST]
    return Passage(
        id=f"{community.id}#{part}",
        text=kept,
        source=GRAPH,
        title="; ".join(names[:3]),
        locator=Locator(
            section=written, kind="knowledge community", code=f"{PREFIX}{community.mark}"
        ),
        language=language_of(kept),
    )
