"""The rows of an index beside the SQLite file: shelf, payload and vectors of each passage.

`WANTED` is the whole of it as one SQL view over the knowledge base, so that what an index
lacks, or has too much, is one comparison inside SQLite.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from osler.kb.search.base import PATIENTS, RETRACTED, TEXTS, fold_kind
from osler.kb.search.vectors import Floats
from osler.kb.store.passages import indexed_text, read_by_number
from osler.sources.catalogue import EMR
from osler.types import Passage

WANTED = f"""
SELECT passage.number AS number,
  CASE WHEN passage.source = '{EMR}' THEN '{PATIENTS}'
       WHEN document.retracted THEN '{RETRACTED}' ELSE '{TEXTS}' END AS shelf,
  json_array(passage.source, passage.language, document.year, document.trust, document.kinds)
    AS payload,
  vector.passage IS NOT NULL AS dense
FROM passage JOIN document ON document.number = passage.document
LEFT JOIN vector ON vector.passage = passage.number
"""  # noqa: S608 - constants


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One passage as an index takes it."""

    number: int
    shelf: str
    payload: dict[str, Any]
    """For filters: source, language, year (where known), trust, kind (a list, folded)."""
    passage: Passage
    vector: Floats | None

    @property
    def text(self) -> str:
        return indexed_text(self.passage)


def payload_of(stored: str) -> dict[str, Any]:
    """Parses the payload JSON of `WANTED`."""
    source, language, year, trust, kinds = json.loads(stored)
    payload: dict[str, Any] = {"source": source, "language": language, "trust": trust}
    if year is not None:
        payload["year"] = year
    if kinds:
        payload["kind"] = [fold_kind(kind) for kind in kinds.split("\n")]
    return payload


def read_rows(db: sqlite3.Connection, wanted: list[tuple[int, str, str]]) -> Iterator[IndexRow]:
    """Reads passages given by number, shelf and stored payload; those that are gone fall out."""
    passages = read_by_number(db, (number for number, _, _ in wanted))
    vectors = dict(
        db.execute(
            "SELECT passage, value FROM vector WHERE passage IN (SELECT value FROM json_each(?))",
            (json.dumps(list(passages)),),
        )
    )
    for number, shelf, stored in wanted:
        if number in passages:
            value = vectors.get(number)
            vector = None if value is None else np.frombuffer(value, np.float32)
            yield IndexRow(number, shelf, payload_of(stored), passages[number], vector)
