"""Search by words: BM25 over the full-text index, English and Chinese alike."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.kb.base import KnowledgeBase
from osler.kb.search.base import EVERYTHING, Filter
from osler.retrieve.hits import available, hits
from osler.retrieve.words import terms
from osler.types import Hit


@dataclass(frozen=True)
class Lexical:
    """Passages that share a word of content with the query; `[]` when it has none."""

    kb: KnowledgeBase
    within: Filter = EVERYTHING

    async def search(self, query: str, *, k: int) -> list[Hit]:
        return await asyncio.to_thread(self._search, query, k)

    def _search(self, query: str, k: int) -> list[Hit]:
        with available(self.kb, self.within.sources):
            return hits(self.kb.by_words(terms(query), k=k, within=self.within), query, "lexical")
