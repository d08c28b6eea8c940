"""MedQuAD: question and answer pages of the NIH, one XML document a page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from lxml import etree

from osler.sources.formats.reading import id_of
from osler.sources.formats.safe_xml import iterate_elements, raw_text, root_tag, text_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, language_of, make_slug, one_line

_SPACES = re.compile(r"[ \t]+")
_INDENT = re.compile(r"\n +")


class MedquadXml:
    name = "medquad-xml"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "Document" and (b"<Focus" in head or b"<QAPairs" in head)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for element in iterate_elements(stream, name, ("Document",)):
            yield from _read_records(element, name)


def _read_records(page: etree._Element, name: str) -> Iterator[Record]:
    sections: list[Section] = []
    pairs = 0
    for pairs, pair in enumerate(page.iter("QAPair"), start=1):
        question = text_of(pair.find("Question"))
        answer = _read_answer(pair)
        if not answer:
            yield Drop(f"{name}: pair {pair.get('pid') or pairs}", "empty answer")
        else:
            sections.append(Section(answer, (question,) if question else ()))
    if not pairs:
        yield Drop(name, "no question")
    # A page whose answers were removed still has the synonyms of its subject.
    if sections or (sections := _read_names(page)):
        yield _build_document(page, sections, name)


def _read_names(page: etree._Element) -> list[Section]:
    names = [name for name in map(text_of, page.iter("Synonym")) if name]
    focus = text_of(page.find("Focus"))
    return [Section(f"{focus} is also called: {'; '.join(names)}.")] if focus and names else []


def _build_document(page: etree._Element, sections: list[Section], name: str) -> Document:
    # The identifier alone is not unique: each of the twelve publishers counts from 1.
    identifier = "_".join(filter(None, (page.get("source"), page.get("id"))))
    return Document(
        id=make_slug(identifier) if page.get("id") else id_of(name),
        title=text_of(page.find("Focus")) or one_line(identifier) or name,
        sections=tuple(sections),
        language=language_of(sections[0].text),
        url=clean_text(page.get("url") or ""),
        code=identifier,
    )


def _read_answer(pair: etree._Element) -> str:
    return clean_text(_INDENT.sub("\n", _SPACES.sub(" ", raw_text(pair.find("Answer")))))
