"""What importers share: their shape, and the rows of a table with the bad ones named."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol

from osler.errors import MalformedSource
from osler.graph.items import Item
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import decode_text
from osler.sources.records import Drop


class Importer(Protocol):
    """One public format of a graph. Streams; a bad row is a `Drop` with its line."""

    name: str
    """For `--format` and reports."""

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether the file, or the folder (then `head` is empty), is of this format."""
        ...

    def read(self, path: Path) -> Iterator[Item]:
        """Raises `MalformedSource` where the file cannot be read to its end."""
        ...


class TableRow(NamedTuple):
    where: str
    cells: dict[str, str]


def text_lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, str] | Drop]:
    """Lines in UTF-8 or GB18030, each judged by itself; empty ones are passed over."""
    for number, line in enumerate(stream, 1):
        try:
            text = decode_text(line, name) if line.strip() else ""
        except MalformedSource:
            yield Drop(f"{name}:{number}", "neither UTF-8 nor GB18030", number)
            continue
        if text.strip():
            yield number, text


def read_table(
    path: Path, needed: Sequence[str], *, delimiter: str = ",", quoted: bool = True
) -> Iterator[TableRow | Drop]:
    """Rows by the names of their columns, lines that begin with "#" left out.

    Raises `MalformedSource` when a needed column is missing. A file without a header
    is one drop.
    """
    bad: list[Drop] = []
    skipped: list[int] = []
    with open_file(path) as file:
        reader = csv.reader(
            _comments_aside(file, path.name, bad, skipped),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )
        header = _next_cells(reader)
        if not header:
            yield Drop(path.name, "empty file")
            return
        header = [cell.strip() for cell in header]
        if missing := [name for name in needed if name not in header]:
            raise MalformedSource(
                f"{path.name} has no column {missing[0]!r}", fix="check its first line"
            )
        yield from _read_rows(reader, header, path.name, len(skipped))
    yield from bad


def _read_rows(
    reader: Iterator[list[str]], header: Sequence[str], name: str, above: int
) -> Iterator[TableRow | Drop]:
    while True:
        where = f"{name}:{above + reader.line_num + 1}"  # type: ignore[attr-defined]
        try:
            cells = _next_cells(reader)
        except csv.Error:
            yield Drop(where, "malformed row")
            continue
        if cells is None:
            return
        if len(cells) == len(header):
            yield TableRow(where, dict(zip(header, cells, strict=True)))
        elif cells:
            yield Drop(where, "wrong number of columns")


def _next_cells(reader: Iterator[list[str]]) -> list[str] | None:
    return next(reader, None)


def _comments_aside(
    file: BinaryIO, name: str, bad: list[Drop], skipped: list[int]
) -> Iterator[str]:
    """Lines below the comments at the top; bad ones as empty ones, so that numbers stay true."""
    heading = True
    for number, raw in enumerate(file, 1):
        try:
            text = decode_text(raw, name)
        except MalformedSource:
            bad.append(Drop(f"{name}:{number}", "neither UTF-8 nor GB18030", number))
            text = ""
        heading = heading and (text.startswith("#") or not text.strip())
        if heading:
            skipped.append(number)
            continue
        yield text.replace("\0", "") or "\n"
