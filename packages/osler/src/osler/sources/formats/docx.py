"""Word documents (.docx): paragraphs under their headings, each row of a table as a line.

Left out: hidden and deleted text, headers, footers, notes and comments.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from osler.sources.formats.containers import Unreadable
from osler.sources.formats.noise import finish_document
from osler.sources.formats.reading import extension_of, id_of, on_disk, title_of
from osler.sources.formats.safe_xml import iterate_elements
from osler.sources.records import Document, Record, Section
from osler.text import one_line

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_HEADING = re.compile(r"(?:heading|标题)\s?([1-9])", re.IGNORECASE)
_BODY = "word/document.xml"
# Bytes of the text with its marks, unpacked.
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
    reader = _BodyReader()
    try:
        with zipfile.ZipFile(path) as archive:
            # zipfile reads no further than the size that the entry claims.
            if archive.getinfo(_BODY).file_size > _LARGEST:
                raise Unreadable(name, "decompression bomb", fix="save it in smaller parts")
            with archive.open(_BODY) as body:
                for element in iterate_elements(body, name, (f"{_W}p", f"{_W}tc", f"{_W}tr")):  # type: ignore[arg-type]
                    reader.read_element(element)
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, zlib.error) as error:
        raise Unreadable(name, "truncated or damaged", fix="save it again as .docx") from error
    title = reader.title or title_of(name)
    return Document(id=id_of(name), title=title, sections=reader.sections())


class _BodyReader:
    """Collects paragraphs and rows in order, each under the headings above it."""

    def __init__(self) -> None:
        self.title = ""
        self._path: list[str] = []
        self._found: list[tuple[tuple[str, ...], list[str]]] = []
        self._cell: list[str] = []
        self._row: list[str] = []

    def sections(self) -> tuple[Section, ...]:
        return tuple(Section("\n\n".join(lines), path) for path, lines in self._found)

    def read_element(self, element: Any) -> None:
        if element.tag == f"{_W}tc":
            self._row.append(" ".join(self._cell))
            self._cell = []
        elif element.tag == f"{_W}tr":
            self._add_line(" | ".join(cell for cell in self._row if cell))
            self._row = []
        elif text := one_line(_paragraph_text(element)):
            if next(element.iterancestors(f"{_W}tc"), None) is not None:
                self._cell.append(text)
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


def _paragraph_text(paragraph: Any) -> str:
    pieces = []
    for run in paragraph.iter(f"{_W}r"):
        if run.find(f"{_W}rPr/{_W}vanish") is None:
            pieces += [_piece_text(piece) for piece in run]
    return "".join(pieces)


def _piece_text(piece: Any) -> str:
    if piece.tag == f"{_W}t":
        return piece.text or ""
    return " " if piece.tag in (f"{_W}tab", f"{_W}br", f"{_W}cr") else ""


def _style_of(paragraph: Any) -> str:
    style = paragraph.find(f"{_W}pPr/{_W}pStyle")
    return "" if style is None else style.get(f"{_W}val", "")
