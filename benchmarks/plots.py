"""Plots as SVG, written by hand: the tables beside them hold the figures."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

_SIZE, _EDGE, _BINS = 320, 46, 10


def calibration(points: Sequence[tuple[float, float]], *, title: str = "") -> str:
    """How right answers are (F1, 0 to 1), by their least probability, in tenths.

    A dot a bin, its area by the number of answers in it; on the diagonal, a model would be as
    often right as it is sure.
    """
    bins: list[list[tuple[float, float]]] = [[] for _ in range(_BINS)]
    for probability, right in points:
        bins[min(_BINS - 1, int(probability * _BINS))].append((probability, right))
    drawn = [_dot(inside, len(points)) for inside in bins if inside]
    ticks = [_tick(n / 5) for n in range(6)]
    side, low = _SIZE + 2 * _EDGE, _SIZE + _EDGE
    middle = _EDGE + _SIZE / 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}"'
            ' font-family="sans-serif" font-size="11">',
            f'<rect width="{side}" height="{side}" fill="white"/>',
            f'<path d="M{_EDGE} {_EDGE}V{low}H{low}" fill="none" stroke="black"/>',
            f'<path d="M{_EDGE} {low}L{low} {_EDGE}" stroke="#999" stroke-dasharray="4"/>',
            *ticks,
            *drawn,
            f'<text x="{middle}" y="{_EDGE - 18}" text-anchor="middle">{title}'
            f" (n = {len(points)})</text>",
            f'<text x="{middle}" y="{side - 8}" text-anchor="middle">least probability of a token'
            " in the box</text>",
            f'<text x="12" y="{middle}" text-anchor="middle" transform="rotate(-90 12 {middle})">'
            "mean F1</text>",
            "</svg>",
            "",
        ]
    )


def _dot(inside: Sequence[tuple[float, float]], n: int) -> str:
    x, y = fmean(p for p, _ in inside), fmean(right for _, right in inside)
    radius = 3 + 22 * (len(inside) / n) ** 0.5
    return (
        f'<circle cx="{_across(x):.1f}" cy="{_up(y):.1f}" r="{radius:.1f}" fill="#2266aa"'
        f' fill-opacity="0.6"><title>{len(inside)} answers, {x:.2f}: {y:.2f}</title></circle>'
    )


def _tick(value: float) -> str:
    return (
        f'<text x="{_across(value):.0f}" y="{_SIZE + _EDGE + 14}" text-anchor="middle">{value:.1f}'
        f'</text><text x="{_EDGE - 6}" y="{_up(value) + 4:.0f}" text-anchor="end">{value:.1f}'
        "</text>"
    )


def _across(value: float) -> float:
    return _EDGE + _SIZE * value


def _up(value: float) -> float:
    return _EDGE + _SIZE * (1 - value)
