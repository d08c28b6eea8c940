"""Replies of the HTTP API on runs, conversations, the knowledge base and the server itself.

What a run and a passage look like is of `osler.reports`; replies on evaluations and feedback are
in `evaluation_replies`. The client needs no more than these.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field

from osler.questions import QUERY_LIMIT
from osler.reports import DangerView, PassageView, ResponseModel, RunResult, SearchHit, SourceName
from osler.types import DangerNotice

NOTICE = (
    "For healthcare professionals and research. Supports, does not replace, clinical judgement."
    " Not for emergencies. Do not enter patient-identifying information."
)


Status = Literal["queued", "running", "finished", "failed", "cancelled", "interrupted"]


_CONTROL = {chr(n) for n in range(32) if chr(n) not in "\t\n\r"} | {"\x7f"}


def _check_text(text: str) -> str:
    if any(c in _CONTROL or "\ud800" <= c <= "\udfff" for c in text):
        raise ValueError("control characters and lone surrogates are not allowed")
    return text


Words = Annotated[str, AfterValidator(_check_text)]


class SourceQuery(ResponseModel):
    """A query for one source."""

    source: SourceName
    query: Annotated[Words, Field(min_length=1, max_length=2 * QUERY_LIMIT + 3)]
    """Of the graph: a concept, then its question, as in "asthma , treatment"."""


class RunError(ResponseModel):
    code: str
    detail: str


class ChangedView(ResponseModel):
    number: int
    """Of the evidence, from 1."""
    passage: str
    state: Literal["changed", "gone", "noticed"]
    """changed: it does not hold the quoted words any more; gone: there is no such passage; noticed:
    a notice was published against its work."""
    notice: str


class RunReport(RunResult):
    """A run of a server."""

    status: Status
    created: str
    events: int
    """How many there are so far."""
    ahead: int
    """Runs that wait for a place before this one does."""
    changed: list[ChangedView]
    """Evidence that the knowledge base has otherwise by now."""
    outdated: bool
    """Whether it finished over another state of the knowledge base than the present one."""
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

    @classmethod
    def of(cls, proposal: Any, question: str, danger: DangerNotice | None) -> Self:
        fields = {"question": question, "text": proposal.plan, "notice": NOTICE}
        queries = [
            SourceQuery(source=one.source, query=one.wire)
            for one in proposal.plan_reading.plan.queries
        ]
        return cls.from_value(proposal, danger=DangerView.of(danger), queries=queries, **fields)


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


class StandaloneView(ResponseModel):
    """A question made to stand alone; edit it and give it as `standalone`."""

    standalone: str
    rewritten_by: str
    """rule, model or user; empty where it stood alone."""


class TurnView(StandaloneView):
    n: int
    run_id: str
    question: str
    created: str


class ThreadView(ResponseModel):
    thread_id: str
    created: str
    turns: list[TurnView]
    outdated: bool
    """Whether the last answer is of another state of the knowledge base than the present one."""


class ThreadList(ResponseModel):
    threads: list[ThreadView]
    """The newest first, each with its first question alone."""


class ConversationView(ResponseModel):
    """A conversation, or a question that stands alone: one line of a reader's list."""

    id: str
    """Of the thread, or of the run."""
    kind: Literal["thread", "run"]
    title: str
    """The reader's, else the first question."""
    created: str
    status: Status
    """Of the last run."""
    strategy: str
    turns: int
    last_run: str
    pinned: bool


class ConversationList(ResponseModel):
    conversations: list[ConversationView]
    """The first page has the pinned ones first, whatever their age; then those last asked in."""
    next: str | None
    """Give it as `before` to read on."""


class FollowUpList(ResponseModel):
    questions: list[str]
    """To be asked as they are: each names a section that a search has found."""


class TurnStarted(RunStarted):
    """A run that answers a turn."""

    turn: TurnView


class ChangeView(ResponseModel):
    """What differs between two answers to one question."""

    question: str
    before: str
    """Run of the earlier answer."""
    after: str
    new_statements: list[str]
    gone_statements: list[str]
    new_passages: list[str]
    """Ids of passages that only the later answer cites, or of which it quotes other words."""
    gone_passages: list[str]
    grounding: list[str]
    """Before and after."""


class ChangeList(ResponseModel):
    changes: list[ChangeView]
    """In the order of the turns; a question that was asked once has none."""


def _named_tiers(trust: object) -> object:
    """Keys of a JSON object are texts."""
    return {str(tier): n for tier, n in trust.items()} if isinstance(trust, dict) else trust


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
    replaced: bool = False
    """Whether another file of this name is gone for it."""


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
    uploads: list[str]
    """Sources that take files of the caller."""
    strategy: str
    snapshot: str
    sources: list[SourceView]
    limits: dict[str, int | float | None]
    known_limits: list[str]


class Health(ResponseModel):
    status: Literal["ok", "ready", "degraded"]
    degraded: list[str] = []  # noqa: RUF012  pydantic copies it
    """What does not work as it should while questions are answered, in words."""
    vectors_behind: int = 0
    """Passages that are found by words alone until they are encoded."""
