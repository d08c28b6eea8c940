"""What lies near to all that a question mentions: personalised PageRank over the graph.

As HippoRAG and KAG's hybrid graph retrieval do it: walks from the linked concepts say how
much each relation matters, and the question's words which of those suits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from osler.errors import KnowledgeBaseError, SourceUnavailable
from osler.graph.chains import rank_nearest
from osler.graph.items import Concept, Edge
from osler.graph.link import Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.retrieve.graph import link_concepts
from osler.retrieve.hits import rank_hits
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage, Relevance

T = TypeVar("T")

_READ = 30
"""Of a concept with more relations, those that share most words with the question."""


@dataclass(frozen=True)
class NearRetriever:
    """Relations among the concepts nearest to those that a text mentions; `[]` when it
    mentions none."""

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    most_concepts: int = 6
    """Of a text that mentions more, the longest names are taken."""
    near: int = 20
    """Concepts whose relations are weighed."""
    _lookup: Lookup = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lookup", Lookup(self.graph))

    async def nearest_concepts(self, query: str, *, k: int) -> list[tuple[Concept, float]]:
        """The nearest concepts, those mentioned among them, with their shares of the walks."""
        return await self._read_graph(lambda: self._walk_concepts(query, k))

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Each hit is one relation; its id opens with `Graph.get_passage`.

        Its score is what the walks carry over it, in (0, 1), times one to two as it suits
        the query. Raises `SourceUnavailable` when the graph cannot be read.
        """
        found = await self._read_graph(lambda: self._nearest_relations(query))
        texts = [" ".join(edge.triple).replace("_", " ") for edge, _, _ in found]
        suits = await self.relevance.relevance(query, texts)
        weighed = [
            (passage, share * (1 + suit))
            for (_, passage, share), suit in zip(found, suits, strict=True)
        ]
        ranked = sorted(weighed, key=lambda pair: (-pair[1], pair[0].id))
        return rank_hits(ranked[:k], query, GRAPH)

    async def _read_graph(self, read: Callable[[], T]) -> T:
        try:
            return await asyncio.to_thread(read)
        except (KnowledgeBaseError, OSError) as error:
            raise SourceUnavailable(f"the graph cannot be searched: {error}") from error

    def _walk_concepts(self, query: str, k: int) -> list[tuple[Concept, float]]:
        seeds = link_concepts(self.graph, query, self.recogniser)[: self.most_concepts]
        found = (
            (self.graph.get_concept(id), share)
            for id, share in rank_nearest(self.graph, seeds, k=k)
        )
        return [(concept, share) for concept, share in found if concept is not None]

    def _nearest_relations(self, query: str) -> list[tuple[Edge, Passage, float]]:
        near = {
            concept.id: (concept, share) for concept, share in self._walk_concepts(query, self.near)
        }
        edges: dict[Edge, None] = {}
        for id in near:
            edges.update(dict.fromkeys(self._lookup.find_related(id, query, most=_READ)))
        found = []
        for edge in edges:
            ends = [near[id] for id in (edge.subject, edge.object) if id in near]
            share = sum(share for _, share in ends) / 2
            found.append((edge, self.graph.relation_passage(ends[0][0], edge), share))
        return found
