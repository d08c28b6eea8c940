"""Pages of `osler eval` for a terminal, and the same as plain data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from osler.cli.film import draw_film
from osler.errors import OslerError, translate_os_errors
from osler.llm.core.cache import write_whole
from osler.trace import Event, to_line
from osler_lab.evaluate.compare import PairedComparison, count_undecided
from osler_lab.evaluate.datasets import DATA_SETS
from osler_lab.evaluate.datasets.base import DataSet
from osler_lab.evaluate.datasets.choice import sample_folder
from osler_lab.evaluate.log import RUNS, TriedSamples, read_records, read_trace
from osler_lab.evaluate.measures import (
    BY_NAME,
    MEASURES,
    PRIMARY,
    answer_text,
    chosen_letters,
    measure_value,
)
from osler_lab.evaluate.plan import read_plan
from osler_lab.evaluate.record import SampleRecord
from osler_lab.evaluate.report import (
    EvaluationReport,
    describe_comparison,
    list_exclusions,
    measure_tables,
)

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


_COUNTS = ("strategy", "task", "planned", "done", "failed", "missing")


def tasks_page(rows: list[dict[str, Any]]) -> dict[str, object]:
    """Less than all of it; below, what was dropped of each."""
    names = ("name", "kind", "samples", "rows", "published", "about", "licence")
    counted = names if any("samples" in row for row in rows) else (*names[:2], *names[5:])
    dropped = [
        {"name": row["name"], "dropped": reason, **found}
        for row in rows
        for reason, found in row.get("dropped", {}).items()
    ]
    return {
        "data sets": [{name: row.get(name) or None for name in counted} for row in rows],
        "dropped": dropped,
    }


def film_lines(events: Sequence[Event]) -> list[str]:
    """The film of a run as lines of plain text."""
    return [line.plain for line in draw_film(events)]


def write_page(path: Path, text: str) -> None:
    """The file, wholly or not at all. Raises `OslerError` where it cannot be written."""
    with translate_os_errors(
        f"{path} cannot be written", OslerError, "name another folder with --out"
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_whole(path) as draft:
            draft.write_text(text, encoding="utf-8")


def report_page(report: EvaluationReport) -> dict[str, object]:
    """The primary measures and F1 as tables; the rest is in the files."""
    tables = {
        figures.measure.title: [
            dict(zip(("strategy", *figures.tasks, "mean"), (name, *cells), strict=True))
            for name, cells in figures.rows
        ]
        for figures in measure_tables(report)
        if figures.measure.name in {*PRIMARY.values(), "f1"}
    }
    return {**tables, "left out": list_exclusions(report)}


def report_document(report: EvaluationReport) -> dict[str, Any]:
    """All figures of a report as plain data."""
    return {
        "plan": {"seed": report.plan.seed, "version": report.plan.version},
        "cells": [
            {name: getattr(cell, name) for name in _COUNTS}
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


def compare_page(compared: Sequence[PairedComparison], limit: int) -> dict[str, object]:
    """The comparisons, and of each the first changed samples."""
    changed = [
        {"id": one.id, "before": one.before, "after": one.after, "question": one.question[:70]}
        for pair in compared
        for changes in (pair.worse, pair.better)
        for one in changes[:limit]
    ]
    rows = [
        {k: v for k, v in asdict(one).items() if k not in ("test", "better", "worse")}
        | {"n": one.change.n, "verdict": describe_comparison(one)}
        for one in compared
    ]
    return {"compared": rows, "changed": changed}


def sample_document(folder: Path, record: SampleRecord) -> dict[str, Any]:
    """A record with its measures and events."""
    done = record.status == "done"
    scores = {m.name: measure_value(m, record) for m in MEASURES} if done else {}
    events = [to_line(event) for event in read_trace(folder, record.trace)] if record.trace else []
    return {**asdict(record), "measures": scores, "events": [json.loads(e) for e in events]}


def sample_page(folder: Path, record: SampleRecord) -> dict[str, object]:
    """Question, gold answer, answer and the film of one record."""
    question, gold, kind = record.sample.question, record.sample.gold, record.sample.kind
    chosen = " ".join(sorted(chosen_letters(record))) if question.options else answer_text(record)
    score = None if record.error else measure_value(BY_NAME[PRIMARY[kind]], record)
    return {
        "strategy": record.strategy,
        "task": record.sample.task,
        "question": question.text,
        "options": [f"{letter}. {text}" for letter, text in question.lettered],
        "gold": gold.letters or gold.texts,
        "answer": chosen or "none",
        "failed": record.error,
        PRIMARY[kind]: score,
        "replay": f"osler replay {folder / RUNS / record.tape}" if record.tape else "",
        "film": film_lines(read_trace(folder, record.trace)) if record.trace else [],
    }
