"""Search by words: BM25 over the full-text index, English and Chinese alike."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, PassageFilter
from osler.retrieve.hits import rank_hits, source_errors
from osler.retrieve.words import content_terms
from osler.types import Hit


@dataclass(frozen=True)
class LexicalRetriever:
    """Passages that share a word of content with the query; `[]` when it has none."""

    kb: KnowledgeBase
    within: PassageFilter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await asyncio.to_thread(self._search_words, query, k)

    def _search_words(self, query: str, k: int) -> list[Hit]:
        with source_errors(self.kb, self.within.sources):
            return rank_hits(
                self.kb.by_words(content_terms(query), k=k, within=self.within), query, "lexical"
            )
