"""One order over found passages: of one search reranked (Omni-RAG §5.1.2), of several pooled.

Scores of different searches cannot be compared, and taking turns among the searches puts the best
passage of a source that knows nothing before the second-best of the one that answers. So the pool
is scored anew, against the question itself and on one scale. A passage that several searches found
gains by it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite

from osler.errors import ModelError
from osler.kb.store.passages import indexed_text
from osler.retrieve import rrf
from osler.types import Hit, Relevance, Retriever


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
        scores = await self.reranker.relevance(query, [indexed_text(hit.passage) for hit in hits])
        # NaN would make the sort arbitrary without an error.
        if len(scores) != len(hits) or not all(map(isfinite, scores)):
            raise ModelError(f"the reranker gave {len(scores)} scores for {len(hits)} passages")
        best = sorted(zip(scores, hits, strict=True), key=lambda pair: -pair[0])
        return [
            replace(hit, score=score, rank=rank)
            for rank, (score, hit) in enumerate(best[: min(k, self.k)], 1)
        ]


@dataclass(frozen=True)
class FusedRelevance:
    """Two scorers as one, by reciprocal ranks with the weights of the hybrid search.

    Scores depend on all texts that are scored together: pass a whole pool.
    """

    near: Relevance
    """By meaning: an encoder's cosine."""
    words: Relevance
    """By words: BM25."""
    weights: tuple[float, float] = (1.0, 0.7)
    constant: float = 10.0
    """The `k` of the fusion formula."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts:
            return ()
        scored = [await one.relevance(query, texts) for one in (self.near, self.words)]
        fused = rrf([rank_texts(s) for s in scored], weights=self.weights, k=self.constant)
        return tuple(score for _, score in sorted(fused))


@dataclass(frozen=True)
class PooledOrder:
    """Orders the hits of several searches by one ranking for a question."""

    scorer: Relevance
    """Of a passage to the question, on one scale over the whole pool."""
    again: float = 0.3
    """Weight of each further search that found the passage, at its rank there."""
    constant: float = 10.0
    """The `k` of the fusion formula."""

    async def order_hits(
        self, question: str, lists: Sequence[Sequence[Hit]], *, most: int | None = None
    ) -> tuple[Hit, ...]:
        """Every passage once, best first, with its score and its rank in this order.

        At most `most` are kept. Equal scores are ordered by id, so that the order of the searches
        never matters.
        """
        best, ranks = _collect_hits(lists)
        if not best:
            return ()
        ids = sorted(best)
        texts = [indexed_text(best[id].passage) for id in ids]
        places = rank_texts(await self.scorer.relevance(question, texts))
        scores = {
            ids[at]: self._share_of(place)
            + self.again * sum(map(self._share_of, sorted(ranks[ids[at]])[1:]))
            for place, at in enumerate(places, 1)
        }
        ordered = sorted(best.values(), key=lambda hit: (-scores[hit.passage.id], hit.passage.id))
        return tuple(
            replace(hit, score=scores[hit.passage.id], rank=rank)
            for rank, hit in enumerate(ordered[:most], 1)
        )

    def _share_of(self, rank: int) -> float:
        return 1 / (self.constant + rank)


def is_one_order(hits: Sequence[Hit]) -> bool:
    """Whether the hits stand in one ranking already: of one search, or of a pooled order."""
    return all(one.rank < two.rank for one, two in pairwise(hits))


def _collect_hits(lists: Sequence[Sequence[Hit]]) -> tuple[dict[str, Hit], dict[str, list[int]]]:
    """The best-ranked hit of each passage, and its rank in each search that found it."""
    best: dict[str, Hit] = {}
    ranks: dict[str, list[int]] = defaultdict(list)
    for hits in lists:
        for id, hit in {hit.passage.id: hit for hit in reversed(hits)}.items():
            ranks[id].append(hit.rank)
            if id not in best or hit.rank < best[id].rank:
                best[id] = hit
    return best, ranks


def rank_texts(scores: Sequence[float]) -> list[int]:
    """Places of the texts, best first; equal ones in their own order."""
    return sorted(range(len(scores)), key=lambda at: (-scores[at], at))
