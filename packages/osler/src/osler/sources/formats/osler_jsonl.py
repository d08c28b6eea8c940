"""Exports of `osler kb export`: a header line, then a line for each passage.

Passages of one document stand together, in order. Each becomes a section of its own, so
that it comes out of the chunker as it went in, under the same id.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from osler.errors import MalformedSource
from osler.sources.formats.containers import open_file
from osler.sources.formats.json_lines import LONGEST, read_objects
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, make_slug, one_line
from osler.types import Language

HEADER, VERSION = "osler-passages", 1


_Line = Annotated[str, AfterValidator(one_line)]


class _PassageLine(BaseModel):
    """A passage. Fields that a newer version of Osler adds are ignored."""

    source: str
    document: str
    title: _Line
    text: Annotated[str, AfterValidator(clean_text)]
    section: _Line = ""
    page: int | None = None
    year: int | None = None
    url: _Line = ""
    code: _Line = ""
    kind: _Line = ""
    licence: _Line = ""
    language: Language = "en"
    illustrative: bool = False
    kinds: tuple[_Line, ...] = ()
    retracted: bool = False
    trust: Annotated[int, Field(ge=1, le=5)] | None = None
    version: int = 0
    origin: _Line = ""
    checksum: _Line = ""


class _HeaderLine(BaseModel):
    version: Annotated[int, Field(alias=HEADER)]
    sources: tuple[str, ...]


class OslerJsonl:
    name = "osler-jsonl"

    def matches(self, name: str, head: bytes) -> bool:
        return head.startswith(f'{{"{HEADER}":'.encode())

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        _parse_header(stream.readline(LONGEST), name)
        lines: list[_PassageLine] = []
        for record in read_objects(stream, name):
            line = record if isinstance(record, Drop) else _parse_line(*record)
            if isinstance(line, Drop):
                yield line
                continue
            if lines and (line.source, line.document) != (lines[0].source, lines[0].document):
                yield _join_document(lines)
                lines = []
            lines.append(line)
        if lines:
            yield _join_document(lines)


def sources_of(path: Path) -> tuple[str, ...]:
    """The sources whose passages an export holds; empty for a file of another kind.

    Raises `MalformedSource` for a file that breaks off.
    """
    if path.is_dir():
        return ()
    with open_file(path) as stream:
        if not OslerJsonl().matches(path.name, stream.peek(4096)[:4096]):
            return ()
        return _parse_header(stream.readline(LONGEST), path.name).sources


def _parse_header(line: bytes, name: str) -> _HeaderLine:
    try:
        header = _HeaderLine.model_validate_json(line)
    except ValidationError as error:
        raise MalformedSource(
            f"{name} has no header of an Osler export", fix="export it again"
        ) from error
    if header.version > VERSION:
        raise MalformedSource(
            f"{name} was exported by a newer version of Osler", fix="upgrade Osler"
        )
    return header


def _parse_line(where: str, value: dict[str, object]) -> _PassageLine | Drop:
    number = int(where.rpartition(":")[2]) + 1  # the header is the first line
    try:
        line = _PassageLine.model_validate(value)
    except ValidationError:
        return Drop(where, "malformed row", number)
    if make_slug(line.document) != line.document:
        return Drop(where, "no id", number)
    return line


def _join_document(lines: list[_PassageLine]) -> Document:
    sections = tuple(
        Section(line.text, (line.section,) if line.section else (), line.page) for line in lines
    )
    fields = lines[0].model_dump(exclude={"document", "text", "section", "page"})
    return Document(id=lines[0].document, sections=sections, **fields)
