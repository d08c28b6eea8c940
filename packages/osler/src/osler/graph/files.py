"""The file of a graph: its tables, connections for reading and for writing, derived arrays.

Arrays that follow from the tables stand in one file that is mapped, not read. It carries the
version of the tables it was made of, and a sum of itself. When it is of another version, damaged or
missing, it is made again. Of the tables, whose texts are quoted, `graph.sum` keeps the SHA-256.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osler.errors import KnowledgeBaseDamaged, KnowledgeBaseMismatch, KnowledgeBaseMissing
from osler.kb.store.access import WAIT, hold_lock, translate_errors

FILE = "graph.sqlite"
COMMUNITIES = "graph.communities"
"""The file of what `osler.graph.communities` found, beside it."""
SCHEMA = "1"

# Every relation is found from both ends without a second look: the rows are the indexes.
_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE word (n INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE);
CREATE TABLE concept (n INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE name (
    concept INTEGER NOT NULL, rank INTEGER NOT NULL, text TEXT NOT NULL,
    source INTEGER NOT NULL, language INTEGER NOT NULL,
    PRIMARY KEY (concept, rank, text, source)) WITHOUT ROWID;
CREATE TABLE alias (norm TEXT NOT NULL, concept INTEGER NOT NULL,
    PRIMARY KEY (norm, concept)) WITHOUT ROWID;
CREATE TABLE definition (
    concept INTEGER NOT NULL, source INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (concept, source, text)) WITHOUT ROWID;
CREATE TABLE typed (concept INTEGER NOT NULL, type INTEGER NOT NULL,
    PRIMARY KEY (concept, type)) WITHOUT ROWID;
CREATE TABLE edge (
    subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    source INTEGER NOT NULL,
    PRIMARY KEY (subject, predicate, object, source)) WITHOUT ROWID;
CREATE TABLE note (
    subject INTEGER NOT NULL, predicate INTEGER NOT NULL, object INTEGER NOT NULL,
    source INTEGER NOT NULL, text TEXT NOT NULL,
    PRIMARY KEY (subject, predicate, object, source, text)) WITHOUT ROWID;
CREATE TABLE mapping (one TEXT NOT NULL, other TEXT NOT NULL, source INTEGER NOT NULL,
    PRIMARY KEY (one, other, source)) WITHOUT ROWID;
CREATE TABLE merge (one INTEGER NOT NULL, other INTEGER NOT NULL, how TEXT NOT NULL,
    why TEXT NOT NULL, PRIMARY KEY (one, other, how)) WITHOUT ROWID;
CREATE TABLE fused (member INTEGER PRIMARY KEY, head INTEGER NOT NULL);
CREATE INDEX fused_in ON fused (head);
"""
_META = "INSERT INTO meta VALUES ('schema', '1'), ('version', '0');"
SUM = "graph.sum"
_SUMMED = 64_000_000
"""Bytes up to which a file has a sum, with which it is compared when it is opened: a twentieth of a
second."""
INDEX_IN = "CREATE INDEX IF NOT EXISTS edge_in ON edge (object, predicate, subject, source)"


def create_graph(folder: Path) -> None:
    """Creates an empty graph, unless there is one. Raises `KnowledgeBaseError`."""
    folder.mkdir(parents=True, exist_ok=True)
    with hold_lock(folder), translate_errors(folder):
        if (folder / FILE).exists() and (folder / FILE).stat().st_size:
            return
        with closing(_connect(folder, "rwc")) as db:
            db.execute("PRAGMA page_size=8192")
            db.executescript("\n".join(("BEGIN;", _TABLES, f"{INDEX_IN};", _META, "COMMIT;")))


def check_graph(folder: Path) -> None:
    """Raises `KnowledgeBaseMissing` without a graph, `KnowledgeBaseMismatch` for another schema."""
    if not (folder / FILE).is_file():
        raise KnowledgeBaseMissing(
            f"{folder} holds no graph", fix="run `osler kb graph add PATH` first"
        )
    with translate_errors(folder), closing(_connect(folder, "ro")) as db:
        try:
            schema = db.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
        except sqlite3.DatabaseError:
            schema = None
    if schema is None or schema[0] != SCHEMA:
        raise KnowledgeBaseMismatch(
            f"{folder / FILE} is not a graph that this version reads",
            fix=_AGAIN,
        )
    for problem in find_problems(folder):
        raise KnowledgeBaseDamaged(problem, fix=_AGAIN)


_AGAIN = "delete it and run `osler kb graph add PATH` again"


def _write_sum(folder: Path) -> None:
    """Keeps the sum of what was written. It says nothing of a later writer's work that was killed
    before its own sum: SQLite counts the changes in the file's head."""
    with suppress(OSError):  # a disk without room: the next open finds an older count
        (folder / SUM).write_text(" ".join(_sum_tables(folder)), encoding="ascii")


def _sum_tables(folder: Path) -> tuple[str, str]:
    """The SHA-256 and the count of changes, which stands in two places of the head; none of a file
    over `_SUMMED`. Read through SQLite: closing a file of its own would drop its locks."""
    if (folder / FILE).stat().st_size > _SUMMED:
        return "", "0"
    with closing(_connect(folder, "ro")) as db:
        data = db.serialize()
    counts = sorted({int.from_bytes(data[at : at + 4]) for at in (24, 92)})
    return sha256(data).hexdigest(), "-".join(map(str, counts))


def find_problems(folder: Path) -> Iterator[str]:
    """Tells where the tables are not as they were written. Reads all of the file."""
    try:
        kept, counted = (folder / SUM).read_text(encoding="ascii", errors="replace").split()
    except (FileNotFoundError, ValueError):
        return  # of a graph from before there were sums, or over their size, or of none
    with translate_errors(folder):
        found, count = _sum_tables(folder)
    if found not in {"", kept} and (counted == count or "-" in count):
        yield f"{folder / FILE} is damaged: it is not as it was written"


def _connect(folder: Path, mode: str) -> sqlite3.Connection:
    uri = f"{(folder / FILE).resolve().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=WAIT, check_same_thread=False)
    db.execute("PRAGMA mmap_size=4000000000")
    return db


@contextmanager
def open_writer(
    folder: Path, *, changes: bool = True, held: bool = False
) -> Iterator[sqlite3.Connection]:
    """Opens the one writer, in one transaction: an exception leaves the graph as it was.

    With `changes` the graph gets a new version, which makes its derived arrays outdated.
    `held`: the caller has the folder's lock already.
    """
    with nullcontext() if held else hold_lock(folder), translate_errors(folder):
        with closing(_connect(folder, "rw")) as db:
            # A rollback journal copies only the pages that were there before: a first
            # import, which is most of all writing, is written once and not twice.
            db.execute("PRAGMA synchronous=NORMAL")
            db.execute("PRAGMA cache_size=-200000")
            db.execute("PRAGMA temp_store=FILE")
            db.execute("PRAGMA threads=2")  # for sorting
            with db:
                db.execute("BEGIN IMMEDIATE")
                yield db
                if changes:
                    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'version'")
        _write_sum(folder)


def open_reader(folder: Path) -> sqlite3.Connection:
    db = _connect(folder, "ro")
    db.execute("PRAGMA cache_size=-32000")
    return db


def has_table(db: sqlite3.Connection, name: str) -> bool:
    """Whether there is a table, an index or a trigger of this name."""
    found = db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (name,)).fetchone()
    return found is not None


Array = NDArray[Any]
ARRAYS_FILE = "graph.arrays"
# Header: magic (8 bytes), length of the JSON that follows (8 bytes, little-endian), JSON.
_MAGIC = b"OSLERGR1"
# Every array begins at a multiple of a cache line.
_ALIGN = 64


def write_arrays(
    folder: Path, stamp: str, arrays: Mapping[str, Array], *, file: str = ARRAYS_FILE
) -> None:
    """Replaces the file in one step. Raises `OSError` where it cannot be written."""
    places, at = [], 0
    for name, array in arrays.items():
        places.append((name, array.dtype.str, array.size, at))
        at += -(-array.nbytes // _ALIGN) * _ALIGN
    told = {"stamp": stamp, "size": at, "arrays": places, "sum": _sum_arrays(arrays)}
    header = json.dumps(told).encode()
    start = -(-(16 + len(header)) // _ALIGN) * _ALIGN
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".graph-", delete=False) as temporary:
        try:
            temporary.write(_MAGIC + len(header).to_bytes(8, "little") + header)
            temporary.write(b"\0" * (start - 16 - len(header)))
            for array in arrays.values():
                temporary.write(np.ascontiguousarray(array).data)
                temporary.write(b"\0" * (-array.nbytes % _ALIGN))
            temporary.flush()
            # Readers that have the old file mapped keep it: the name alone moves on.
            os.replace(temporary.name, folder / file)
        except BaseException:
            Path(temporary.name).unlink(missing_ok=True)
            raise


def keep_arrays(
    folder: Path, stamp: str, arrays: dict[str, Array], *, file: str = ARRAYS_FILE
) -> dict[str, Array]:
    """The arrays, mapped from their new file; as they are where it cannot be written."""
    try:
        write_arrays(folder, stamp, arrays, file=file)
    except OSError:
        return arrays
    return read_arrays(folder, stamp, file=file) or arrays


def _sum_arrays(arrays: Mapping[str, Array]) -> str:
    """Of names, kinds and values."""
    total = sha256()
    for name, array in arrays.items():
        total.update(f"{name} {array.dtype.str} {array.size}\n".encode())
        total.update(np.ascontiguousarray(array).view(np.uint8).data)
    return total.hexdigest()


def gather_slices(start: Array, nodes: Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The elements of `start[n]:start[n + 1]` for all nodes at once, without a Python loop.

    Returns for each element its row (the place of its node in `nodes`) and its index.
    """
    counts = start[nodes + 1] - start[nodes]
    row = np.repeat(np.arange(len(nodes)), counts)
    offset = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    return row, start[nodes][row] + offset


def find_relations(arrays: Mapping[str, Array], one: int, two: int) -> list[int]:
    """The predicates that join two neighbours, in order; negative where `two` states them."""
    begin, end = arrays["start"][one], arrays["start"][one + 1]
    around = arrays["to"][begin:end]
    first, last = np.searchsorted(around, two), np.searchsorted(around, two, side="right")
    found: list[int] = np.unique(arrays["by"][begin + first : begin + last]).tolist()
    return found


def read_arrays(folder: Path, stamp: str, *, file: str = ARRAYS_FILE) -> dict[str, Array] | None:
    """Maps the arrays; `None` when the file is absent, of another version or not whole."""
    try:
        # As a plain array: each slice of a memmap object costs a microsecond of bookkeeping.
        raw = np.asarray(np.memmap(folder / file, dtype=np.uint8, mode="r"))
        if bytes(raw[:8]) != _MAGIC:
            return None
        length = int.from_bytes(bytes(raw[8:16]), "little")
        header = json.loads(bytes(raw[16 : 16 + length]))
        start = -(-(16 + length) // _ALIGN) * _ALIGN
        if header["stamp"] != stamp or len(raw) < start + header["size"]:
            return None
        arrays = {
            name: raw[start + at : start + at + count * np.dtype(kind).itemsize].view(kind)
            for name, kind, count, at in header["arrays"]
        }
        is_large = start + header["size"] > _SUMMED
        return arrays if is_large or header.get("sum") in {None, _sum_arrays(arrays)} else None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
        return None
