"""Snippets as MedRAG and FlashRAG publish them: one JSON object a line.

`{id, title, content, contents, PMID?, section?}`, or FlashRAG's `{id, contents}` with
the title on the first line. A snippet stays a document of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.json_lines import Object, first_keys, read_objects, text_in
from osler.sources.formats.pubmed_xml import url_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import language_of, make_slug, one_line


class MedragJsonl:
    name = "medrag-jsonl"

    def matches(self, name: str, head: bytes) -> bool:
        keys = first_keys(head)
        return keys >= {"id", "title", "content"} or keys >= {"id", "contents"}

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for found in read_objects(stream, name):
            yield found if isinstance(found, Drop) else _read_record(found[1], found[0])


def _read_record(record: Object, where: str) -> Record:
    name, pmid = text_in(record, "id"), text_in(record, "PMID")
    title, text = _title_and_text(record)
    if not name:
        return Drop(where, "no id")
    if not text:
        return Drop(where, "no text")
    section = one_line(text_in(record, "section"))
    return Document(
        id=make_slug(name),
        title=title or (f"PMID {pmid}" if pmid else ""),
        sections=(Section(text, (section,) if section else ()),),
        language=language_of(text),
        url=url_of(pmid) if pmid else "",
        code=f"PMID:{pmid}" if pmid else "",
    )


def _title_and_text(record: Object) -> tuple[str, str]:
    if text := text_in(record, "content"):
        return one_line(text_in(record, "title")), text
    title, _, text = text_in(record, "contents").partition("\n")
    return (one_line(title).strip('"'), text.strip()) if text.strip() else ("", title)
