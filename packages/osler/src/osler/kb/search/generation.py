"""The embedded index on disk: generations, of which one is current.

A generation is a folder that is made beside the current one, completed, and never changed
again; then `current.json` is replaced, which takes one moment. So readers need no lock, a
search sees one build or the next and nothing between, and what a killed build leaves
behind is rubbish that the next one sweeps away.

`wanted_rows` is the rows of an index (shelf, payload and vectors of each passage) as one SQL view
over the knowledge base, so that what an index lacks, or has too much, is one comparison in SQLite.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from osler.errors import KnowledgeBaseError
from osler.kb.search.base import PATIENTS, RETRACTED, TEXTS, Floats, fold_kind, read_vectors
from osler.kb.store.access import FILE
from osler.kb.store.durable import sync_path, sync_tree
from osler.kb.store.passages import indexed_text, read_by_number
from osler.kb.store.works import has_dates
from osler.llm.core.cache import hash_file
from osler.sources.catalogue import EMR
from osler.types import Passage

FOLDER, CURRENT, POINTS = "edge", "current.json", "points.sqlite"


@dataclass(frozen=True, slots=True)
class CurrentGeneration:
    """The contents of `current.json`."""

    name: str
    """Name of the generation's folder."""
    build: str
    """The build of the knowledge base (`meta.builds`) whose passages it holds."""
    encoder: str
    dimension: int
    version: str
    """Version of layout and word vectors (`edge.VERSION`)."""
    points: dict[str, int]
    """Passages on each shelf that has any."""
    sources: dict[str, list[str]]
    """Sources on each of them."""
    sums: dict[str, str] = field(default_factory=dict)
    """SHA-256 of each file of the folder; none in an index from before it was kept."""


def read_current(kb: Path) -> CurrentGeneration | None:
    """Reads `current.json`; `None` without one. Raises `KnowledgeBaseError` if it is damaged."""
    try:
        told = json.loads((kb / FOLDER / CURRENT).read_bytes())
        own = told.pop("sum", None)
        current = CurrentGeneration(**told)
        if own not in {None, _sum_current(current)}:
            raise ValueError(f"{CURRENT} is not as it was written")
    except FileNotFoundError:
        return None
    except (ValueError, TypeError, AttributeError) as error:
        raise KnowledgeBaseError(
            f"the embedded index of {kb} is damaged: {error}",
            fix=f"delete {kb / FOLDER}, then run `osler kb build`",
        ) from error
    return current


def _sum_current(current: CurrentGeneration) -> str:
    return sha256(json.dumps(asdict(current), sort_keys=True).encode()).hexdigest()


def _sum_files(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): hash_file(path) for path in files}


def find_changed(kb: Path, current: CurrentGeneration) -> list[str]:
    """The files of a generation that are not as they were written. Reads all of them."""
    found = _sum_files(kb / FOLDER / current.name) if current.sums else {}
    return sorted(name for name, told in current.sums.items() if found.get(name) != told)


def read_stamp(kb: Path) -> int:
    """Returns a number that changes with each swap; 0 where there is no index."""
    try:
        return (kb / FOLDER / CURRENT).stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def swap_current(kb: Path, to: CurrentGeneration) -> None:
    """Makes a complete generation the current one, once all of it is on disk."""
    sync_tree(kb / FOLDER / to.name)
    to = replace(to, sums=_sum_files(kb / FOLDER / to.name))
    draft = kb / FOLDER / f"{CURRENT}.new"
    with draft.open("w", encoding="utf-8") as file:
        json.dump({**asdict(to), "sum": _sum_current(to)}, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, kb / FOLDER / CURRENT)
    sync_path(kb / FOLDER)


def sweep_old(kb: Path) -> None:
    """Deletes all but the current generation. Readers of another one may go on: its files live
    until they are closed. What cannot be deleted now is left to the next sweep.
    """
    current = read_current(kb)
    keep = {CURRENT, current.name if current else ""}
    folder = kb / FOLDER
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.name in keep:
            continue
        if entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink()


POINT_TABLE = (
    "CREATE TABLE IF NOT EXISTS point(number INTEGER PRIMARY KEY, shelf TEXT NOT NULL,"
    " payload TEXT NOT NULL, dense INTEGER NOT NULL)"
)
"""Contents of a generation, in the columns of `wanted_rows`."""

_COLUMNS = "number, shelf, payload, dense"


@dataclass(frozen=True, slots=True)
class GenerationDelta:
    """Changes that bring a generation up to the knowledge base."""

    put: int
    """Passages to put in, or to put in anew since their payload or shelf changed."""
    drop: int
    """Passages to take out of the shelf where they stand."""


@contextmanager
def open_comparison(kb: Path, generation: Path) -> Iterator[sqlite3.Connection]:
    """Opens the generation's list of points beside `kb.sqlite`, with their differences as temporary
    tables `put` and `gone`.
    """
    with closing(sqlite3.connect(generation / POINTS, isolation_level=None, uri=True)) as db:
        db.execute(POINT_TABLE)
        db.execute("PRAGMA synchronous=OFF")  # the whole folder counts only once it is complete
        db.execute("ATTACH ? AS kb", (f"{(kb / FILE).resolve().as_uri()}?mode=ro",))
        wanted = wanted_rows(db)
        for table in ("passage", "document", "vector"):
            wanted = wanted.replace(f"FROM {table} ", f"FROM kb.{table} AS {table} ")
            wanted = wanted.replace(f"JOIN {table} ", f"JOIN kb.{table} AS {table} ")
        db.execute(f"CREATE TEMP VIEW wanted AS {wanted}")
        db.execute(
            f"CREATE TEMP TABLE put AS SELECT {_COLUMNS} FROM wanted"  # noqa: S608 - constants
            f" EXCEPT SELECT {_COLUMNS} FROM point"
        )
        db.execute(
            "CREATE TEMP TABLE gone AS SELECT number, shelf FROM point"
            " EXCEPT SELECT number, shelf FROM wanted"
        )
        yield db


def count_delta(db: sqlite3.Connection, but: Iterable[int] = ()) -> GenerationDelta:
    """Counts the differences on a connection made by `open_comparison`, except in `but`."""
    numbers = json.dumps([*but])
    counts = (
        f"SELECT count(*) FROM {table} WHERE number NOT IN (SELECT value FROM json_each(?))"  # noqa: S608
        for table in ("put", "gone")
    )
    return GenerationDelta(*(db.execute(count, (numbers,)).fetchone()[0] for count in counts))


def tally_points(db: sqlite3.Connection) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Counts points and lists sources of each shelf."""
    points: dict[str, int] = {}
    sources: dict[str, list[str]] = {}
    counted = (
        "SELECT shelf, json_extract(payload, '$[0]') AS source, count(*) FROM point"
        " GROUP BY shelf, source ORDER BY shelf, source"
    )
    for shelf, source, count in db.execute(counted):
        points[shelf] = points.get(shelf, 0) + count
        sources.setdefault(shelf, []).append(source)
    return points, sources


_PAYLOAD = "passage.source, passage.language, document.year, document.trust, document.kinds"
_WANTED = f"""
SELECT passage.number AS number,
  CASE WHEN passage.source = '{EMR}' THEN '{PATIENTS}'
       WHEN document.retracted THEN '{RETRACTED}' ELSE '{TEXTS}' END AS shelf,
  {{payload}} AS payload,
  vector.passage IS NOT NULL AS dense
FROM passage JOIN document ON document.number = passage.document
LEFT JOIN vector ON vector.passage = passage.number
"""  # noqa: S608 - constants


def wanted_rows(db: sqlite3.Connection) -> str:
    """The SQL of the rows that an index of this knowledge base has."""
    payload = f"json_array({_PAYLOAD})"
    if has_dates(db):
        dated = f"json_array({_PAYLOAD}, document.date)"
        payload = f"CASE document.date WHEN '' THEN {payload} ELSE {dated} END"
    return _WANTED.format(payload=payload)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One passage as an index takes it."""

    number: int
    shelf: str
    payload: dict[str, Any]
    """For filters: source, language, year (where known), day (where more is known than the year),
    trust, kind (a list, folded)."""
    passage: Passage
    vector: Floats | None

    @property
    def text(self) -> str:
        return indexed_text(self.passage)


def payload_of(stored: str) -> dict[str, Any]:
    """Parses the payload JSON of `wanted_rows`."""
    source, language, year, trust, kinds, *date = json.loads(stored)
    payload: dict[str, Any] = {"source": source, "language": language, "trust": trust}
    if date:
        digits = date[0].replace("-", "")
        payload["day"] = int(digits) if len(digits) == 8 else int(digits) * 100 + 31
    if year is not None:
        payload["year"] = year
    if kinds:
        payload["kind"] = [fold_kind(kind) for kind in kinds.split("\n")]
    return payload


def read_rows(db: sqlite3.Connection, wanted: list[tuple[int, str, str]]) -> Iterator[IndexRow]:
    """Reads passages given by number, shelf and stored payload; those that are gone fall out."""
    passages = read_by_number(db, (number for number, _, _ in wanted))
    vectors = read_vectors(db, passages)
    for number, shelf, stored in wanted:
        if number in passages:
            payload, vector = payload_of(stored), vectors.get(number)
            yield IndexRow(number, shelf, payload, passages[number], vector)
