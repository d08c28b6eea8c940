"""MedQuAD: question and answer pages of the NIH, one XML document a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from osler.sources.formats.reading import id_of
from osler.sources.formats.safe_xml import elements, raw_text, root_tag, text_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean, language_of, one_line, slug

_SPACES = re.compile(r"[ \t]+")
_INDENT = re.compile(r"\n +")


class MedquadXml:
    name = "medquad-xml"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "Document" and (b"<Focus" in head or b"<QAPairs" in head)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for element in elements(stream, name, ("Document",)):
            yield from _records(element, name)


def _records(page: etree._Element, name: str) -> Iterator[Record]:
    sections: list[Section] = []
    pairs = 0
    for pairs, pair in enumerate(page.iter("QAPair"), start=1):
        question = text_of(pair.find("Question"))
        answer = _answer(pair)
        if not answer:
            yield Drop(f"{name}: pair {pair.get('pid') or pairs}", "empty answer")
        else:
            sections.append(Section(answer, (question,) if question else ()))
    if not pairs:
        yield Drop(name, "no question")
    # A page whose answers were taken out still tells under which names its subject goes.
    if sections or (sections := _names(page)):
        yield _document(page, sections, name)


def _names(page: etree._Element) -> list[Section]:
    names = [name for name in map(text_of, page.iter("Synonym")) if name]
    focus = text_of(page.find("Focus"))
    return [Section(f"{focus} is also called: {'; '.join(names)}.")] if focus and names else []


def _document(page: etree._Element, sections: list[Section], name: str) -> Document:
    # The identifier alone is not unique: each of the twelve publishers counts from 1.
    identifier = "_".join(filter(None, (page.get("source"), page.get("id"))))
    return Document(
        id=slug(identifier) if page.get("id") else id_of(name),
        title=text_of(page.find("Focus")) or one_line(identifier) or name,
        sections=tuple(sections),
        language=language_of(sections[0].text),
        url=clean(page.get("url") or ""),
        code=identifier,
    )


def _answer(pair: etree._Element) -> str:
    return clean(_INDENT.sub("\n", _SPACES.sub(" ", raw_text(pair.find("Answer")))))
