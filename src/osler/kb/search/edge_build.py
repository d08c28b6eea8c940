"""Makes one generation of the embedded index; its own process, started by `edge.sync`.

    python -m osler.kb.search.edge_build KB GENERATION BASE DIMENSION

It starts from a copy of the generation BASE ("-" = from nothing), applies what has
changed, and builds the graphs that this calls for. Standard output is the progress, a JSON
document a line.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from osler.kb.search import generation, shard, sparse
from osler.kb.search.payloads import IndexRow, read_rows
from osler.kb.store import access

_BATCH = 1000


def make_generation(kb: Path, folder: Path, base: Path | None, dimension: int) -> None:
    """Builds a complete generation in `folder`, whose name nobody uses yet."""
    if base is None:
        folder.mkdir(parents=True)
    else:
        shutil.copytree(base, folder)
    with (
        generation.open_comparison(kb, folder) as points,
        closing(access.open_connection(kb)) as db,
    ):
        changes = generation.count_delta(points)
        shelves = _ShelfWriter(folder, dimension, shard.piece_of(changes.put))
        for done in _apply_changes(points, db, shelves, changes.put):
            _report_progress("index", done, changes.put)
        _report_progress("optimise", 0, None)
        shelves.finish_shards(generation.tally_points(points)[0])


class _ShelfWriter:
    """The shards of a generation, each opened when it is first needed."""

    def __init__(self, folder: Path, dimension: int, piece: int) -> None:
        self._folder, self._dimension, self._piece = folder, dimension, piece
        self._open: dict[str, Any] = {}
        self._loose: Counter[str] = Counter()

    def __getitem__(self, shelf: str) -> Any:
        if shelf not in self._open:
            folder = self._folder / shelf
            exists = folder.is_dir()
            self._open[shelf] = (
                shard.load_shard(folder)
                if exists
                else shard.create_shard(folder, self._dimension, self._piece)
            )
        return self._open[shelf]

    def put_points(self, shelf: str, points: list[shard.Point]) -> None:
        """Adds points; a full piece gets its graph, which also frees the memory of loose points."""
        shard.put_points(self[shelf], points)
        self._loose[shelf] += len(points)
        if self._loose[shelf] >= self._piece:
            self[shelf].optimize()
            self._loose[shelf] = 0

    def finish_shards(self, expected: dict[str, int]) -> None:
        """Optimises and closes. Raises `RuntimeError` for a shard that lacks what was put in."""
        for shelf, opened in self._open.items():
            if (count := shard.count_points(opened)) != expected.get(shelf, 0):
                raise RuntimeError(f"{shelf} holds {count} passages, not {expected.get(shelf, 0)}")
            opened.optimize()
            opened.flush()
            opened.close()
            # The first opening completes what is written of its settings. After it, no opening
            # changes a byte, and any number of processes may open it at a time.
            shard.load_shard(self._folder / shelf).close()


def _apply_changes(
    points: sqlite3.Connection, db: sqlite3.Connection, shelves: _ShelfWriter, total: int
) -> Iterator[int]:
    """Applies drops and additions; yields how many passages are in so far."""
    for shelf, numbers in _gone_by_shelf(points):
        shard.drop_points(shelves[shelf], numbers)
    points.execute("DELETE FROM point WHERE number IN (SELECT number FROM gone)")
    stems = sparse.StemHasher()
    done = 0
    cursor = points.execute("SELECT number, shelf, payload FROM put ORDER BY number")
    while wanted := cursor.fetchmany(_BATCH):
        for shelf, group in _group_by_shelf(read_rows(db, wanted)).items():
            words = sparse.passage_vectors(stems, [row.text for row in group])
            shelves.put_points(
                shelf,
                [
                    (row.number, row.payload, word, _vector_list(row))
                    for row, word in zip(group, words, strict=True)
                ],
            )
        done += len(wanted)
        yield done
    points.execute("INSERT OR REPLACE INTO point SELECT number, shelf, payload, dense FROM put")
    stems.close()


def _vector_list(row: IndexRow) -> list[float] | None:
    return None if row.vector is None else row.vector.tolist()


def _gone_by_shelf(points: sqlite3.Connection) -> Iterator[tuple[str, list[int]]]:
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    for number, shelf in points.execute("SELECT number, shelf FROM gone"):
        numbers[shelf].append(number)
    yield from numbers.items()


def _group_by_shelf(rows: Iterator[IndexRow]) -> dict[str, list[IndexRow]]:
    groups: defaultdict[str, list[IndexRow]] = defaultdict(list)
    for row in rows:
        groups[row.shelf].append(row)
    return groups


def _report_progress(what: str, done: int, total: int | None) -> None:
    sys.stdout.write(json.dumps([what, done, total]) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    kb, folder, base, dimension = arguments
    make_generation(Path(kb), Path(folder), None if base == "-" else Path(base), int(dimension))


if __name__ == "__main__":
    main(sys.argv[1:])
