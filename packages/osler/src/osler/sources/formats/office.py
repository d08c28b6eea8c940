"""Word documents and Excel workbooks.

Of a document (.docx): paragraphs under their headings, each row of a table as a line. Left out are
hidden and deleted text, headers, footers, notes and comments.

Of a workbook each visible sheet whose first row (or first two, see `sheet_rows`) names all its
columns is a table, as CSV is: each row a document. Another sheet (guidelines of WHO SMART) is a
document, its rows lines of "column: cell".
Needs the extra `xlsx`.
"""

from __future__ import annotations

import re
import warnings
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable, require_package
from osler.sources.formats.reading import extension_of, id_of, on_disk, title_of
from osler.sources.formats.rows import is_corpus, is_exam, is_table, read_rows
from osler.sources.formats.safe_xml import iterate_elements
from osler.sources.formats.sections import finish_document
from osler.sources.formats.sheet_rows import Row, look_through, read_sheet_rows
from osler.sources.formats.table_rows import PlacedRow, TableParser
from osler.sources.formats.word_text import W, paragraph_text
from osler.sources.records import Document, Drop, Record, Section
from osler.text import make_slug, one_line

_HEADING = re.compile(r"(?:heading|标题)\s?([1-9])", re.IGNORECASE)
_BODY = "word/document.xml"
_READ = tuple(f"{W}{name}" for name in ("p", "tcPr", "tc", "gridBefore", "tr"))
# Of a table, as Word has at most.
_MOST_COLUMNS = 63
# Bytes of the text with its marks, unpacked; and characters of its cells, with those repeated.
_LARGEST = 64 * 2**20
# A document with a password is no archive, but a container of Microsoft's older kind.
_LOCKED = b"\xd0\xcf\x11\xe0"


class Docx:
    name = "docx"

    def matches(self, name: str, head: bytes) -> bool:
        return extension_of(name) in {".docx", ".docm"} and head.startswith((b"PK", _LOCKED))

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        with on_disk(stream, ".docx") as path:
            yield finish_document(_read_document(path, name), name)


def _read_document(path: Path, name: str) -> Document:
    with path.open("rb") as file:
        if file.read(4) == _LOCKED:
            raise Unreadable(name, "encrypted", fix="save it without a password, as .docx")
    reader = _BodyReader(name)
    try:
        with zipfile.ZipFile(path) as archive:
            # zipfile reads no further than the size that the entry claims.
            if archive.getinfo(_BODY).file_size > _LARGEST:
                raise Unreadable(name, "decompression bomb", fix="save it in smaller parts")
            with archive.open(_BODY) as body:
                for element in iterate_elements(body, name, _READ):  # type: ignore[arg-type]
                    reader.read_element(element)
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, zlib.error) as error:
        raise Unreadable(name, "truncated or damaged", fix="save it again as .docx") from error
    title = reader.title or title_of(name)
    return Document(id=id_of(name), title=title, sections=reader.sections())


@dataclass(slots=True)
class _TableRow:
    """The row that is being read of a table, and the one above it, a text for each column."""

    cell: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    above: list[str] = field(default_factory=list)
    cells: int = 0
    width: int = 1
    is_merged: bool = False
    """Whether the cell goes on the one above it."""

    def add_cell(self) -> int:
        """Ends the cell, which stands in each column that it covers. Returns its characters."""
        text, at = " ".join(self.cell), len(self.columns)
        if self.is_merged and at < len(self.above):
            text = self.above[at]
        self.columns += [text] * self.width
        size, self.cells = len(text) * self.width, self.cells + 1
        self.cell, self.width, self.is_merged = [], 1, False
        return size

    def end(self) -> str:
        """The row as a line; of one cell across all columns only its text."""
        told = self.columns[: 1 if self.cells == 1 else None]
        self.above, self.columns, self.cells = self.columns, [], 0
        return " | ".join(told).strip() if any(told) else ""


class _BodyReader:
    """Collects paragraphs and rows in order, each under the headings above it."""

    def __init__(self, name: str) -> None:
        self.title = ""
        self._name = name
        self._path: list[str] = []
        self._found: list[tuple[tuple[str, ...], list[str]]] = []
        self._size = 0
        self._rows: defaultdict[int, _TableRow] = defaultdict(_TableRow)
        """By how many cells are around their table."""

    def sections(self) -> tuple[Section, ...]:
        return tuple(Section("\n\n".join(lines), path) for path, lines in self._found)

    def read_element(self, element: Any) -> None:
        depth = sum(1 for _ in element.iterancestors(f"{W}tc"))
        if element.tag == f"{W}tcPr":
            row = self._rows[depth - 1]
            merged = element.find(f"{W}vMerge")
            row.width = _columns_of(element.find(f"{W}gridSpan"))
            row.is_merged = merged is not None and merged.get(f"{W}val") != "restart"
        elif element.tag == f"{W}gridBefore":
            self._rows[depth].columns += [""] * _columns_of(element)
        elif element.tag == f"{W}tc":
            self._size += self._rows[depth].add_cell()
            if self._size > _LARGEST:
                raise Unreadable(self._name, "decompression bomb", fix="save it in smaller parts")
        elif element.tag == f"{W}tr":
            self._add_line(self._rows[depth].end())
        elif text := one_line(paragraph_text(element)):
            if depth:
                self._rows[depth - 1].cell.append(text)
            else:
                self._read_paragraph(_style_of(element), text)

    def _read_paragraph(self, style: str, text: str) -> None:
        if style.casefold() == "title" and not self.title:
            self.title = text
        elif found := _HEADING.fullmatch(style):
            self._path = [*self._path[: int(found[1]) - 1], text]
        else:
            self._add_line(text)

    def _add_line(self, line: str) -> None:
        path = tuple(self._path)
        if line and (not self._found or self._found[-1][0] != path):
            self._found.append((path, []))
        if line:
            self._found[-1][1].append(line)


def _style_of(paragraph: Any) -> str:
    style = paragraph.find(f"{W}pPr/{W}pStyle")
    return "" if style is None else style.get(f"{W}val", "")


def _columns_of(number: Any) -> int:
    told = "" if number is None else number.get(f"{W}val", "")
    return min(int(told), _MOST_COLUMNS) if told.isdecimal() and int(told) else 1


# Bytes of all parts of a workbook, unpacked.
_LARGEST_BOOK = 512 * 2**20
_HEADER_CELLS = 3
# The row of column names is among so many rows that are not empty.
_HEADER_WITHIN = 5


class Xlsx(TableParser):
    name = "xlsx"

    def matches(self, name: str, head: bytes) -> bool:
        return head.startswith(b"PK\x03\x04") and extension_of(name) in {".xlsx", ".xlsm"}

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        require_package("openpyxl", "xlsx", name)
        with on_disk(stream, ".xlsx") as path:
            _check_size(path, name)
            yield from _read_sheets(path, name, self._keys)


def _check_size(path: Path, name: str) -> None:
    try:
        # By the sizes that the archive claims; zipfile reads no further than these.
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise Unreadable(name, "truncated or damaged", fix="fetch it again") from error
    if size > _LARGEST_BOOK:
        raise Unreadable(name, "decompression bomb", fix="save it in smaller parts")


def _read_sheets(path: Path, name: str, keys: Sequence[str]) -> Iterator[Record]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        # openpyxl leaves a file open that is no workbook.
        with path.open("rb") as file, warnings.catch_warnings():
            # Warnings are about parts that carry no text: validation, conditional formats.
            warnings.simplefilter("ignore")
            with closing(
                load_workbook(file, read_only=True, data_only=True, keep_links=False)
            ) as book:
                for sheet in book.worksheets:
                    yield from _read_sheet(sheet, name, keys)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise MalformedSource(
            f"{name} is not a workbook: {error}", fix="save it again as .xlsx"
        ) from error


def _read_sheet(sheet: Any, name: str, keys: Sequence[str]) -> Iterator[Record]:
    """Of a table with a header a document for each row, as of CSV; else one for the sheet."""
    title, where = one_line(str(sheet.title)), f"{name}: sheet {one_line(str(sheet.title))}"
    if sheet.sheet_state != "visible":
        yield Drop(where, "hidden sheet")
        return
    merged, is_bare = look_through(sheet, name)
    if is_bare:
        yield Drop(where, "formulas without values")
    rows = read_sheet_rows(sheet, merged, name)
    _, header = next(rows, (0, ()))
    names = header[: max((n for n, cell in enumerate(header, 1) if cell), default=0)]
    has_names = is_table(names)
    if is_exam(names):
        yield Drop(where, "test questions or judgements, not evidence")
    elif is_corpus(names) or (
        # A cell behind the named columns would be lost.
        has_names
        and not any(any(row[len(names) :]) for _, row in read_sheet_rows(sheet, merged, name))
    ):
        base = f"{id_of(name)} {title}"
        placed = (
            PlacedRow(dict(zip(names, row, strict=False)), f"{where}:{number}", f"{base}-{number}")
            for number, row in rows
        )
        yield from read_rows(names, placed, keys)
    else:
        others = (row for _, row in rows)
        lines = (
            _grouped_lines(others, header)
            if has_names
            else _grouped_lines(chain([header] if header else [], others))
        )
        document = Document(
            id=make_slug(f"{id_of(name)}-{title}"),
            title=f"{title_of(name)}: {title}",
            sections=tuple(_build_sections(lines)),
        )
        yield finish_document(document, where)


def _build_sections(lines: Iterable[tuple[str, str]]) -> Iterator[Section]:
    """Rows under the value of their first column; those before the header stand alone."""
    for group, grouped in groupby(lines, key=itemgetter(0)):
        if text := "\n".join(line for _, line in grouped if line):
            yield Section(text, (group,) if group else ())


def _grouped_lines(rows: Iterable[Row], names: Row = ()) -> Iterator[tuple[str, str]]:
    for number, row in enumerate(rows):
        if names:
            yield row[0], _row_line(row[1:], names[1:])
        elif number < _HEADER_WITHIN and sum(map(bool, row)) >= _HEADER_CELLS:
            names = row
        else:
            yield "", " | ".join(filter(None, row))


def _row_line(cells: Row, names: Row) -> str:
    padded = (*names, *[""] * len(cells))
    named = zip(padded, cells, strict=False)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)
