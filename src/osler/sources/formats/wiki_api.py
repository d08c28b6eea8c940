"""Answers of MediaWiki's API with extracts (action=query, prop=extracts), one JSON a file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.headings import sections_of
from osler.sources.formats.html import fragment_sections
from osler.sources.formats.json_lines import Object, text_in
from osler.sources.formats.noise import without_noise
from osler.sources.formats.reading import decode_text, plain_head, read_whole
from osler.sources.formats.wikiextractor import parse_heading
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, language_of, make_slug, one_line

_LARGEST = 8 * 2**20
"""Bytes of one answer, which holds a few pages."""
_ANSWER = re.compile(rb'"query"\s*:\s*\{')
_PAGES = re.compile(rb'"(?:pages|normalized|redirects)"\s*:\s*[\[{]')


class WikiApi:
    name = "wiki-api"

    def matches(self, name: str, head: bytes) -> bool:
        return (
            plain_head(head).startswith(b"{")
            and _ANSWER.search(head) is not None
            and _PAGES.search(head) is not None
        )

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        try:
            answer = json.loads(decode_text(read_whole(stream, name, _LARGEST), name))
        except (ValueError, RecursionError) as error:
            raise MalformedSource(f"{name} is not JSON", fix="fetch it again") from error
        for page in _read_pages(answer):
            yield _read_record(page, name)


def _read_pages(answer: Any) -> Iterator[Object]:
    """The pages of either version of the format: an object by page id, or a list."""
    query = answer.get("query") if isinstance(answer, dict) else None
    pages = query.get("pages") if isinstance(query, dict) else None
    values = pages.values() if isinstance(pages, dict) else pages
    for page in values if values and not isinstance(values, str) else ():
        if isinstance(page, dict):
            yield page


def _read_record(page: Object, name: str) -> Record:
    title = one_line(text_in(page, "title"))
    identifier = text_in(page, "pageid")
    where = f"{name}: {title or identifier}"
    if page.get("missing") is not None or page.get("invalid") is not None:
        return Drop(where, "missing page")
    if not title:
        return Drop(where, "no title")
    sections, _ = without_noise(_split_sections(text_in(page, "extract")))
    if not sections:
        return Drop(where, "no text")
    return Document(
        id=make_slug(identifier or title),
        title=title,
        sections=sections,
        language=language_of(" ".join(section.text for section in sections[:20])),
        url=text_in(page, "fullurl") or text_in(page, "canonicalurl"),
    )


def _split_sections(extract: str) -> tuple[Section, ...]:
    if extract.startswith("<"):  # without "explaintext" an extract is HTML
        return fragment_sections(extract)
    return sections_of(clean_text(extract), parse_heading)
