"""Replies on the knowledge base: passages, searches, sources, concepts and
uploads; and what the server says of itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _named_tiers(trust: object) -> object:
    """Keys of a JSON object are texts."""
    return {str(tier): n for tier, n in trust.items()} if isinstance(trust, dict) else trust


class ResponseModel(BaseModel):
    """A reply, or a part of one. It can be made of a library's value that has the same fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, from_attributes=True)

    @classmethod
    def from_value(cls, value: object, **more: object) -> Self:
        """Takes fields by their names from `value`, except those in `more`."""
        same = {name: getattr(value, name) for name in cls.model_fields if name not in more}
        return cls.model_validate(same | more)

    @classmethod
    def document_of(cls, value: object) -> dict[str, Any]:
        """A library's value as plain JSON values."""
        return cls.from_value(value).model_dump(mode="json")


class LocatorView(ResponseModel):
    section: str
    page: int | None
    year: int | None
    url: str
    code: str
    kind: str
    authors: list[str]
    journal: str
    date: str
    """Month or day, "2024-03" or "2024-03-15", where more than the year is known; else empty."""
    notice: str
    """What was published against the work: a retraction, with its date and reason."""
    key: str
    """Its citation key in the library that it came from."""


class PassageView(ResponseModel):
    id: str
    source: str
    title: str
    text: str
    locator: LocatorView
    licence: str
    language: Literal["en", "zh"]
    illustrative: bool
    """A sample text: no clinical reference."""


class ProvenanceView(ResponseModel):
    document: str
    origin: str
    checksum: str
    format: str
    added: int
    trust: int
    kinds: list[str]
    retracted: bool
    version: int

    @classmethod
    def of(cls, told: Any) -> Self:
        # The path of a file is this machine's affair; its name says enough.
        name = told.origin if "://" in told.origin else told.origin.rpartition("/")[2]
        return cls.from_value(told, origin=name)


class PassageInContext(ResponseModel):
    passage: PassageView
    context: list[PassageView]
    """Before and after it in its document, itself among them; empty unless asked for."""
    provenance: ProvenanceView | None
    """`null` for a passage that is not the knowledge base's own."""
    snapshot: str


class DrugLabelView(ResponseModel):
    document: str
    title: str
    code: str
    """Set id and version, by which it is cited."""
    url: str
    effective: str


class ReadLabel(DrugLabelView):
    """A drug's latest label, word for word."""

    name: str
    """By which it was asked for."""
    sections: dict[str, list[PassageView]]
    """Under each heading; empty where the label has no such section."""
    others: list[DrugLabelView]
    """Further labels of the name, the latest first."""


class LabelsSideBySide(ResponseModel):
    headings: list[str]
    """In reading order."""
    labels: list[ReadLabel]

    @classmethod
    def of(cls, found: Sequence[Any], headings: Sequence[str]) -> Self:
        """Of `osler.retrieve.labels.FoundLabels`."""
        labels = [
            ReadLabel.from_value(
                one.shown,
                name=one.name,
                sections={h: one.sections.get(h, []) for h in headings},
                others=one.others,
            )
            for one in found
        ]
        return cls(headings=[*headings], labels=labels)


class SearchHit(ResponseModel):
    rank: int
    score: float
    """Comparable within this search only; higher is better."""
    passage: PassageView


class SearchResult(ResponseModel):
    query: str
    snapshot: str
    hits: list[SearchHit]


class SourceView(ResponseModel):
    source: str
    documents: int
    passages: int
    files: int
    licences: list[str]
    illustrative: int
    retracted: int
    trust: Annotated[dict[str, int], BeforeValidator(_named_tiers)]
    latest: int


class SourceList(ResponseModel):
    snapshot: str
    searched: list[str]
    """What a question is looked up in where it names no sources."""
    sources: list[SourceView]


class KbStatus(ResponseModel):
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


class ConceptRelation(ResponseModel):
    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str


class ConceptView(ResponseModel):
    id: str
    name: str
    names: list[str]
    types: list[str]
    definitions: list[tuple[str, str]]
    """Source and text."""
    relations: list[ConceptRelation]


class ConceptMatch(ResponseModel):
    id: str
    name: str


class ConceptMatchList(ResponseModel):
    term: str
    concepts: list[ConceptMatch]


class UploadView(ResponseModel):
    source: str
    name: str
    bytes: int
    sent: str


class UploadPlaces(ResponseModel):
    sources: list[str]
    """Those that take files of the caller."""
    endings: list[str]
    mib: int
    """The most that a file may have."""


class UploadList(ResponseModel):
    uploads: list[UploadView]
    behind: int = 0
    """Passages of the knowledge base that the server still encodes: until then they are found by
    words alone."""


class UploadReport(ResponseModel):
    upload: UploadView
    documents: int
    passages: int
    """New ones; they are found by words at once, by meaning when `behind` of the list is 0."""
    drops: dict[str, int]
    """What of the file became no document, by reason."""


class ModelView(ResponseModel):
    kind: str
    name: str
    words_answers: bool
    """Whether it may word medicine; otherwise answers are quoted."""


class Transparency(ResponseModel):
    notice: str
    version: str
    intended_users: str
    intended_use: str
    out_of_scope: list[str]
    models: dict[str, ModelView]
    encoder: str
    strategies: list[str]
    exports: list[str]
    """Formats of files that this installation can write."""
    strategy: str
    snapshot: str
    sources: list[SourceView]
    limits: dict[str, int | float | None]
    known_limits: list[str]


class Health(ResponseModel):
    status: Literal["ok", "ready", "degraded"]
    degraded: list[str] = []
    """What does not work as it should while questions are answered, in words."""
    vectors_behind: int = 0
    """Passages that are found by words alone until they are encoded."""
