"""Clinical guidelines in the schema of the Meditron collection (epfl-llm/guidelines).

One JSON object a line: id, source, title, clean_text (Markdown), raw_text, url, overview.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.json_lines import Object, first_keys, read_objects, text_in
from osler.sources.formats.markdown import first_title, markdown_sections
from osler.sources.records import Document, Drop, Record
from osler.text import language_of, make_slug, one_line


class GuidelineJsonl:
    name = "guideline-jsonl"

    def matches(self, name: str, head: bytes) -> bool:
        keys = first_keys(head)
        return "title" in keys and bool(keys & {"clean_text", "raw_text"})

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for found in read_objects(stream, name):
            yield found if isinstance(found, Drop) else _read_record(found[1], found[0])


def _read_record(record: Object, where: str) -> Record:
    text = text_in(record, "clean_text") or text_in(record, "raw_text")
    name = text_in(record, "id")
    title = one_line(text_in(record, "title")) or first_title(text)
    sections = markdown_sections(text)
    if not name:
        return Drop(where, "no id")
    if not title:
        return Drop(where, "no title")
    if not sections:
        return Drop(where, "no text")
    return Document(
        id=make_slug(name),
        title=title,
        sections=sections,
        language=language_of(text),
        url=text_in(record, "url"),
        kind="guideline",
    )
