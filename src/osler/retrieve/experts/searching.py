"""`retrieve`: where does the answer to this question lie among all passages?

Two small parts. A linear map turns a question's vector towards the vectors of passages that
answer it; passages keep theirs, so a knowledge base needs no new build. And what is near in
meaning or in words is put in one order by cosine, BM25 and, for a question of several sentences,
by whether a passage's heading is named in it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from osler.errors import ModelError
from osler.kb.encoders.base import scale_to_unit
from osler.retrieve.experts.linear import LinearModel
from osler.retrieve.words import content_terms
from osler.text import language_of, split_sentences
from osler.types import Relevance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from osler.kb.base import KnowledgeBase
    from osler.kb.encoders.base import Encoder, Vectors
    from osler.kb.search.base import Ranking
    from osler.kb.search.vectors import Floats
    from osler.retrieve.experts.linear import Matrix
    from osler.retrieve.experts.shelf import ShelvedExpert

RETRIEVE = "retrieve"
FEATURES = ("cosine", "BM25 by the best one's", "heading in a letter")
"""Names of a candidate's numbers, in order."""


@dataclass(frozen=True)
class QueryMap:
    """v → v + up (down v) + shift, scaled to length 1."""

    down: Vectors
    """Shape (rank, dimension)."""
    up: Vectors
    """Shape (dimension, rank)."""
    shift: Vectors
    """Shape (dimension,)."""

    @classmethod
    def of_tensors(cls, tensors: Mapping[str, NDArray[Any]]) -> QueryMap:
        """Raises `ModelError` for tensors that are no map."""
        try:
            down, up, shift = (tensors[name].astype("float32") for name in ("down", "up", "shift"))
        except KeyError as error:
            raise ModelError(f"the expert's weights lack {error}") from error
        if down.shape != up.T.shape or up.shape[:1] != shift.shape:
            raise ModelError("the shapes of the expert's weights do not fit each other")
        return cls(down, up, shift)

    def turn_queries(self, vectors: Vectors) -> Vectors:
        """The vectors to search with, of the same shape."""
        import numpy as np

        turned = vectors + (vectors @ self.down.T) @ self.up.T + self.shift
        return scale_to_unit(np.asarray(turned, np.float32))


@dataclass(frozen=True)
class SearchCandidates:
    """What both rankings found for a question, with its numbers."""

    numbers: Sequence[int]
    rows: Matrix
    """Shape (candidates, features)."""


def find_candidates(
    kb: KnowledgeBase, query: str, vector: Floats, dense: Ranking, lexical: Ranking
) -> SearchCandidates:
    """The passages of both rankings; one that words did not find gets the last one's BM25."""
    numbers = sorted({number for number, _ in (*dense, *lexical)})
    vectors, words = kb.get_vectors(numbers), dict(lexical)
    least = min(words.values(), default=0.0)
    headings: dict[int, str] = {}
    if is_letter(query):
        headings = {number: one.heading for number, one in kb.get_passages(numbers).items()}
    rarity = kb.term_rarity(content_terms(query)) if headings else {}
    rows = measure_candidates(
        [float(vectors[number] @ vector) if number in vectors else 0.0 for number in numbers],
        [words.get(number, least) for number in numbers],
        [headings.get(number, "") for number in numbers],
        rarity,
    )
    return SearchCandidates(numbers, rows)


def is_letter(query: str) -> bool:
    """Whether a question has several sentences: what a patient writes, or a case."""
    return len(split_sentences(query)) > 1


def measure_candidates(
    cosines: Sequence[float],
    bm25: Sequence[float],
    headings: Sequence[str],
    rarity: Mapping[str, float],
) -> Matrix:
    """The numbers of candidates. `rarity` is that of a letter's terms; empty for other questions.

    A heading counts by the share of its words that the letter has, times the share of the letter
    that these are, rare words counting most: so a short, common heading counts little.
    """
    import numpy as np

    best = max(bm25, default=0.0) or 1.0
    whole = sum(rarity.values()) or 1.0
    rows = []
    for cosine, words, heading in zip(cosines, bm25, headings, strict=True):
        named = set(content_terms(heading)) if rarity else set()
        both = named & rarity.keys()
        share = len(both) / len(named) * sum(map(rarity.__getitem__, both)) / whole if both else 0.0
        rows.append([cosine, words / best, share])
    return np.array(rows).reshape(len(rows), len(FEATURES))


class SearchExpert:
    """The map and the order; for questions in the languages of its encoder."""

    def __init__(self, expert: ShelvedExpert) -> None:
        """Raises `ModelError` for an expert of another kind."""
        self.card = expert.card
        if self.card.family != "search" or self.card.features != FEATURES:
            raise ModelError(f"the expert {self.card.name!r} was made for another search")
        tensors = expert.read_tensors()
        self._map, self._order = QueryMap.of_tensors(tensors), LinearModel.of_tensors(tensors)

    def turn_queries(self, vectors: Vectors) -> Vectors:
        return self._map.turn_queries(vectors)

    def weigh_rows(self, rows: Matrix) -> list[float]:
        """How likely each candidate supports an answer, in [0, 1]."""
        return [float(share) for (share,) in self._order.predict_shares(rows)]

    def rank_candidates(self, found: SearchCandidates) -> Ranking:
        pairs = zip(found.numbers, self.weigh_rows(found.rows), strict=True)
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))


@dataclass(frozen=True)
class SearchRelevance:
    """The order of `retrieve` as a `Relevance`, over texts that several searches found.

    Scores depend on all texts that are scored together. A text's heading is its first line, where
    it has several. Other languages than the encoder's are left to `other`.
    """

    expert: SearchExpert
    encoder: Encoder
    words: Relevance
    """BM25."""
    rarity: Callable[[Sequence[str]], Mapping[str, float]]
    other: Relevance

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts or language_of(query) not in self.encoder.languages:
            return await self.other.relevance(query, texts)
        bm25 = await self.words.relevance(query, texts)
        return await asyncio.to_thread(self._weigh_texts, query, texts, bm25)

    def _weigh_texts(
        self, query: str, texts: Sequence[str], bm25: Sequence[float]
    ) -> tuple[float, ...]:
        vector = self.expert.turn_queries(self.encoder.encode([query], kind="query"))[0]
        cosines = (self.encoder.encode(texts, kind="passage") @ vector).tolist()
        headings = [text.partition("\n")[0] if "\n" in text else "" for text in texts]
        rarity = self.rarity(content_terms(query)) if is_letter(query) else {}
        rows = measure_candidates(cosines, bm25, headings, rarity)
        return tuple(self.expert.weigh_rows(rows))
