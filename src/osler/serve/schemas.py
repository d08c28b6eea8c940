"""Requests and replies of the native API: requests that forbid unknown fields, and
replies with a schema. Replies about the knowledge base are in `schemas_kb`, those about evaluations
in `wire_eval`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from osler.app.config import STRATEGIES
from osler.methods.omni.plan import LONGEST
from osler.methods.omni.planners.make import PlannerName
from osler.questions import LIMIT
from osler.serve.ledger import STATUSES
from osler.serve.schemas_kb import PassageView, ResponseModel, SourceView
from osler.types import CautionRule

NOTICE = (
    "For healthcare professionals and research. Supports, does not replace, clinical judgement."
    " Not for emergencies. Do not enter what identifies a patient."
)
_CONTROL = {chr(n) for n in range(32) if chr(n) not in "\t\n\r"} | {"\x7f"}


def _check_text(text: str) -> str:
    if any(c in _CONTROL or "\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("control characters and halves of characters are no text")
    return text


def _check_strategy(name: str) -> str:
    if name not in STRATEGIES:
        raise ValueError(f"choose from {', '.join(STRATEGIES)}")
    return name


Words = Annotated[str, AfterValidator(_check_text)]
StrategyName = Annotated[
    str,
    AfterValidator(_check_strategy),
    Field(json_schema_extra={"enum": [*STRATEGIES]}),
]
SourceName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]
PlannerChoice = Literal["auto", PlannerName]
Year = Annotated[int, Field(ge=1000, le=9999, strict=True)]
Status = Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]
assert set(STATUSES) == set(Status.__args__)  # type: ignore[attr-defined]  # noqa: S101


class RequestModel(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class RunLimits(RequestModel):
    """Bounds of one run; they can only narrow what the server allows."""

    calls: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    tokens: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    searches: Annotated[int, Field(ge=1, le=1_000_000_000, strict=True)] | None = None
    seconds: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = None
    money: Annotated[float, Field(gt=0, le=1_000_000_000, allow_inf_nan=False)] | None = None
    """In the currency of the server's prices."""


class SourceQuery(RequestModel):
    """A query for one source."""

    source: SourceName
    query: Annotated[Words, Field(min_length=1, max_length=2 * LONGEST + 3)]
    """Of the graph: a concept, then its question, as in "asthma , treatment"."""


class _QuestionRequest(RequestModel):
    question: Annotated[Words, Field(min_length=1, max_length=LIMIT)]
    options: Annotated[
        list[Annotated[Words, Field(min_length=1, max_length=1_000)]], Field(max_length=26)
    ] = []
    language: Literal["en", "zh"] | None = None


class PlanRequest(_QuestionRequest):
    """A question of which only the source plan is wanted."""

    planner: PlannerChoice | None = None
    sources: Annotated[list[SourceName], Field(max_length=32)] = []
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] | None = None
    limits: RunLimits = RunLimits()


class RunRequest(_QuestionRequest):
    """A question, and how it is to be solved where that differs from the server's settings."""

    strategy: StrategyName | None = None
    sources: Annotated[list[SourceName], Field(max_length=32)] = []
    k: Annotated[int, Field(ge=1, le=200, strict=True)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**32 - 1, strict=True)] | None = None
    limits: RunLimits = RunLimits()
    plan: Annotated[list[SourceQuery], Field(max_length=100)] | None = None
    """A source plan, as `POST /plan` gives it and whoever reads it edits it: omni-rag runs it,
    and nothing else is asked. Empty = no source is needed; absent = the strategy decides."""


class CitationView(ResponseModel):
    span: tuple[int, int]
    """In `answer.text`."""
    number: int
    """Of the evidence, from 1."""
    passage_id: str
    quote: str
    quote_span: tuple[int, int]
    """In the text of the passage."""


class StatementView(ResponseModel):
    text: str
    cites: list[int]
    kind: Literal["claim", "unconfirmed", "notice"]
    """unconfirmed: the model's own, which no passage read bears out; say so beside it, as
    `answer.text` does. notice: said about the answer, not in it."""


class SurenessView(ResponseModel):
    probability: float
    """Calibrated: that the evidence answers the question, or that the choice is right."""
    by: str
    """Name and weights of the expert that gives it."""


class AnswerView(ResponseModel):
    text: str
    option: str | None
    statements: list[StatementView]
    citations: list[CitationView]
    language: Literal["en", "zh"]
    authorship: Literal["extractive", "written"]
    note: str
    sureness: SurenessView | None
    """`null` where nothing can say."""


class QuotedView(ResponseModel):
    passage: PassageView
    quote: str
    quote_span: tuple[int, int]
    """In the text of the passage."""


class CautionView(ResponseModel):
    rule: CautionRule
    text: str
    """In the answer's language."""
    evidence: list[QuotedView]
    """The cited quote; after it the one that it is held against, where there is one."""


class EvidenceView(ResponseModel):
    number: int
    passage: PassageView
    quote: str
    quote_span: tuple[int, int]
    use: str
    query: str
    rank: int


class DangerView(ResponseModel):
    """The notice for a question about an emergency or self-harm; show it before all else."""

    kinds: list[Literal["emergency", "self-harm"]]
    text: str
    """Whom to call, in the question's language. It is no triage and no diagnosis."""
    rules: list[str]
    """Names of the rules that apply."""
    language: Literal["en", "zh"]


class ProofStepView(ResponseModel):
    """A step of the plan by which the answer came about."""

    n: int
    function: Literal["Retrieval", "Math", "Deduce", "Output"]
    step: str
    action: str
    """Its logical form."""
    needs: list[int]
    """Numbers of the steps whose results it needs."""
    answer: str
    """The value, or the members of a set; empty where it has none that may be shown."""
    passages: list[str]
    """Ids of the passages that it rests on: `GET /passages/{id}` opens them."""
    computed: str
    """The formula with its inputs, or the program."""


class MoneyView(ResponseModel):
    amount: float
    currency: str


class UsageView(ResponseModel):
    calls: int
    prompt_tokens: int
    """`cached_tokens` among them."""
    completion_tokens: int
    cached_tokens: int
    scored_tokens: int
    searches: int
    seconds: float
    money: MoneyView | None
    """What the calls cost, by the server's prices; `null` where the price of one is not set."""


class RunError(ResponseModel):
    code: str
    detail: str


class ChangedView(ResponseModel):
    number: int
    """Of the evidence, from 1."""
    passage: str
    state: Literal["changed", "gone"]
    """changed: it does not hold the quoted words any more; gone: there is no such passage."""


class RunReport(ResponseModel):
    danger: DangerView | None
    """Shown first, whatever the run's outcome; `null` without danger."""
    run_id: str
    status: Status
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
    """Who decided the answer: the method, a reader of what it found, or one in its stead."""
    steps: list[ProofStepView]
    """By these steps; empty where nothing was planned."""
    usage: UsageView | None
    models: dict[str, str]
    notes_of: list[str]
    """Roles whose model may not word medicine: what they write in the events (thoughts, drafts,
    reasons) is a working note, not medical advice; fold it away, or leave it out."""
    snapshot: str
    seconds: float | None
    events: int
    """How many there are so far."""
    ahead: int
    """Runs that wait for a place before this one does."""
    changed: list[ChangedView]
    """Evidence that the knowledge base has otherwise by now."""
    error: RunError | None
    notice: str = NOTICE


class PlanView(ResponseModel):
    danger: DangerView | None
    """Shown first; `null` without danger."""
    question: str
    queries: list[SourceQuery]
    """By source; edit them and give them to `POST /runs` as `plan`."""
    sources: list[str]
    """Those that were on offer."""
    text: str
    """The same in the paper's form, as `osler ask --plan` reads it."""
    dropped: list[str]
    """What the planner wrote and nobody would ask, each with the reason."""
    planner: str
    """How it was made, and by which model."""
    snapshot: str
    notice: str = NOTICE


class RunStarted(ResponseModel):
    danger: DangerView | None
    """Shown first, at once; `null` without danger."""
    run_id: str
    status: Status
    events: str
    """Where the stream of events is."""
    notice: str = NOTICE


class RunSummary(ResponseModel):
    run_id: str
    status: Status
    created: str
    strategy: str
    question: str


class RunList(ResponseModel):
    runs: list[RunSummary]
    next: str | None
    """Give it as `before` to read on."""


class SearchRequest(RequestModel):
    query: Annotated[Words, Field(min_length=1, max_length=2_000)]
    k: Annotated[int, Field(ge=1, le=100, strict=True)] = 10
    sources: Annotated[list[SourceName], Field(max_length=32)] = []
    year_from: Year | None = None
    year_to: Year | None = None
    languages: Annotated[list[Literal["en", "zh"]], Field(max_length=2)] = []
    kinds: Annotated[
        list[Annotated[Words, Field(min_length=1, max_length=200)]], Field(max_length=32)
    ] = []
    trust: Annotated[int, Field(ge=1, le=5, strict=True)] = 1
    retracted: bool = False


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
    strategy: str
    snapshot: str
    sources: list[SourceView]
    limits: dict[str, int | float | None]
    known_limits: list[str]


class Health(ResponseModel):
    status: Literal["ok", "ready"]


class Problem(BaseModel):
    """Problem details (RFC 9457)."""

    danger: DangerView | None = None
    """Notice for a question about danger that is rejected for now."""
    type: str
    title: str
    status: int
    detail: str
    instance: str
    code: str
    fix: str | None = None
    retry_after: int | None = None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": description,
        "content": {
            "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
        },
    }
    for status, description in (
        (400, "It cannot be read."),
        (401, "A key is needed."),
        (403, "It comes from another site."),
        (404, "There is no such thing."),
        (408, "It was sent too slowly."),
        (409, "It is of another state."),
        (413, "It is too large."),
        (415, "It is not JSON."),
        (421, "It was sent to another server's name."),
        (422, "It is not valid."),
        (429, "Too many; see Retry-After."),
        (503, "Not now; see Retry-After."),
    )
}
