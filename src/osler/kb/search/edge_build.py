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
from osler.kb.search.payloads import Row, rows
from osler.kb.store import access

_BATCH = 1000


def make(kb: Path, folder: Path, base: Path | None, dimension: int) -> None:
    """A complete generation in `folder`, whose name nobody uses yet."""
    if base is None:
        folder.mkdir(parents=True)
    else:
        shutil.copytree(base, folder)
    with generation.compared(kb, folder) as points, closing(access.connect(kb)) as db:
        changes = generation.delta(points)
        shelves = _Shelves(folder, dimension, shard.piece_of(changes.put))
        for done in _apply(points, db, shelves, changes.put):
            _report("index", done, changes.put)
        _report("optimise", 0, None)
        shelves.finish(generation.tally(points)[0])


class _Shelves:
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
                shard.load(folder) if exists else shard.create(folder, self._dimension, self._piece)
            )
        return self._open[shelf]

    def put(self, shelf: str, points: list[shard.Point]) -> None:
        """When a piece is full its graph is built, which also frees the memory of loose points."""
        shard.put(self[shelf], points)
        self._loose[shelf] += len(points)
        if self._loose[shelf] >= self._piece:
            self[shelf].optimize()
            self._loose[shelf] = 0

    def finish(self, expected: dict[str, int]) -> None:
        """Raises `RuntimeError` for a shard that does not hold what was put in."""
        for shelf, opened in self._open.items():
            if (held := shard.count(opened)) != expected.get(shelf, 0):
                raise RuntimeError(f"{shelf} holds {held} passages, not {expected.get(shelf, 0)}")
            opened.optimize()
            opened.flush()
            opened.close()
            # The first opening completes what is written of its settings. After it, no opening
            # changes a byte, and any number of processes may open it at a time.
            shard.load(self._folder / shelf).close()


def _apply(
    points: sqlite3.Connection, db: sqlite3.Connection, shelves: _Shelves, total: int
) -> Iterator[int]:
    """Yields how many passages are in so far."""
    for shelf, numbers in _gone(points):
        shard.drop(shelves[shelf], numbers)
    points.execute("DELETE FROM point WHERE number IN (SELECT number FROM gone)")
    stems = sparse.Stems()
    done = 0
    cursor = points.execute("SELECT number, shelf, payload FROM put ORDER BY number")
    while wanted := cursor.fetchmany(_BATCH):
        for shelf, group in _by_shelf(rows(db, wanted)).items():
            words = sparse.passages(stems, [row.text for row in group])
            shelves.put(
                shelf,
                [
                    (row.number, row.payload, word, _listed(row))
                    for row, word in zip(group, words, strict=True)
                ],
            )
        done += len(wanted)
        yield done
    points.execute("INSERT OR REPLACE INTO point SELECT number, shelf, payload, dense FROM put")
    stems.close()


def _listed(row: Row) -> list[float] | None:
    return None if row.vector is None else row.vector.tolist()


def _gone(points: sqlite3.Connection) -> Iterator[tuple[str, list[int]]]:
    found: defaultdict[str, list[int]] = defaultdict(list)
    for number, shelf in points.execute("SELECT number, shelf FROM gone"):
        found[shelf].append(number)
    yield from found.items()


def _by_shelf(found: Iterator[Row]) -> dict[str, list[Row]]:
    groups: defaultdict[str, list[Row]] = defaultdict(list)
    for row in found:
        groups[row.shelf].append(row)
    return groups


def _report(what: str, done: int, total: int | None) -> None:
    sys.stdout.write(json.dumps([what, done, total]) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    kb, folder, base, dimension = arguments
    make(Path(kb), Path(folder), None if base == "-" else Path(base), int(dimension))


if __name__ == "__main__":
    main(sys.argv[1:])
