"""Agreement of a judge with another, or with people (Omni-RAG App. A.2, Table 9)."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from osler.errors import BadRun
from osler_lab.evaluate.datasets.base import csv_records, required_cells, yes_or_no
from osler_lab.evaluate.metrics.several import Agreement, agreement
from osler_lab.train.spo.judge import JudgedCase

Verdicts = dict[tuple[str, str, str], bool]
"""Case, source and query → positive."""


def read_verdicts(judged: Iterable[JudgedCase]) -> Verdicts:
    """Collects the verdicts that could be read."""
    return {
        (one.key, verdict.source, verdict.wire): verdict.positive
        for one in judged
        for verdict in one.verdicts
        if verdict.positive is not None
    }


def read_people(path: Path) -> Verdicts:
    """Reads a CSV with case, source, query and verdict. Raises `MalformedSource`."""
    verdicts: Verdicts = {}
    for row in csv_records(path):
        case, source, query, word = required_cells(path, row, "case", "source", "query", "verdict")
        verdicts[case, source, query] = yes_or_no(path, row, word)
    return verdicts


def compare_judges(judge: Verdicts, reference: Verdicts) -> Agreement:
    """Compares over what both judged. Raises `BadRun` where that is nothing."""
    # Sorted: agreement does not depend on the order, but its failures are easier to read.
    both = sorted(judge.keys() & reference.keys())
    if not both:
        raise BadRun("no query was judged by both", fix="they must judge the same exploration")
    return agreement([judge[key] for key in both], [reference[key] for key in both])
