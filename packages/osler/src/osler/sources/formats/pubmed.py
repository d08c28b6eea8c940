"""PubMed: the baseline, its updates and E-utilities answers, in XML or as tagged text (MEDLINE).

Omni-RAG §3.1 keeps the records with a valid title and abstract. One without an
abstract is kept here too, its title as its text: it can be found and cited, and
says no more than its title does. One without a title is a drop.

An update holds whole new versions of records, and names those that are withdrawn
(DeleteCitation): these are `Deleted`. A retracted article stays, marked as such.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from typing import BinaryIO, cast

from lxml import etree

from osler.sources.formats.reading import plain_head, utf8_lines, year_in
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Deleted, Document, Drop, Record, Section
from osler.text import language_of, one_line

_BLOCK = 1 << 18
# An element of more bytes is left in, so that a hostile file cannot fill the memory.
_LONGEST = 1 << 24

_LONGEST_MARK = 32
# What may follow a name: otherwise "<Author" would be found in "<AuthorList".
_AFTER_A_NAME = (b">", b" ", b"/", b"\n", b"\r", b"\t", b"")


class TrimmedStream(io.BufferedIOBase):
    """The content of `stream` without the elements of these names.

    A name in a comment or a CDATA section is not an element: from the first of these on, the
    content is passed through unchanged, as is all that is not encoded like ASCII.
    """

    def __init__(self, stream: BinaryIO, names: Iterable[str], *, block: int = _BLOCK) -> None:
        """`block` bytes are read and cut at a time."""
        self._stream = stream
        self._block = block
        self._marks = [(f"<{name}".encode(), f"</{name}>".encode()) for name in names]
        self._held = b""
        self._ready = b""
        self._place = 0
        self._plain = False

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        while self._place == len(self._ready):
            block = self._stream.read(self._block)
            self._ready, self._held = self._cut_block(self._held + block, last=not block)
            self._place = 0
            if not block:
                break
        end = len(self._ready) if size is None or size < 0 else self._place + size
        piece = self._ready[self._place : end]
        self._place += len(piece)
        return piece

    def _cut_block(self, data: bytes, *, last: bool) -> tuple[bytes, bytes]:
        """The bytes that may be read, and those that must wait for the next block."""
        self._plain = self._plain or _has_hidden(data)
        if self._plain or last:
            return data, b""
        ready, waiting = data, b""
        for mark in self._marks:
            ready, rest = _cut_elements(ready, *mark)
            waiting = rest + waiting
        if len(waiting) > _LONGEST:
            return ready + waiting, b""
        # The last characters may be the first ones of a mark.
        open_tag = ready.rfind(b"<", max(0, len(ready) - _LONGEST_MARK))
        if not waiting and open_tag >= 0 and b">" not in ready[open_tag:]:
            return ready[:open_tag], ready[open_tag:]
        return ready, waiting


def _has_hidden(data: bytes) -> bool:
    """Whether a comment or a CDATA section begins here. "!" is rare, so it is looked for first."""
    place = data.find(b"!")
    while place >= 0:
        if data[place - 1 : place] == b"<" and data[place + 1 : place + 2] in (b"-", b"[", b""):
            return True
        place = data.find(b"!", place + 1)
    return False


def _cut_elements(data: bytes, opener: bytes, closer: bytes) -> tuple[bytes, bytes]:
    """The data without closed elements, up to the first that is still open, and the rest."""
    kept: list[bytes] = []
    place = 0
    while (start := _find_opening(data, opener, place, len(data))) >= 0:
        end = _find_end(data, start, opener, closer)
        if end < 0:
            return b"".join((*kept, data[place:start])), data[start:]
        kept.append(data[place:start])
        place = end
    return b"".join((*kept, data[place:])), b""


def _find_opening(data: bytes, opener: bytes, place: int, limit: int) -> int:
    """The start of the next element of exactly this name; -1 for none before `limit`."""
    while (start := data.find(opener, place, limit)) >= 0:
        after = start + len(opener)
        if data[after : after + 1] in _AFTER_A_NAME:
            break
        place = after
    return start


def _find_end(data: bytes, start: int, opener: bytes, closer: bytes) -> int:
    """The end of the element at `start`, which may hold others of its name; -1: not in `data`."""
    depth, place = 0, start
    while True:
        head = data.find(b">", place)
        if head < 0:
            return -1
        # "<a/>" is whole in itself.
        if data[head - 1 : head] != b"/":
            depth += 1
        place = head + 1
        while depth:
            close = data.find(closer, place)
            if close < 0:
                return -1
            inner = _find_opening(data, opener, place, close)
            if inner >= 0:
                place = inner
                break
            depth, place = depth - 1, close + len(closer)
        else:
            return place


_DELETIONS = ("DeleteCitation", "DeleteDocument")
_RECORDS = ("PubmedArticle", "PubmedBookArticle", *_DELETIONS)
# Three quarters of a file; cut out before it is parsed.
_UNREAD = ("PubmedData", "AuthorList", "MeshHeadingList")
RETRACTED = "Retracted Publication"
_NOT_A_TITLE = frozenset({"", "[Not Available].", "[Not Available]"})
_UNLABELLED = frozenset({"", "UNLABELLED", "UNASSIGNED"})

# NLM gives the types in alphabetical order. The study design is most informative of
# how far a finding carries, so it goes before; types without it come last. A retraction goes
# before all.
_TELLING = (
    RETRACTED,
    "Retraction of Publication",
    "Retraction Notice",
    "Expression of Concern",
    "Meta-Analysis",
    "Systematic Review",
    "Practice Guideline",
    "Guideline",
    "Randomized Controlled Trial",
    "Controlled Clinical Trial",
    "Clinical Trial, Phase IV",
    "Clinical Trial, Phase III",
    "Clinical Trial, Phase II",
    "Clinical Trial, Phase I",
    "Clinical Trial",
    "Observational Study",
    "Review",
    "Case Reports",
)
_TELLS_NOTHING = ("Journal Article", "English Abstract", "Research Support", "Video-Audio Media")


def url_of(pmid: str) -> str:
    return f"https://pubmed.ncbi.nlm.nih.gov/{pmid}/"


def most_telling(types: Iterable[str]) -> str:
    """The publication type that is most informative of the kind of study; "" for none."""
    kinds = [kind for kind in types if kind]
    for kind in _TELLING:
        if kind in kinds:
            return kind
    informative = [kind for kind in kinds if not kind.startswith(_TELLS_NOTHING)]
    return (informative or kinds or [""])[0]


class PubmedXml:
    name = "pubmed-xml"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) in {"PubmedArticleSet", "PubmedBookArticleSet"}

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        trimmed = cast(BinaryIO, TrimmedStream(stream, _UNREAD))
        for element in iterate_elements(trimmed, name, _RECORDS):
            if element.tag not in _DELETIONS:
                yield _read_record(element, name)
                continue
            for pmid in map(text_of, element.iterfind("PMID")):
                where = f"{name}: PMID {pmid}"
                yield Deleted(pmid, where) if _is_pmid(pmid) else Drop(where, "no PMID")


def _read_record(element: etree._Element, name: str) -> Record:
    book = element.find("BookDocument")
    citation = book if book is not None else element.find("MedlineCitation")
    if citation is None:
        return Drop(name, "no citation")
    element_of_pmid = citation.find("PMID")
    pmid = text_of(element_of_pmid)
    where = f"{name}: PMID {pmid}"
    if element_of_pmid is None or not _is_pmid(pmid):
        return Drop(where, "no PMID")
    article = book if book is not None else citation.find("Article")
    title = _read_title(article)
    if article is None or title in _NOT_A_TITLE:
        return Drop(where, "no title")
    text = _read_abstract(article) or title
    kinds = tuple(filter(None, map(text_of, article.iter("PublicationType"))))
    return Document(
        id=pmid,
        title=title,
        sections=(Section(text),),
        # Of the words that are here: a Chinese article's record holds an English abstract.
        language=language_of(text),
        year=_read_year(article),
        url=url_of(pmid),
        code=f"PMID:{pmid}",
        kind=most_telling(kinds),
        kinds=kinds,
        retracted=RETRACTED in kinds or _is_retracted(citation),
        version=_read_version(element_of_pmid),
    )


def _is_pmid(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _is_retracted(citation: etree._Element) -> bool:
    """Whether the record links to the notice of its retraction."""
    links = citation.iterfind("CommentsCorrectionsList/CommentsCorrections")
    return any(link.get("RefType") == "RetractionIn" for link in links)


def _read_version(pmid: etree._Element) -> int:
    """The version, from 1. A revised record may keep its number; then it comes in a later file."""
    version = pmid.get("Version") or ""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 6 else 1


def _read_title(article: etree._Element | None) -> str:
    if article is None:
        return ""
    return text_of(article.find("ArticleTitle")) or text_of(article.find("Book/BookTitle"))


def _read_abstract(article: etree._Element) -> str:
    """The whole abstract, so that a passage is not a lone sentence; labels stay in it."""
    return "\n".join(filter(None, map(_abstract_part, article.iterfind("Abstract/AbstractText"))))


def _abstract_part(part: etree._Element) -> str:
    text, label = text_of(part), (part.get("Label") or "").strip()
    return f"{label}: {text}" if text and label.upper() not in _UNLABELLED else text


def _read_year(article: etree._Element) -> int | None:
    for place in ("Journal/JournalIssue/PubDate", "Book/PubDate", "ArticleDate"):
        if year := year_in(text_of(article.find(place))):
            return year
    return None


_FIELD = re.compile(r"([A-Z][A-Z0-9]{1,3}) *- ?(.*)")
# A value goes on in lines that begin with six blanks.
_CONTINUATION = "      "

Fields = dict[str, list[str]]


class Medline:
    name = "medline"

    def matches(self, name: str, head: bytes) -> bool:
        return plain_head(head).startswith((b"PMID- ", b"PMID - "))

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, fields in _tagged_fields(stream, name):
            yield _read_tagged(fields, f"{name}:{number}")


def _tagged_fields(stream: BinaryIO, name: str) -> Iterator[tuple[int, Fields]]:
    """Each record's first line number and fields."""
    fields: Fields = {}
    begin, tag = 1, ""
    for number, line in enumerate(utf8_lines(stream, name), start=1):
        match = _FIELD.match(line)
        if match and match[1] == "PMID" and fields:
            yield begin, fields
            fields = {}
        if match:
            tag = match[1]
            begin = begin if fields else number
            fields.setdefault(tag, []).append(match[2])
        elif line.startswith(_CONTINUATION) and fields:
            fields[tag][-1] += " " + line.strip()
    if fields:
        yield begin, fields


def _read_tagged(fields: Fields, place: str) -> Record:
    def first_value(tag: str) -> str:
        return one_line(fields.get(tag, [""])[0])

    pmid, title, abstract = (
        first_value("PMID"),
        first_value("TI") or first_value("BTI"),
        first_value("AB"),
    )
    where = f"{place}: PMID {pmid}"
    if not (pmid.isascii() and pmid.isdigit()):
        return Drop(where, "no PMID")
    if not title:
        return Drop(where, "no title")
    kinds = tuple(filter(None, map(one_line, fields.get("PT", []))))
    return Document(
        id=pmid,
        title=title,
        # As in PubMed XML: without an abstract the title is the text.
        sections=(Section(abstract or title),),
        language=language_of(abstract or title),
        year=year_in(first_value("DP")),
        url=url_of(pmid),
        code=f"PMID:{pmid}",
        kind=most_telling(kinds),
        kinds=kinds,
        # RIN names the notice of its retraction.
        retracted=RETRACTED in kinds or "RIN" in fields,
        version=1,
    )
