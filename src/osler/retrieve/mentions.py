"""The names of concepts that stand in a text, as hits: what entity recognition finds."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from osler.errors import KnowledgeBaseError, SourceUnavailable
from osler.graph.link import ConceptMention, Dictionary, Recogniser
from osler.graph.store import Graph
from osler.retrieve.hits import rank_hits
from osler.retrieve.words import STOP_WORDS
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage


@dataclass(frozen=True)
class MentionRetriever:
    """One hit for each name in the text, in order, none twice.

    A hit's passage says the name as the text has it, the concept's own name and its types; it
    tells of the text, not of medicine, and is no evidence.
    """

    graph: Graph
    recogniser: Recogniser | None = None
    """`None` = the graph's own names."""

    async def search(self, query: str, *, k: int) -> list[Hit]:
        """Raises `SourceUnavailable` when the graph cannot be read."""
        try:
            return await asyncio.to_thread(self._mention_hits, query, k)
        except (KnowledgeBaseError, OSError) as error:
            raise SourceUnavailable(f"the graph cannot be searched: {error}") from error

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
