"""Pages of `osler eval` for a terminal, and the same as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from osler.cli.film import draw_film
from osler.cli.tables import make_table
from osler.errors import OslerError, translate_os_errors
from osler.evaluate.agreement import HumanAgreement
from osler.evaluate.compare import PairedComparison, count_undecided
from osler.evaluate.datasets import DATA_SETS
from osler.evaluate.datasets.base import DataSet
from osler.evaluate.datasets.sample import sample_folder
from osler.evaluate.experiments import Experiment
from osler.evaluate.log import RUNS, TriedSamples, read_records, read_trace
from osler.evaluate.measures import (
    BY_NAME,
    MEASURES,
    PRIMARY,
    answer_text,
    chosen_letters,
    measure_value,
)
from osler.evaluate.metrics.rubric import DIMENSIONS
from osler.evaluate.plan import read_plan
from osler.evaluate.ratings import RatingTable
from osler.evaluate.record import SampleRecord
from osler.evaluate.report import EvaluationReport
from osler.evaluate.report.tables import (
    describe_comparison,
    describe_undecided,
    list_exclusions,
    measure_tables,
)
from osler.llm.core.cache import write_whole
from osler.trace import to_line

# What a strategy costs a sample, in the mean.
SIDE_BY_SIDE = ("calls", "tokens", "wall_s", "searches")


def summarise_log(folder: Path) -> list[dict[str, Any]]:
    """Each cell of the log: how many samples were done, failed and are missing; in the mean,
    the score that strategies are compared by, and what a sample cost."""
    plan, tried = read_plan(folder), TriedSamples(folder)
    tried.refresh()
    means, undecided, rows = _mean_figures(folder), count_undecided(folder), []
    for label, counts in plan.asked.items():
        for name, planned in counts.items():
            # A sample that was tried several times counts once, as done where any try was.
            statuses = [s for key, s in tried.status.items() if key[:2] == (label, name)]
            done = statuses.count("done")
            missing = max(0, planned - len(statuses))
            rows.append(
                {
                    "strategy": label,
                    "task": name,
                    "planned": planned,
                    "done": done,
                    "failed": len(statuses) - done,
                    "missing": missing,
                    "undecided": undecided.get((label, name), (0, 0))[0],
                    "measure": PRIMARY[plan.tasks[name].kind],
                    **means.get((label, name), {}),
                }
            )
    return rows


def _mean_figures(folder: Path) -> dict[tuple[str, str], dict[str, float]]:
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for record in read_records(folder):
        cell = values.setdefault((record.strategy, record.sample.task), {})
        for name in (PRIMARY[record.sample.kind], *SIDE_BY_SIDE):
            if (value := measure_value(BY_NAME[name], record)) is not None:
                cell.setdefault(name if name in SIDE_BY_SIDE else "score", []).append(value)
    return {
        key: {name: round(sum(all_) / len(all_), 4) for name, all_ in cell.items()}
        for key, cell in values.items()
    }


_COUNTS = ("planned", "done", "failed", "missing")
# Columns by what is measured.
_COSTS = {name: name for name in ("score", *SIDE_BY_SIDE)} | {"wall_s": "seconds"}


def run_page(rows: list[dict[str, Any]]) -> RenderableType:
    """Progress of each cell; below it the scores and the costs of a sample."""
    counts = _cell_table(rows, {name: name for name in _COUNTS})
    notes = [
        Text(f"‡ {row['strategy']} on {row['task']}: " + describe_undecided(n, row["done"]))
        for row in rows
        if (n := row.get("undecided"))
    ]
    return Group(counts, Text(), _cell_table(rows, _COSTS), *notes)


def _cell_table(rows: list[dict[str, Any]], columns: dict[str, str]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("strategy", "task"):
        table.add_column(name, overflow="fold")
    for head in columns.values():
        table.add_column(head, justify="right", no_wrap=True)
    for row in rows:
        mark = " ‡" if row.get("undecided") else ""
        figures = (
            _format_figure(name, row.get(name)) + (mark if name == "score" else "")
            for name in columns
        )
        table.add_row(row["strategy"], row["task"], *figures)
    return table


def _format_figure(name: str, value: Any) -> str:
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:.3f}" if name == "score" else f"{value:,.1f}"


def task_rows(folder: Path | None) -> list[dict[str, Any]]:
    """Every data set; with a folder, also how many samples are there."""
    return [_task_row(data_set, folder) for data_set in DATA_SETS.values()]


def _task_row(data_set: DataSet, folder: Path | None) -> dict[str, Any]:
    names = ("name", "kind", "language", "about", "licence", "origin", "files", "split")
    row: dict[str, Any] = {name: getattr(data_set, name) for name in (*names, "published")}
    folder = sample_folder() if data_set.packaged else folder
    if folder is None:
        return row
    if not all((folder / file).is_file() for file in data_set.files):
        return {**row, "samples": None, "dropped": {}}
    loaded = data_set.load(folder)
    dropped = {reason: {"count": d.count, "first": d.first} for reason, d in loaded.dropped.items()}
    return {**row, "rows": loaded.rows, "samples": len(loaded.samples), "dropped": dropped}


def tasks_page(rows: list[dict[str, Any]]) -> RenderableType:
    counted = bool(rows) and "samples" in rows[0]
    names = ("name", "kind", *(("samples",) if counted else ()), "about", "licence")
    table = make_table(names, numeric={"samples"})
    notes = []
    for row in rows:
        cells = [row["name"], row["kind"]]
        if counted:
            cells.append("-" if row["samples"] is None else f"{row['samples']:,}")
        table.add_row(*cells, row["about"], row["licence"])
        notes += [
            Text(f"{row['name']}: {d['count']} dropped: {reason} (first at {d['first']})")
            for reason, d in row.get("dropped", {}).items()
        ]
        if row.get("rows") and row["published"] not in (0, row["rows"]):
            notes.append(
                Text(
                    f"{row['name']}: {row['rows']:,} rows; as published it has {row['published']:,}"
                )
            )
    return Group(table, *([Text("")] if notes else []), *notes)


def write_page(path: Path, text: str) -> None:
    """The file, wholly or not at all. Raises `OslerError` where it cannot be written."""
    with translate_os_errors(
        f"{path} cannot be written", OslerError, "name another folder with --out"
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as draft:
            draft.write_text(text, encoding="utf-8")


def report_page(report: EvaluationReport) -> RenderableType:
    """The primary measures as tables; the rest is in the files."""
    shown: list[RenderableType] = []
    for figures in measure_tables(report):
        if figures.measure.name not in set(PRIMARY.values()):
            continue
        columns = (*figures.tasks, "mean")
        rows = ((name, *cells) for name, cells in figures.rows)
        table = make_table(("strategy", *columns), rows, numeric=columns)
        table.title = figures.measure.title
        shown.append(table)
    return Group(*shown, *(Text(line) for line in list_exclusions(report)))


def report_document(report: EvaluationReport) -> dict[str, Any]:
    """All figures of a report as plain data."""
    return {
        "plan": {"seed": report.plan.seed, "version": report.plan.version},
        "cells": [
            {name: getattr(cell, name) for name in ("strategy", "task", *_COUNTS)}
            | {
                "undecided": cell.undecided,
                "trained_on": cell.trained_on,
                "measures": {name: asdict(found) for name, found in cell.estimates.items()},
                "ece": cell.ece,
            }
            for cell in report.cells
        ],
        "compared": [
            {k: v for k, v in asdict(one).items() if k not in ("better", "worse")}
            for one in report.compared
        ],
        "opponents": {
            task: {name: [asdict(one) for one in found] for name, found in by_measure.items()}
            for task, by_measure in report.opponents.items()
        },
        "printed": [asdict(one) for one in report.printed],
        "left_out": list_exclusions(report),
    }


def compare_page(compared: Sequence[PairedComparison], limit: int) -> RenderableType:
    names = ("data", "first", "second", "measure", "change", "n", "p (Holm)", "verdict")
    table = make_table(names, numeric={"n", "p (Holm)"})
    lines: list[Text] = []
    for one in compared:
        change = one.change
        interval = f"{100 * change.value:+.1f} [{100 * change.low:+.1f}, {100 * change.high:+.1f}]"
        cells = (one.task, one.first, one.second, one.measure, interval, str(change.n))
        table.add_row(*cells, f"{one.corrected:.3g}", describe_comparison(one))
        for sign, changes in (("worse", one.worse), ("better", one.better)):
            lines += [
                Text(f"{sign}: {c.id} {c.before:.2f} to {c.after:.2f}: {c.question[:70]}")
                for c in changes[:limit]
            ]
    return Group(table, Text(""), *lines)


def sample_document(folder: Path, record: SampleRecord) -> dict[str, Any]:
    """A record with its measures and events."""
    done = record.status == "done"
    scores = {m.name: measure_value(m, record) for m in MEASURES} if done else {}
    events = [to_line(event) for event in read_trace(folder, record.trace)] if record.trace else []
    return {**asdict(record), "measures": scores, "events": [json.loads(e) for e in events]}


def sample_page(folder: Path, records: Sequence[SampleRecord]) -> RenderableType:
    shown: list[Text] = []
    for record in records:
        question, gold = record.sample.question, record.sample.gold
        shown.append(Text(f"{record.strategy} on {record.sample.task}", style="bold"))
        shown.append(Text(question.text))
        pairs = question.lettered
        shown += [Text(f"{letter}. {text}") for letter, text in pairs]
        shown.append(Text(f"gold: {' '.join(gold.letters) or ' | '.join(gold.texts)}"))
        answer = (
            " ".join(sorted(chosen_letters(record))) if question.options else answer_text(record)
        )
        shown.append(Text(f"answer: {answer or 'none'}"))
        if record.error:
            shown.append(Text(f"failed: {record.error}", style="red"))
        else:
            score = measure_value(BY_NAME[PRIMARY[record.sample.kind]], record)
            shown.append(Text(f"{PRIMARY[record.sample.kind]}: {score}"))
        if record.tape:
            shown.append(Text(f"replay: osler replay {folder / RUNS / record.tape}"))
        if record.trace:
            shown += [
                Text(f"  {line.plain}") for line in draw_film(read_trace(folder, record.trace))
            ]
    return Group(*shown)


def experiments_page(known: Sequence[Experiment]) -> RenderableType:
    rows = ((one.name, one.repeats, one.about) for one in known)
    return make_table(("name", "repeats", "about"), rows)


def agreement_page(agreement: HumanAgreement) -> Table:
    if agreement.graded:
        names: tuple[str, ...] = ("judge", "n", "accuracy", "precision", "recall", "F1")
        rows = [
            [g.judge, str(a.n), *(f"{x:.3f}" for x in (a.accuracy, a.precision, a.recall, a.f1))]
            for g in agreement.graded
            for a in [g.agreement]
        ]
    else:
        names = ("judge", "dimension", "n", "same", "within one", "higher by", "kappa")
        rows = [
            [
                m.judge,
                m.dimension,
                str(m.n),
                f"{m.same:.3f}",
                f"{m.near:.3f}",
                f"{m.higher:+.2f}",
                "–" if m.kappa is None else f"{m.kappa:.3f}",
            ]
            for m in agreement.marked
        ]
    return make_table(names, rows, numeric={*names} - {"judge", "dimension"})


def ratings_page(table: RatingTable) -> RenderableType:
    """A row for each strategy and data set; below it how far the raters agree."""
    names = ("strategy", "data", *DIMENSIONS, "answers", "raters")
    rows = [
        (
            cell.strategy,
            cell.task,
            *(f"{cell.means[d].value:.2f}" if d in cell.means else "-" for d in DIMENSIONS),
            str(cell.answers),
            str(cell.raters),
        )
        for cell in table.cells
    ]
    notes = [
        Text(
            f"{one.dimension}: weighted kappa of {one.n} pairs of raters "
            + ("–, all gave one mark" if one.kappa is None else f"{one.kappa:.3f}")
        )
        for one in table.agreement
    ]
    return Group(make_table(names, rows, numeric={*names} - {"strategy", "data"}), *notes)
