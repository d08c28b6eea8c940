"""Report → Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from osler.evaluate.report.build import Report
from osler.evaluate.report.tables import (
    HEAD,
    JUDGED,
    counts,
    exclusions,
    facts,
    judged,
    tables,
    verdict,
)
from osler.text import one_line


def render_markdown(report: Report) -> str:
    """The whole report as one Markdown text."""
    return "\n".join(_parts(report)) + "\n"


def _parts(report: Report) -> Iterator[str]:
    yield "# Evaluation"
    yield (f"\n{HEAD}")
    for table in tables(report):
        yield f"\n## {table.measure.title}\n"
        head = ["strategy", *table.tasks, "mean"]
        yield from _table(head, ([name, *cells] for name, cells in table.rows))
    yield "\n## Samples\n"
    head = ["strategy", "data", "planned", "done", "failed", "missing", "standard error"]
    yield from _table(head, ([str(cell) for cell in row] for row in counts(report)))
    yield from _tests(report)
    yield from _calibration(report)
    yield from _leaderboards(report)
    if rows := judged(report):
        yield "\n## Judged by models\n"
        yield from _table(JUDGED, rows)
    yield from _printed(report)
    yield "\n## What is left out\n"
    yield from (f"- {line}" for line in exclusions(report) or ["nothing"])
    yield "\n## Made with\n"
    yield from (f"- {name}: {told}" for name, told in facts(report))


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(map(_cell, head))} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    return one_line(text).replace("|", "\\|")


def _tests(report: Report) -> Iterator[str]:
    if not report.compared:
        return
    yield "\n## Differences on the same samples\n"
    head = ["data", "first", "second", "measure", "change", "n", "test", "p", "p (Holm)", "verdict"]
    yield from _table(
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
                verdict(one),
            ]
            for one in report.compared
        ),
    )


def _calibration(report: Report) -> Iterator[str]:
    known = [cell for cell in report.cells if cell.ece is not None]
    if not known:
        return
    yield "\n## Calibration\n"
    rows = ([c.strategy, c.task, f"{c.ece:.3f}", str(len(c.confidence))] for c in known)
    yield from _table(["strategy", "data", "ECE", "n"], rows)


def _leaderboards(report: Report) -> Iterator[str]:
    for cell in report.cells:
        if (found := cell.leaderboard) is None:
            continue
        kinds, mean = found
        yield f"\n## {cell.task}, {cell.strategy}: average as on CMB's leaderboard\n"
        rows = [[name, f"{100 * score:.2f}"] for name, score in kinds.items()]
        yield from _table(["examination", "accuracy"], [*rows, ["average", f"{100 * mean:.2f}"]])


def _printed(report: Report) -> Iterator[str]:
    if not report.printed:
        return
    yield "\n## What the papers print\n"
    yield from _table(
        ["data", "strategy", "paper", "printed", "ours", "what differs"],
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
