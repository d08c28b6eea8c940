"""Replies about knowledge, files and evaluations, as the API describes them. Written by scripts/client_types.py."""

# fmt: off
# ruff: noqa: E501, F401, I001
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from osler.client.replies import PassageView, SourceView

class ConceptMatch(TypedDict):
    id: str
    name: str

class ConceptMatchList(TypedDict):
    term: str
    concepts: list[ConceptMatch]

class ConceptRelation(TypedDict):
    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str

class ConceptView(TypedDict):
    id: str
    name: str
    names: list[str]
    types: list[str]
    definitions: list[list[str]]
    relations: list[ConceptRelation]

class EvaluationCell(TypedDict):
    strategy: str
    task: str
    planned: int
    done: int
    failed: int
    missing: int
    figures: dict[str, FigureView]
    calibration_error: float | None

class EvaluationJudged(TypedDict):
    form: str
    judge: str
    strategy: str
    task: str
    figures: dict[str, FigureView]
    unread: int

class EvaluationList(TypedDict):
    evaluations: list[EvaluationSummary]

class EvaluationMeasure(TypedDict):
    name: str
    title: str
    percent: bool
    means: dict[str, float | None]

class EvaluationPair(TypedDict):
    task: str
    first: str
    second: str
    measure: str
    change: FigureView
    test: str
    p: float
    corrected: float
    verdict: str
    unpaired: int

class EvaluationPrinted(TypedDict):
    place: str
    task: str
    strategy: str
    theirs: float
    ours: FigureView
    differs: str

class EvaluationSample(TypedDict):
    strategy: str
    task: str
    id: str
    question: str
    options: list[str]
    gold: str
    answer: str
    score: float | None
    why: str

class EvaluationSampleList(TypedDict):
    samples: list[EvaluationSample]

class EvaluationSummary(TypedDict):
    name: str
    experiment: str
    version: str
    strategies: list[str]
    tasks: list[str]
    damaged: str

class EvaluationView(TypedDict):
    name: str
    head: str
    strategies: list[str]
    tasks: list[str]
    measures: list[EvaluationMeasure]
    cells: list[EvaluationCell]
    compared: list[EvaluationPair]
    printed: list[EvaluationPrinted]
    judged: list[EvaluationJudged]
    left_out: list[str]
    facts: list[list[str]]

class FigureView(TypedDict):
    value: float
    low: float
    high: float
    n: int

class KbStatus(TypedDict):
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

class PassageInContext(TypedDict):
    passage: PassageView
    context: list[PassageView]
    provenance: ProvenanceView | None
    snapshot: str

class ProvenanceView(TypedDict):
    document: str
    origin: str
    checksum: str
    format: str
    added: int
    trust: int
    kinds: list[str]
    retracted: bool
    version: int

class SearchHit(TypedDict):
    rank: int
    score: float
    passage: PassageView

class SearchResult(TypedDict):
    query: str
    snapshot: str
    hits: list[SearchHit]

class SourceList(TypedDict):
    snapshot: str
    searched: list[str]
    sources: list[SourceView]

class UploadList(TypedDict):
    uploads: list[UploadView]

class UploadPlaces(TypedDict):
    sources: list[str]
    endings: list[str]
    mib: int

class UploadReport(TypedDict):
    upload: UploadView
    documents: int
    passages: int
    drops: dict[str, int]

class UploadView(TypedDict):
    source: str
    name: str
    bytes: int
    sent: str
