"""A throw-away database on disk: joins over tables that do not fit in memory."""

from __future__ import annotations

import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from osler.sources.records import Drop

Values = tuple[str | int | float | None, ...]
ScratchRow = tuple[str, Values]
"""Name of a table of the database, and the values of one row of it."""

# Rows of a table that are inserted at once; some MB in memory.
_BATCH = 10_000


@contextmanager
def open_scratch(*statements: str) -> Iterator[sqlite3.Connection]:
    """A new empty database, prepared by `statements`; deleted at the end."""
    with (
        tempfile.TemporaryDirectory(prefix="osler-") as folder,
        closing(sqlite3.connect(Path(folder) / "scratch.db", isolation_level=None)) as database,
    ):
        # It is thrown away: neither a journal nor a flush protects anything.
        database.execute("PRAGMA journal_mode=OFF")
        database.execute("PRAGMA synchronous=OFF")
        database.execute("BEGIN")
        for statement in statements:
            database.execute(statement)
        yield database


def fill_tables(database: sqlite3.Connection, rows: Iterable[ScratchRow | Drop]) -> Iterator[Drop]:
    """Inserts the rows in batches, and yields the drops among them.

    Of rows with one primary key the first stays.
    """
    pending: defaultdict[str, list[Values]] = defaultdict(list)
    for row in rows:
        if isinstance(row, Drop):
            yield row
            continue
        table, values = row
        batch = pending[table]
        batch.append(values)
        if len(batch) == _BATCH:
            _insert_rows(database, table, batch)
    for table, batch in pending.items():
        if batch:
            _insert_rows(database, table, batch)


def _insert_rows(database: sqlite3.Connection, table: str, batch: list[Values]) -> None:
    marks = ", ".join("?" * len(batch[0]))
    database.executemany(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", batch)  # noqa: S608
    batch.clear()


def table_in(folder: Path, *names: str) -> Path | None:
    """The file with one of the names, in any case, as it is or with ".gz" behind it."""
    wanted = {name.lower() + end for name in names for end in ("", ".gz")}
    paths = (path for path in sorted(folder.iterdir()) if path.name.lower() in wanted)
    # A link could lead out of the folder.
    return next((path for path in paths if path.is_file() and not path.is_symlink()), None)
