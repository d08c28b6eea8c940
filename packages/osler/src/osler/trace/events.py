"""The events of a run and their serialisation, one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from osler.errors import BadRun
from osler.types import CautionRule, DangerNotice, Hit, Question, Solution, Usage

SCHEMA = 1
"""Version of the event log; increased when a reader of the older one would misread it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one run; `None` = unbounded."""

    calls: int | None = None
    tokens: int | None = None
    searches: int | None = None
    seconds: float | None = None
    money: float | None = None
    """In the currency of the prices."""

    @property
    def is_bounded(self) -> bool:
        """Whether any bound is set."""
        return self != Budget()


@dataclass(frozen=True, slots=True)
class DangerNoticed:
    """The question is about an emergency or self-harm; the first event of such a run."""

    notice: DangerNotice
    type: Literal["run.danger"] = "run.danger"


@dataclass(frozen=True, slots=True)
class Started:
    run: str
    strategy: str
    question: Question
    snapshot: str
    """Snapshot of the knowledge base; empty when the strategy uses none."""
    models: dict[str, str]
    """Model identity by role."""
    seed: int
    budget: Budget
    schema: int = SCHEMA
    notes_of: tuple[str, ...] = ()
    """Roles whose model may not word medicine. What they write (Thoughts, Summaries, reasons,
    replies) is a note of the run's control, never medicine, and is shown as such."""
    # The wire names are stable: clients and stored logs depend on them.
    type: Literal["run.started"] = "run.started"


@dataclass(frozen=True, slots=True)
class PlannedQuery:
    """Query `j` for a source (Omni-RAG §4.1)."""

    source: str
    j: int
    query: str


@dataclass(frozen=True, slots=True)
class SourcesPlanned:
    queries: tuple[PlannedQuery, ...]
    origin: Literal["planner", "user", "fixed"]
    dropped: tuple[str, ...] = ()
    """Parts of the planner's text that are not queried, each with the reason."""
    type: Literal["plan.proposed"] = "plan.proposed"


@dataclass(frozen=True, slots=True)
class PlanScored:
    """A plan tried before the proposed one (Omni-RAG App. D.3)."""

    source: str
    """The plan's only source; empty for a plan of all sources."""
    n: int
    """From 1."""
    parent: int
    """Number of the plan it was derived from; 0 = none."""
    queries: tuple[PlannedQuery, ...]
    score: int
    """0 to 5."""
    suggestion: str
    type: Literal["plan.scored"] = "plan.scored"


@dataclass(frozen=True, slots=True)
class Searched:
    query: str
    k: int
    sources: tuple[str, ...]
    type: Literal["retrieval.started"] = "retrieval.started"


@dataclass(frozen=True, slots=True)
class HitNote:
    passage: str
    score: float
    rank: int


@dataclass(frozen=True, slots=True)
class Retrieved:
    query: str
    hits: tuple[HitNote, ...]
    failed: tuple[str, ...] = ()
    """Sources that were down, each with its reason; an outage is never an empty result."""
    type: Literal["retrieval.done"] = "retrieval.done"

    @classmethod
    def of(cls, query: str, hits: Iterable[Hit], failed: tuple[str, ...] = ()) -> Retrieved:
        notes = tuple(HitNote(hit.passage.id, hit.score, hit.rank) for hit in hits)
        return cls(query, notes, failed)


@dataclass(frozen=True, slots=True)
class PassagesOrdered:
    """What is read of the passages that were just found, in a single fused ranking."""

    passages: tuple[str, ...]
    type: Literal["retrieval.ordered"] = "retrieval.ordered"


@dataclass(frozen=True, slots=True)
class Pushed:
    i: int
    """Actions taken so far."""
    kind: str
    text: str
    depth: int
    """Height of the stack after the push; the query alone is 1."""
    writer: str = ""
    """Role of the model that wrote `text`; empty for the question, what a tool found, and text
    composed of evidence."""
    draft: str = ""
    """A Conclusion as the planner wrote it, where `text` was composed in its place; else empty."""
    type: Literal["stack.push"] = "stack.push"


@dataclass(frozen=True, slots=True)
class Popped:
    i: int
    kind: str
    by: Literal["Backtrack", "Summary"]
    depth: int
    restored: float | None
    """State value after the pop; `None` for the initial infinite one."""
    reason: str = ""
    """The model's own reason; or, with `kind` empty, why nothing was popped."""
    type: Literal["stack.pop"] = "stack.pop"


@dataclass(frozen=True, slots=True)
class StateValued:
    i: int
    metric: str
    value: float
    sigma: float
    halted: bool
    note: str = ""
    type: Literal["state.updated"] = "state.updated"


@dataclass(frozen=True, slots=True)
class FormNode:
    """A step of a plan of logical forms (KAG-Thinker §3.1.1)."""

    n: int
    fn: str
    """Retrieval, Math, Deduce or Output."""
    step: str
    action: str
    needs: tuple[int, ...]
    """Numbers of the steps whose results it needs."""


@dataclass(frozen=True, slots=True)
class FormsPlanned:
    nodes: tuple[FormNode, ...]
    warnings: tuple[str, ...] = ()
    """Broken references and cycles; or the reason for a fallback plan."""
    origin: Literal["planner", "user", "fallback", "formula"] = "planner"
    """"formula": a verified formula answers the question, and no model planned."""
    type: Literal["lf.parsed"] = "lf.parsed"


@dataclass(frozen=True, slots=True)
class BoundaryChecked:
    """The knowledge boundary: whether the model knows the answer itself (KAG-Thinker §3.2)."""

    n: int
    question: str
    answer: str
    """The model's answer without references; empty when it refused."""
    known: bool
    self_check: bool | None
    """Whether it confirmed its answer; `None` = not asked."""
    probability: float | None
    """The lowest token probability inside the box; `None` = not weighed or not reported."""
    tau: float
    exact: bool = True
    state: float | None = None
    """TC-RAG's state value of the answer; lower is more certain; `None` = not weighed."""
    sigma: float | None = None
    """Threshold below which the state value accepts the answer."""
    metric: str = ""
    """Metric of the state value: cppl or uct."""
    type: Literal["lf.boundary"] = "lf.boundary"


@dataclass(frozen=True, slots=True)
class FormBegun:
    """The start of a step solved by TC-RAG's machine: the stack events that follow belong to it,
    up to its `FormSolved`."""

    n: int
    question: str
    """With the answers of earlier steps filled in."""
    type: Literal["lf.begun"] = "lf.begun"


@dataclass(frozen=True, slots=True)
class Focused:
    """Whether the passages answer the sub-question (KAG-Thinker §3.3)."""

    n: int
    turn: int
    """From 1."""
    enough: bool
    reason: str
    type: Literal["lf.focus"] = "lf.focus"


@dataclass(frozen=True, slots=True)
class Calculated:
    n: int
    engine: Literal["formula", "python"]
    code: str
    """The program, or the formula with its inputs."""
    value: str
    """Empty when it failed."""
    error: str = ""
    type: Literal["math.run"] = "math.run"


@dataclass(frozen=True, slots=True)
class FormSolved:
    n: int
    status: Literal["done", "failed"]
    answer: str
    own_knowledge: bool = False
    """Whether it was answered without a search."""
    confidence: float | None = None
    passages: tuple[str, ...] = ()
    """Ids of the evidence passages."""
    type: Literal["lf.node"] = "lf.node"


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call: a completion or the scoring of a given text."""

    role: str
    kind: Literal["complete", "score"]
    prompt: str
    """The prompt's name and hash ("tcrag/act@1f3a…"), which identify its wording."""
    reply: str
    usage: Usage
    repaired: str = ""
    """The defect of the previous reply, when this one repairs it."""
    thinking: str = ""
    """A reasoning model's thinking before its reply; not parsed."""
    type: Literal["model.asked"] = "model.asked"


@dataclass(frozen=True, slots=True)
class Cautioned:
    """A caution about evidence, emitted once per run (`osler.types.Caution`)."""

    rule: CautionRule
    text: str
    passages: tuple[str, ...]
    quotes: tuple[str, ...]
    type: Literal["evidence.caution"] = "evidence.caution"


@dataclass(frozen=True, slots=True)
class Noted:
    """A note for readers of the trace that no other event covers."""

    text: str
    type: Literal["run.note"] = "run.note"


@dataclass(frozen=True, slots=True)
class Answered:
    solution: Solution
    type: Literal["run.finished"] = "run.finished"


# A closed union: a reader can handle every event, and old logs fail loudly.
Event = Annotated[
    DangerNoticed
    | Started
    | SourcesPlanned
    | PlanScored
    | Searched
    | Retrieved
    | PassagesOrdered
    | Pushed
    | Popped
    | StateValued
    | FormsPlanned
    | BoundaryChecked
    | FormBegun
    | Focused
    | Calculated
    | FormSolved
    | Asked
    | Cautioned
    | Noted
    | Answered,
    Field(discriminator="type"),
]


@cache
def _event_adapter() -> TypeAdapter[Any]:
    return TypeAdapter(Event)


def to_line(event: Event) -> str:
    """Serialises an event as one line of JSON; `from_line` is the inverse."""
    line: str = _event_adapter().dump_json(event).decode()
    for end in "\x85\u2028\u2029":  # many readers of streams divide at these too
        line = line.replace(end, f"\\u{ord(end):04x}")
    return line


def from_line(line: str) -> Event:
    """Parses a line of an event log. Raises `BadRun` when it is no event of this schema."""
    try:
        event: Event = _event_adapter().validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "line"
        raise BadRun(f"not an event: {where}: {first['msg']}") from error
    return event


def read_events(path: Path) -> Iterator[Event]:
    """Reads the events of a log in order. Raises `BadRun` naming file and line."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield from_line(line.decode())
            except BadRun as error:
                raise BadRun(f"{path}:{number}: {error.message}") from error
            except UnicodeDecodeError as error:
                raise BadRun(f"{path}:{number}: it is not UTF-8 text") from error
