"""Concepts that a text names, in its order; by a trained recogniser where the graph has one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from osler.errors import CapabilityMissing
from osler.graph.link import ConceptMention, Dictionary, Recogniser
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.llm.transformers.hub import import_extra, open_model, open_tokenizer
from osler.retrieve import STOP_WORDS, rank_hits, search_errors
from osler.sources.catalogue import GRAPH
from osler.types import Hit, Passage

RECOGNISER = "recogniser"
"""Folder of a knowledge base with the token classifier whose names are linked with its graph."""
LIKENESS = 0.85
"""Likeness from which a name that is spelt otherwise is taken for the same, in [0, 1]."""
SURE_LIKENESS = 0.92
"""Likeness required where it replaces names that the graph has, and so is surely one."""
_MOST = 3
"""Concepts of an ambiguous name."""
_STRIDE = 32
"""Word pieces that two windows of a long text share."""


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


class NamedEntity(NamedTuple):
    """`text[start:end]` is a name of this type."""

    start: int
    end: int
    type: str


class TokenClassifier:
    """Finds names by a model that marks each word with a BIO tag, as `transformers` saves one.

    `research/experts/train_recogniser.py` makes one. It blocks.
    """

    def __init__(self, folder: Path) -> None:
        """Raises as `open_model`."""
        model = open_model("AutoModelForTokenClassification", folder, dtype="float32", device="cpu")
        tokenizer = open_tokenizer(folder)
        self._mark = import_extra("transformers").pipeline(
            "token-classification",
            model=model,
            tokenizer=tokenizer,
            aggregation_strategy="first",
            stride=_STRIDE,
        )

    def find_entities(self, text: str) -> list[NamedEntity]:
        """The names of a text, in order, none overlapping."""
        found = self._mark(text) if text.strip() else ()
        return [NamedEntity(one["start"], one["end"], one["entity_group"]) for one in found]


@dataclass(frozen=True)
class RecognisedNames:
    """Implements `osler.graph.link.Recogniser`.

    A recognised name is a mention where the graph has it: by its very name, else by the likest
    (extra `graph`). It is added to what the graph's own names find, and stands in their place
    where it covers them whole ("iron deficiancy anaemia" over "anaemia"); what only overlaps
    gives way to them.
    """

    graph: Graph
    classifier: TokenClassifier

    @cached_property
    def _lookup(self) -> Lookup:
        return Lookup(self.graph)

    def find_mentions(self, text: str) -> list[ConceptMention]:
        """Finds mentions in order, without overlaps."""
        mentions = Dictionary(self.graph, STOP_WORDS).find_mentions(text)
        for entity in self.classifier.find_entities(text):
            touched = [m for m in mentions if m.start < entity.end and entity.start < m.end]
            if not all(_is_within(mention, entity) for mention in touched):
                continue
            least = SURE_LIKENESS if touched else LIKENESS
            if concepts := self._concepts_of(text[entity.start : entity.end], least):
                mentions = [mention for mention in mentions if mention not in touched]
                mentions.append(ConceptMention(entity.start, entity.end, concepts))
        return sorted(mentions, key=lambda mention: mention.start)

    def _concepts_of(self, name: str, least: float) -> tuple[str, ...]:
        if exact := self._lookup.find(name, k=_MOST, fuzzy=False):
            return tuple(match.concept for match in exact)
        try:
            likest = self._lookup.find_fuzzy(name, k=1)
        except CapabilityMissing:  # without the extra only very names are found
            return ()
        return tuple(match.concept for match in likest if match.score >= least)


def _is_within(mention: ConceptMention, entity: NamedEntity) -> bool:
    """Whether the mention is a part of the entity, and not all of it."""
    inside = entity.start <= mention.start and mention.end <= entity.end
    return inside and mention.end - mention.start < entity.end - entity.start


def open_recogniser(graph: Graph) -> RecognisedNames | None:
    """The recogniser beside a graph; `None` = the graph's own names alone. Raises as
    `TokenClassifier`."""
    folder = graph.folder / RECOGNISER
    return RecognisedNames(graph, TokenClassifier(folder)) if folder.is_dir() else None
