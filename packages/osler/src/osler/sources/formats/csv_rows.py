"""CSV and TSV with a header, of text, questions and answers, or any table; UTF-8 or GB18030."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.reading import extension_of, id_of, lines_of, plain_head
from osler.sources.formats.rows import is_corpus, is_table, row_reader
from osler.sources.records import Drop, Record
from osler.text import is_cjk

_DELIMITERS = {".csv": ",", ".tsv": "\t"}


class CsvRows:
    name = "csv"

    def matches(self, name: str, head: bytes) -> bool:
        header = read_header(name, head) if extension_of(name) in _DELIMITERS else []
        return is_corpus(header) or is_table(header)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """A document for each row, in constant memory; a row that cannot be parsed is a drop."""
        rows = _Rows(stream, name)
        names = next(rows, None)
        if isinstance(names, list):
            base, read = id_of(name), row_reader(names)
            for row in rows:
                where = f"{name}:{rows.line}"
                if isinstance(row, str):
                    yield Drop(where, row)
                elif row:
                    yield read(dict(zip(names, row, strict=False)), where, f"{base}-{rows.line}")


def read_header(name: str, head: bytes) -> list[str]:
    """The names in the first line of `head`; [] where it is not a table."""
    line, has_end, _ = plain_head(head).partition(b"\n")
    if not has_end or b"\0" in line:
        return []
    try:
        text = line.decode(_guess_encoding(line))
    except UnicodeDecodeError:
        return []
    delimiter = _DELIMITERS.get(extension_of(name), ",")
    try:
        return next(csv.reader([text], delimiter=delimiter), [])
    except csv.Error:
        return []


def _guess_encoding(data: bytes) -> str:
    """UTF-8 where the bytes are valid, but for a character cut at the end; else GB18030."""
    try:
        data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # The head of a file may end inside a character of up to four bytes.
        if error.start < len(data) - 3:
            return "gb18030"
    return "utf-8-sig"


class _Rows(Iterator["list[str] | str"]):
    """Each row, or the reason of a drop; `line` is the line that it began on."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self.line = 0
        self._read = 0
        self._problem = ""
        self._encoding = ""
        self._lines = lines_of(stream, name)
        self._reader = csv.reader(
            self._decode_lines(), delimiter=_DELIMITERS.get(extension_of(name), ",")
        )

    def __next__(self) -> list[str] | str:
        self.line, self._problem = self._read + 1, ""
        try:
            row = next(self._reader)
        except csv.Error:  # a quotation that never ends, or a field of more than 128 KiB
            return "malformed row"
        return self._problem or row

    def _decode_lines(self) -> Iterator[str]:
        for line in self._lines:
            self._read += 1
            if not line.isascii() and not self._encoding:
                self._encoding = _guess_encoding(line)
            try:
                text = line.decode(self._encoding or "utf-8-sig")
            except UnicodeDecodeError:
                self._problem = "not UTF-8" if self._encoding == "utf-8-sig" else "not GB18030"
                text = line.decode("ascii", "replace")
            if self._encoding == "gb18030" and not any(map(is_cjk, text)) and not line.isascii():
                # GB18030 gives a meaning to nearly any bytes: believed only where it is Chinese.
                self._problem = "neither UTF-8 nor GB18030"
            yield text.replace("\0", "")
