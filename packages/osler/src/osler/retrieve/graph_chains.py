"""Reasoning chains as evidence (HyKGE, TC-RAG App. 8.5): link, connect, rerank."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import combinations

from osler.graph.chains import ConceptChain, find_chains_between, find_chains_from, verbalise_chain
from osler.graph.link import Recogniser
from osler.graph.store import Graph
from osler.retrieve import rank_hits, search_errors
from osler.retrieve.graph import link_concepts
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Relevance


@dataclass(frozen=True)
class ChainRetriever:
    """Finds chains between the concepts that a text mentions, or around a single one.

    The text is a question, or HyKGE's hypothesis about its answer. Chains are ranked by
    their own score times how well their words suit the text; `[]` when it mentions none.
    """

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    hops: int = 3
    most_concepts: int = 6
    """Upper bound on concepts of a text; the longest names win."""
    candidates: int = 20
    """Chains per pair of concepts that are reranked."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Finds chains, one per hit, in words; `Graph.passage` resolves their ids."""
        with search_errors():
            chains = await asyncio.to_thread(self._find_chains, query)
            texts = [verbalise_chain(chain).replace("_", " ") for chain in chains]
            suits = await self.relevance.relevance(query, texts)
            weighed = [
                (chain.score * (1 + suit), chain) for chain, suit in zip(chains, suits, strict=True)
            ]
            weighed.sort(key=lambda pair: (-pair[0], pair[1].names))
            return await asyncio.to_thread(self._chain_hits, query, weighed[:k])

    def _find_chains(self, query: str) -> list[ConceptChain]:
        linked = link_concepts(self.graph, query, self.recogniser)[: self.most_concepts]
        pairs = combinations(linked, 2)
        found = [
            chain
            for one, other in pairs
            for chain in find_chains_between(
                self.graph, one, other, hops=self.hops, k=self.candidates
            )
        ]
        if not found:
            # A single concept has no pair: walk outwards from it.
            around = (find_chains_from(self.graph, id, hops=2, k=self.candidates) for id in linked)
            found = [chain for chains in around for chain in chains]
        return found

    def _chain_hits(self, query: str, weighed: list[tuple[float, ConceptChain]]) -> list[Hit]:
        scored = []
        for score, chain in weighed:
            concept = self.graph.get_concept(chain.concepts[0])
            if concept is not None:
                scored.append((self.graph.chain_passage(concept, chain), score))
        return rank_hits(scored, query, GRAPH)
