"""Figures of studies, as SVG or PNG by the file's ending. Needs the extra `plot`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from osler.errors import BadConfig, OslerError, require_extra
from osler.evaluate.intervals import Estimate
from osler.evaluate.sigma import METRICS, SigmaPoint

_Row = tuple[str, Callable[[SigmaPoint], Estimate | None]]
_ROWS: tuple[_Row, ...] = (
    ("share converged", lambda point: point.converged),
    ("exact match", lambda point: point.em),
    ("steps", lambda point: point.steps),
)


def sigma_figure(points: Sequence[SigmaPoint], paths: Sequence[Path]) -> None:
    """Draws the effect of a threshold (TC-RAG Fig. 3): a column per metric, 95 % intervals.

    The same points give the same SVG, byte for byte. Raises `OslerError` without the extra,
    and `BadConfig` for a file that cannot be written.
    """
    with require_extra("plot", "figures need the package matplotlib", OslerError):
        import matplotlib
        from matplotlib.figure import Figure
    groups = [[p for p in points if p.metric == metric] for metric in METRICS]
    columns = [column for column in groups if column]
    # A fixed salt makes the ids in the SVG repeat; text stays text, so fonts do not matter.
    with matplotlib.rc_context({"svg.hashsalt": "osler", "svg.fonttype": "none"}):
        figure = Figure(figsize=(4.2 * len(columns), 7.5), layout="constrained")
        grid = figure.subplots(len(_ROWS), len(columns), squeeze=False, sharex="col")
        for axes, column in zip(grid.T, columns, strict=True):
            _draw_points(axes, column)
        for path in paths:
            _save_figure(figure, path)


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


def _save_figure(figure: Any, path: Path) -> None:
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise BadConfig(f"{path}: a figure is .svg or .png", fix="choose another --figure")
    options: dict[str, Any] = {"metadata": {"Date": None}} if kind == ".svg" else {"dpi": 150}
    try:
        figure.savefig(path, **options)
    except OSError as error:
        raise BadConfig(
            f"{path} cannot be written: {error}", fix="choose another --figure"
        ) from error
