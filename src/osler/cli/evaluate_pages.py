"""What `osler eval` shows on a terminal, and the same as plain data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from osler.evaluate.datasets import DATA_SETS, DataSet
from osler.evaluate.log import Tried
from osler.evaluate.plan import read


def summary(folder: Path) -> list[dict[str, Any]]:
    """Each cell of the log with how many samples were done, failed and are missing."""
    plan, tried = read(folder), Tried(folder)
    tried.refresh()
    rows = []
    for label, counts in plan.asked.items():
        for name, planned in counts.items():
            found = [s for key, s in tried.status.items() if key[:2] == (label, name)]
            done = found.count("done")
            missing = max(0, planned - len(found))
            rows.append(
                {
                    "strategy": label,
                    "task": name,
                    "planned": planned,
                    "done": done,
                    "failed": len(found) - done,
                    "missing": missing,
                }
            )
    return rows


def run_page(rows: list[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("strategy", "task", "planned", "done", "failed", "missing"):
        table.add_column(name, justify="left" if name in ("strategy", "task") else "right")
    for row in rows:
        table.add_row(*(str(value) for value in row.values()))
    return table


def task_rows(folder: Path | None) -> list[dict[str, Any]]:
    """Every data set; with a folder, also how many samples are there."""
    return [_task_row(found, folder) for found in DATA_SETS.values()]


def _task_row(found: DataSet, folder: Path | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": found.name,
        "kind": found.kind,
        "language": found.language,
        "about": found.about,
        "licence": found.licence,
        "origin": found.origin,
        "files": list(found.files),
    }
    if folder is None:
        return row
    if not all((folder / file).is_file() for file in found.files):
        return {**row, "samples": None, "dropped": {}}
    loaded = found.load(folder)
    dropped = {reason: {"count": d.count, "first": d.first} for reason, d in loaded.dropped.items()}
    return {**row, "samples": len(loaded.samples), "dropped": dropped}


def tasks_page(rows: list[dict[str, Any]]) -> RenderableType:
    table = Table(box=None, header_style="bold", pad_edge=False)
    counted = bool(rows) and "samples" in rows[0]
    for name in ("name", "kind", *(("samples",) if counted else ()), "about", "licence"):
        table.add_column(name, justify="right" if name == "samples" else "left")
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
    return Group(table, *([Text("")] if notes else []), *notes)
