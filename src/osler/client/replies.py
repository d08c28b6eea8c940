"""Replies about runs and threads, as the API describes them. Written by scripts/client_types.py."""

# fmt: off
# ruff: noqa: E501, F401, I001
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

class AnswerJson(TypedDict):
    text: str
    option: str | None
    statements: list[StatementJson]
    citations: list[CitationJson]
    language: Literal["en", "zh"]
    authorship: Literal["extractive", "written"]
    note: str
    sureness: SurenessJson | None

class CautionJson(TypedDict):
    rule: Literal["retracted", "superseded", "newer-guideline", "amounts", "directions", "shared", "instruction", "contradicted", "reference"]
    text: str
    evidence: list[QuotedJson]

class ChangeListJson(TypedDict):
    changes: list[ChangeJson]

class ChangeJson(TypedDict):
    question: str
    before: str
    after: str
    new_statements: list[str]
    gone_statements: list[str]
    new_passages: list[str]
    gone_passages: list[str]
    grounding: list[str]

class ChangedJson(TypedDict):
    number: int
    passage: str
    state: Literal["changed", "gone"]

class CitationJson(TypedDict):
    span: list[int]
    number: int
    passage_id: str
    quote: str
    quote_span: list[int]

class DangerJson(TypedDict):
    kinds: list[Literal["emergency", "self-harm"]]
    text: str
    rules: list[str]
    language: Literal["en", "zh"]

class EvidenceJson(TypedDict):
    number: int
    passage: PassageJson
    quote: str
    quote_span: list[int]
    use: str
    query: str
    rank: int

class ExampleListJson(TypedDict):
    examples: list[ExampleJson]

class ExampleJson(TypedDict):
    question: str
    options: list[str]
    language: Literal["en", "zh"]

class FeedbackListJson(TypedDict):
    feedback: list[FeedbackJson]

class FeedbackJson(TypedDict):
    kind: Literal["run", "card"]
    about: str
    verdict: Literal["helpful", "wrong", "unsafe", "accepted", "overridden"]
    reason: str
    note: str
    where: str
    at: str

class HealthJson(TypedDict):
    status: Literal["ok", "ready"]

class LocatorJson(TypedDict):
    section: str
    page: int | None
    year: int | None
    url: str
    code: str
    kind: str

class ModelJson(TypedDict):
    kind: str
    name: str
    words_answers: bool

class MoneyJson(TypedDict):
    amount: float
    currency: str

class PassageJson(TypedDict):
    id: str
    source: str
    title: str
    text: str
    locator: LocatorJson
    licence: str
    language: Literal["en", "zh"]
    illustrative: bool

class PlanJson(TypedDict):
    danger: DangerJson | None
    question: str
    queries: list[SourceQueryJson]
    sources: list[str]
    text: str
    dropped: list[str]
    planner: str
    snapshot: str
    notice: NotRequired[str]

class ProofStepJson(TypedDict):
    n: int
    function: Literal["Retrieval", "Math", "Deduce", "Output"]
    step: str
    action: str
    needs: list[int]
    answer: str
    passages: list[str]
    computed: str

class QuotedJson(TypedDict):
    passage: PassageJson
    quote: str
    quote_span: list[int]

class RunErrorJson(TypedDict):
    code: str
    detail: str

class RunListJson(TypedDict):
    runs: list[RunSummaryJson]
    next: str | None

class RunReportJson(TypedDict):
    danger: DangerJson | None
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    created: str
    strategy: str
    question: str
    options: list[str]
    answer: AnswerJson | None
    evidence: list[EvidenceJson]
    cautions: list[CautionJson]
    grounding: Literal["grounded", "partly", "ungrounded", "abstained"] | None
    halt: Literal["converged", "budget", "no_evidence", "refused"] | None
    why: str
    decided: Literal["method", "reader", "fallback"] | None
    steps: list[ProofStepJson]
    usage: UsageJson | None
    models: dict[str, str]
    notes_of: list[str]
    snapshot: str
    seconds: float | None
    events: int
    ahead: int
    changed: list[ChangedJson]
    error: RunErrorJson | None
    notice: NotRequired[str]

class RunStartedJson(TypedDict):
    danger: DangerJson | None
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    events: str
    notice: NotRequired[str]

class RunSummaryJson(TypedDict):
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    created: str
    strategy: str
    question: str

class SourceQueryJson(TypedDict):
    source: str
    query: str

class SourceJson(TypedDict):
    source: str
    documents: int
    passages: int
    files: int
    licences: list[str]
    illustrative: int
    retracted: int
    trust: dict[str, int]
    latest: int

class StandaloneJson(TypedDict):
    standalone: str
    rewritten_by: str

class StatementJson(TypedDict):
    text: str
    cites: list[int]
    kind: Literal["claim", "unconfirmed", "notice"]

class StudyRowJson(TypedDict):
    title: str
    year: int | None
    design: str
    n: str
    measure: str
    value: str
    unit: str
    low: str
    high: str
    hints: str
    quote: str
    passage: str

class StudyTableJson(TypedDict):
    rows: list[StudyRowJson]

class SurenessJson(TypedDict):
    probability: float
    by: str

class ThreadListJson(TypedDict):
    threads: list[ThreadJson]

class ThreadJson(TypedDict):
    thread_id: str
    created: str
    turns: list[TurnJson]
    outdated: bool

class TransparencyJson(TypedDict):
    notice: str
    version: str
    intended_users: str
    intended_use: str
    out_of_scope: list[str]
    models: dict[str, ModelJson]
    encoder: str
    strategies: list[str]
    strategy: str
    snapshot: str
    sources: list[SourceJson]
    limits: dict[str, int | float | None]
    known_limits: list[str]

class TurnStartedJson(TypedDict):
    danger: DangerJson | None
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    events: str
    notice: NotRequired[str]
    turn: TurnJson

class TurnJson(TypedDict):
    standalone: str
    rewritten_by: str
    n: int
    run_id: str
    question: str
    created: str

class UsageJson(TypedDict):
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    scored_tokens: int
    searches: int
    seconds: float
    money: MoneyJson | None
