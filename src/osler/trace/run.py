"""What a run carries along, and what solves a question in it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from osler.trace.events import Budget, Event
from osler.types import Question, Solution, Usage

Sink = Callable[[Any], None]
_ROUNDING = 1e-9
"""Seconds are sums: all that is left, spent, may miss the bound by a last digit."""


class BudgetExceeded(Exception):
    """A bound of the run is reached, in words; a strategy ends with what it has
    (`Halt.BUDGET`). It is no error, and no strategy lets it out."""


class RunCancelled(asyncio.CancelledError):
    """The run was asked to stop; nothing half-written is left behind."""


@dataclass
class Run:
    """What one run carries along: its events, budget, chance and cancellation."""

    id: str = "run"
    seed: int = 0
    budget: Budget = field(default_factory=Budget)
    sink: Sink | None = None
    """Called with each event as it happens, before the strategy goes on."""
    events: list[Event] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    spent: str = field(default="", init=False)
    """The bound for which something was refused or cut short; empty when none was."""
    rng: random.Random = field(init=False)
    _cancelled: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def emit(self, event: Event) -> None:
        if self._cancelled:
            raise RunCancelled
        self.events.append(event)
        if self.sink is not None:
            self.sink(event)

    def spend(self, usage: Usage) -> None:
        self.usage += usage

    def require_budget(self, what: Literal["call", "search"], calls: int = 1) -> None:
        """Raises `BudgetExceeded` unless there is room for one more, or for as many calls at once.

        A search needs room among the searches; a model call among calls, tokens and
        seconds. One call may overrun `tokens`: what it costs is known when it is done.
        """
        kinds = ("searches",) if what == "search" else ("calls", "tokens", "seconds")
        if (reached := self._reached_bound(kinds)) is not None:
            raise self.refuse_at_bound(reached)
        limit = self.budget.calls
        if what == "call" and limit is not None and self.usage.calls + calls > limit:
            raise self.refuse_at_bound(
                f"calls {self.usage.calls} of {limit}, and {calls} more are needed"
            )

    def refuse_at_bound(self, reached: str) -> BudgetExceeded:
        """Notes which bound ends the run; the caller raises what this gives."""
        self.spent = reached
        return BudgetExceeded(reached)

    @property
    def seconds_left(self) -> float | None:
        """How long the next model call may take; `None` = as long as it likes."""
        limit = self.budget.seconds
        return None if limit is None else max(0.0, limit - self.usage.seconds)

    def cancel(self) -> None:
        """The next event raises `RunCancelled` instead of being emitted."""
        self._cancelled = True

    @property
    def exhausted_bound(self) -> str | None:
        """Which bound is reached, in words; `None` while there is room."""
        return self._reached_bound(("calls", "tokens", "searches", "seconds"))

    def _reached_bound(self, kinds: Iterable[str]) -> str | None:
        for kind in kinds:
            spent, limit = getattr(self.usage, kind), getattr(self.budget, kind)
            if limit is not None and spent >= limit - _ROUNDING:
                return f"{kind} {spent:g} of {limit:g}"
        return None


class Solver(Protocol):
    """TC-RAG, KAG-Thinker, planner and reader, the unified system and every baseline."""

    async def solve(self, question: Question, run: Run) -> Solution:
        """Never raises for a spent budget or absent evidence: those are `Halt`s."""
        ...
