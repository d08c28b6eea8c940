"""PubMed's tagged text format (MEDLINE): `PMID- `, `TI  - `, `AB  - `."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.pubmed_xml import RETRACTED, most_telling, url_of
from osler.sources.formats.reading import plain_head, utf8_lines, year_in
from osler.sources.records import Document, Drop, Record, Section
from osler.text import language_of, one_line

_FIELD = re.compile(r"([A-Z][A-Z0-9]{1,3}) *- ?(.*)")
# A value goes on in lines that begin with six blanks.
_CONTINUATION = "      "

Fields = dict[str, list[str]]


class Medline:
    name = "medline"

    def matches(self, name: str, head: bytes) -> bool:
        return plain_head(head).startswith((b"PMID- ", b"PMID - "))

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, fields in _read_fields(stream, name):
            yield _read_record(fields, f"{name}:{number}")


def _read_fields(stream: BinaryIO, name: str) -> Iterator[tuple[int, Fields]]:
    """Each record's first line number and fields."""
    fields: Fields = {}
    begin, tag = 1, ""
    for number, line in enumerate(utf8_lines(stream, name), start=1):
        match = _FIELD.match(line)
        if match and match[1] == "PMID" and fields:
            yield begin, fields
            fields = {}
        if match:
            tag = match[1]
            begin = begin if fields else number
            fields.setdefault(tag, []).append(match[2])
        elif line.startswith(_CONTINUATION) and fields:
            fields[tag][-1] += " " + line.strip()
    if fields:
        yield begin, fields


def _read_record(fields: Fields, place: str) -> Record:
    def first_value(tag: str) -> str:
        return one_line(fields.get(tag, [""])[0])

    pmid, title, abstract = (
        first_value("PMID"),
        first_value("TI") or first_value("BTI"),
        first_value("AB"),
    )
    where = f"{place}: PMID {pmid}"
    if not (pmid.isascii() and pmid.isdigit()):
        return Drop(where, "no PMID")
    if not title:
        return Drop(where, "no title")
    kinds = tuple(filter(None, map(one_line, fields.get("PT", []))))
    return Document(
        id=pmid,
        title=title,
        # As in PubMed XML: without an abstract the title is the text.
        sections=(Section(abstract or title),),
        language=language_of(abstract or title),
        year=year_in(first_value("DP")),
        url=url_of(pmid),
        code=f"PMID:{pmid}",
        kind=most_telling(kinds),
        kinds=kinds,
        # RIN names the notice of its retraction.
        retracted=RETRACTED in kinds or "RIN" in fields,
        version=1,
    )
