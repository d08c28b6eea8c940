"""Renders a log folder as Markdown for a repository or as one HTML page for a browser.

| Module | Has |
|---|---|
| `build` | the report as plain values: cells, comparisons, printed figures, judgements |
| `opponents` | the majority answer and chance, beside every strategy |
| `tables` | tables and sentences that both renderings share |
| `plots` | plots as numbers that the page draws as SVG |

Both are rendered here. The page holds no script, loads nothing, and escapes model output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

from osler.evaluate.log import read_trace
from osler.evaluate.report import plots
from osler.evaluate.report.build import EvaluationReport, ReportedSample, build_report
from osler.evaluate.report.tables import (
    HEAD,
    JUDGED,
    RIVALS,
    RIVALS_NOTE,
    count_rows,
    describe_comparison,
    judged_rows,
    list_exclusions,
    measure_tables,
    report_facts,
)
from osler.text import one_line, read_packaged
from osler.trace import Event

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = [
    "EvaluationReport",
    "Film",
    "ReportedSample",
    "build_report",
    "render_html",
    "render_markdown",
]


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
        rivals_head=RIVALS,
        rivals_note=RIVALS_NOTE,
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


def render_markdown(report: EvaluationReport) -> str:
    """Renders the whole report as one Markdown text."""
    return "\n".join(_report_parts(report)) + "\n"


def _report_parts(report: EvaluationReport) -> Iterator[str]:
    yield "# Evaluation"
    yield (f"\n{HEAD}")
    for table in measure_tables(report):
        yield f"\n## {table.measure.title}\n"
        head = ["strategy", *table.tasks, "mean"]
        yield from _render_table(head, ([name, *cells] for name, cells in table.rows))
    yield "\n## Samples\n"
    head = ["strategy", "data", "planned", "done", "failed", "missing", "standard error"]
    yield from _render_table(head, ([str(cell) for cell in row] for row in count_rows(report)))
    yield from _test_lines(report)
    yield from _calibration_lines(report)
    yield from _leaderboard_lines(report)
    if rows := judged_rows(report):
        yield "\n## Judged by models\n"
        yield from _render_table(JUDGED, rows)
    yield from _printed_lines(report)
    if report.rivals:
        yield "\n## Rivals, as printed by the authors\n"
        yield f"{RIVALS_NOTE}\n"
        yield from _render_table(RIVALS, (one.cells for one in report.rivals))
    yield "\n## What is left out\n"
    yield from (f"- {line}" for line in list_exclusions(report) or ["nothing"])
    yield "\n## Made with\n"
    yield from (f"- {name}: {text}" for name, text in report_facts(report))


def _render_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_escape_cell, head))} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_escape_cell, row))} |"


def _escape_cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _test_lines(report: EvaluationReport) -> Iterator[str]:
    if not report.compared:
        return
    yield "\n## Differences on the same samples\n"
    head = ["data", "first", "second", "measure", "change", "n", "test", "p", "p (Holm)", "verdict"]
    yield from _render_table(
        head,
        (
            [
                one.task,
                one.first,
                one.second,
                one.measure,
                f"{100 * one.change.value:+.1f}"
                f" [{100 * one.change.low:+.1f}, {100 * one.change.high:+.1f}]",
                str(one.change.n),
                one.test,
                f"{one.p:.3g}",
                f"{one.corrected:.3g}",
                describe_comparison(one),
            ]
            for one in report.compared
        ),
    )


def _calibration_lines(report: EvaluationReport) -> Iterator[str]:
    known = [cell for cell in report.cells if cell.ece is not None]
    if not known:
        return
    yield "\n## Calibration\n"
    rows = ([c.strategy, c.task, f"{c.ece:.3f}", str(len(c.confidence))] for c in known)
    yield from _render_table(["strategy", "data", "ECE", "n"], rows)


def _leaderboard_lines(report: EvaluationReport) -> Iterator[str]:
    for cell in report.cells:
        if (averages := cell.leaderboard) is None:
            continue
        kinds, mean = averages
        yield f"\n## {cell.task}, {cell.strategy}: average as on CMB's leaderboard\n"
        rows = [[name, f"{100 * score:.2f}"] for name, score in kinds.items()]
        yield from _render_table(
            ["examination", "accuracy"], [*rows, ["average", f"{100 * mean:.2f}"]]
        )


def _printed_lines(report: EvaluationReport) -> Iterator[str]:
    if not report.printed:
        return
    yield "\n## What the papers print\n"
    yield from _render_table(
        ["data", "strategy", "paper", "printed by the authors", "ours", "what differs"],
        (
            [
                one.task,
                one.strategy,
                one.place,
                f"{one.theirs:.2f}",
                f"{100 * one.ours.value:.1f} [{100 * one.ours.low:.1f}, {100 * one.ours.high:.1f}]",
                one.differs,
            ]
            for one in report.printed
        ),
    )
