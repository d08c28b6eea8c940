"""Excel workbooks of guidelines (WHO SMART): each visible sheet a document, each row a line.

A row is written with the column's name before each cell, so that it can be read, found
and quoted without its table. Needs the extra `xlsx`.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable, require_package
from osler.sources.formats.noise import finish_document
from osler.sources.formats.reading import extension_of, id_of, on_disk, title_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import make_slug, one_line

# Bytes of all parts of a workbook, unpacked.
_LARGEST = 512 * 2**20
# Rows; a sheet that claims more is a formatted void.
_LONGEST_SHEET = 100_000
_HEADER_CELLS = 3
# The row of column names is among so many rows that are not empty.
_HEADER_WITHIN = 5

Row = tuple[str, ...]


class Xlsx:
    name = "xlsx"

    def matches(self, name: str, head: bytes) -> bool:
        return head.startswith(b"PK\x03\x04") and extension_of(name) in {".xlsx", ".xlsm"}

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        require_package("openpyxl", "xlsx", name)
        with on_disk(stream, ".xlsx") as path:
            _check_size(path, name)
            yield from _read_sheets(path, name)


def _check_size(path: Path, name: str) -> None:
    try:
        # By the sizes that the archive claims; zipfile reads no further than these.
        with zipfile.ZipFile(path) as archive:
            size = sum(part.file_size for part in archive.infolist())
    except (zipfile.BadZipFile, OSError) as error:
        raise Unreadable(name, "truncated or damaged", fix="fetch it again") from error
    if size > _LARGEST:
        raise Unreadable(name, "decompression bomb", fix="save it in smaller parts")


def _read_sheets(path: Path, name: str) -> Iterator[Record]:
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    try:
        with warnings.catch_warnings():
            # Warnings are about parts that carry no text: validation, conditional formats.
            warnings.simplefilter("ignore")
            book = load_workbook(path, read_only=True, data_only=True, keep_links=False)
            try:
                for sheet in book.worksheets:
                    yield _build_document(sheet, name)
            finally:
                book.close()
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise MalformedSource(
            f"{name} is not a workbook: {error}", fix="save it again as .xlsx"
        ) from error


def _build_document(sheet: Any, name: str) -> Record:
    title, where = one_line(str(sheet.title)), f"{name}: sheet {one_line(str(sheet.title))}"
    if sheet.sheet_state != "visible":
        return Drop(where, "hidden sheet")
    document = Document(
        id=make_slug(f"{id_of(name)}-{title}"),
        title=f"{title_of(name)}: {title}",
        sections=tuple(_build_sections(_read_rows(sheet))),
    )
    return finish_document(document, where)


def _read_rows(sheet: Any) -> Iterator[Row]:
    """The rows that are not empty, each cell on one line."""
    sheet.reset_dimensions()  # a wrong claim of the file's would cut the sheet off
    for row in sheet.iter_rows(max_row=_LONGEST_SHEET, values_only=True):
        cells = tuple("" if cell is None else one_line(str(cell)) for cell in row)
        if any(cells):
            yield cells


def _build_sections(rows: Iterable[Row]) -> Iterator[Section]:
    """Rows under the value of their first column; those before the header stand alone."""
    names: Row = ()
    group, lines = "", list[str]()
    for number, row in enumerate(rows):
        if not names and number < _HEADER_WITHIN and sum(map(bool, row)) >= _HEADER_CELLS:
            names = row
            continue
        begins = row[0] if names else ""
        if begins != group and lines:
            yield Section("\n".join(lines), (group,) if group else ())
            lines.clear()
        group = begins
        if line := _row_line(row[1:], names[1:]) if names else " | ".join(filter(None, row)):
            lines.append(line)
    if lines:
        yield Section("\n".join(lines), (group,) if group else ())


def _row_line(cells: Row, names: Row) -> str:
    padded = (*names, *[""] * len(cells))
    named = zip(padded, cells, strict=False)
    return "; ".join(f"{name}: {cell}" if name else cell for name, cell in named if cell)
