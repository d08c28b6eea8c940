"""JSON Lines and large JSON documents, an object at a time; exports of `osler kb export`.

An export is a header line, then a line for each passage. Passages of one document stand together,
in order. Each becomes a section with the number of its id, so that it comes out of the chunker as
it went in, under the same id.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, BinaryIO

from pydantic import AfterValidator, BaseModel, Field, ValidationError

from osler.errors import MalformedSource
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import plain_head
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, make_slug, one_line
from osler.types import Language

LONGEST = 16 * 2**20
"""Bytes of one line or one array item; more is a fault, not a record."""

_DECODER = json.JSONDecoder()
_STEP = 2**16

Object = dict[str, Any]
"""A JSON object; its values are checked where they are read (`text_in`)."""


class JsonLinesParser:
    """Base of the formats with one JSON object a line, each a document or a drop."""

    name: str

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Documents and drops in order; memory holds one line."""
        for line in read_objects(stream, name):
            yield line if isinstance(line, Drop) else self.read_record(line[1], line[0])

    def read_record(self, record: Object, where: str) -> Record:
        """The document of one object, or why there is none."""
        raise NotImplementedError


def read_objects(
    stream: BinaryIO, name: str, first: int = 1
) -> Iterator[tuple[str, Object] | Drop]:
    """Each line's place ("file:17") and object, or a drop for a line without one; `first` is the
    number of the stream's next line."""
    number = first - 1
    while line := stream.readline(LONGEST + 1):
        number += 1
        where = f"{name}:{number}"
        if len(line) > LONGEST:
            while line and not line.endswith(b"\n"):
                line = stream.readline(LONGEST)
            yield Drop(where, "line too long")
        elif plain_head(line):
            yield _parse_object(line, where)


def _parse_object(line: bytes, where: str) -> tuple[str, Object] | Drop:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Drop(where, "not UTF-8")
    except (ValueError, RecursionError):
        return Drop(where, "not JSON")
    return (where, value) if isinstance(value, dict) else Drop(where, "not a JSON object")


def text_in(record: Mapping[str, Any], key: str) -> str:
    """The cleaned text of a field; a number as text; "" for anything else or nothing."""
    value = record.get(key)
    if isinstance(value, str):
        return clean_text(value)
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def value_at(value: Any, *path: str) -> Any:
    """The value at a path of keys; `None` where the path ends early."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def text_at(value: Any, *path: str) -> str:
    """The text at a path; "" for anything else."""
    text = value_at(value, *path)
    return text if isinstance(text, str) else ""


def items_at(value: Any, *path: str) -> list[Any]:
    """The list at a path; empty for anything else."""
    items = value_at(value, *path)
    return items if isinstance(items, list) else []


def first_keys(head: bytes) -> frozenset[str]:
    """Keys of the object that `head` begins, as far as it reaches."""
    text = plain_head(head).decode("utf-8", errors="ignore")
    keys: set[str] = set()
    place = 1
    try:
        while text[:1] == "{":
            key, place = _DECODER.raw_decode(text, _skip_space(text, place, ","))
            keys.add(key)
            _, place = _DECODER.raw_decode(text, _skip_space(text, place, ":"))
    except (ValueError, TypeError, RecursionError):  # the head ends, or it is no object
        pass
    return frozenset(keys)


def read_items(stream: BinaryIO, key: str, name: str) -> Iterator[Any]:
    """The items of the array at top-level `key` of one JSON object, one after the other.

    Memory holds one item. Raises `MalformedSource` where the JSON breaks off.
    """
    window = _JsonWindow(stream, name)
    window.expect_char("{")
    while not window.skip_char("}"):
        name_of_value = window.read_value()
        window.expect_char(":")
        if name_of_value == key and window.skip_char("["):
            yield from window.read_rest()
        else:
            window.read_value()
        window.skip_char(",")


def array_items(stream: BinaryIO, name: str) -> Iterator[Any]:
    """The items of a document that is one array; otherwise as `read_items`."""
    window = _JsonWindow(stream, name)
    window.expect_char("[")
    yield from window.read_rest()


class _JsonWindow:
    """The part of a JSON document that is in memory."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self._name = stream, name
        self._text, self._place, self._tail = "", 0, b""
        self._ended = False

    def skip_char(self, char: str) -> bool:
        """Whether `char` comes next; it is then passed."""
        self._to_visible()
        if not self._text.startswith(char, self._place):
            return False
        self._place += 1
        return True

    def expect_char(self, char: str) -> None:
        if not self.skip_char(char):
            raise self._syntax_error(f"expected {char!r}")

    def read_rest(self) -> Iterator[Any]:
        """The items of an array whose bracket was passed."""
        while not self.skip_char("]"):
            yield self.read_value()
            self.skip_char(",")

    def read_value(self) -> Any:
        self._to_visible()
        # The step doubles, so that a large value is not parsed from its start again and again.
        step = _STEP
        while True:
            try:
                value, end = _DECODER.raw_decode(self._text, self._place)
            except RecursionError:
                raise self._syntax_error("nested too deeply") from None
            except ValueError as error:
                if self._ended:
                    raise self._syntax_error(str(error)) from error
            else:
                # A number at the window's end may go on beyond it.
                if end < len(self._text) or self._ended:
                    self._place = end
                    return value
            self._read_more(step)
            step *= 2

    def _to_visible(self) -> None:
        self._place = _skip_space(self._text, self._place, "")
        while self._place == len(self._text) and not self._ended:
            self._read_more(_STEP)
            self._place = _skip_space(self._text, self._place, "")

    def _read_more(self, step: int) -> None:
        data = self._stream.read(step)
        self._ended = not data
        whole = self._tail + data
        try:
            text, self._tail = whole.decode("utf-8"), b""
        except UnicodeDecodeError as error:
            if self._ended or len(whole) - error.start > 3:
                raise self._syntax_error("not UTF-8") from error
            text, self._tail = whole[: error.start].decode("utf-8"), whole[error.start :]
        self._text = self._text[self._place :] + text
        self._place = 0
        if len(self._text) > LONGEST:
            raise self._syntax_error("one value is larger than 16 MiB")

    def _syntax_error(self, why: str) -> MalformedSource:
        return MalformedSource(f"{self._name} is not a JSON document: {why}", fix="fetch it again")


def _skip_space(text: str, place: int, also: str) -> int:
    while place < len(text) and text[place] in f" \t\r\n\ufeff{also}":
        place += 1
    return place


HEADER, VERSION = "osler-passages", 1


_Line = Annotated[str, AfterValidator(one_line)]
_NUMBER = re.compile(r"#(\d{1,9})$", re.ASCII)


class _PassageLine(BaseModel):
    """A passage. Fields that a newer version of Osler adds are ignored."""

    id: str = ""
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
    authors: tuple[_Line, ...] = ()
    journal: _Line = ""
    notice: _Line = ""
    key: _Line = ""
    date: Annotated[str, Field(pattern=r"^(\d{4}-\d\d(-\d\d)?)?$")] = ""


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
        for record in read_objects(stream, name, first=2):  # behind the header
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
    number = int(where.rpartition(":")[2])
    try:
        line = _PassageLine.model_validate(value)
    except ValidationError:
        return Drop(where, "malformed row", number)
    if make_slug(line.document) != line.document:
        return Drop(where, "no id", number)
    return line


def _join_document(lines: list[_PassageLine]) -> Document:
    found = [_NUMBER.search(line.id) for line in lines]
    numbers = [int(one[1]) if one else None for one in found]
    if None in numbers or len({*numbers}) < len(lines):
        numbers = [None] * len(lines)  # no ids: they are counted anew
    sections = tuple(
        Section(line.text, (line.section,) if line.section else (), line.page, number)
        for line, number in zip(lines, numbers, strict=True)
    )
    fields = lines[0].model_dump(exclude={"id", "document", "text", "section", "page"})
    return Document(id=lines[0].document, sections=sections, **fields)
