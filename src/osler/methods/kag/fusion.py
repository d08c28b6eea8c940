"""Merges what several retrievers found (KAG 0.8's merger)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from osler.retrieve import rrf
from osler.types import Hit

Fusion = Literal["ranks", "scores"]
"""By reciprocal ranks; or by scores, each retriever's brought to [0, 1] and added up."""


def fuse_hits(rankings: Sequence[Sequence[Hit]], how: Fusion) -> list[Hit]:
    """The hits of all rankings, each passage once, best first."""
    first = {hit.passage.id: hit for ranking in reversed(rankings) for hit in reversed(ranking)}
    if how == "ranks":
        return [first[id] for id, _ in rrf([[hit.passage.id for hit in r] for r in rankings])]
    scores: dict[str, float] = {}
    for ranking in rankings:
        for hit, score in zip(ranking, _scaled_scores(ranking), strict=True):
            scores[hit.passage.id] = scores.get(hit.passage.id, 0.0) + score
    return sorted((first[id] for id in scores), key=lambda hit: -scores[hit.passage.id])


def _scaled_scores(hits: Sequence[Hit]) -> list[float]:
    """The scores from 0, the least, to 1, the greatest; equal ones are all 1."""
    if not hits:
        return []
    least, greatest = min(hit.score for hit in hits), max(hit.score for hit in hits)
    spread = greatest - least
    return [(hit.score - least) / spread if spread else 1.0 for hit in hits]
