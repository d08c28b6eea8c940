"""Knowledge communities as evidence (GraphRAG, TC-RAG App. 8.5): link, gather, rerank."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import log2

import numpy as np

from osler.graph.communities import Communities, Community
from osler.graph.link import Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.retrieve import rank_hits, search_errors
from osler.retrieve.graph import link_concepts
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage, Relevance

# Least size of a community; a single concept is no community.
_LEAST = 2


@dataclass(frozen=True, slots=True)
class CommunityHit:
    """A community relevant to a query."""

    community: Community
    passage: Passage
    score: float
    """The share of the query's concepts in it, lower for large communities, higher when its text
    is relevant to the query; in (0, 2]."""


@dataclass(frozen=True)
class CommunityRetriever:
    """Finds communities of the concepts that a text mentions, else of its words.

    A community's text is its summary by a model, else its facts. The communities must have been
    computed (`osler kb graph communities`).
    """

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    most_concepts: int = 6
    """Upper bound on concepts of a text; the longest names win."""
    candidates: int = 20
    """Communities whose texts are compared with the query."""
    _lookup: Lookup = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_lookup", Lookup(self.graph))

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Finds communities, one per hit; `Graph.passage` resolves their ids.

        Raises `SourceUnavailable` when the communities were not computed, or not for the current
        graph.
        """
        found = await self.find_communities(query, k=k)
        return rank_hits(((one.passage, one.score) for one in found), query, GRAPH)

    async def find_communities(self, query: str, *, k: int) -> list[CommunityHit]:
        """The hits of `search` with the communities themselves."""
        with search_errors("the communities"):
            likely = await asyncio.to_thread(self._likely_communities, query)
        suits = await self.relevance.relevance(query, [passage.text for _, passage, _ in likely])
        weighed = [
            CommunityHit(community, passage, share * (1 + suit))
            for (community, passage, share), suit in zip(likely, suits, strict=True)
        ]
        return sorted(weighed, key=lambda one: (-one.score, one.passage.id))[:k]

    def _likely_communities(self, query: str) -> list[tuple[Community, Passage, float]]:
        communities = Communities(self.graph)
        concepts = link_concepts(self.graph, query, self.recogniser)[: self.most_concepts]
        numbers = self.graph.numbers_of(concepts)
        shares = _community_shares(communities, [(1.0, [n]) for n in numbers])
        if not shares:
            words = self._lookup.find_sharing(query)
            heads = self.graph.load_arrays()["heads"]
            shares = _community_shares(
                communities, [(w, np.unique(heads[of]).tolist()) for w, of in words]
            )
        best = sorted(shares, key=lambda pair: (-pair[1], pair[0].number))[: self.candidates]
        return [(one, communities.get_passage(one), share) for one, share in best]


def _community_shares(
    communities: Communities, weighed: Sequence[tuple[float, Iterable[int]]]
) -> list[tuple[Community, float]]:
    """Communities with their concepts' share of the weight, lower for large ones."""
    held: defaultdict[int, float] = defaultdict(float)
    leaves = communities.leaf_numbers()
    for weight, numbers in weighed:
        places = {int(leaf) for leaf in np.unique(leaves[list(numbers)]) if leaf >= 0}
        # A concept counts for its community and all those above it, once each.
        for number in {above for leaf in places for above in communities.list_ancestors(leaf)}:
            held[number] += weight
    total = sum(weight for weight, _ in weighed)
    found = ((communities.get_community(number), weight) for number, weight in held.items())
    return [
        # Damped by size: the root community holds every concept and would always win.
        (one, weight / total / log2(one.size) ** 0.5)
        for one, weight in found
        if one.size >= _LEAST
    ]
