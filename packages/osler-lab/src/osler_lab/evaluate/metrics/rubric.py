"""The rubric of Omni-RAG A.4: people's ratings, imported, and marks given by a model.

Four dimensions from 1 to 5. A dimension that does not apply is left empty ("-"): a method
that retrieves nothing has no interpretability.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from osler.errors import MalformedSource
from osler_lab.evaluate.datasets.base import csv_records, required_cells
from osler_lab.evaluate.record import SampleKey

DIMENSIONS = ("relevance", "completeness", "proficiency", "interpretability")


@dataclass(frozen=True, slots=True)
class Rating:
    """Marks of one rater for one answer."""

    key: SampleKey
    rater: str
    marks: tuple[tuple[str, int], ...]
    """Dimension and mark; those that do not apply are left out."""


def read_ratings(path: Path) -> list[Rating]:
    """Reads a CSV with strategy, task, id, rater and the four dimensions.

    Raises `MalformedSource` naming file and line for a mark that is not 1 to 5, a missing
    column, or an answer that one rater rated twice.
    """
    ratings, seen = [], set[tuple[SampleKey, str]]()
    for row in csv_records(path):
        *parts, rater = required_cells(path, row, "strategy", "task", "id", "rater")
        key = SampleKey(*parts)
        # Two marks of one rater for one answer are a mistake of the sheet, not a mean.
        if (key, rater) in seen:
            raise MalformedSource(f"{path.parent / row.place}: {rater} rated it before")
        seen.add((key, rater))
        marks = tuple(
            (name, _parse_mark(path, row.place, word))
            for name in DIMENSIONS
            if (word := row.optional_text(name)) not in ("", "-")
        )
        ratings.append(Rating(key, rater, marks))
    return ratings


def _parse_mark(path: Path, place: str, word: str) -> int:
    if word not in ("1", "2", "3", "4", "5"):
        raise MalformedSource(f"{path.parent / place}: {word!r} is not a mark from 1 to 5")
    return int(word)
