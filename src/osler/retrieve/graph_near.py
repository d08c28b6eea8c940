"""Concepts that a text names, and relations near them, by personalised PageRank.

As in HippoRAG and KAG's hybrid graph retrieval: walks from the linked concepts weigh the
relations, and the question's words select among them.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from osler.graph.chains import rank_nearest
from osler.graph.items import Concept, Edge
from osler.graph.link import ConceptMention, Dictionary, Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.retrieve import rank_hits, search_errors
from osler.retrieve.graph import link_concepts
from osler.retrieve.relevance import OverlapRelevance
from osler.retrieve.words import STOP_WORDS
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage, Relevance

# Relations of a concept that are read: those that share most words with the question.
_READ = 30


@dataclass(frozen=True)
class NearRetriever:
    """Finds relations among the concepts nearest to those that a text mentions; `[]` without
    mentions."""

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    most_concepts: int = 6
    """Upper bound on concepts of a text; the longest names win."""
    near: int = 20
    """Concepts whose relations are weighed."""
    _lookup: Lookup = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lookup", Lookup(self.graph))

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Finds relations, one per hit; `Graph.passage` resolves their ids.

        The score is the PageRank carried over the relation, in (0, 1), times a factor from 1 to 2
        for its relevance to the query. Raises `SourceUnavailable` when the graph is unreadable.
        """
        with search_errors():
            found = await asyncio.to_thread(self._nearest_relations, query)
        texts = [" ".join(edge.triple).replace("_", " ") for edge, _, _ in found]
        suits = await self.relevance.relevance(query, texts)
        weighed = [
            (passage, share * (1 + suit))
            for (_, passage, share), suit in zip(found, suits, strict=True)
        ]
        ranked = sorted(weighed, key=lambda pair: (-pair[1], pair[0].id))
        return rank_hits(ranked[:k], query, GRAPH)

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
            # Mean over both ends; an end outside the walk counts 0.
            share = sum(share for _, share in ends) / 2
            found.append((edge, self.graph.relation_passage(ends[0][0], edge), share))
        return found


@dataclass(frozen=True)
class MentionRetriever:
    """Finds the concepts named in a text, one hit each, in text order.

    A hit's passage gives the name as spelt in the text, the concept's own name and its types; it
    describes the text, not medicine, and is no evidence.
    """

    graph: Graph
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The first `k` concepts. Raises `SourceUnavailable` when the graph is unreadable."""
        with search_errors():
            return await asyncio.to_thread(self._mention_hits, query, k)

    def _mention_hits(self, text: str, k: int) -> list[Hit]:
        recogniser = self.recogniser or Dictionary(self.graph, STOP_WORDS)
        first: dict[str, ConceptMention] = {}
        for mention in recogniser.find_mentions(text):
            first.setdefault(mention.concepts[0], mention)
        told = [self._mention_passage(id, text, mention) for id, mention in list(first.items())[:k]]
        return rank_hits(((passage, 1.0) for passage in told), text, GRAPH)

    def _mention_passage(self, id: str, text: str, mention: ConceptMention) -> Passage:
        written = text[mention.start : mention.end]
        concept = self.graph.get_concept(id)
        names = [n for n in (concept.name,) if n != written] if concept else []
        about = ", ".join((*names, *(concept.types if concept else ())))
        words = f"{written} ({about})" if about else written
        return Passage(f"{GRAPH}:{id}#mention", words, GRAPH, concept.name if concept else id)
