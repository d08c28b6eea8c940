"""MedQuAD: question and answer pages of the NIH, one XML document a page.

A few pages have other roots and names than most: `<DiseaseFile fid>`, and `<doc docid corpus>` with
`doctitle-focus`, `pair`, `question` and `answer`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO

from lxml import etree

from osler.sources.formats.reading import id_of
from osler.sources.formats.safe_xml import iterate_elements, raw_text, root_tag, text_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, language_of, make_slug, one_line

_SPACES = re.compile(r"[ \t]+")
_INDENT = re.compile(r"\n +")
_ROOTS = ("Document", "DiseaseFile", "doc")
_MARKS = (b"<focus", b"<qapairs", b"<doctitle-focus")


class MedquadXml:
    name = "medquad-xml"

    def matches(self, name: str, head: bytes) -> bool:
        lowered = head.lower()
        return root_tag(head) in _ROOTS and any(mark in lowered for mark in _MARKS)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for element in iterate_elements(stream, name, _ROOTS):
            yield from _read_records(element, name)


def _read_records(page: etree._Element, name: str) -> Iterator[Record]:
    sections: list[Section] = []
    pairs = 0
    for pairs, pair in enumerate(page.iter("QAPair", "pair"), start=1):
        question = text_of(_find_first(pair, "Question", "question"))
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
    names = [name for name in map(text_of, page.iter("Synonym", "synonym")) if name]
    focus = _read_focus(page)
    return [Section(f"{focus} is also called: {'; '.join(names)}.")] if focus and names else []


def _read_focus(page: etree._Element) -> str:
    return text_of(_find_first(page, "Focus", "doctitle-focus"))


def _build_document(page: etree._Element, sections: list[Section], name: str) -> Document:
    number = _first_attribute(page, "id", "docid", "fid")
    publisher = _first_attribute(page, "source", "corpus")
    # The number alone is not unique: each of the twelve publishers counts from 1. Nor are the two
    # together: of pages on several diseases that one entry had, only the file names differ.
    code = "_".join(filter(None, (publisher, number)))
    stem = PurePosixPath(name).stem
    own = stem if number and stem.startswith(f"{number}_") else number
    identifier = "_".join(filter(None, (publisher, own)))
    return Document(
        id=make_slug(identifier) if number else id_of(name),
        title=_read_focus(page) or one_line(identifier) or name,
        sections=tuple(sections),
        language=language_of(sections[0].text),
        url=clean_text(page.get("url") or ""),
        code=code,
    )


def _read_answer(pair: etree._Element) -> str:
    answer = raw_text(_find_first(pair, "Answer", "answer"))
    return clean_text(_INDENT.sub("\n", _SPACES.sub(" ", answer)))


def _find_first(element: etree._Element, *tags: str) -> etree._Element | None:
    return next((found for tag in tags if (found := element.find(tag)) is not None), None)


def _first_attribute(element: etree._Element, *names: str) -> str:
    return next((value for name in names if (value := element.get(name))), "")
