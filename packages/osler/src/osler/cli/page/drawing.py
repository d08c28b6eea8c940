"""Drawings on the page of a run: the plan of logical forms, and curves of the state value."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from math import log10

from osler.trace import (
    BoundaryChecked,
    Event,
    FormBegun,
    FormNode,
    FormSolved,
    FormsPlanned,
    StateValued,
)

BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN = 236, 92, 56, 18, 8
# Half-width letters on one line of a box.
LETTERS = 34


@dataclass(frozen=True, slots=True)
class StepBox:
    n: int
    x: float
    y: float
    fn: str
    lines: tuple[str, ...]
    answer: str
    begun: bool
    """Whether a machine solved it, so that the film has a place of its own for it."""
    how: str
    """Own knowledge, looked up, worked out or failed: what the colour says in words."""


@dataclass(frozen=True, slots=True)
class PlanDag:
    boxes: tuple[StepBox, ...]
    edges: tuple[tuple[float, float, float, float], ...]
    width: float
    height: float
    box_w: int = BOX_W
    box_h: int = BOX_H


def plan_dag(events: Sequence[Event]) -> PlanDag | None:
    """`None` for a run without a plan of logical forms."""
    plan = next((event for event in events if isinstance(event, FormsPlanned)), None)
    if plan is None or not plan.nodes:
        return None
    nodes = {node.n: node for node in plan.nodes}
    columns: dict[int, list[FormNode]] = {}
    for node in plan.nodes:
        columns.setdefault(_node_level(node, nodes), []).append(node)
    places = {
        node.n: (MARGIN + level * (BOX_W + GAP_X), MARGIN + row * (BOX_H + GAP_Y))
        for level, column in columns.items()
        for row, node in enumerate(column)
    }
    edges = tuple(
        (places[n][0] + BOX_W, places[n][1] + BOX_H / 2, places[m][0], places[m][1] + BOX_H / 2)
        for m, node in nodes.items()
        for n in node.needs
        if n in places
    )
    boxes = tuple(_make_box(node, places[node.n], events) for node in plan.nodes)
    width = max(x for x, _ in places.values()) + BOX_W + MARGIN
    height = max(y for _, y in places.values()) + BOX_H + MARGIN
    return PlanDag(boxes, edges, width, height)


def _make_box(node: FormNode, place: tuple[float, float], events: Sequence[Event]) -> StepBox:
    solved = next((e for e in events if isinstance(e, FormSolved) and e.n == node.n), None)
    checked = next((e for e in events if isinstance(e, BoundaryChecked) and e.n == node.n), None)
    lines = _wrap_text(node.step, 2)
    answer = _cut_text(solved.answer, LETTERS - 2) if solved else ""
    begun = any(isinstance(e, FormBegun) and e.n == node.n for e in events)
    return StepBox(
        node.n, *place, node.fn, lines, answer, begun, _solution_kind(node, solved, checked)
    )


def _solution_kind(
    node: FormNode, solved: FormSolved | None, checked: BoundaryChecked | None
) -> str:
    if solved is None:
        return "not run"
    if solved.status == "failed":
        return "no answer"
    sure = f" {solved.confidence:.2f}" if solved.confidence is not None else ""
    if solved.own_knowledge:
        return f"own knowledge{sure}"
    if node.fn != "Retrieval":
        return "worked out"
    return f"looked up{sure}, not known" if checked else f"looked up{sure}"


def _node_level(node: FormNode, nodes: dict[int, FormNode]) -> int:
    # Longest path from a root: every arrow then points to the right.
    return max((1 + _node_level(nodes[n], nodes) for n in node.needs if n in nodes), default=0)


def _text_width(text: str) -> int:
    # Chinese characters take two columns of the monospaced drawing.
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _cut_text(text: str, room: int) -> str:
    if _text_width(text) <= room:
        return text
    while text and _text_width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def _wrap_text(text: str, most: int) -> tuple[str, ...]:
    """Up to `most` lines, broken at spaces where there are any; the rest is cut."""
    lines: list[str] = []
    rest = text
    while rest and len(lines) < most:
        if _text_width(rest) <= LETTERS or len(lines) == most - 1:
            lines.append(_cut_text(rest, LETTERS))
            break
        at = len(rest)
        while _text_width(rest[:at]) > LETTERS:
            at -= 1
        space = rest.rfind(" ", 0, at)
        at = space if space > at // 2 else at
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    return tuple(lines)


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
    """A plot of state values on a logarithmic axis, since they span decades."""

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
