"""A trained recogniser in the place of a dictionary: entities led to concepts of a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from osler.errors import CapabilityMissing
from osler.graph.link import ConceptMention, Dictionary
from osler.graph.lookup import Lookup
from osler.graph.store import Graph
from osler.retrieve.words import STOP_WORDS
from osler.train.recognise.corpus import MarkedEntity
from osler.train.recognise.recogniser import CONFIG, SpanRecogniser

FOLDER = "recogniser"
"""Folder of a knowledge base with the recogniser that links with its graph."""
LEAST = 0.85
"""Likeness from which a name that is spelt otherwise is taken for the same, in [0, 1]."""
OVER = 0.92
"""Likeness required where it replaces names that the graph has, and so is surely one."""


@dataclass(frozen=True)
class RecognisedNames:
    """Implements `osler.graph.link.Recogniser`.

    A recognised name is a mention where the graph has it: by its very name, else by the likest
    (extra `graph`). It is added to what the graph's own names find, and stands in their place
    where it covers them whole ("iron deficiancy anaemia" over "anaemia"); what only overlaps
    gives way to them. `alone`: the graph's own names are not looked for.
    """

    graph: Graph
    recogniser: SpanRecogniser
    alone: bool = False
    least: float = LEAST
    most: int = 3
    """Concepts of an ambiguous name."""
    _lookup: Lookup = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # The dataclass is frozen; the index is built once.
        object.__setattr__(self, "_lookup", Lookup(self.graph))

    def find_mentions(self, text: str) -> list[ConceptMention]:
        """Finds mentions in order, without overlaps; of nested recognised names the longer wins."""
        mentions: list[ConceptMention] = []
        if not self.alone:
            mentions = Dictionary(self.graph, STOP_WORDS).find_mentions(text)
        entities = sorted(
            (one.entity for one in self.recogniser.find_entities(text)),
            key=lambda e: e.start - e.end,
        )
        for entity in entities:
            # Longest first (sorted above), so an inner name meets the outer one already taken.
            touched = [m for m in mentions if m.start < entity.end and entity.start < m.end]
            if not all(_is_within(mention, entity) for mention in touched):
                continue
            least = max(self.least, OVER) if touched else self.least
            if concepts := self._concepts_of(text[entity.start : entity.end], least):
                mentions = [mention for mention in mentions if mention not in touched]
                mentions.append(ConceptMention(entity.start, entity.end, concepts))
        return sorted(mentions, key=lambda mention: mention.start)

    def _concepts_of(self, name: str, least: float) -> tuple[str, ...]:
        exact = self._lookup.find(name, k=self.most, fuzzy=False)
        if exact:
            return tuple(match.concept for match in exact)
        try:
            likest = self._lookup.find_fuzzy(name, k=1)
        except CapabilityMissing:  # without the extra only very names are found
            return ()
        return tuple(match.concept for match in likest if match.score >= least)


def _is_within(mention: ConceptMention, entity: MarkedEntity) -> bool:
    """Whether the mention is a part of the entity, and not all of it."""
    inside = entity.start <= mention.start and mention.end <= entity.end
    return inside and mention.end - mention.start < entity.end - entity.start


def has_recogniser(folder: Path) -> bool:
    """Whether a knowledge base has a recogniser."""
    return (folder / FOLDER / CONFIG).is_file()


def load_recogniser(folder: Path, graph: Graph) -> RecognisedNames | None:
    """The recogniser of a knowledge base; `None` without one. Raises `ModelError`."""
    return (
        RecognisedNames(graph, SpanRecogniser.load(folder / FOLDER))
        if has_recogniser(folder)
        else None
    )
