"""One order over passages that several searches found.

Scores of different searches cannot be compared, and taking turns among the searches puts the best
passage of a source that knows nothing before the second-best of the one that answers. So the pool
is scored anew, against the question itself and on one scale: by relevance and by coverage, fused
by reciprocal ranks as in the hybrid search.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from osler.retrieve import rrf
from osler.retrieve.rerank import reranker_text
from osler.types import Hit, Relevance


@dataclass(frozen=True, slots=True)
class PoolWeights:
    """Weights of the fused rankings; those of the hybrid search (`retrieve.hybrid.Fusion`)."""

    relevance: float = 1.0
    coverage: float = 0.7
    again: float = 0.3
    """Of each further search that found the passage, at its rank there."""
    constant: float = 10.0
    """The `k` of the fusion formula."""


@dataclass(frozen=True)
class PooledOrder:
    """Orders the hits of several searches by one ranking for a question."""

    relevance: Relevance
    """Relevance of a passage to the question: an encoder's cosine, or a reranker."""
    coverage: Relevance
    """Share of the question's words, by rarity, that a passage has."""
    weights: PoolWeights = PoolWeights()

    async def order_hits(
        self, question: str, lists: Sequence[Sequence[Hit]], *, per_source: int | None = None
    ) -> tuple[Hit, ...]:
        """Every passage once, best first, with its fused score and its rank in this order.

        At most `per_source` passages of one source are kept. Equal scores are ordered by id, so
        that the order of the searches never matters.
        """
        best, ranks = _collect_hits(lists)
        if not best:
            return ()
        scores = await self._score_pool(question, best, ranks)
        ordered = sorted(best.values(), key=lambda hit: (-scores[hit.passage.id], hit.passage.id))
        kept = _limit_sources(ordered, per_source)
        return tuple(
            replace(hit, score=scores[hit.passage.id], rank=rank)
            for rank, hit in enumerate(kept, 1)
        )

    async def _score_pool(
        self, question: str, best: dict[str, Hit], ranks: dict[str, list[int]]
    ) -> dict[str, float]:
        ids, weights = list(best), self.weights
        texts = [reranker_text(hit.passage) for hit in best.values()]
        near = await self.relevance.relevance(question, texts)
        covered = await self.coverage.relevance(question, texts)
        fused = rrf(
            [_rank_ids(ids, near), _rank_ids(ids, covered)],
            weights=(weights.relevance, weights.coverage),
            k=weights.constant,
        )
        return {
            id: score
            + sum(weights.again / (weights.constant + rank) for rank in sorted(ranks[id])[1:])
            for id, score in fused
        }


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


def _rank_ids(ids: Sequence[str], scores: Sequence[float]) -> list[str]:
    return [ids[i] for i in sorted(range(len(ids)), key=lambda i: (-scores[i], ids[i]))]


def _limit_sources(hits: Sequence[Hit], most: int | None) -> list[Hit]:
    if most is None:
        return list(hits)
    counts: Counter[str] = Counter()
    kept = []
    for hit in hits:
        counts[hit.passage.source] += 1
        if counts[hit.passage.source] <= most:
            kept.append(hit)
    return kept
