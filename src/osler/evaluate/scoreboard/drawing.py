"""The scoreboard's plots as SVG, by hand: the same figures give the same file, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import log10

from osler.evaluate.metrics.calibration import Bin
from osler.evaluate.scoreboard.curves import FrontPoint, RiskCurve

_WIDTH, _HEIGHT, _EDGE, _LEGEND = 420, 300, 48, 190
_COLOURS = ("#1b5e9b", "#b3541e", "#2e7d32", "#6a1b9a", "#00838f", "#8d6e00", "#ad1457", "#455a64")


@dataclass(frozen=True, slots=True)
class _Frame:
    """Axes: x from `low` to `high`, y from 0 to 1."""

    title: str
    across: str
    up: str
    low: float = 0.0
    high: float = 1.0
    logarithmic: bool = False

    def place(self, x: float, y: float) -> tuple[float, float]:
        span = _WIDTH - 2 * _EDGE
        share = (x - self.low) / (self.high - self.low)
        return _EDGE + span * share, _HEIGHT - _EDGE - (_HEIGHT - 2 * _EDGE) * y

    def draw(self, inside: Iterable[str], names: Sequence[str]) -> str:
        """The whole picture; `names` in the order of the colours."""
        low, right = _HEIGHT - _EDGE, _WIDTH - _EDGE
        legend = [
            f'<circle cx="{_WIDTH + 4}" cy="{_EDGE + 18 * n}" r="4" fill="{_colour(n)}"/>'
            f'<text x="{_WIDTH + 14}" y="{_EDGE + 18 * n + 4}">{escape(name)}</text>'
            for n, name in enumerate(names)
        ]
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH + _LEGEND}'
                f' {_HEIGHT}" font-family="sans-serif" font-size="11" role="img">',
                f"<title>{escape(self.title)}</title>",
                f'<rect width="{_WIDTH + _LEGEND}" height="{_HEIGHT}" fill="white"/>',
                f'<path d="M{_EDGE} {_EDGE}V{low}H{right}" fill="none" stroke="black"/>',
                *self._ticks(),
                f'<text x="{_WIDTH / 2}" y="22" text-anchor="middle">{escape(self.title)}</text>',
                f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{self.across}'
                "</text>",
                f'<text x="14" y="{_HEIGHT / 2}" text-anchor="middle"'
                f' transform="rotate(-90 14 {_HEIGHT / 2})">{self.up}</text>',
                *inside,
                *legend,
                "</svg>",
                "",
            ]
        )

    def _ticks(self) -> Iterable[str]:
        for n in range(5):
            value = self.low + (self.high - self.low) * n / 4
            x, y = self.place(value, n / 4)
            mark = f"{10**value:.2g}" if self.logarithmic else f"{value:.2g}"
            yield f'<text x="{x:.1f}" y="{_HEIGHT - _EDGE + 14}" text-anchor="middle">{mark}</text>'
            yield f'<text x="{_EDGE - 6}" y="{y + 4:.1f}" text-anchor="end">{n / 4:.2g}</text>'


def _colour(n: int) -> str:
    return _COLOURS[n % len(_COLOURS)]


def _line(places: Sequence[tuple[float, float]], n: int, *, dashed: bool = False) -> str:
    path = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    dash = ' stroke-dasharray="4"' if dashed else ""
    return f'<path d="{path}" fill="none" stroke="{_colour(n)}" stroke-width="1.5"{dash}/>'


def draw_risks(curves: Sequence[tuple[str, RiskCurve]]) -> str:
    """Risk over coverage, a line for each strategy."""
    frame = _Frame("Risk over coverage", "share answered, the surest first", "share wrong")
    lines = [
        _line([frame.place(x, y) for x, y in curve.points], n)
        for n, (_, curve) in enumerate(curves)
    ]
    return frame.draw(lines, [f"{name} ({curve.aurc:.3f})" for name, curve in curves])


def draw_front(points: Sequence[FrontPoint], front: Sequence[FrontPoint]) -> str:
    """Right answers over mean seconds, on a logarithmic axis, with 95 % intervals; the front is
    dashed."""
    logs = [log10(max(point.mean_seconds, 1e-3)) for point in points]
    frame = _Frame(
        "Cost and quality",
        "mean seconds a question",
        "share right",
        min(logs) - 0.1,
        max(logs) + 0.1,
        logarithmic=True,
    )
    inside = []
    for n, (point, x) in enumerate(zip(points, logs, strict=True)):
        across, middle = frame.place(x, point.right.value)
        low, high = (frame.place(x, edge)[1] for edge in (point.right.low, point.right.high))
        inside.append(
            f'<path d="M{across:.1f} {low:.1f}V{high:.1f}" stroke="{_colour(n)}"/>'
            f'<circle cx="{across:.1f}" cy="{middle:.1f}" r="4" fill="{_colour(n)}"/>'
        )
    places = [frame.place(log10(max(p.mean_seconds, 1e-3)), p.right.value) for p in front]
    return frame.draw([_line(places, 7, dashed=True), *inside], [p.strategy for p in points])


def draw_reliability(found: Sequence[tuple[str, tuple[Bin, ...], float]]) -> str:
    """How often answers are right, by how sure they say they are."""
    frame = _Frame("Reliability", "sureness", "share right")
    inside = [_line([frame.place(0, 0), frame.place(1, 1)], 7, dashed=True)]
    for n, (_, bins, _) in enumerate(found):
        for one in bins:
            x, y = frame.place(one.confidence, one.accuracy)
            inside.append(
                f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3 + min(9, one.n**0.5):.1f}"'
                f' fill="{_colour(n)}" fill-opacity="0.6"><title>n = {one.n}</title></circle>'
            )
    return frame.draw(inside, [f"{name} (off by {error:.3f})" for name, _, error in found])
