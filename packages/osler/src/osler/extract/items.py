"""Items extracted from a chunk; offsets are into the chunk's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, Any, Literal

UNITS = ("entities", "relations", "points", "tables", "outline", "summary")
"""Units of extraction, in the order of the model calls."""
Unit = Literal["entities", "relations", "points", "tables", "outline", "summary"]


@dataclass(frozen=True, slots=True)
class Entity:
    """Table 16's entity. `name` is `text[start:end]`."""

    name: str
    type: str
    start: int
    end: int
    ontology: str = ""
    """Its chain of domains, from broad to narrow."""
    explanation: str = ""
    """The model's own words from its own knowledge: shown, never cited."""
    standard: str = ""
    """Its standard name where that differs."""
    synonyms: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    """Identifiers in the concept graph; empty when the concept is unknown."""
    kind: Literal["entity"] = "entity"


@dataclass(frozen=True, slots=True)
class EntityRelation:
    """Table 16's quadruple. `text[start:end]` covers both ends, which name entities."""

    subject: str
    predicate: str
    object: str
    start: int
    end: int
    constraint: str = ""
    """Time, dose, route …; several joined by commas."""
    kind: Literal["relation"] = "relation"


@dataclass(frozen=True, slots=True)
class KnowledgePoint:
    """Table 17's knowledge point. `text[start:end]` covers its core entities."""

    name: str
    type: str
    content: str
    start: int
    end: int
    structured: str = ""
    ontology: str = ""
    entities: tuple[str, ...] = ()
    """Core entities, each as spelt in the text; never empty."""
    questions: tuple[str, ...] = ()
    """Atomic queries: questions that the chunk answers."""
    extended: tuple[str, ...] = ()
    """Names of related points that are not in the text."""
    kind: Literal["point"] = "point"


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of the chunk; every filled cell occurs in its text."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    start: int
    end: int
    kind: Literal["table"] = "table"


@dataclass(frozen=True, slots=True)
class OutlineHeading:
    """A part of the chunk: its title and where it begins."""

    title: str
    start: int
    end: int
    """End of its opening words."""
    kind: Literal["heading"] = "heading"


@dataclass(frozen=True, slots=True)
class ChunkSummary:
    """A summary of the chunk; `about` are names that occur in it, never empty."""

    text: str
    about: tuple[str, ...]
    start: int
    end: int
    kind: Literal["summary"] = "summary"


Item = Entity | EntityRelation | KnowledgePoint | TextTable | OutlineHeading | ChunkSummary


@dataclass(frozen=True, slots=True)
class ExtractedItems:
    """The items of one chunk, and counts of what was dropped."""

    items: tuple[Item, ...] = ()
    drops: tuple[tuple[str, int], ...] = ()
    """Reasons with their counts: "name not in the text"."""
    cut: int = 0
    """Replies that ended at the token limit; their complete entries were kept."""


@dataclass
class ItemCollector:
    """Collects distinct items and counts those that are dropped."""

    items: dict[Item, None] = field(default_factory=dict)
    drops: Counter[str] = field(default_factory=Counter)
    cut: int = 0

    def add(self, item: Item) -> None:
        if item in self.items:
            self.drop(TWICE)
        self.items[item] = None

    def drop(self, reason: str) -> None:
        self.drops[reason] += 1

    def collected_items(self) -> ExtractedItems:
        return ExtractedItems(tuple(self.items), tuple(self.drops.most_common()), self.cut)


TWICE = "said twice"
UNANCHORED = "name not in the text"


def dump_items(items: Sequence[Item]) -> str:
    """Serialises items as JSON for the store."""
    return str(_item_adapter().dump_json(tuple(items)).decode())


def load_items(text: str) -> tuple[Item, ...]:
    """Reads what `dump_items` wrote."""
    found: tuple[Item, ...] = _item_adapter().validate_json(text)
    return found


@cache
def _item_adapter() -> Any:
    from pydantic import Field, TypeAdapter

    return TypeAdapter(tuple[Annotated[Item, Field(discriminator="kind")], ...])


def sum_counts(counts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Sums counts by reason, the most frequent first."""
    total: Counter[str] = Counter()
    for reason, count in counts:
        total[reason] += count
    return tuple(total.most_common())
