"""Authority and recency in the order of what was found.

The search says what is near the question; of passages to which it gives nearly the same score,
those on whose kind of evidence more rests, or that are younger, go first. A passage's score grows
by a few percent and no more, so that what is far behind stays there. No model is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.retrieve.study_design import Design, design_of
from osler.types import Hit, Retriever

GRADES: dict[Design, int] = {
    "guideline": 4,
    "systematic-review": 4,
    "randomised-trial": 3,
    "book": 2,
    "cohort": 2,
    "trial": 2,
    "case-control": 1,
    "cross-sectional": 1,
    "encyclopaedia": 1,
    "narrative": 1,
}
"""What rests on a kind of evidence, 0 to 4; others, and what does not say its kind, have 0."""
_CONSTANT = 10.0
"""Of the ranks, as in the fusion of rankings, where the search's scores are not all positive."""
_YEARS = 20
"""A passage that is so many years older than the youngest found counts as not recent at all."""


@dataclass(frozen=True, slots=True)
class AuthorityWeights:
    """Shares by which a passage's score grows at most."""

    authority: float = 0.05
    recency: float = 0.05


@dataclass(frozen=True)
class AuthorityRetriever:
    """A search whose hits are ordered anew; scores are those of this order."""

    inner: Retriever
    weights: AuthorityWeights = AuthorityWeights()
    depth: int = 30
    """Hits of the search among which it orders."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        found = await self.inner.search(query, k=max(k, self.depth))
        return order_by_authority(found, self.weights)[:k]


def order_by_authority(hits: Sequence[Hit], weights: AuthorityWeights) -> list[Hit]:
    """The hits, best first. Equal scores keep the order of the search."""
    years = [hit.passage.locator.year for hit in hits if hit.passage.locator.year is not None]
    latest = max(years, default=0)
    positive = all(hit.score > 0 for hit in hits)
    scored = [
        (
            (hit.score if positive else 1 / (_CONSTANT + place))
            * (1 + _grow_by(hit, latest, weights)),
            hit,
        )
        for place, hit in enumerate(hits, start=1)
    ]
    ordered = sorted(scored, key=lambda pair: -pair[0])
    return [
        replace(hit, score=score, rank=rank) for rank, (score, hit) in enumerate(ordered, start=1)
    ]


def _grow_by(hit: Hit, latest: int, weights: AuthorityWeights) -> float:
    """The share by which the passage's score grows."""
    share = weights.authority * authority_grade(hit) / max(GRADES.values())
    year = hit.passage.locator.year
    if year is not None:  # one that states none is not taken for young
        share += weights.recency * max(0.0, 1 - (latest - year) / _YEARS)
    return share


def authority_grade(hit: Hit) -> int:
    """What rests on the passage's kind of evidence, 0 to 4."""
    found = design_of(hit.passage)
    return GRADES.get(found.design, 0) if found else 0
