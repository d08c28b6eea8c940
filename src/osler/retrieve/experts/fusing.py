"""`fuse`: how likely a passage that a search found supports an answer; one order over all.

The candidates are the first passages by vector and by words. Each becomes a row of numbers from
both rankings and from its own words, and a logistic regression gives the probability.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter, Ranking
from osler.retrieve import source_errors
from osler.retrieve.experts.linear import LinearModel, open_linear
from osler.retrieve.experts.shelf import ShelvedExpert
from osler.retrieve.words import content_terms
from osler.text import language_of
from osler.types import Hit, Language, Passage

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder
    from osler.retrieve.experts.linear import Matrix

_OWN = (
    "cosine",
    "cosine below the best",
    "found by vector",
    "reciprocal rank by vector",
    "BM25 of the best",
    "found by words",
    "reciprocal rank by words",
    "coverage",
    "coverage below the best",
    "coverage by heading",
    "question words in heading",
    "length",
)
_CROSSED = ("cosine", "reciprocal rank by vector", "reciprocal rank by words", "coverage")
FEATURES: tuple[str, ...] = (
    *_OWN,
    "terms of the question",
    *(f"{name} x terms of the question" for name in _CROSSED),
)
"""Names of a candidate's numbers, in order."""
DEPTH = 64
"""Passages of each ranking, as in the hybrid search."""
_RANK = 10.0
"""Constant of the reciprocal ranks, as in the hybrid search."""
_LETTER = 12
"""Terms of a question from which it is long; a letter has more."""


@dataclass(frozen=True)
class CandidatePassages:
    """What both rankings found for a question, with its numbers."""

    numbers: Sequence[int]
    passages: Sequence[Passage]
    rows: Matrix
    """Shape (candidates, features)."""


def find_candidates(
    kb: KnowledgeBase,
    encoder: Encoder,
    query: str,
    within: PassageFilter = EVERYTHING,
    depth: int = DEPTH,
) -> CandidatePassages:
    """The candidates of a question, by vector and by words in one request."""
    terms = content_terms(query)
    known = language_of(query) in encoder.languages
    vector = encoder.encode([query], kind="query")[0] if known else None
    dense, lexical = kb.rank_by_both(
        terms, vector, encoder=encoder.identity, k=depth, within=within
    )
    numbers = sorted({number for number, _ in (*dense, *lexical)})
    passages = kb.get_passages(numbers)
    there = [number for number in numbers if number in passages]
    found = [passages[number] for number in there]
    rarity = kb.term_rarity(terms) if terms else {}
    return CandidatePassages(there, found, measure_candidates(there, found, dense, lexical, rarity))


def measure_candidates(
    numbers: Sequence[int],
    passages: Sequence[Passage],
    dense: Ranking,
    lexical: Ranking,
    rarity: Mapping[str, float],
) -> Matrix:
    """The numbers of each candidate, of shape (candidates, features).

    A passage that one ranking lacks gets the score of that ranking's last: it has no more.
    """
    import numpy as np

    by_vector, by_words = _RankedScores(dense), _RankedScores(lexical)
    whole = sum(rarity.values()) or 1.0
    rows = []
    for number, passage in zip(numbers, passages, strict=True):
        said, named = set(content_terms(passage.text)), set(content_terms(passage.heading))
        covered = sum(value for term, value in rarity.items() if term in said | named) / whole
        heading = sum(value for term, value in rarity.items() if term in named) / whole
        share = len(named & rarity.keys()) / len(named) if named else 0.0
        rows.append(
            [
                by_vector.score_of(number),
                by_vector.score_of(number) - by_vector.best,
                float(number in by_vector.ranks),
                by_vector.reciprocal_of(number),
                by_words.score_of(number) / (by_words.best or 1.0),
                float(number in by_words.ranks),
                by_words.reciprocal_of(number),
                covered,
                0.0,
                heading,
                share,
                log1p(len(passage.text)),
            ]
        )
    if not rows:
        return np.zeros((0, len(FEATURES)))
    own = np.array(rows)
    at = _OWN.index("coverage")
    own[:, at + 1] = own[:, at] - own[:, at].max()
    asked = np.full((len(rows), 1), min(1.0, len(rarity) / _LETTER))
    crossed = own[:, [_OWN.index(name) for name in _CROSSED]] * asked
    return np.hstack([own, asked, crossed])


class _RankedScores:
    """Ranks from 1 and scores of one ranking."""

    def __init__(self, ranking: Ranking) -> None:
        self.ranks = {number: rank for rank, (number, _) in enumerate(ranking, 1)}
        self._scores = dict(ranking)
        self.best = max(self._scores.values(), default=0.0)
        self._last = min(self._scores.values(), default=0.0)

    def score_of(self, number: int) -> float:
        return self._scores.get(number, self._last)

    def reciprocal_of(self, number: int) -> float:
        rank = self.ranks.get(number)
        return _RANK / (_RANK + rank) if rank is not None else 0.0


class FuseExpert:
    """Probabilities that candidates support an answer; for English questions."""

    languages: frozenset[Language] = frozenset({"en"})

    def __init__(self, expert: ShelvedExpert) -> None:
        """Raises `ModelError` for an expert of another kind."""
        self.card = expert.card
        self._model: LinearModel = open_linear(expert, FEATURES)

    def weigh_candidates(self, rows: Matrix) -> list[float]:
        """Probabilities in order."""
        return [float(share) for (share,) in self._model.predict_shares(rows)]


@dataclass(frozen=True)
class FusedRetriever:
    """`Retriever` in the order of the expert; the scores are its probabilities."""

    kb: KnowledgeBase
    encoder: Encoder
    expert: FuseExpert
    within: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await asyncio.to_thread(self._search_index, query, k)

    def _search_index(self, query: str, k: int) -> list[Hit]:
        with source_errors(self.kb, self.within.sources):
            found = find_candidates(self.kb, self.encoder, query, self.within, max(k, DEPTH))
        scores = self.expert.weigh_candidates(found.rows)
        pairs = sorted(zip(scores, found.passages, strict=True), key=lambda p: (-p[0], p[1].id))
        return [
            Hit(passage, score, rank, query, "fused")
            for rank, (score, passage) in enumerate(pairs[:k], 1)
        ]
