"""What the API tells of the knowledge base: passages, searches, sources and concepts."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Out(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Locator(_Out):
    section: str
    page: int | None
    year: int | None
    url: str
    code: str
    kind: str


class Passage(_Out):
    id: str
    source: str
    title: str
    text: str
    locator: Locator
    licence: str
    language: Literal["en", "zh"]
    illustrative: bool
    """A sample text: no clinical reference."""


class Provenance(_Out):
    document: str
    origin: str
    checksum: str
    format: str
    added: int
    trust: int
    kinds: list[str]
    retracted: bool
    version: int


class PassageFound(_Out):
    passage: Passage
    context: list[Passage]
    """Before and after it in its document, itself among them; empty unless asked for."""
    provenance: Provenance | None
    """`null` for a passage that is not the knowledge base's own."""
    snapshot: str


class SearchHit(_Out):
    rank: int
    score: float
    """Comparable within this search only; higher is better."""
    passage: Passage


class Searched(_Out):
    query: str
    snapshot: str
    hits: list[SearchHit]


class Source(_Out):
    source: str
    documents: int
    passages: int
    files: int
    licences: list[str]
    illustrative: int
    retracted: int
    trust: dict[str, int]
    latest: int


class Sources(_Out):
    snapshot: str
    searched: list[str]
    """What a question is looked up in where it names no sources."""
    sources: list[Source]


class KbStatus(_Out):
    snapshot: str
    built: bool
    pending: int
    encoder: str
    dimension: int
    documents: int
    passages: int
    bytes: int
    named_snapshots: int
    graph: bool


class ConceptRelation(_Out):
    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str


class Concept(_Out):
    id: str
    name: str
    names: list[str]
    types: list[str]
    definitions: list[tuple[str, str]]
    """Source and text."""
    relations: list[ConceptRelation]


class ConceptMatch(_Out):
    id: str
    name: str


class ConceptMatches(_Out):
    term: str
    concepts: list[ConceptMatch]
