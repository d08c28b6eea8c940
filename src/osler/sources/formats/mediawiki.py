"""A dump of a MediaWiki (pages-articles XML, usually bz2): its articles.

Redirects, pages outside the main namespace and pages that are not wikitext are drops.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO
from urllib.parse import quote

from osler.sources.formats.headings import sections_of
from osler.sources.formats.noise import without_noise
from osler.sources.formats.reading import year_in
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.formats.tree import Element, find_descendant, first_child, local_name
from osler.sources.formats.wikiextractor import parse_heading
from osler.sources.formats.wikitext import plain_wikitext
from osler.sources.records import Document, Drop, Record
from osler.text import language_of, make_slug

_REDIRECT = re.compile(r"\s*#(?:redirect|重定向)", re.IGNORECASE)


class Mediawiki:
    name = "mediawiki"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "mediawiki"

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        base = ""
        for element in iterate_elements(stream, name, ("{*}siteinfo", "{*}page")):
            if local_name(element) == "siteinfo":
                base = text_of(first_child(element, "base")).rpartition("/")[0]
            else:
                yield _read_record(element, name, base)


def _read_record(page: Element, name: str, base: str) -> Record:
    identifier, title = text_of(first_child(page, "id")), text_of(first_child(page, "title"))
    where = f"{name}: page {identifier or title}"
    revision = first_child(page, "revision")
    content = first_child(revision, "text")
    text = "" if content is None else content.text or ""
    if not identifier or not title:
        return Drop(where, "no id" if title else "no title")
    if (text_of(first_child(page, "ns")) or "0") != "0":
        return Drop(where, "not an article")
    if first_child(page, "redirect") is not None or _REDIRECT.match(text):
        return Drop(where, "redirect")
    if text_of(first_child(revision, "model")) not in {"", "wikitext"}:
        return Drop(where, "not wikitext")
    sections, _ = without_noise(sections_of(plain_wikitext(text), parse_heading))
    if not sections:
        return Drop(where, "no text")
    return Document(
        id=make_slug(identifier),
        title=title,
        sections=sections,
        language=language_of(" ".join(section.text for section in sections[:20])),
        # Of the revision: an article is what it was on that day.
        year=year_in(text_of(find_descendant(revision, "timestamp"))[:4]),
        url=f"{base}/{quote(title.replace(' ', '_'))}" if base else "",
    )
