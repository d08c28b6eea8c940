"""How well texts answer a query, without a model that reads both together."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osler.retrieve.words import terms, weight
from osler.text import language_of
from osler.types import Language, Relevance

if TYPE_CHECKING:
    from osler.kb.embed import Encoder


@dataclass(frozen=True)
class EncoderRelevance:
    """The cosine of query and text, in [-1, 1]; for the languages of its encoder."""

    encoder: Encoder

    @property
    def languages(self) -> frozenset[Language]:
        return self.encoder.languages

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        if not texts:
            return ()
        return await asyncio.to_thread(self._cosines, query, list(texts))

    def _cosines(self, query: str, texts: list[str]) -> tuple[float, ...]:
        vector = self.encoder.encode([query], kind="query")[0]
        return tuple(map(float, self.encoder.encode(texts, kind="passage") @ vector))


@dataclass(frozen=True)
class Overlap:
    """The share of the query's words of content that a text has, in [0, 1].

    It is the F-measure with recall (of the query's words) `beta` times as important
    as precision, so that of two texts with the same words the shorter one wins. A
    Chinese character counts half, a pair one. A query without content gives zeros.
    """

    beta: float = 3.0

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        asked = set(terms(query))
        return tuple(self._overlap(asked, set(terms(text))) for text in texts)

    def _overlap(self, asked: set[str], said: set[str]) -> float:
        common, recall = _total(asked & said), self.beta**2
        return (1 + recall) * common / (recall * _total(asked) + _total(said)) if common else 0.0


def _total(found: Iterable[str]) -> float:
    return sum(map(weight, found))


@dataclass(frozen=True)
class ByLanguage:
    """`known` for queries in a language that it knows, `other` for the rest."""

    known: EncoderRelevance
    other: Relevance

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        chosen = self.known if language_of(query) in self.known.languages else self.other
        return await chosen.relevance(query, texts)
