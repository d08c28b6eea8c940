"""XML of single collections: MedQuAD, OpenStax.

MedQuAD has the question and answer pages of the NIH, one document a page. A few have other roots
and names than most: `<DiseaseFile fid>`, and `<doc docid corpus>` with `doctitle-focus`, `pair`,
`question` and `answer`.

OpenStax has CNXML modules, each a document. Where a `*.collection.xml` lies beside it, or in the
added folder, the document bears the book's title, and its heading paths begin with unit and
chapter; chapters are numbered as the book numbers them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from lxml import etree

from osler.sources.formats.reading import id_of, names_in
from osler.sources.formats.safe_xml import (
    Element,
    ElementRoles,
    first_child,
    iterate_elements,
    licence_of,
    local_name,
    raw_text,
    root_tag,
    sections_of_tree,
    text_of,
)
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
    names = [name for name in map(text_of, page.iter("Synonym", "synonym")) if name]
    if not sections and names and (focus := _read_focus(page)):
        sections = [Section(f"{focus} is also called: {'; '.join(names)}.")]
    if sections:
        yield _build_document(page, sections, name)


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


_COLLECTION = ".collection.xml"
_NAMED = {"table": "Table", "figure": "Figure", "example": "Example"}


@dataclass
class _Book:
    """A book by its table of contents."""

    title: str
    slug: str
    licence: str
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Unit and chapter of each module, outermost first."""
    chapters: int = 0

    def walk_content(self, content: Element, path: tuple[str, ...]) -> None:
        for part in content:
            if local_name(part) == "module":
                self.paths.setdefault(part.get("document") or "", path)
            elif local_name(part) == "subcollection":
                self._enter_part(part, path)

    def _enter_part(self, part: Element, path: tuple[str, ...]) -> None:
        inner, title = first_child(part, "content"), text_of(first_child(part, "title"))
        if inner is None:
            return
        is_unit = any(local_name(below) == "subcollection" for below in inner)
        if not is_unit:
            self.chapters += 1
            title = f"Chapter {self.chapters}: {title}" if title else f"Chapter {self.chapters}"
        self.walk_content(inner, (*path, title) if title else path)


class Cnxml:
    name = "cnxml"

    def __init__(self, books: Sequence[_Book] = ()) -> None:
        self._books = books

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "document" and b"cnx.rice.edu/cnxml" in head

    def is_companion(self, name: str) -> bool:
        """Whether a file of this name is the table of contents of a book."""
        return name.lower().endswith(_COLLECTION)

    def with_companions(self, paths: Sequence[Path]) -> Cnxml:
        """The parser with these books. Raises `MalformedSource` for one that cannot be read."""
        return Cnxml([book for path in paths for book in _read_books(path)])

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for module in iterate_elements(stream, name, ("{*}document",)):
            yield self._read_record(module, name)

    def _read_record(self, module: Element, name: str) -> Record:
        metadata = first_child(module, "metadata")
        identifier = text_of(first_child(metadata, "content-id")) or module.get("id") or ""
        title = text_of(first_child(metadata, "title")) or text_of(first_child(module, "title"))
        book = self._find_book(identifier, name)
        path = (*book.paths[identifier], title) if book and title else ()
        content = first_child(module, "content")
        sections = () if content is None else sections_of_tree(content, _module_roles(module), path)
        if not sections:
            return Drop(name, "no text")
        licence = first_child(metadata, "license")
        return Document(
            # The same module can stand in several books, and in one archive of them.
            id=id_of(name).removesuffix("-index"),
            title=book.title if book else title or identifier or id_of(name),
            sections=(*sections, *_read_glossary(module, path)),
            language=language_of(" ".join(section.text for section in sections[:20])),
            code=identifier,
            kind="textbook",
            licence=(book.licence if book else "")
            or licence_of("" if licence is None else licence.get("url") or text_of(licence)),
        )

    def _find_book(self, identifier: str, name: str) -> _Book | None:
        """The module's book, or `None`; of several, that whose slug is in the path."""
        books = [book for book in self._books if identifier in book.paths]
        parts = PurePosixPath(name.replace("!", "/")).parts
        return min(books, key=lambda book: book.slug not in parts, default=None)


def _read_books(path: Path) -> Iterator[_Book]:
    with path.open("rb") as stream:
        for collection in iterate_elements(stream, path.name, ("{*}collection",)):
            metadata = first_child(collection, "metadata")
            licence = first_child(metadata, "license")
            book = _Book(
                title=text_of(first_child(metadata, "title")),
                slug=text_of(first_child(metadata, "slug")),
                licence=licence_of("" if licence is None else licence.get("url") or ""),
            )
            content = first_child(collection, "content")
            if content is not None:
                book.walk_content(content, ())
            yield book


def _module_roles(module: Element) -> ElementRoles:
    kinds = {e.get("id"): _NAMED[local_name(e)] for e in module.iter() if local_name(e) in _NAMED}

    def replace_link(element: Element) -> str | None:
        """The kind of thing that a cross-reference without text points to: "Figure"."""
        if local_name(element) != "link" or len(element) or (element.text or "").strip():
            return None
        return kinds.get(element.get("target-id"), "")

    return ElementRoles(
        sections=names_in("section note"),
        title="title",
        blocks=names_in(
            "para title table tgroup thead tbody row figure caption note exercise problem solution"
            " equation example quote code"
        ),
        left_out=names_in("image media iframe colspec spanspec metadata annotation"),
        before={"item": "\n- ", "entry": " | ", "newline": " ", "definition": "\n- "},
        instead=replace_link,
    )


def _read_glossary(module: Element, path: tuple[str, ...]) -> Iterator[Section]:
    entries = []
    for definition in module.iter("{*}definition"):
        if local_name(definition.getparent()) != "glossary":  # type: ignore[arg-type]
            continue
        term = text_of(first_child(definition, "term"))
        meaning = text_of(first_child(definition, "meaning"))
        if term and meaning:
            entries.append(f"- {term}: {meaning}")
    if entries:
        yield Section("\n".join(entries), (*path, "Glossary"))
