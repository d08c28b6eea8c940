"""Makes one generation of the embedded index; its own process, started by `edge.sync`.

    python -m osler.kb.search.edge_build KB GENERATION BASE DIMENSION

It starts from a copy of the generation BASE ("-" = from nothing), applies what has
changed, and builds the graphs that this calls for. Standard output is the progress, a JSON
document a line.
"""

from __future__ import annotations

import json
import secrets
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from osler.errors import KnowledgeBaseError
from osler.kb.search import edge, generation, shard, sparse
from osler.kb.search.generation import CurrentGeneration, read_rows
from osler.kb.store import access
from osler.kb.store.durable import make_folders
from osler.kb.store.passages import Progress

_BATCH = 1000
T = TypeVar("T")


def sync_generation(
    kb: Path, *, build: str, encoder: str, dimension: int, progress: Progress, afresh: bool = False
) -> bool:
    """Makes the index hold what `build` holds; returns whether there was anything to do.

    The caller holds the writer's lock. What changed since the last generation is applied to
    a copy of it, so a small change costs a copy and no graph; `afresh`, another encoder or
    another version begin from nothing. Searches go on in the old generation until the new
    one is complete; until then both need room on the disk. Raises `KnowledgeBaseError`
    when the child fails; the old generation then stays.
    """
    current = None if afresh else generation.read_current(kb)
    like = (encoder, dimension, edge.VERSION)
    alike = current is not None and (current.encoder, current.dimension, current.version) == like
    if current is not None and alike and current.build == build:
        return False
    if not afresh:
        generation.sweep_old(kb)
    folder = _reserve_folder(kb)
    base = kb / generation.FOLDER / current.name if current is not None and alike else None
    _run_builder(kb, folder, base, dimension, progress)
    with closing(sqlite3.connect(folder / generation.POINTS)) as db:
        points, sources = generation.tally_points(db)
    generation.swap_current(
        kb, CurrentGeneration(folder.name, build, encoder, dimension, edge.VERSION, points, sources)
    )
    generation.sweep_old(kb)
    return True


def _reserve_folder(kb: Path) -> Path:
    """Makes the folder of the next generation, under a name that none ever had: a builder whose
    starter was killed may still write into its own, also when that was swept away."""
    folder = kb / generation.FOLDER
    make_folders(folder)
    taken = [int(e.name[:6]) for e in folder.iterdir() if e.name[:6].isdigit()]
    folder_made = folder / f"{max(taken, default=0) + 1:06}-{secrets.token_hex(4)}"
    folder_made.mkdir()
    return folder_made


def _run_builder(
    kb: Path, folder: Path, base: Path | None, dimension: int, progress: Progress
) -> None:
    command = [sys.executable, "-m", "osler.kb.search.edge_build", str(kb), str(folder)]
    command += [str(base or "-"), str(dimension)]
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
        ) as child:
            try:
                for line in child.stdout or ():
                    progress(*json.loads(line))
            except BaseException:
                child.kill()
                raise
        if child.returncode:
            errors.seek(0)
            lines = errors.read().decode(errors="replace").strip().splitlines()
            raise KnowledgeBaseError(
                f"the embedded index could not be made (exit status {child.returncode})"
                + (f": {lines[-1]}" if lines else ""),
                fix="free some disk space and memory, then run `osler kb build` again",
            )


# In the child process


def make_generation(kb: Path, folder: Path, base: Path | None, dimension: int) -> None:
    """Builds a complete generation in `folder`, which is empty and nobody else's."""
    if not folder.is_dir():  # swept away: whoever started this was killed
        raise FileNotFoundError(f"{folder} is gone")
    if base is not None:
        shutil.copytree(base, folder, dirs_exist_ok=True)
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
            if folder.is_dir():
                self._open[shelf] = shard.load_shard(folder)
            else:
                self._open[shelf] = shard.create_shard(folder, self._dimension, self._piece)
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
    gone = points.execute("SELECT shelf, number FROM gone")
    for shelf, numbers in _group_by_shelf(gone).items():
        shard.drop_points(shelves[shelf], numbers)
    points.execute("DELETE FROM point WHERE number IN (SELECT number FROM gone)")
    stems = sparse.StemHasher()
    done = 0
    cursor = points.execute("SELECT number, shelf, payload FROM put ORDER BY number")
    while wanted := cursor.fetchmany(_BATCH):
        rows = read_rows(db, wanted)
        for shelf, group in _group_by_shelf((row.shelf, row) for row in rows).items():
            words = sparse.passage_vectors(stems, [row.text for row in group])
            dense = [None if row.vector is None else row.vector.tolist() for row in group]
            rows_of = zip(group, words, dense, strict=True)
            added = [(row.number, row.payload, word, vector) for row, word, vector in rows_of]
            shelves.put_points(shelf, added)
        done += len(wanted)
        yield done
    points.execute("INSERT OR REPLACE INTO point SELECT number, shelf, payload, dense FROM put")
    stems.close()


def _group_by_shelf(pairs: Iterable[tuple[str, T]]) -> dict[str, list[T]]:
    groups: defaultdict[str, list[T]] = defaultdict(list)
    for shelf, item in pairs:
        groups[shelf].append(item)
    return groups


def _report_progress(what: str, done: int, total: int | None) -> None:
    sys.stdout.write(json.dumps([what, done, total]) + "\n")
    sys.stdout.flush()


def main(arguments: list[str]) -> None:
    kb, folder, base, dimension = arguments
    make_generation(Path(kb), Path(folder), None if base == "-" else Path(base), int(dimension))


if __name__ == "__main__":
    main(sys.argv[1:])
