"""Concepts that a text names, in its order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.graph.link import ConceptMention, Dictionary, Recogniser
from osler.graph.store import Graph
from osler.retrieve import rank_hits, search_errors
from osler.retrieve.words import STOP_WORDS
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage


@dataclass(frozen=True)
class MentionRetriever:
    """Finds the concepts named in a text, one hit each, in text order.

    A hit's passage gives the name as spelt in the text, the concept's own name and its types; it
    describes the text, not medicine, and is no evidence.
    """

    graph: Graph
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """The first `k` concepts. Raises `SourceUnavailable` when the graph is unreadable."""
        with search_errors():
            return await asyncio.to_thread(self._mention_hits, query, k)

    def _mention_hits(self, text: str, k: int) -> list[Hit]:
        recogniser = self.recogniser or Dictionary(self.graph, STOP_WORDS)
        first: dict[str, ConceptMention] = {}
        for mention in recogniser.find_mentions(text):
            first.setdefault(mention.concepts[0], mention)
        told = [self._mention_passage(id, text, mention) for id, mention in list(first.items())[:k]]
        return rank_hits(((passage, 1.0) for passage in told), text, GRAPH)

    def _mention_passage(self, id: str, text: str, mention: ConceptMention) -> Passage:
        written = text[mention.start : mention.end]
        concept = self.graph.get_concept(id)
        names = [n for n in (concept.name,) if n != written] if concept else []
        about = ", ".join((*names, *(concept.types if concept else ())))
        words = f"{written} ({about})" if about else written
        return Passage(f"{GRAPH}:{id}#mention", words, GRAPH, concept.name if concept else id)
