"""A throw-away database on disk: joins over tables that do not fit in memory."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from osler.sources.records import Drop

Values = tuple[str | int | float | None, ...]
_BATCH = 10_000


@contextmanager
def open_scratch(*statements: str) -> Iterator[sqlite3.Connection]:
    """A new empty database, prepared by `statements`; gone with everything in it at the end."""
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


def fill_table(
    database: sqlite3.Connection, insert: str, rows: Iterable[Values | Drop | None]
) -> Iterator[Drop]:
    """Inserts the rows that are values; hands on the drops; passes over `None`."""
    batch: list[Values] = []
    for row in rows:
        if isinstance(row, Drop):
            yield row
        elif row is not None:
            batch.append(row)
            if len(batch) == _BATCH:
                database.executemany(insert, batch)
                batch.clear()
    database.executemany(insert, batch)


def table_in(folder: Path, *names: str) -> Path | None:
    """The file with one of the names, in any case, as it is or with ".gz" behind it."""
    wanted = {name.lower() + end for name in names for end in ("", ".gz")}
    found = (path for path in sorted(folder.iterdir()) if path.name.lower() in wanted)
    # A link could lead out of the folder.
    return next((path for path in found if path.is_file() and not path.is_symlink()), None)
