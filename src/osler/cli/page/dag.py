"""A plan of logical forms as an inline SVG: a column a level, a box a step."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from osler.trace import BoundaryChecked, Event, FormBegun, FormNode, FormSolved, FormsPlanned

BOX_W, BOX_H, GAP_X, GAP_Y, MARGIN = 236, 92, 56, 18, 8
LETTERS = 34
"""Half-width letters on one line of a box."""


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
    return max((1 + _node_level(nodes[n], nodes) for n in node.needs if n in nodes), default=0)


def _text_width(text: str) -> int:
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
