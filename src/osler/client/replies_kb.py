"""Replies about knowledge, files and evaluations, as the API describes them. Written by scripts/client_types.py."""

# fmt: off
# ruff: noqa: E501, F401, I001
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

from osler.client.replies import PassageJson, SourceJson

class ConceptMatchJson(TypedDict):
    id: str
    name: str

class ConceptMatchListJson(TypedDict):
    term: str
    concepts: list[ConceptMatchJson]

class ConceptRelationJson(TypedDict):
    subject: str
    subject_name: str
    predicate: str
    object: str
    object_name: str

class ConceptJson(TypedDict):
    id: str
    name: str
    names: list[str]
    types: list[str]
    definitions: list[list[str]]
    relations: list[ConceptRelationJson]

class EvaluationCellJson(TypedDict):
    strategy: str
    task: str
    planned: int
    done: int
    failed: int
    missing: int
    figures: dict[str, FigureJson]
    calibration_error: float | None

class EvaluationJudgedJson(TypedDict):
    form: str
    judge: str
    strategy: str
    task: str
    figures: dict[str, FigureJson]
    unread: int

class EvaluationListJson(TypedDict):
    evaluations: list[EvaluationSummaryJson]

class EvaluationMeasureJson(TypedDict):
    name: str
    title: str
    percent: bool
    means: dict[str, float | None]

class EvaluationPairJson(TypedDict):
    task: str
    first: str
    second: str
    measure: str
    change: FigureJson
    test: str
    p: float
    corrected: float
    verdict: str
    unpaired: int

class EvaluationPrintedJson(TypedDict):
    place: str
    task: str
    strategy: str
    theirs: float
    ours: FigureJson
    differs: str

class EvaluationSampleJson(TypedDict):
    strategy: str
    task: str
    id: str
    question: str
    options: list[str]
    gold: str
    answer: str
    score: float | None
    why: str

class EvaluationSampleListJson(TypedDict):
    samples: list[EvaluationSampleJson]

class EvaluationSummaryJson(TypedDict):
    name: str
    experiment: str
    version: str
    strategies: list[str]
    tasks: list[str]
    damaged: str

class EvaluationJson(TypedDict):
    name: str
    head: str
    strategies: list[str]
    tasks: list[str]
    measures: list[EvaluationMeasureJson]
    cells: list[EvaluationCellJson]
    compared: list[EvaluationPairJson]
    printed: list[EvaluationPrintedJson]
    judged: list[EvaluationJudgedJson]
    left_out: list[str]
    facts: list[list[str]]

class FigureJson(TypedDict):
    value: float
    low: float
    high: float
    n: int

class KbStatusJson(TypedDict):
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

class PassageInContextJson(TypedDict):
    passage: PassageJson
    context: list[PassageJson]
    provenance: ProvenanceJson | None
    snapshot: str

class ProvenanceJson(TypedDict):
    document: str
    origin: str
    checksum: str
    format: str
    added: int
    trust: int
    kinds: list[str]
    retracted: bool
    version: int

class SearchHitJson(TypedDict):
    rank: int
    score: float
    passage: PassageJson

class SearchResultJson(TypedDict):
    query: str
    snapshot: str
    hits: list[SearchHitJson]

class SourceListJson(TypedDict):
    snapshot: str
    searched: list[str]
    sources: list[SourceJson]

class UploadListJson(TypedDict):
    uploads: list[UploadJson]

class UploadPlacesJson(TypedDict):
    sources: list[str]
    endings: list[str]
    mib: int

class UploadReportJson(TypedDict):
    upload: UploadJson
    documents: int
    passages: int
    drops: dict[str, int]

class UploadJson(TypedDict):
    source: str
    name: str
    bytes: int
    sent: str
