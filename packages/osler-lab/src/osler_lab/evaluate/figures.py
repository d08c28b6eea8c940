"""Figures of studies and of the scoreboard, as SVG or PNG by the file's ending (extra `plot`).

The same figures give the same SVG, byte for byte, under one version of matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, OslerError, require_extra
from osler_lab.evaluate.intervals import Estimate
from osler_lab.evaluate.scoreboard.tables import FrontPoint, RiskCurve, is_on_front
from osler_lab.studies.sensitivity import METRICS, SigmaPoint

_Row = tuple[str, Callable[[SigmaPoint], Estimate | None]]
_ROWS: tuple[_Row, ...] = (
    ("share converged", lambda point: point.converged),
    ("exact match", lambda point: point.em),
    ("steps", lambda point: point.steps),
)


def sigma_figure(points: Sequence[SigmaPoint], paths: Sequence[Path]) -> None:
    """Draws the effect of a threshold (TC-RAG Fig. 3): a column per metric, 95 % intervals.

    Raises `OslerError` without the extra, and `BadConfig` for a file that cannot be written.
    """
    groups = [[p for p in points if p.metric == metric] for metric in METRICS]
    columns = [column for column in groups if column]
    with _open_figure(paths, (4.2 * len(columns), 7.5)) as figure:
        grid = figure.subplots(len(_ROWS), len(columns), squeeze=False, sharex="col")
        for axes, column in zip(grid.T, columns, strict=True):
            _draw_points(axes, column)


def draw_front(points: Sequence[FrontPoint], path: Path) -> None:
    """Draws right answers over mean seconds, with 95 % intervals; on the front, dots are full."""
    with _open_figure([path], (6.4, 3.6)) as figure:
        axes = figure.subplots()
        for point in points:
            right, others = point.right, [one for one in points if one is not point]
            axes.errorbar(
                [max(point.mean_seconds, 1e-3)],
                [right.value],
                yerr=([right.value - right.low], [right.high - right.value]),
                marker="o",
                fillstyle="full" if is_on_front(point, others) else "none",
                label=point.strategy,
            )
        axes.set_xscale("log")
        _label_axes(axes, "mean seconds a question", "share right")


def draw_risks(curves: Sequence[tuple[str, RiskCurve]], path: Path) -> None:
    """Draws risk over coverage, a line for each strategy."""
    with _open_figure([path], (6.4, 3.6)) as figure:
        axes = figure.subplots()
        for name, curve in curves:
            axes.plot(*zip(*curve.points, strict=True), label=f"{name} ({curve.aurc:.3f})")
        _label_axes(axes, "share answered, the surest first", "share wrong")


@contextmanager
def _open_figure(paths: Sequence[Path], size: tuple[float, float]) -> Iterator[Any]:
    """A figure to draw in, saved at the end."""
    with require_extra("plot", "figures need the package matplotlib", OslerError):
        import matplotlib
        from matplotlib.figure import Figure
    # A fixed salt makes the ids in the SVG repeat; text stays text, so fonts do not matter.
    with matplotlib.rc_context({"svg.hashsalt": "osler", "svg.fonttype": "none"}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        for path in paths:
            _save_figure(figure, path)


def _label_axes(axes: Any, across: str, up: str) -> None:
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.set_ylim(0, 1)
    axes.figure.legend(loc="outside right upper", fontsize="small")


def _draw_points(axes: Sequence[Any], column: Sequence[SigmaPoint]) -> None:
    for each, (label, estimate) in zip(axes, _ROWS, strict=True):
        known = [(point.sigma, found) for point in column if (found := estimate(point))]
        if known:
            sigmas = [sigma for sigma, _ in known]
            values = [one.value for _, one in known]
            below = [one.value - one.low for _, one in known]
            above = [one.high - one.value for _, one in known]
            each.errorbar(sigmas, values, yerr=(below, above), marker="o", capsize=3)
        each.set_ylabel(label)
        if label != "steps":
            each.set_ylim(-0.05, 1.05)
        else:
            each.set_ylim(bottom=0)
    axes[0].set_title(f"{column[0].metric}, n = {column[0].converged.n}")
    axes[-1].set_xlabel("sigma")


_UNSAID = dict.fromkeys(("Creator", "Date", "Format", "Type"))
"""Left out of a picture: the moment would change it each time, and the page names no other host."""


def _save_figure(figure: Any, path: Path) -> None:
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise BadConfig(f"{path}: a figure is .svg or .png", fix="choose another --figure")
    options: dict[str, Any] = {"metadata": _UNSAID} if kind == ".svg" else {"dpi": 150}
    try:
        figure.savefig(path, **options)
    except OSError as error:
        raise BadConfig(
            f"{path} cannot be written: {error}", fix="choose another --figure"
        ) from error
