"""Parquet with columns of text (Wikipedia dumps and other corpora). Needs the extra `parquet`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable, require_package
from osler.sources.formats.headings import sections_of
from osler.sources.formats.noise import without_noise
from osler.sources.formats.reading import id_of, on_disk
from osler.sources.formats.rows import is_corpus, is_table, row_reader, wanted_fields
from osler.sources.formats.wikis import parse_heading
from osler.sources.records import Document, Drop, Record

# Rows in memory at a time; an article has up to 2 MB.
_ROWS = 64
# A column that names one value many times unfolds to any size: characters that a file may have,
# and how many for each of its bytes.
_ALWAYS_ALLOWED, _HIGHEST_RATIO = 64 * 2**20, 200


class Parquet:
    name = "parquet"

    def matches(self, name: str, head: bytes) -> bool:
        return head.startswith(b"PAR1")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        require_package("pyarrow", "parquet", name)
        # The table of contents stands at the end of the file.
        with on_disk(stream, ".parquet") as path:
            yield from _read_records(path, name)


def _read_records(path: Path, name: str) -> Iterator[Record]:
    from pyarrow import ArrowException
    from pyarrow.parquet import ParquetFile

    base, number = id_of(name), 0
    left = max(_ALWAYS_ALLOWED, _HIGHEST_RATIO * path.stat().st_size)
    try:
        with ParquetFile(path) as file:
            names = file.schema_arrow.names
        columns = wanted_fields(names) if is_corpus(names) else names
        read = row_reader(names)
        # Repeated values stay one, until their row is read.
        with ParquetFile(
            path, pre_buffer=False, buffer_size=2**16, read_dictionary=columns
        ) as file:
            if not (is_corpus(names) or is_table(names)):
                yield Drop(name, "no column of text")
                return
            for batch in file.iter_batches(batch_size=_ROWS, columns=columns):
                for at in range(batch.num_rows):
                    row = batch.slice(at, 1).to_pylist()[0]
                    left -= sum(len(value) for value in row.values() if isinstance(value, str))
                    if left < 0:
                        fix = "unpack it yourself if you trust it"
                        raise Unreadable(name, "decompression bomb", fix=fix)
                    number += 1
                    record = read(row, f"{name}: row {number}", f"{base}-{number}")
                    yield _with_headings(record) if isinstance(record, Document) else record
    except (ArrowException, OSError, ValueError) as error:
        raise MalformedSource(
            f"{name} is not a whole Parquet file: {error}", fix="fetch it again"
        ) from error


def _with_headings(document: Document) -> Document:
    """The document with heading lines of a wiki ("== Causes ==") made into paths."""
    from dataclasses import replace

    (section,) = document.sections
    if section.path or "\n==" not in f"\n{section.text}":
        return document
    sections, _ = without_noise(sections_of(section.text, parse_heading))
    return replace(document, sections=sections) if sections else document
