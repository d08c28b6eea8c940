"""Reasoning chains as evidence (HyKGE, TC-RAG App. 8.5): link, connect, rerank."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import combinations

from osler.errors import KnowledgeBaseError, SourceUnavailable
from osler.graph.chains import ConceptChain, find_chains_between, find_chains_from, verbalise_chain
from osler.graph.link import Recogniser
from osler.graph.store import Graph
from osler.retrieve.graph import link_concepts
from osler.retrieve.hits import rank_hits
from osler.retrieve.relevance import OverlapRelevance
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Relevance


@dataclass(frozen=True)
class ChainRetriever:
    """Chains between the concepts that a text mentions; around the one, when it is alone.

    The text is a question, or HyKGE's hypothesis about its answer. Chains are ranked by
    their own score times how well their words suit the text; `[]` when it mentions none.
    """

    graph: Graph
    relevance: Relevance = field(default_factory=OverlapRelevance)
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""
    hops: int = 3
    most_concepts: int = 6
    """Of a text that mentions more, the longest names are taken."""
    candidates: int = 20
    """Chains of each pair that are reranked."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Each hit is one chain in words; its id opens with `Graph.get_passage`."""
        try:
            chains = await asyncio.to_thread(self._find_chains, query)
            texts = [verbalise_chain(chain).replace("_", " ") for chain in chains]
            suits = await self.relevance.relevance(query, texts)
            weighed = [
                (chain.score * (1 + suit), chain) for chain, suit in zip(chains, suits, strict=True)
            ]
            weighed.sort(key=lambda pair: (-pair[0], pair[1].names))
            return await asyncio.to_thread(self._chain_hits, query, weighed[:k])
        except (KnowledgeBaseError, OSError) as error:
            raise SourceUnavailable(f"the graph cannot be searched: {error}") from error

    def _find_chains(self, query: str) -> list[ConceptChain]:
        linked = self._link_query(query)
        pairs = combinations(linked, 2)
        found = [
            chain
            for one, other in pairs
            for chain in find_chains_between(
                self.graph, one, other, hops=self.hops, k=self.candidates
            )
        ]
        if not found:
            around = (find_chains_from(self.graph, id, hops=2, k=self.candidates) for id in linked)
            found = [chain for chains in around for chain in chains]
        return found

    def _link_query(self, query: str) -> list[str]:
        return link_concepts(self.graph, query, self.recogniser)[: self.most_concepts]

    def _chain_hits(self, query: str, weighed: list[tuple[float, ConceptChain]]) -> list[Hit]:
        scored = []
        for score, chain in weighed:
            concept = self.graph.get_concept(chain.concepts[0])
            if concept is not None:
                scored.append((self.graph.chain_passage(concept, chain), score))
        return rank_hits(scored, query, GRAPH)
