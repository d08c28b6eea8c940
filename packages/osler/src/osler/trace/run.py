"""The run: its events, budget, prices and cancellation; and the interface of solvers.

What the events of a run say: its notes, the passages that it read, the steps of its proof.

A model that may not word medicine steers a run (it thinks, backtracks, sums up): what it writes are
notes, and no medical advice. The roles it plays are in `Started.notes_of`; a reader of events shows
notes folded, or as notes.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from osler.trace.events import (
    Asked,
    BoundaryChecked,
    Budget,
    Calculated,
    Event,
    Focused,
    FormSolved,
    FormsPlanned,
    Noted,
    PassagesOrdered,
    PlanScored,
    Popped,
    Pushed,
    Retrieved,
    Searched,
    SourcesPlanned,
    Started,
)
from osler.types import Money, Question, Solution, Usage

Sink = Callable[[Any], None]
# Tolerance for summed seconds: using up exactly the rest may miss the bound by a rounding error.
_ROUNDING = 1e-9
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """What a million tokens of a model cost."""

    read: float
    cached: float
    """Of prompt tokens that the server's prefix cache saved."""
    written: float
    currency: str

    def cost_of(self, usage: Usage) -> Money:
        """The cost of calls; tokens that are scored are read."""
        read = usage.prompt_tokens - usage.cached_tokens + usage.scored_tokens
        amount = (
            read * self.read
            + usage.cached_tokens * self.cached
            + usage.completion_tokens * self.written
        )
        return Money(amount / _MILLION, self.currency)


class BudgetExceeded(Exception):
    """A bound of the run is reached; the message says which. Solvers catch it and end with what
    they have (`Halt.BUDGET`)."""


class RunCancelled(asyncio.CancelledError):
    """The run was cancelled; nothing half-written is left behind."""


@dataclass
class Run:
    """The state of one run: events, budget, random numbers and cancellation."""

    id: str = "run"
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    sink: Sink | None = None
    """Called with each event as it happens, before the solver continues."""
    events: list[Event] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    prices: Mapping[str, Price] = field(default_factory=dict)
    """By the model's identity; the cost of a model that is not here is not known."""
    paid: float = field(default=0.0, init=False)
    """Money spent on the calls whose price is known."""
    spent: str = field(default="", init=False)
    """The bound that refused or cut something short; empty when none did."""
    unsaid: str = field(default="", init=False)
    """Why the last reply of a model said nothing: it was cut while thinking, or declined; empty
    where it spoke."""
    cut: str = field(default="", init=False)
    """The last reply of a model, where its tokens ended before its words."""
    unread: bool = field(default=False, init=False)
    """Whether a model's context had no room for passages that were found."""
    rng: random.Random = field(init=False)
    _cancelled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def emit(self, event: Event) -> None:
        if self._cancelled:
            # Checked at every event: a solver stops between steps, never within a write.
            raise RunCancelled
        self.events.append(event)
        if self.sink is not None:
            self.sink(event)

    def spend(self, usage: Usage) -> None:
        self.usage += usage
        self.paid += usage.money.amount if usage.money else 0.0

    def price_usage(self, model: str, usage: Usage) -> Usage:
        """What calls of a model used, with what they cost where its price and tokens are known."""
        price = self.prices.get(model)
        return replace(usage, money=price.cost_of(usage)) if price and usage.is_counted else usage

    def require_budget(self, what: Literal["call", "search"], calls: int = 1) -> None:
        """Raises `BudgetExceeded` unless the budget allows one more search, or `calls` more model
        calls.

        A search counts against `searches`; a model call against all other bounds. One call
        may overrun `tokens` and `money`, since its cost is known only afterwards.
        """
        kinds = ("searches",) if what == "search" else ("calls", "tokens", "seconds", "money")
        if (reached := self._reached_bound(kinds)) is not None:
            raise self.refuse_at_bound(reached)
        # A batch of calls is refused as a whole: half a comparison is worth nothing.
        limit = self.budget.calls
        if what == "call" and limit is not None and self.usage.calls + calls > limit:
            raise self.refuse_at_bound(
                f"calls {self.usage.calls} of {limit}, and {calls} more are needed"
            )

    def refuse_at_bound(self, reached: str) -> BudgetExceeded:
        """Records which bound ends the run; returns the exception for the caller to raise."""
        self.spent = reached
        return BudgetExceeded(reached)

    @property
    def seconds_left(self) -> float | None:
        """Seconds left for the next model call; `None` = unlimited."""
        limit = self.budget.seconds
        return None if limit is None else max(0.0, limit - self.usage.seconds)

    def cancel(self) -> None:
        """The next event raises `RunCancelled` instead of being emitted."""
        self._cancelled = True

    @property
    def exhausted_bound(self) -> str | None:
        """The bound that is reached, in words; `None` while there is room."""
        return self._reached_bound(("calls", "tokens", "searches", "seconds", "money"))

    def _reached_bound(self, kinds: Iterable[str]) -> str | None:
        for kind in kinds:
            limit = getattr(self.budget, kind)
            spent = self.paid if kind == "money" else getattr(self.usage, kind)
            if limit is not None and spent >= limit - _ROUNDING:
                return f"{kind} {spent:g} of {limit:g}"
        return None


class Solver(Protocol):
    """The interface of TC-RAG, KAG-Thinker, Omni-RAG, the unified system and every baseline."""

    async def solve(self, question: Question, run: Run) -> Solution:
        """Answers the question. A spent budget and absent evidence are `Halt`s, never errors."""


PLANNER, READER = "planner", "reader"
ROLES = {"helper": PLANNER}
"""Roles of calls that have another name in the settings."""
FOLDED = "…"
"""Stands for a draft or an answer that is a note: an empty one means that there is none."""


def split_note(event: Event, notes_of: Collection[str]) -> tuple[Event, str]:
    """The event without its note, and the note; an empty one for an event that has none.

    `notes_of` as in `Started`.
    """
    match event:
        case Pushed(draft=draft) if draft and PLANNER in notes_of:
            return replace(event, draft=FOLDED), draft
        case Pushed(text=text, writer=writer) if writer in notes_of:
            return replace(event, text=""), text
        case Popped(reason=reason) if PLANNER in notes_of:
            return replace(event, reason=""), reason
        # TC-RAG's helpers are asked of the planner's model.
        case Asked(role=role, kind="complete") if ROLES.get(role, role) in notes_of:
            # A complaint about the reply before quotes it.
            repaired = FOLDED if event.repaired else ""
            note = "\n".join(filter(None, (event.repaired, event.thinking, event.reply)))
            return replace(event, reply="", thinking="", repaired=repaired), note
        case BoundaryChecked(answer=answer) if answer and READER in notes_of:
            return replace(event, answer=FOLDED), answer
        case Focused(reason=reason) if READER in notes_of:
            return replace(event, reason=""), reason
        case FormSolved(answer=answer, own_knowledge=True) if READER in notes_of:
            return replace(event, answer=""), answer
        case _:
            return event, ""


def list_read_passages(events: Iterable[Event]) -> tuple[str, ...]:
    """Ids of the passages that were read, each once.

    A search is read whole, unless an order follows it: of the searches of a source plan, and of one
    for what was not read yet, that is read which stands in their order. What a planner only tried,
    to have it scored, is not read by that.
    """
    read: dict[str, None] = {}
    found: dict[str, None] = {}
    for event in events:
        match event:
            case Retrieved(hits=hits):
                found |= dict.fromkeys(hit.passage for hit in hits)
            case PassagesOrdered(passages=passages):
                read |= dict.fromkeys(passages)
                found = {}
            case PlanScored():
                found = {}
            # These stand between the searches of one plan, and between them and their order.
            case Searched() | SourcesPlanned() | Asked() | Noted():
                pass
            case _:
                read |= found
                found = {}
    return tuple(read | found)


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A step of a plan."""

    n: int
    function: str
    """Retrieval, Math, Deduce or Output."""
    step: str
    action: str
    """Its logical form: with `step` it can be edited and run again."""
    needs: tuple[int, ...]
    """Numbers of the steps whose results it needs."""
    answer: str = ""
    """The value, or the members of a set; empty if none may be shown."""
    passages: tuple[str, ...] = ()
    """Ids of the passages that it rests on."""
    computed: str = ""
    """The formula with its inputs, or the program."""

    @property
    def wire(self) -> str:
        """The step as plans are written."""
        return f"Step{self.n}: {self.step}\nAction{self.n}: {self.action}"


def proof_steps(events: Iterable[Event]) -> tuple[ProofStep, ...]:
    """The steps of a run's last plan; none without a plan. What a model wrote that may not word
    medicine is left out."""
    steps: dict[int, ProofStep] = {}
    notes_of: Collection[str] = ()
    for event in events:
        match event:
            case Started():
                notes_of = event.notes_of
            case FormsPlanned(nodes=nodes):
                steps = {
                    node.n: ProofStep(node.n, node.fn, node.step, node.action, node.needs)
                    for node in nodes
                }
            case Calculated(n=n, code=code, value=value) if n in steps and value:
                steps[n] = replace(steps[n], computed=code)
            case FormSolved(n=n, passages=passages) if n in steps:
                bare, _ = split_note(event, notes_of)
                answer = bare.answer if isinstance(bare, FormSolved) else ""
                steps[n] = replace(steps[n], answer=answer, passages=passages)
            case _:
                pass
    return tuple(steps.values())
