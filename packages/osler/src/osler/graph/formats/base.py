"""The protocol of graph importers, and what they share: lines, JSON and rows of tables."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from osler.errors import MalformedSource
from osler.graph.items import Item
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import decode_text, plain_head
from osler.sources.records import Drop


class Importer(Protocol):
    """One public format of a graph. Streams; a bad row is a `Drop` with its line."""

    name: str
    """For `--format` and reports."""

    def matches(self, path: Path, head: bytes) -> bool:
        """Whether the file, or the folder (then `head` is empty), is of this format."""

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of the file. Raises `MalformedSource` where it cannot be read to its end."""


class TableRow(NamedTuple):
    """One row of a table with a header."""

    where: str
    """File and line."""
    cells: dict[str, str]
    """By column name."""


class TableImporter:
    """Base of the importers whose file is one table with a header."""

    needed: ClassVar[tuple[str, ...]]
    """Columns that must be there."""
    delimiter: ClassVar[str] = "\t"
    """Cells are quoted in comma-separated files, and never in tab-separated ones."""

    def read(self, path: Path) -> Iterator[Item]:
        """The facts of all rows. Raises `MalformedSource` when a needed column is missing."""
        seen: set[str] = set()
        quoted = self.delimiter != "\t"
        for row in read_table(path, self.needed, delimiter=self.delimiter, quoted=quoted):
            if isinstance(row, Drop):
                yield row
            else:
                yield from self.row_items(row, seen)

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        """The facts of one row. `seen` is kept from row to row: what was named already."""
        raise NotImplementedError


def has_columns(head: bytes, *names: str) -> bool:
    """Whether the first line that is no comment begins with these columns."""
    lines = plain_head(head).decode(errors="replace").splitlines()
    first = next((line for line in lines if not line.startswith("#")), "")
    cells = [cell.strip().strip('"') for cell in first.replace("\t", ",").split(",")]
    return cells[: len(names)] == list(names)


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


def json_lines(stream: BinaryIO, name: str) -> Iterator[tuple[str, Any] | Drop]:
    """Places and values of lines with JSON, read as `text_lines` are."""
    for line in text_lines(stream, name):
        if isinstance(line, Drop):
            yield line
            continue
        where = f"{name}:{line[0]}"
        try:
            yield where, json.loads(line[1])
        except (ValueError, RecursionError):
            yield Drop(where, "not JSON")


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
            _skip_comments(file, path.name, bad, skipped),
            delimiter=delimiter,
            quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
        )
        header = [cell.strip() for cell in next(reader, [])]
        if not header:
            yield Drop(path.name, "empty file")
            return
        if missing := [name for name in needed if name not in header]:
            raise MalformedSource(
                f"{path.name} has no column {missing[0]!r}", fix="check its first line"
            )
        while True:
            where = f"{path.name}:{len(skipped) + reader.line_num + 1}"
            try:
                cells = next(reader)
            except StopIteration:
                break
            except csv.Error:  # the reader can go on after it, a `for` loop could not
                yield Drop(where, "malformed row")
                continue
            if len(cells) == len(header):
                yield TableRow(where, dict(zip(header, cells, strict=True)))
            elif cells:
                yield Drop(where, "wrong number of columns")
    yield from bad


def _skip_comments(file: BinaryIO, name: str, bad: list[Drop], skipped: list[int]) -> Iterator[str]:
    """Lines below the comments at the top; bad ones as empty ones, so that numbers stay true."""
    in_comments = True
    for number, raw in enumerate(file, 1):
        try:
            text = decode_text(raw, name)
        except MalformedSource:
            bad.append(Drop(f"{name}:{number}", "neither UTF-8 nor GB18030", number))
            text = ""
        in_comments = in_comments and (text.startswith("#") or not text.strip())
        if in_comments:
            skipped.append(number)
            continue
        yield text.replace("\0", "") or "\n"
