"""Tables of a folder as rows of text: CSV, plain or compressed, and Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource
from osler.sources.formats.containers import open_file
from osler.sources.formats.scratch import table_in
from osler.sources.records import Drop

Row = dict[str, str]
"""Values by column name in lower case; what is absent is ""."""

_ENDS = (".csv", ".parquet")


def find_table(folder: Path, table: str) -> Path | None:
    """The table's file, in any case: `TABLE.csv`, `TABLE.csv.gz` or `TABLE.parquet`."""
    return table_in(folder, *(f"{table}{end}" for end in _ENDS))


def read_rows(path: Path) -> Iterator[Row | Drop]:
    """All rows in order; a row that cannot be read is a drop. Memory does not grow."""
    if path.suffix.lower() == ".parquet":
        yield from _read_parquet(path)
    else:
        yield from _read_csv(path)


def find_unread(folder: Path, read: frozenset[str]) -> Iterator[Drop]:
    """A drop for each table that is there and not among those that are read."""
    for path in sorted(folder.iterdir()):
        table, _, end = path.name.lower().partition(".")
        if end in {"csv", "csv.gz", "parquet"} and table not in read:
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
            except csv.Error:
                yield Drop(f"{path.name}:{lines.line_num}", "malformed row")
                continue
            if cells:
                yield dict(zip(header, cells, strict=False))


def _read_parquet(path: Path) -> Iterator[Row | Drop]:
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ModuleNotFoundError as error:
        raise MalformedSource(
            f"{path.name} is Parquet, and no reader of it is installed",
            fix='pip install "osler[parquet]"',
        ) from error
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches():
                for row in batch.to_pylist():
                    yield {name.lower(): _cell_text(value) for name, value in row.items()}
    except (arrow.ArrowException, OSError) as error:
        raise MalformedSource(
            f"{path.name} is damaged: {error}", fix="fetch the file again"
        ) from error


def _cell_text(value: Any) -> str:
    return "" if value is None else str(value)
