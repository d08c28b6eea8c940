"""Tables of a folder as rows of text: CSV, plain or compressed, and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from osler.errors import MalformedSource
from osler.sources.formats.containers import open_file, require_package
from osler.sources.formats.scratch import table_in
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

    Raises `MalformedSource` for damaged Parquet, or Parquet without the extra `parquet`.
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
        lines = csv.reader(file)
        header = [name.strip().lower() for name in next(lines, [])]
        while True:
            try:
                cells = next(lines)
            except StopIteration:
                return
            except csv.Error:  # the reader can go on after it, a `for` loop could not
                yield Drop(f"{path.name}:{lines.line_num}", "malformed row")
                continue
            if cells:
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
