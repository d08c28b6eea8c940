"""Renders a log folder as Markdown for a repository or as one HTML page for a browser.

| Module | Has |
|---|---|
| `build` | the report as plain values: cells, comparisons, printed figures, judgements |
| `opponents` | the majority answer and chance, beside every strategy |
| `tables` | tables and sentences that both renderings share |
| `plots` | plots as numbers that the page draws as SVG |
| `markdown` | the rendering for a repository |

The page is rendered here: it holds no script, loads nothing, and escapes model output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING

from osler.evaluate.log import read_trace
from osler.evaluate.report import plots
from osler.evaluate.report.build import EvaluationReport, ReportedSample, build_report
from osler.evaluate.report.markdown import render_markdown
from osler.evaluate.report.tables import (
    HEAD,
    JUDGED,
    count_rows,
    describe_comparison,
    judged_rows,
    list_exclusions,
    measure_tables,
    report_facts,
)
from osler.text import read_packaged
from osler.trace import Event

__all__ = [
    "EvaluationReport",
    "Film",
    "ReportedSample",
    "build_report",
    "render_html",
    "render_markdown",
]

if TYPE_CHECKING:
    from jinja2 import Template

Film = Callable[[Sequence[Event]], Sequence[str]]
"""Function from the events of a run to the lines in which a reader follows it."""


def render_html(report: EvaluationReport, film: Film | None = None) -> str:
    """Renders the page; with `film`, each sample shown comes with the lines of its run.

    Raises `BadRun` where a trace cannot be read.
    """

    def facts_of(shown: ReportedSample) -> Sequence[str]:
        if film is None or shown.trace is None:
            return ()
        return film(read_trace(report.folder, shown.trace))

    return _read_template().render(
        report=report,
        head=HEAD,
        tables=list(measure_tables(report)),
        counts=count_rows(report),
        judged_head=JUDGED,
        judged=judged_rows(report),
        facts=report_facts(report),
        exclusions=list_exclusions(report),
        bars=plots.draw_bars(report),
        squares=[*plots.draw_costs(report), *plots.draw_reliabilities(report)],
        verdict=describe_comparison,
        film=facts_of,
    )


@cache
def _read_template() -> Template:
    from jinja2 import Environment, StrictUndefined

    source = read_packaged(__package__, "report.html.j2")
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(source)
