"""Plots as plain numbers that the page draws as SVG: intervals, cost, reliability."""

from __future__ import annotations

from dataclasses import dataclass
from math import log10

from osler.evaluate.measures import BY_NAME
from osler.evaluate.report.build import EvaluationReport
from osler.evaluate.report.tables import format_figure, primary_measure

WIDTH, ROW, LEFT, RIGHT, TOP = 640, 26, 210, 90, 8
SQUARE, EDGE = 260, 46


@dataclass(frozen=True, slots=True)
class Bar:
    label: str
    y: float
    x: float
    low: float
    high: float
    caption: str


@dataclass(frozen=True, slots=True)
class Bars:
    """Plot of one task: a dot per strategy, with its interval."""

    task: str
    title: str
    bars: tuple[Bar, ...]
    ticks: tuple[tuple[float, str], ...]
    height: float
    width: int = WIDTH
    left: int = LEFT


def draw_bars(report: EvaluationReport) -> list[Bars]:
    """The primary measure of every task, from 0 to 100 %."""
    drawn = []
    span = WIDTH - LEFT - RIGHT
    for task in report.tasks:
        measure = BY_NAME[primary_measure(report, task)]
        bars: list[Bar] = []
        for strategy in report.strategies:
            cell = report.cell_of(strategy, task)
            estimate = cell.estimates.get(measure.name) if cell else None
            if estimate is None:
                continue
            y = TOP + ROW * (len(bars) + 0.5)
            x, low, high = (LEFT + span * v for v in (estimate.value, estimate.low, estimate.high))
            caption = format_figure(measure, estimate, interval=False)
            bars.append(Bar(strategy, y, x, low, high, caption))
        ticks = tuple((LEFT + span * share / 100, str(share)) for share in (0, 25, 50, 75, 100))
        if bars:
            height = TOP + ROW * len(bars) + 24
            drawn.append(Bars(task, measure.title, tuple(bars), ticks, height))
    return drawn


@dataclass(frozen=True, slots=True)
class Dot:
    label: str
    x: float
    y: float
    caption: str


@dataclass(frozen=True, slots=True)
class Square:
    """A square plot; `diagonal` where x and y mean the same."""

    title: str
    dots: tuple[Dot, ...]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    x_title: str
    y_title: str
    diagonal: bool = False
    size: int = SQUARE
    edge: int = EDGE


def _axis_place(share: float) -> float:
    return EDGE + share * (SQUARE - 2 * EDGE)


_SHARES = tuple((_axis_place(share), f"{100 * share:.0f}") for share in (0.0, 0.5, 1.0))
_UP = tuple((SQUARE - _axis_place(share), f"{100 * share:.0f}") for share in (0.0, 0.5, 1.0))


def draw_costs(report: EvaluationReport) -> list[Square]:
    """Seconds a sample, on a logarithmic axis, against the primary measure."""
    drawn = []
    for task in report.tasks:
        name = primary_measure(report, task)
        points = []
        for strategy in report.strategies:
            cell = report.cell_of(strategy, task)
            score = cell.estimates.get(name) if cell else None
            wall = cell.estimates.get("wall_s") if cell else None
            if score is not None and wall is not None and wall.value > 0:
                points.append((strategy, log10(wall.value), score.value, wall.value))
        if not points:
            continue
        # A tenth of a decade of room on both sides, so that one dot alone has an axis, too.
        low = min(x for _, x, _, _ in points) - 0.1
        high = max(x for _, x, _, _ in points) + 0.1
        dots = tuple(
            Dot(
                label,
                _axis_place((x - low) / (high - low)),
                SQUARE - _axis_place(y),
                f"{wall:.3g} s, {100 * y:.1f}",
            )
            for label, x, y, wall in points
        )
        ticks = tuple(
            (_axis_place(share), f"{10 ** (low + share * (high - low)):.2g}")
            for share in (0.0, 1.0)
        )
        drawn.append(Square(task, dots, ticks, _UP, "seconds a sample", "%"))
    return drawn


def draw_reliabilities(report: EvaluationReport) -> list[Square]:
    """Plots the accuracy of answers against the strategy's confidence."""
    return [
        Square(
            f"{cell.strategy} on {cell.task}, ECE {cell.ece:.3f}",
            tuple(
                Dot(f"n = {n}", _axis_place(x), SQUARE - _axis_place(y), f"{100 * y:.0f}")
                for x, y, n in ((b.confidence, b.accuracy, b.n) for b in cell.bins)
            ),
            _SHARES,
            _UP,
            "confidence, %",
            "right, %",
            diagonal=True,
        )
        for cell in report.cells
        if cell.ece is not None
    ]
