"""Corpora of JSON records: one object a line, or one array of them.

| format            | fields                                                                |
|-------------------|-----------------------------------------------------------------------|
| `guideline-jsonl` | Meditron's guidelines (epfl-llm/guidelines): `clean_text` is Markdown |
| `medrag-jsonl`    | snippets of MedRAG and FlashRAG                                       |
| `json-records`    | text, or questions and answers, under the names that corpora use      |

Test sets are recognised so that they never become evidence: exam questions with their options,
and judgements of relevance (qrels), lie beside the corpora in public collections. Indexed as text
they would give the answers away to the systems that are evaluated with them.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import BinaryIO, cast

from osler.sources.formats.json_lines import (
    JsonLinesParser,
    Object,
    array_items,
    first_keys,
    read_objects,
    text_in,
)
from osler.sources.formats.markdown import first_title, markdown_sections
from osler.sources.formats.pubmed import url_of
from osler.sources.formats.reading import extension_of, id_of, id_of_record, plain_head
from osler.sources.formats.rows import is_corpus, is_exam, read_header, record_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import language_of, make_slug, one_line


class GuidelineJsonl(JsonLinesParser):
    """`id, source, title, clean_text, raw_text, url, overview`."""

    name = "guideline-jsonl"

    def matches(self, name: str, head: bytes) -> bool:
        keys = first_keys(head)
        return "title" in keys and bool(keys & {"clean_text", "raw_text"})

    def read_record(self, record: Object, where: str) -> Record:
        text = text_in(record, "clean_text") or text_in(record, "raw_text")
        name, sections = text_in(record, "id"), markdown_sections(text)
        title = one_line(text_in(record, "title")) or first_title(text)
        if not sections:
            return Drop(where, "no text")
        return Document(
            id=make_slug(name) if name else id_of_record(where),
            name=name,
            title=title,
            sections=sections,
            language=language_of(text),
            url=text_in(record, "url"),
            kind="guideline",
        )


class MedragJsonl(JsonLinesParser):
    """`{id, title, content, contents, PMID?, section?}`, or FlashRAG's `{id, contents}` with
    the title on the first line. A snippet stays a document of its own."""

    name = "medrag-jsonl"

    def matches(self, name: str, head: bytes) -> bool:
        keys = first_keys(head)
        return keys >= {"id", "title", "content"} or keys >= {"id", "contents"}

    def read_record(self, record: Object, where: str) -> Record:
        name, pmid = text_in(record, "id"), text_in(record, "PMID")
        title, text = _title_and_text(record)
        if not text:
            return Drop(where, "no text")
        section = one_line(text_in(record, "section"))
        return Document(
            id=make_slug(name) if name else id_of_record(where),
            name=name,
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


class JsonRecords:
    name = "json-records"

    def matches(self, name: str, head: bytes) -> bool:
        return is_corpus(keys_of(head))

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Records in order, one of them in memory, from lines or from one array."""
        base = id_of(name)
        buffered = io.BufferedReader(cast("io.RawIOBase", stream))
        is_array = plain_head(buffered.peek(64)).startswith(b"[")
        objects = _array_objects(buffered, name) if is_array else read_objects(buffered, name)
        for number, one in enumerate(objects, start=1):
            yield one if isinstance(one, Drop) else record_of(one[1], one[0], f"{base}-{number}")


def _array_objects(stream: BinaryIO, name: str) -> Iterator[tuple[str, Object] | Drop]:
    for number, item in enumerate(array_items(stream, name), start=1):
        where = f"{name}:{number}"
        yield (where, item) if isinstance(item, dict) else Drop(where, "not a JSON object")


def keys_of(head: bytes) -> frozenset[str]:
    """Keys of the first record, of a line or of an array."""
    begin = plain_head(head)
    return first_keys(begin[1:] if begin.startswith(b"[") else begin)


# "1_2 0 GHR_0000559_Sec2 3": question, iteration, document, grade.
_QREL = re.compile(rb"\S+[ \t]+\S+[ \t]+\S*(?:_|\d)\S*(?:[ \t]+\d)?\s*")
_LINES = 5
_BEIR_QRELS = ["query-id", "corpus-id", "score"]
_BEIR_QUERY = frozenset({"_id", "query_id", "text", "metadata"})
"""BEIR's queries look like passages; only the file's name and the want of a title tell them."""


class EvaluationFile:
    name = "evaluation"

    def matches(self, name: str, head: bytes) -> bool:
        kind = extension_of(name)
        if kind in {".csv", ".tsv"}:
            header = read_header(name, head)
            return is_exam(header) or header == _BEIR_QRELS
        if kind in {".json", ".jsonl"}:
            keys = keys_of(head)
            return is_exam(keys) or (_is_queries(name) and keys <= _BEIR_QUERY)
        return "qrels" in name.lower() and _are_qrels(head)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """One drop that says why nothing is read."""
        yield Drop(name, "test questions or judgements, not evidence")


def _is_queries(name: str) -> bool:
    return PurePath(name).name.split(".", 1)[0].casefold() == "queries"


def _are_qrels(head: bytes) -> bool:
    lines = plain_head(head).split(b"\n")[:_LINES]
    return bool(lines[0]) and all(_QREL.fullmatch(line) for line in lines[:-1] or lines)
