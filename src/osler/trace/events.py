"""What happens in a run, and how it is written: one JSON object a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

from osler.errors import BadRun
from osler.types import CautionRule, Hit, Question, Solution, Usage

SCHEMA = 1
"""Version of the event log; raised when a reader of the older one would misread it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Bounds of one run; `None` = unbounded."""

    calls: int | None = None
    tokens: int | None = None
    searches: int | None = None
    seconds: float | None = None

    @property
    def is_bounded(self) -> bool:
        """Whether anything can run out."""
        return self != Budget()


@dataclass(frozen=True, slots=True)
class Started:
    run: str
    strategy: str
    question: Question
    snapshot: str
    """Of the knowledge base; empty when the strategy uses none."""
    models: dict[str, str]
    """Role to model identity."""
    seed: int
    budget: Budget
    schema: int = SCHEMA
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
    """What the planner wrote and nobody asks, each with the reason."""
    type: Literal["plan.proposed"] = "plan.proposed"


@dataclass(frozen=True, slots=True)
class PlanScored:
    """A plan that was tried on the way to the one that is proposed (Omni-RAG App. D.3)."""

    source: str
    """The one that it is for; empty for a plan of all."""
    n: int
    """From 1."""
    parent: int
    """The plan that it grew from; 0 = none."""
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
    """Sources that were down, each with its reason: never silently an empty result."""
    type: Literal["retrieval.done"] = "retrieval.done"

    @classmethod
    def of(cls, query: str, hits: Iterable[Hit], failed: tuple[str, ...] = ()) -> Retrieved:
        notes = tuple(HitNote(hit.passage.id, hit.score, hit.rank) for hit in hits)
        return cls(query, notes, failed)


@dataclass(frozen=True, slots=True)
class Pushed:
    i: int
    """Actions taken so far."""
    kind: str
    text: str
    depth: int
    """Height of the stack after the push; the query alone is 1."""
    type: Literal["stack.push"] = "stack.push"


@dataclass(frozen=True, slots=True)
class Popped:
    i: int
    kind: str
    by: Literal["Backtrack", "Summary"]
    depth: int
    restored: float | None
    """State value after the pop; `None` for one too large to write (the initial one)."""
    reason: str = ""
    """The model's own words; or why nothing was popped, with `kind` empty."""
    type: Literal["stack.pop"] = "stack.pop"


@dataclass(frozen=True, slots=True)
class StateValued:
    i: int
    metric: str
    value: float
    sigma: float
    exact: bool
    """False for an estimate from the top-k tokens."""
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
    """The steps whose results it waits for."""


@dataclass(frozen=True, slots=True)
class FormsPlanned:
    nodes: tuple[FormNode, ...]
    warnings: tuple[str, ...] = ()
    """Broken references and cycles; why there is no plan of the model's."""
    origin: Literal["planner", "user", "fallback"] = "planner"
    type: Literal["lf.parsed"] = "lf.parsed"


@dataclass(frozen=True, slots=True)
class BoundaryChecked:
    """Whether the model knows by itself (KAG-Thinker §3.2)."""

    n: int
    question: str
    answer: str
    """What it said before anything was looked up; empty where it would not say."""
    known: bool
    self_check: bool | None
    """Whether it stood by its answer; `None` = not asked."""
    probability: float | None
    """The least probability inside the box; `None` = not weighed, or not told."""
    tau: float
    exact: bool = True
    state: float | None = None
    """TC-RAG's state value of the answer; `None` = not weighed. Less is surer."""
    sigma: float | None = None
    """Below it the state value speaks for the answer."""
    metric: str = ""
    """Of the state value: cppl or uct."""
    type: Literal["lf.boundary"] = "lf.boundary"


@dataclass(frozen=True, slots=True)
class FormBegun:
    """A step is solved by a machine of its own: the stack of the events that follow is its own,
    until its `FormSolved`."""

    n: int
    question: str
    """With the answers of earlier steps filled in."""
    type: Literal["lf.begun"] = "lf.begun"


@dataclass(frozen=True, slots=True)
class Focused:
    """Whether what was found answers the sub-question (KAG-Thinker §3.3)."""

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
    """Answered without looking anything up."""
    confidence: float | None = None
    passages: tuple[str, ...] = ()
    """Ids of what the answer rests on."""
    type: Literal["lf.node"] = "lf.node"


@dataclass(frozen=True, slots=True)
class Asked:
    """One model call: a completion or the scoring of a given text."""

    role: str
    kind: Literal["complete", "score"]
    prompt: str
    """The prompt's name and hash ("tcrag/act@1f3a…"), so that a result leads to its wording."""
    reply: str
    usage: Usage
    repaired: str = ""
    """What was wrong with the reply before this one."""
    thinking: str = ""
    """What a reasoning model said before its reply; no parser sees it."""
    type: Literal["model.asked"] = "model.asked"


@dataclass(frozen=True, slots=True)
class Cautioned:
    """Evidence that is out of date or disagrees, told once a run (`osler.types.Caution`)."""

    rule: CautionRule
    text: str
    passages: tuple[str, ...]
    quotes: tuple[str, ...]
    type: Literal["evidence.caution"] = "evidence.caution"


@dataclass(frozen=True, slots=True)
class Noted:
    """Something a reader of the answer must know and no other event says."""

    text: str
    type: Literal["run.note"] = "run.note"


@dataclass(frozen=True, slots=True)
class Answered:
    solution: Solution
    type: Literal["run.finished"] = "run.finished"


Event = Annotated[
    Started
    | SourcesPlanned
    | PlanScored
    | Searched
    | Retrieved
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
    """One JSON object without a line break; the inverse of `from_line`."""
    return _event_adapter().dump_json(event).decode()


def from_line(line: str) -> Event:
    """Raises `BadRun` when the line is no event of this schema."""
    try:
        event: Event = _event_adapter().validate_json(line)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "line"
        raise BadRun(f"not an event: {where}: {first['msg']}") from error
    return event


def read_events(path: Path) -> Iterator[Event]:
    """The events of a log, in order. Raises `BadRun` naming file and line."""
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield from_line(line)
            except BadRun as error:
                raise BadRun(f"{path}:{number}: {error.message}") from error
