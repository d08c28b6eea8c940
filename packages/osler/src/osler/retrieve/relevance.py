"""Relevance of texts to a query, without a model that reads both together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import TYPE_CHECKING

from osler.kb.encoders.base import encoder_for
from osler.kb.search.sparse import StemHasher, passage_vectors
from osler.retrieve import content_terms, term_weight
from osler.retrieve.asked import QuestionReader, asked_vector, read_query
from osler.text import is_cjk, language_of
from osler.types import Language, Relevance

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder

TermRarity = Callable[[Sequence[str]], Mapping[str, float]]
"""Of each term its inverse document frequency, by the knowledge base."""


@dataclass(frozen=True)
class EncoderRelevance:
    """Cosine similarity of query and text, in [-1, 1]; for the languages of its encoder.

    With `reader` the query is what is asked in it, with the other names of what it names.
    """

    encoder: Encoder
    reader: QuestionReader | None = None

    @property
    def languages(self) -> frozenset[Language]:
        return self.encoder.languages

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts:
            return ()
        return await asyncio.to_thread(self._cosine_scores, query, list(texts))

    def _cosine_scores(self, query: str, texts: list[str]) -> tuple[float, ...]:
        asked = read_query(self.reader, query)
        # Whatever the language of a text is: only vectors of one encoder compare.
        encoder = encoder_for(self.encoder, language_of(asked.text))
        vector = asked_vector(encoder, asked)[0]
        return tuple(map(float, encoder.encode(texts, kind="passage") @ vector))


@dataclass(frozen=True)
class MeaningRelevance:
    """Meaning of Chinese texts: E5's cosine, spread out.

    Its cosines lie close together: 98 % of the sentences that are found for a question have .84 to
    .92. Here what has nothing to do with the question is near 0, and its own words are 1.
    """

    near: EncoderRelevance
    unrelated: float = 0.83
    """Cosine that becomes 0."""

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        cosines = await self.near.relevance(query, texts)
        return tuple((one - self.unrelated) / (1 - self.unrelated) for one in cosines)


@dataclass(frozen=True)
class OverlapRelevance:
    """The share of the query's words of content that a text has, in [0, 1].

    It is the F-measure with recall (of the query's words) `beta` times as important
    as precision, so that of two texts with the same words the shorter one wins. A
    Chinese character counts half, a pair one. A query without content gives zeros.
    """

    beta: float = 3.0

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        asked = set(content_terms(query))
        return tuple(self._overlap_score(asked, set(content_terms(text))) for text in texts)

    def _overlap_score(self, asked: set[str], said: set[str]) -> float:
        # F-measure with beta² as the weight of recall.
        common, wanted, had = (sum(map(term_weight, one)) for one in (asked & said, asked, said))
        recall = self.beta**2
        return (1 + recall) * common / (recall * wanted + had) if common else 0.0


@dataclass(frozen=True)
class CoverageRelevance:
    """The share of a question's words of content that a text covers, rare words counting most.

    In [0, 1]. On the calibration questions it tells answered from unanswered ones better
    than the cosine does (`research/log/natural-questions.md`). A long question, a case history
    say, is measured by its `longest` most specific words: no passage covers a whole history.
    """

    rarity: TermRarity
    """Inverse document frequency of each term, from the knowledge base."""
    reader: QuestionReader | None = None
    """With it a name in a Chinese question is covered by each of its other names."""
    longest: int = 12

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        names: Sequence[tuple[str, tuple[str, ...]]] = ()
        if self.reader is not None and language_of(query) == "zh":
            read = self.reader.read(query)
            query, names = read.text, read.called
        asked = content_terms(query)
        if not asked:
            return (0.0,) * len(texts)
        rare = await asyncio.to_thread(self.rarity, asked)
        tells = {term: term_weight(term) * rare[term] for term in asked}
        # Chinese terms overlap (characters and pairs), so there are more of them.
        most = self.longest * 3 if is_cjk(asked[0][0]) else self.longest
        whole = sum(sorted(tells.values(), reverse=True)[:most])
        said = (set(content_terms(_add_names(text, names))) for text in texts)
        covered = (sum(tells[term] for term in asked if term in terms) for terms in said)
        return tuple(min(1.0, share / whole) for share in covered)


def _add_names(text: str, names: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """The text, and behind it each name that it says by another name."""
    said = [name for name, others in names if any(other in text for other in others)]
    return "。".join([text, *said])


@dataclass(frozen=True)
class WordRelevance:
    """BM25 of a text for the words of a query, as a search of the knowledge base weighs them.

    So passages that different searches found stand on the one scale of a search over all.
    """

    rarity: TermRarity
    """Inverse document frequency of each term, from the knowledge base."""
    _stems: StemHasher = field(default_factory=StemHasher, repr=False, compare=False)

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return await asyncio.to_thread(self._score_texts, content_terms(query), texts)

    def _score_texts(self, asked: list[str], texts: Sequence[str]) -> tuple[float, ...]:
        rare = self.rarity(asked) if asked else {}
        (places,) = self._stems.word_places([asked])
        tells = {place: rare[term] for place, term in zip(places, asked, strict=True)}
        return tuple(
            fsum(
                tells[place] * weight
                for place, weight in zip(*vector, strict=True)
                if place in tells
            )
            for vector in passage_vectors(self._stems, texts)
        )


@dataclass(frozen=True)
class RelevanceByLanguage:
    """Uses `known` for queries in its languages, `other` for the rest."""

    known: EncoderRelevance
    other: Relevance

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        chosen = self.known if language_of(query) in self.known.languages else self.other
        return await chosen.relevance(query, texts)
