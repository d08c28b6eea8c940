"""Wikipedia as wikiextractor writes it: `{id, revid, url, title, text}`, one a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.headings import sections_of
from osler.sources.formats.json_lines import Object, first_keys, read_objects, text_in
from osler.sources.formats.noise import without_noise
from osler.sources.records import Document, Drop, Record
from osler.text import language_of, make_slug, one_line

_HEADING = re.compile(r"(={2,6})\s*([^=\n](?:.{0,300}?))\s*\1\s*")


class Wikiextractor:
    name = "wikiextractor"

    def matches(self, name: str, head: bytes) -> bool:
        return first_keys(head) >= {"id", "url", "title", "text"}

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for found in read_objects(stream, name):
            yield found if isinstance(found, Drop) else _read_record(found[1], found[0])


def _read_record(record: Object, where: str) -> Record:
    name, title = text_in(record, "id"), one_line(text_in(record, "title"))
    text = text_in(record, "text")
    if not name:
        return Drop(where, "no id")
    if not title:
        return Drop(where, "no title")
    sections, _ = without_noise(sections_of(text, parse_heading))
    if not sections:
        return Drop(where, "no text")
    return Document(
        id=make_slug(name),
        title=title,
        sections=sections,
        language=language_of(text),
        url=text_in(record, "url"),
    )


def parse_heading(line: str) -> tuple[int, str] | None:
    """Level and text of a line "== Treatment =="."""
    found = _HEADING.fullmatch(line)
    return (len(found[1]), one_line(found[2])) if found else None
