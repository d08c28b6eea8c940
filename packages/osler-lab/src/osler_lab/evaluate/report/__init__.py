"""Renders a log folder as Markdown.

| Module | Has |
|---|---|
| `build` | the report as plain values: cells, comparisons, printed figures, judgements |
| `opponents` | the majority answer and chance, beside every strategy |
| `tables` | tables and sentences that the report, the terminal and the server share |
"""

from __future__ import annotations

from collections.abc import Iterator

from osler.text import markdown_table
from osler_lab.evaluate.report.build import EvaluationReport, ReportedSample, build_report
from osler_lab.evaluate.report.tables import (
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

__all__ = ["EvaluationReport", "ReportedSample", "build_report", "render_markdown"]


def render_markdown(report: EvaluationReport) -> str:
    """Renders the whole report as one Markdown text."""
    return "\n".join(_report_parts(report)) + "\n"


def _report_parts(report: EvaluationReport) -> Iterator[str]:
    yield "# Evaluation"
    yield (f"\n{HEAD}")
    for table in measure_tables(report):
        yield f"\n## {table.measure.title}\n"
        head = ["strategy", *table.tasks, "mean"]
        yield markdown_table(head, ([name, *cells] for name, cells in table.rows))
    yield "\n## Samples\n"
    head = ["strategy", "data", "planned", "done", "failed", "missing", "standard error"]
    yield markdown_table(head, ([str(cell) for cell in row] for row in count_rows(report)))
    yield from _test_lines(report)
    yield from _calibration_lines(report)
    yield from _leaderboard_lines(report)
    if rows := judged_rows(report):
        yield "\n## Judged by models\n"
        yield markdown_table(JUDGED, rows)
    yield from _printed_lines(report)
    if report.rivals:
        yield "\n## Rivals, as printed by the authors\n"
        yield f"{RIVALS_NOTE}\n"
        yield markdown_table(RIVALS, (one.cells for one in report.rivals))
    yield from _sample_lines(report)
    yield "\n## What is left out\n"
    yield from (f"- {line}" for line in list_exclusions(report) or ["nothing"])
    yield "\n## Made with\n"
    yield from (f"- {name}: {text}" for name, text in report_facts(report))


def _test_lines(report: EvaluationReport) -> Iterator[str]:
    if not report.compared:
        return
    yield "\n## Differences on the same samples\n"
    head = ["data", "first", "second", "measure", "change", "n", "test", "p", "p (Holm)", "verdict"]
    yield markdown_table(
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
    yield markdown_table(["strategy", "data", "ECE", "n"], rows)


def _leaderboard_lines(report: EvaluationReport) -> Iterator[str]:
    for cell in report.cells:
        if (averages := cell.leaderboard) is None:
            continue
        kinds, mean = averages
        yield f"\n## {cell.task}, {cell.strategy}: average as on CMB's leaderboard\n"
        rows = [[name, f"{100 * score:.2f}"] for name, score in kinds.items()]
        yield markdown_table(["examination", "accuracy"], [*rows, ["average", f"{100 * mean:.2f}"]])


def _sample_lines(report: EvaluationReport) -> Iterator[str]:
    shown = [one for cell in report.cells for one in cell.shown]
    if not shown:
        return
    yield "\n## Single samples, failures first\n"
    yield "`osler eval report --log-dir LOG --sample ID` shows the run.\n"
    head = ["strategy", "data", "id", "score", "gold", "answer", "why"]
    yield markdown_table(
        head,
        (
            [
                *(one.strategy, one.task, one.id),
                *("failed" if one.score is None else f"{one.score:.2f}", one.gold),
                *(one.answer, one.why),
            ]
            for one in shown
        ),
    )


def _printed_lines(report: EvaluationReport) -> Iterator[str]:
    if not report.printed:
        return
    yield "\n## What the papers print\n"
    yield markdown_table(
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
