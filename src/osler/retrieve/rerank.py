"""Reranking of search results: top 20 in, top 10 out (Omni-RAG §5.1.2).

A reranker is a `Relevance`: one score for each text, by whatever reads query and text together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isfinite

from osler.errors import ModelError
from osler.types import Hit, Passage, Relevance, Retriever


@dataclass(frozen=True)
class RerankedRetriever:
    """The `k` best of the first `depth` hits, by the reranker's scores, which the hits bear.

    Ties keep the order of the search. Errors of the inner retriever and of the reranker are
    raised.
    """

    inner: Retriever
    reranker: Relevance
    depth: int = 20
    k: int = 10
    """Upper bound on hits, whatever `k` a caller asks for."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        hits = await self.inner.search(query, k=self.depth)
        if not hits:
            return []
        scores = await self.reranker.relevance(query, [reranker_text(hit.passage) for hit in hits])
        # NaN would make the sort arbitrary without an error.
        if len(scores) != len(hits) or not all(map(isfinite, scores)):
            raise ModelError(f"the reranker gave {len(scores)} scores for {len(hits)} passages")
        best = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
        return [
            replace(hit, score=score, rank=rank)
            for rank, (score, hit) in enumerate(best[: min(k, self.k)], 1)
        ]


def reranker_text(passage: Passage) -> str:
    """The text for a reranker: the headings on a line of their own, then the passage."""
    return f"{passage.heading}\n{passage.text}" if passage.heading else passage.text
