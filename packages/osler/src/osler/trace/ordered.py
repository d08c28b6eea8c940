"""Runs work concurrently and keeps its events in a fixed order.

Each step has a run of its own, whose events are held back until all events of earlier steps are
emitted. So a run's event stream does not depend on which reply arrives first, and a replay
reproduces it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from osler.trace import Event, Run

T = TypeVar("T")


class OrderedEvents:
    """Collects the events of concurrent steps and emits them in the order of the steps."""

    def __init__(self, run: Run, steps: Sequence[int]) -> None:
        self._run = run
        self._waiting: dict[int, list[Event]] = {n: [] for n in steps}
        self._open = list(steps)
        self._done: set[int] = set()

    def begin_step(self, n: int) -> Run:
        """Opens the run of step `n`: same bounds, own random seed, own event queue.

        Under a budget steps run one after another, and each continues from the usage before it.
        """
        # Derived from the run's seed and the step alone, so independent of timing. The factor is
        # a prime, which keeps the steps of neighbouring seeds apart.
        seed = (self._run.seed * 1_000_003 + n) % 2**32
        lane = Run(
            self._run.id,
            seed,
            self._run.budget,
            sink=lambda event: self._record_event(n, event),
            prices=self._run.prices,
        )
        # Sequential under a budget: usage is handed on, not summed.
        if self._run.budget.is_bounded:
            lane.usage, lane.paid = self._run.usage, self._run.paid
        return lane

    def end_step(self, n: int, lane: Run) -> None:
        """Closes a step: adds its usage and lets the events of the next one through."""
        if self._run.budget.is_bounded:
            self._run.usage, self._run.paid = lane.usage, lane.paid
        else:
            self._run.spend(lane.usage)
        # The first refused bound is the one that the run reports.
        self._run.spent = self._run.spent or lane.spent
        self._run.unsaid = lane.unsaid or self._run.unsaid
        self._run.cut = lane.cut
        self._run.unread = lane.unread or self._run.unread
        self._done.add(n)
        while self._open and self._open[0] in self._done:
            self._open.pop(0)
            if self._open:
                self._flush_events(self._open[0])

    def _record_event(self, n: int, event: Event) -> None:
        if self._open and self._open[0] == n:
            self._run.emit(event)
        else:
            self._waiting[n].append(event)

    def _flush_events(self, n: int) -> None:
        for event in self._waiting.pop(n):
            self._run.emit(event)


async def gather_ordered(run: Run, works: Sequence[Callable[[Run], Awaitable[T]]]) -> list[T]:
    """Runs `works` concurrently, each in a run of its own; returns their results in order.

    Under a budget they run one after another, so that the cut does not depend on which reply
    arrives first. The first error cancels the others and is raised.
    """
    lanes = OrderedEvents(run, range(len(works)))

    async def run_one(n: int) -> T:
        lane = lanes.begin_step(n)
        try:
            return await works[n](lane)
        finally:
            lanes.end_step(n, lane)

    if run.budget.is_bounded:
        return [await run_one(n) for n in range(len(works))]
    return await gather([run_one(n) for n in range(len(works))])


async def gather(works: Iterable[Awaitable[T]]) -> list[T]:
    """Awaits all concurrently; returns their results in order.

    The first error cancels the others and is raised as it is, not in an exception group.
    """
    # Not a TaskGroup: that would wrap the first error in an exception group.
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
