"""Replies about runs and threads, as the API describes them. Written by scripts/client_types.py."""

# fmt: off
# ruff: noqa: E501, F401, I001
from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

class AnswerView(TypedDict):
    text: str
    option: str | None
    statements: list[StatementView]
    citations: list[CitationView]
    language: Literal["en", "zh"]
    authorship: Literal["extractive", "written"]
    note: str
    sureness: SurenessView | None

class CautionView(TypedDict):
    rule: Literal["retracted", "superseded", "newer-guideline", "amounts", "directions", "shared", "instruction", "contradicted", "reference"]
    text: str
    evidence: list[QuotedView]

class ChangeList(TypedDict):
    changes: list[ChangeView]

class ChangeView(TypedDict):
    question: str
    before: str
    after: str
    new_statements: list[str]
    gone_statements: list[str]
    new_passages: list[str]
    gone_passages: list[str]
    grounding: list[str]

class ChangedView(TypedDict):
    number: int
    passage: str
    state: Literal["changed", "gone"]

class CitationView(TypedDict):
    span: list[int]
    number: int
    passage_id: str
    quote: str
    quote_span: list[int]

class DangerView(TypedDict):
    kinds: list[Literal["emergency", "self-harm"]]
    text: str
    rules: list[str]
    language: Literal["en", "zh"]

class EvidenceView(TypedDict):
    number: int
    passage: PassageView
    quote: str
    quote_span: list[int]
    use: str
    query: str
    rank: int

class ExampleList(TypedDict):
    examples: list[ExampleView]

class ExampleView(TypedDict):
    question: str
    options: list[str]
    language: Literal["en", "zh"]

class FeedbackList(TypedDict):
    feedback: list[FeedbackView]

class FeedbackView(TypedDict):
    kind: Literal["run", "card"]
    about: str
    verdict: Literal["helpful", "wrong", "unsafe", "accepted", "overridden"]
    reason: str
    note: str
    where: str
    at: str

class Health(TypedDict):
    status: Literal["ok", "ready"]

class LocatorView(TypedDict):
    section: str
    page: int | None
    year: int | None
    url: str
    code: str
    kind: str

class ModelView(TypedDict):
    kind: str
    name: str
    words_answers: bool

class PassageView(TypedDict):
    id: str
    source: str
    title: str
    text: str
    locator: LocatorView
    licence: str
    language: Literal["en", "zh"]
    illustrative: bool

class PlanView(TypedDict):
    danger: DangerView | None
    question: str
    queries: list[SourceQuery]
    sources: list[str]
    text: str
    dropped: list[str]
    planner: str
    snapshot: str
    notice: NotRequired[str]

class ProofStepView(TypedDict):
    n: int
    function: Literal["Retrieval", "Math", "Deduce", "Output"]
    step: str
    action: str
    needs: list[int]
    answer: str
    passages: list[str]
    computed: str

class QuotedView(TypedDict):
    passage: PassageView
    quote: str
    quote_span: list[int]

class RunError(TypedDict):
    code: str
    detail: str

class RunList(TypedDict):
    runs: list[RunSummary]
    next: str | None

class RunReport(TypedDict):
    danger: DangerView | None
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    created: str
    strategy: str
    question: str
    options: list[str]
    answer: AnswerView | None
    evidence: list[EvidenceView]
    cautions: list[CautionView]
    grounding: Literal["grounded", "partly", "ungrounded", "abstained"] | None
    halt: Literal["converged", "budget", "no_evidence", "refused"] | None
    why: str
    decided: Literal["method", "reader", "fallback"] | None
    steps: list[ProofStepView]
    usage: UsageView | None
    models: dict[str, str]
    notes_of: list[str]
    snapshot: str
    seconds: float | None
    events: int
    ahead: int
    changed: list[ChangedView]
    error: RunError | None
    notice: NotRequired[str]

class RunStarted(TypedDict):
    danger: DangerView | None
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    events: str
    notice: NotRequired[str]

class RunSummary(TypedDict):
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    created: str
    strategy: str
    question: str

class SourceQuery(TypedDict):
    source: str
    query: str

class SourceView(TypedDict):
    source: str
    documents: int
    passages: int
    files: int
    licences: list[str]
    illustrative: int
    retracted: int
    trust: dict[str, int]
    latest: int

class StandaloneView(TypedDict):
    standalone: str
    rewritten_by: str

class StatementView(TypedDict):
    text: str
    cites: list[int]

class StudyRowView(TypedDict):
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

class StudyTable(TypedDict):
    rows: list[StudyRowView]

class SurenessView(TypedDict):
    probability: float
    by: str

class ThreadList(TypedDict):
    threads: list[ThreadView]

class ThreadView(TypedDict):
    thread_id: str
    created: str
    turns: list[TurnView]
    outdated: bool

class Transparency(TypedDict):
    notice: str
    version: str
    intended_users: str
    intended_use: str
    out_of_scope: list[str]
    models: dict[str, ModelView]
    encoder: str
    strategies: list[str]
    strategy: str
    snapshot: str
    sources: list[SourceView]
    limits: dict[str, int | float | None]
    known_limits: list[str]

class TurnStarted(TypedDict):
    danger: DangerView | None
    run_id: str
    status: Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
    events: str
    notice: NotRequired[str]
    turn: TurnView

class TurnView(TypedDict):
    standalone: str
    rewritten_by: str
    n: int
    run_id: str
    question: str
    created: str

class UsageView(TypedDict):
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int
    scored_tokens: int
    searches: int
    seconds: float
