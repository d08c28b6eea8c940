"""Words and meaning together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.retrieve.fuse import rrf
from osler.types import Hit, Retriever


@dataclass(frozen=True)
class Hybrid:
    """Reciprocal Rank Fusion of a dense and a lexical ranking; scores are fused ones.

    A query that one of them finds nothing for is ranked by the other alone. With MiniLM,
    k = 10 and weights 1 : 0.7 the reciprocal rank was .958 on 1,000 questions about
    abstracts and .689 on 1,000 consumer questions; the better of the two alone had .945
    and .665. Under a reranker, 1 : 1 lets more right passages through (recall .933
    instead of .914).
    """

    dense: Retriever
    lexical: Retriever
    dense_weight: float = 1.0
    lexical_weight: float = 0.7
    constant: float = 10.0
    """The `k` of the fusion formula."""
    depth: int = 100
    """How many hits of each ranking are fused."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        depth = max(k, self.depth)
        found = await asyncio.gather(
            self.dense.search(query, k=depth), self.lexical.search(query, k=depth)
        )
        first = {hit.passage.id: hit for ranking in reversed(found) for hit in ranking}
        fused = rrf(
            [[hit.passage.id for hit in ranking] for ranking in found],
            weights=(self.dense_weight, self.lexical_weight),
            k=self.constant,
        )
        return [
            Hit(first[id].passage, score, rank, query, first[id].source)
            for rank, (id, score) in enumerate(fused[:k], 1)
        ]
