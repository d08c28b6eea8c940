"""The state value against sigma, step by step, as an inline SVG (TC-RAG Fig. 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from osler.trace import Event, FormBegun, FormSolved, StateValued

WIDTH, HEIGHT = 640, 220
LEFT, RIGHT, TOP, BOTTOM = 56, 96, 16, 36


@dataclass(frozen=True, slots=True)
class PlotPoint:
    x: float
    y: float
    value: str
    step: int
    halted: bool


@dataclass(frozen=True, slots=True)
class StatePlot:
    """What the template draws. Values lie on a logarithmic axis: they span decades."""

    step: int
    """Of a plan, which a machine of its own solved; 0 = the whole run."""
    metric: str
    points: tuple[PlotPoint, ...]
    sigma: str
    sigma_y: float
    ticks: tuple[tuple[float, str], ...]
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    bottom: int = HEIGHT - BOTTOM

    @property
    def line(self) -> str:
        return " ".join(f"{point.x:.1f},{point.y:.1f}" for point in self.points)


def state_plots(events: Sequence[Event]) -> tuple[StatePlot, ...]:
    """One for each step that a machine of its own solved; else one of the whole run.

    None for a run whose state nobody valued, or without a positive value.
    """
    stacks: dict[int, list[StateValued]] = {}
    step = 0
    for event in events:
        match event:
            case FormBegun(n=n):
                step = n
            case FormSolved():
                step = 0
            case StateValued(value=value, sigma=sigma) if 0 < value < float("inf") and sigma > 0:
                stacks.setdefault(step, []).append(event)
    return tuple(_make_plot(n, shown) for n, shown in stacks.items())


def _make_plot(n: int, shown: Sequence[StateValued]) -> StatePlot:
    sigma = shown[-1].sigma
    heights = [log10(event.value) for event in shown] + [log10(sigma)]
    low, high = min(heights), max(heights)
    if high - low < 0.5:
        low, high = low - 0.25, high + 0.25

    def y_of(value: float) -> float:
        share = (log10(value) - low) / (high - low)
        return HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)

    last = max(event.i for event in shown)
    first = min(event.i for event in shown)
    span = max(1, last - first)

    def x_of(step: int) -> float:
        return LEFT + (step - first) / span * (WIDTH - RIGHT - LEFT)

    points = tuple(
        PlotPoint(x_of(e.i), y_of(e.value), f"{e.value:.3g}", e.i, e.halted) for e in shown
    )
    ticks = tuple((y_of(tick), f"{tick:g}") for tick in _axis_ticks(low, high))
    return StatePlot(n, shown[-1].metric, points, f"{sigma:.3g}", y_of(sigma), ticks)


def _axis_ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 of each decade that lies in the axis; every other one when they are many."""
    found = [
        step * 10.0**decade
        for decade in range(int(low) - 2, int(high) + 3)
        for step in (1, 2, 5)
        if low <= log10(step * 10.0**decade) <= high
    ]
    return found if len(found) <= 7 else found[:: len(found) // 6]
