"""Tables of a folder as rows of text: CSV, plain or compressed, and Parquet."""

from __future__ import annotations

import csv
import io
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from osler.errors import MalformedSource
from osler.sources.formats.containers import open_file, require_package
from osler.sources.records import Drop
from osler.text import one_line


class Row(dict[str, str]):
    """Values by column name in lower case; a column that is absent reads as ""."""

    def text(self, *names: str) -> str:
        """The first of the columns that is not empty, on one line."""
        return next((value for name in names if (value := one_line(self.get(name, "")))), "")

    def digits(self, name: str) -> str:
        """A column of ASCII digits, "" for anything else."""
        value = self.get(name, "").strip()
        # SQLite sorts keys as signed 64-bit integers, which hold 18 digits of any value.
        return value if value.isascii() and value.isdigit() and len(value) <= 18 else ""

    def number(self, *names: str) -> float | None:
        """The first column that is not empty as a finite number; `None` for a text result."""
        try:
            value = float(self.text(*names))
        except ValueError:
            return None
        # Larger amounts are placeholders (1e38); NaN and infinity fail the comparison as well.
        return value if abs(value) < 1e15 else None


def find_table(folder: Path, table: str) -> Path | None:
    """The table's file, in any case: `TABLE.csv`, `TABLE.csv.gz` or `TABLE.parquet`."""
    return table_in(folder, f"{table}.csv", f"{table}.parquet")


def read_rows(path: Path) -> Iterator[Row | Drop]:
    """All rows in order, in constant memory; a row that cannot be parsed is a drop.

    Raises `MalformedSource` for a damaged header of CSV, for damaged Parquet, and for Parquet
    without the extra `parquet`.
    """
    yield from (_read_parquet if path.suffix.lower() == ".parquet" else _read_csv)(path)


def find_unread(folder: Path, known: frozenset[str]) -> Iterator[Drop]:
    """A drop for each table of the folder whose name is not among the known ones."""
    for path in sorted(folder.iterdir()):
        table, _, end = path.name.lower().partition(".")
        if end in {"csv", "csv.gz", "parquet"} and table not in known:
            yield Drop(f"{folder.name}/{path.name}", "table not read")


def _read_csv(path: Path) -> Iterator[Row | Drop]:
    with io.TextIOWrapper(open_file(path), "utf-8-sig", errors="replace", newline="") as file:
        lines = csv.reader(file, strict=True)  # else a quotation that never ends is a cell
        try:
            header = [name.strip().lower() for name in next(lines, [])]
        except csv.Error as error:
            why = f"{path.name} has a damaged header: {error}"
            raise MalformedSource(why, fix="fetch the file again") from error
        while True:
            try:
                cells = next(lines)
            except StopIteration:
                return
            except csv.Error:  # the reader can go on after it, a `for` loop could not
                yield Drop(f"{path.name}:{lines.line_num}", "malformed row")
                continue
            if any(map(str.strip, cells[len(header) :])):
                yield Drop(f"{path.name}:{lines.line_num}", "malformed row")
            elif cells:
                yield Row(zip(header, cells, strict=False))


def _read_parquet(path: Path) -> Iterator[Row | Drop]:
    require_package("pyarrow", "parquet", path.name)
    import pyarrow as arrow
    from pyarrow import parquet

    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    cells = ((n.lower(), "" if v is None else str(v)) for n, v in row.items())
                    yield Row(cells)
    except (arrow.ArrowException, OSError) as error:
        raise MalformedSource(
            f"{path.name} is damaged: {error}", fix="fetch the file again"
        ) from error


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
