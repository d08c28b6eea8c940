"""Agreement of a judge with another, or with people (Omni-RAG App. A.2, Table 9)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from osler.errors import BadRun, MalformedSource
from osler.evaluate.datasets.base import csv_records
from osler.evaluate.metrics.several import Agreement, agreement
from osler.train.spo.judge import JudgedCase

Told = dict[tuple[str, str, str], bool]
"""Case, source and query → positive."""


def read_verdicts(judged: Iterable[JudgedCase]) -> Told:
    """Collects the verdicts that could be read."""
    return {
        (one.key, verdict.source, verdict.wire): verdict.positive
        for one in judged
        for verdict in one.verdicts
        if verdict.positive is not None
    }


def read_people(path: Path) -> Told:
    """CSV with case, source, query and verdict. Raises `MalformedSource` naming file and line."""
    found: Told = {}
    for row in csv_records(path):
        cells = {name: row.optional_text(name) for name in ("case", "source", "query", "verdict")}
        if missing := [name for name, value in cells.items() if not value]:
            raise MalformedSource(f"{path.parent / row.place}: no {missing[0]!r}")
        if cells["verdict"] not in ("yes", "no"):
            raise MalformedSource(
                f"{path.parent / row.place}: {cells['verdict']!r} is neither yes nor no"
            )
        found[cells["case"], cells["source"], cells["query"]] = cells["verdict"] == "yes"
    return found


def compare_judges(judge: Told, reference: Told) -> Agreement:
    """Over what both judged. Raises `BadRun` where that is nothing."""
    # Sorted: agreement does not depend on the order, but its failures are easier to read.
    both = sorted(judge.keys() & reference.keys())
    if not both:
        raise BadRun("no query was judged by both", fix="they must judge the same exploration")
    return agreement([judge[key] for key in both], [reference[key] for key in both])
