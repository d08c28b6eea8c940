"""Renders a log folder as Markdown; tables and sentences are the terminal's and the server's too.

| Module | Has |
|---|---|
| `build` | the report as plain values: cells, comparisons, printed figures, judgements |
| `opponents` | the majority answer and chance, beside every strategy |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from osler.text import markdown_table
from osler_lab.evaluate.compare import PairedComparison
from osler_lab.evaluate.intervals import Estimate
from osler_lab.evaluate.measures import BY_NAME, Measure
from osler_lab.evaluate.report.build import (
    EvaluationReport,
    ReportCell,
    ReportedSample,
    build_report,
)
from osler_lab.evaluate.report.opponents import CHANCE

HEAD = (
    "Figures in percent unless they are counts or seconds. In brackets 95 % intervals over the"
    " samples: Wilson's where every sample scores 0 or 1, else bootstrap. The last column is the"
    " mean over the data sets. A sample that failed counts as 0 in accuracy, EM, F1, ROUGE, BLEU,"
    " and the shares that are cited and that ended; in no other figure. The majority answer is what"
    " always saying the same would score at best."
)


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """Table of one measure: strategies down, tasks across, the mean over tasks last."""

    measure: Measure
    tasks: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


def format_figure(measure: Measure, estimate: Estimate | None, *, interval: bool = True) -> str:
    """Formats an estimate as "54.0 [44.0, 63.0]"; a dash if absent."""
    if estimate is None:
        return "–"
    if interval and measure.percent:
        return estimate.percent
    return _format_value(measure, estimate.value)


def measure_tables(report: EvaluationReport) -> Iterator[MeasureTable]:
    for measure in report.measures():
        tasks = tuple(
            task
            for task in report.tasks
            if any(measure.name in c.estimates for c in report.cells if c.task == task)
        )
        rows = []
        for strategy in report.strategies:
            cells = [report.cell_of(strategy, task) for task in tasks]
            texts = [_cell_text(measure, cell) for cell in cells]
            mean = report.macro_mean(strategy, measure.name)
            texts.append("–" if mean is None else _format_value(measure, mean))
            rows.append((strategy, tuple(texts)))
        rows += _opponent_rows(report, measure, tasks)
        yield MeasureTable(measure, tasks, tuple(rows))


def _cell_text(measure: Measure, cell: ReportCell | None) -> str:
    text = format_figure(measure, cell.estimates.get(measure.name) if cell else None)
    marks = [] if cell is None else ["†"] * bool(cell.trained_on) + ["‡"] * bool(cell.undecided)
    return " ".join([text, *marks])


def _opponent_rows(
    report: EvaluationReport, measure: Measure, tasks: Sequence[str]
) -> Iterator[tuple[str, tuple[str, ...]]]:
    found = {
        (one.name, task): one.estimate
        for task in tasks
        for one in report.opponents.get(task, {}).get(measure.name, ())
    }
    for name in dict.fromkeys(name for name, _ in found):
        known = [found.get((name, task)) for task in tasks]
        # Chance is no estimate from samples, so it has no interval.
        texts = [format_figure(measure, one, interval=name != CHANCE) for one in known]
        values = [one.value for one in known if one is not None]
        mean = fmean(values) if len(values) == len(tasks) else None
        texts.append("–" if mean is None else _format_value(measure, mean))
        yield name, tuple(texts)


def opponent_facts(report: EvaluationReport) -> list[tuple[str, str]]:
    """The rows of the majority answer and of chance, for a page that has no room for them."""
    return [
        (
            f"{task}: {one.name}",
            f"{name} {format_figure(BY_NAME[name], one.estimate, interval=one.name != CHANCE)}"
            + (f", always {one.said}" if one.said else ""),
        )
        for task, by_measure in report.opponents.items()
        for name, found in by_measure.items()
        for one in found
    ]


def _format_value(measure: Measure, value: float) -> str:
    if measure.percent:
        return f"{100 * value:.1f}"
    return f"{value:,.0f}" if value >= 999.5 else f"{value:,.3g}"


def list_exclusions(report: EvaluationReport) -> list[str]:
    """Lists what the figures leave out, and why."""
    lines = []
    for name, task in report.plan.tasks.items():
        for reason, count in task.dropped.items():
            lines.append(f"{name}: {count} of {task.rows} rows were no samples: {reason}")
    for cell in report.cells:
        if cell.failed:
            kinds = ", ".join(f"{kind} × {n}" for kind, n in sorted(cell.errors.items()))
            lines.append(
                f"{cell.strategy} on {cell.task}: {cell.failed} failed, counted as 0 ({kinds})"
            )
        if cell.trained_on:
            lines.append(
                f"† {cell.strategy} on {cell.task}: a model was trained on {cell.trained_on} of"
                f" {cell.planned} questions, so this tells nothing about unseen ones"
            )
        if cell.undecided:
            lines.append(
                f"‡ {cell.strategy} on {cell.task}: in {cell.undecided} of {cell.done} answers a"
                " reader stood in for the method's own decision; not compared unless that is asked"
                " for"
            )
        if cell.missing:
            lines.append(f"{cell.strategy} on {cell.task}: {cell.missing} not tried yet")
    return lines


def describe_comparison(one: PairedComparison) -> str:
    """Says in words whether the difference is more than chance."""
    if one.corrected < 0.05:
        return "better" if one.change.value > 0 else "worse"
    return "no difference shown"


def report_facts(report: EvaluationReport) -> list[tuple[str, str]]:
    plan = report.plan
    facts = [
        ("Osler", plan.version),
        ("experiment", plan.experiment or "none"),
        ("seed of the samples", str(plan.seed)),
    ]
    for name, task in plan.tasks.items():
        facts.append(
            (f"data {name}", f"{task.usable} of {task.rows} rows; SHA-256 {task.digest[:16]}")
        )
    for label, entrant in plan.entrants.items():
        models = ", ".join(f"{role} {name}" for role, name in entrant.models.items()) or "unknown"
        base = entrant.snapshot or "none"
        seed = entrant.settings.get("sampling", {}).get("seed", "unknown")
        # A prompt's identity ends in a hash of its text: equal names mean equal wordings.
        prompts = sorted(
            {prompt for cell in report.cells if cell.strategy == label for prompt in cell.prompts}
        )
        facts.append(
            (
                f"strategy {label}",
                f"settings {entrant.digest}; models: {models}; knowledge base {base};"
                f" seed {seed}; prompts: {', '.join(prompts) or 'none'}",
            )
        )
    return facts


RIVALS = ("data", "paper", "printed by the authors", "by examination", "what differs")
RIVALS_NOTE = (
    "Other models on other splits and other knowledge bases: these stand beside ours for"
    " orientation, and no difference between the two is a result."
)
JUDGED = (
    "form",
    "judge",
    "strategy",
    "data",
    "what",
    "mean",
    "n",
    "unread",
    "calls",
    "tokens",
    "seconds",
)


def judged_rows(report: EvaluationReport) -> list[tuple[str, ...]]:
    """Rows under `JUDGED`: the judges' means and their cost. Marks are from 1 to 5."""
    return [
        (
            one.form,
            one.judge,
            one.strategy,
            one.task,
            name or "nothing",
            f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]" if estimate else "–",
            str(estimate.n if estimate else 0),
            str(one.unread),
            f"{one.usage.calls:,}",
            f"{one.usage.tokens:,}",
            f"{one.usage.seconds:,.1f}",
        )
        for one in report.judged
        for name, estimate in one.estimates.items() or [("", None)]
    ]


def count_rows(report: EvaluationReport) -> list[tuple[str, str, int, int, int, int, str]]:
    """Rows of strategy, task, planned, done, failed, missing, standard error of accuracy."""
    return [
        (
            cell.strategy,
            cell.task,
            cell.planned,
            cell.done,
            cell.failed,
            cell.missing,
            "–" if cell.error is None else f"{100 * cell.error:.1f}",
        )
        for cell in report.cells
    ]


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
    head = ["data", "first", "second", "measure", "change", "n", "unpaired", "test", "p"]
    yield markdown_table(
        [*head, "p (Holm)", "verdict"],
        (
            [
                one.task,
                one.first,
                one.second,
                one.measure,
                f"{100 * one.change.value:+.1f}"
                f" [{100 * one.change.low:+.1f}, {100 * one.change.high:+.1f}]",
                str(one.change.n),
                str(one.unpaired),
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
                one.ours.percent,
                one.differs,
            ]
            for one in report.printed
        ),
    )
