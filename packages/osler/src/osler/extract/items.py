"""Items extracted from a chunk, and the schema of what is extracted.

Offsets are into the chunk's text. The packaged schema is the paper's (KAG-Thinker App. 13, Table
15, and Table 17). A user's own is a TOML or JSON file of the same form; mistakes are reported when
it is loaded.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from osler.errors import BadConfig, describe_invalid
from osler.text import one_line, read_packaged_table
from osler.types import Language

_FIX = "see docs/guide/extraction.md for the form of a schema"


def _check_line(text: str) -> str:
    if one_line(text) != text:
        raise ValueError("must be one line without surrounding spaces")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=60), AfterValidator(_check_line)]
Words = Annotated[str, StringConstraints(max_length=300), AfterValidator(_check_line)]


class DescribedType(BaseModel):
    """A type of entities, or a kind of knowledge."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    en: Words = ""
    """Its description for the model in English; empty = its name alone."""
    zh: Words = ""

    def describe_in(self, language: Language) -> str:
        """Its name and description, in `language` where available."""
        about = (self.zh or self.en) if language == "zh" else (self.en or self.zh)
        mark = "：" if language == "zh" else ": "
        return f"{self.name}{mark}{about}" if about else self.name


class Schema(BaseModel):
    """An extraction schema; immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name
    entity: tuple[DescribedType, ...] = Field(min_length=1, max_length=100)
    knowledge: tuple[DescribedType, ...] = ()
    """Kinds of knowledge points; by default the paper's five."""
    predicates: tuple[Name, ...] = ()
    """Allowed predicates of relations; empty = any, as in the paper."""

    @model_validator(mode="after")
    def _check_distinct(self) -> Schema:
        for part in ("entity", "knowledge"):
            names = [kind.name for kind in getattr(self, part)]
            if twice := {name for name in names if names.count(name) > 1}:
                raise ValueError(f"{part}: {', '.join(sorted(twice))} occurs twice")
        if len(set(self.predicates)) < len(self.predicates):
            raise ValueError("predicates: one occurs twice")
        return self

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(kind.name for kind in self.entity)

    @property
    def identity(self) -> str:
        """Its name with a hash of its content: "medicine@1f3a9c2e"."""
        digest = hashlib.sha256(self.model_dump_json().encode()).hexdigest()[:8]
        return f"{self.name}@{digest}"


@cache
def medicine_schema() -> Schema:
    """The paper's schema: 24 types of entities, five kinds of knowledge, free predicates."""
    return Schema.model_validate(read_packaged_table(__package__, "medicine.toml"))


def load_schema(path: Path) -> Schema:
    """The schema of a `.toml` or `.json` file.

    Raises `BadConfig` with the file, the place in it and the mistake.
    """
    try:
        found = Schema.model_validate(_read_file(path))
    except ValidationError as error:
        raise BadConfig(f"{path}: {describe_invalid(error)}", fix=_FIX) from error
    if found.knowledge:
        return found
    return found.model_copy(update={"knowledge": medicine_schema().knowledge})


def _read_file(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise BadConfig(f"{path} cannot be read: {why}", fix=_FIX) from error
    try:
        match path.suffix.lower():
            case ".toml":
                return tomllib.loads(text)
            case ".json":
                return json.loads(text)
    except ValueError as error:
        raise BadConfig(f"{path}: {error}", fix=_FIX) from error
    raise BadConfig(f"{path} is neither .toml nor .json", fix="give the file one of these endings")


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
    return TypeAdapter(tuple[Annotated[Item, Field(discriminator="kind")], ...])
