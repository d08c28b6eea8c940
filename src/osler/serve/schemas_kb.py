"""What the API tells of the knowledge base: passages, searches, sources and concepts."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _KbModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LocatorView(_KbModel):
    section: str
    page: int | None
    year: int | None
    url: str
    code: str
    kind: str


class PassageView(_KbModel):
    id: str
    source: str
    title: str
    text: str
    locator: LocatorView
    licence: str
    language: Literal["en", "zh"]
    illustrative: bool
    """A sample text: no clinical reference."""


class ProvenanceView(_KbModel):
    document: str
    origin: str
    checksum: str
    format: str
    added: int
    trust: int
    kinds: list[str]
    retracted: bool
    version: int


class PassageInContext(_KbModel):
    passage: PassageView
    context: list[PassageView]
    """Before and after it in its document, itself among them; empty unless asked for."""
    provenance: ProvenanceView | None
    """`null` for a passage that is not the knowledge base's own."""
    snapshot: str


class SearchHit(_KbModel):
    rank: int
    score: float
    """Comparable within this search only; higher is better."""
    passage: PassageView


class SearchResult(_KbModel):
    query: str
    snapshot: str
    hits: list[SearchHit]


class SourceView(_KbModel):
    source: str
    documents: int
    passages: int
    files: int
    licences: list[str]
    illustrative: int
    retracted: int
    trust: dict[str, int]
    latest: int


class SourceList(_KbModel):
    snapshot: str
    searched: list[str]
    """What a question is looked up in where it names no sources."""
    sources: list[SourceView]


class KbStatus(_KbModel):
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


class ConceptRelation(_KbModel):
    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str


class ConceptView(_KbModel):
    id: str
    name: str
    names: list[str]
    types: list[str]
    definitions: list[tuple[str, str]]
    """Source and text."""
    relations: list[ConceptRelation]


class ConceptMatch(_KbModel):
    id: str
    name: str


class ConceptMatchList(_KbModel):
    term: str
    concepts: list[ConceptMatch]
