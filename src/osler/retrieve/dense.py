"""Search by meaning: inner products with the encoder's vectors."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter
from osler.retrieve.hits import rank_hits, source_errors
from osler.text import language_of
from osler.types import Hit

if TYPE_CHECKING:
    from osler.kb.encoders.base import Encoder


@dataclass(frozen=True)
class DenseRetriever:
    """Passages near the query; `[]` for a query in a language that the encoder does not know.

    An encoder that has not learned a language still gives vectors for it, and they
    mean nothing: MiniLM (English) had a reciprocal rank of .32 on Chinese questions
    where characters alone had .92.
    """

    kb: KnowledgeBase
    encoder: Encoder
    within: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await asyncio.to_thread(self._search, query, k)

    def _search(self, query: str, k: int) -> list[Hit]:
        with source_errors(self.kb, self.within.sources):
            if language_of(query) not in self.encoder.languages:
                return []
            vector = self.encoder.encode([query], kind="query")[0]
            found = self.kb.by_vector(
                vector, encoder=self.encoder.identity, k=k, within=self.within
            )
            return rank_hits(found, query, "dense")
