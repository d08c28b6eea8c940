"""The run: its events, budget, prices and cancellation; and the interface of solvers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from osler.trace.events import Budget, Event
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
