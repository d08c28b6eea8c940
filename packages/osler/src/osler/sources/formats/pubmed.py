"""PubMed: the baseline, its updates and E-utilities answers, in XML or as tagged text (MEDLINE).

Omni-RAG §3.1 keeps the records with a valid title and abstract. One without an
abstract is kept here too, its title as its text: it can be found and cited, and
says no more than its title does. One without a title is called by the
first words of its abstract; one without either is a drop.

An update holds whole new versions of records, and names those that are withdrawn
(DeleteCitation): these are `Deleted`. A retracted article stays, marked as such.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import islice
from typing import Any, BinaryIO

from lxml import etree

from osler.sources.formats.reading import (
    MOST_AUTHORS,
    author_name,
    date_in,
    plain_head,
    utf8_lines,
    year_in,
)
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Deleted, Document, Drop, Record, Section
from osler.text import language_of, one_line

_DELETIONS = ("DeleteCitation", "DeleteDocument")
_RECORDS = ("PubmedArticle", "PubmedBookArticle", *_DELETIONS)
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
        for element in iterate_elements(stream, name, _RECORDS):
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
    title = "" if title in _NOT_A_TITLE else title
    # The whole abstract, so that a passage is not a lone sentence; labels stay in it.
    parts = () if article is None else article.iterfind("Abstract/AbstractText")
    text = "\n".join(filter(None, map(_abstract_part, parts))) or title
    if article is None or not text:
        return Drop(where, "no title")
    authors = islice(article.iterfind("AuthorList/Author"), MOST_AUTHORS)
    journals = map(citation.find, ("MedlineJournalInfo/MedlineTA", "Article/Journal/Title"))
    return _build_document(
        pmid,
        text,
        _read_when(article),
        map(text_of, article.iter("PublicationType")),
        _read_notice(citation),
        title=title,
        version=_read_version(element_of_pmid),
        authors=tuple(filter(None, map(_name_author, authors))),
        journal=next(filter(None, map(text_of, journals)), ""),
        doi=text_of(article.find("ELocationID[@EIdType='doi']")),
    )


def _build_document(
    pmid: str, text: str, when: str, kinds: Iterable[str], notice: str, **more: Any
) -> Document:
    """The document of a record in either form; `more`: its other fields as they are."""
    kinds = tuple(filter(None, kinds))
    return Document(
        id=pmid,
        sections=(Section(text),),
        # Of the words that are here: a Chinese article's record holds an English abstract.
        language=language_of(text),
        year=year_in(when),
        date=date_in(when),
        url=url_of(pmid),
        code=f"PMID:{pmid}",
        kind=most_telling(kinds),
        kinds=kinds,
        retracted=RETRACTED in kinds or notice.startswith("Retraction"),
        notice=notice,
        **more,
    )


def _is_pmid(text: str) -> bool:
    return text.isascii() and text.isdigit()


# How the record names a notice against it, the gravest first: in XML, in the tagged format, and
# what it is.
_NOTICES = (
    ("RetractionIn", "RIN", "Retraction"),
    ("RetractedandRepublishedIn", "RRI", "Retraction"),
    ("ExpressionOfConcernIn", "ECI", "Expression of concern"),
    ("ErratumIn", "EIN", "Correction"),
)


def _read_notice(citation: etree._Element) -> str:
    """The gravest notice that the record links to, with its place: "Retraction: Lancet. 2010 …"."""
    links = {
        link.get("RefType"): text_of(link.find("RefSource"))
        for link in citation.iterfind("CommentsCorrectionsList/CommentsCorrections")
    }
    return _gravest_notice({tag: links[kind] for kind, tag, _ in _NOTICES if kind in links})


def _gravest_notice(places: Mapping[str, str]) -> str:
    for _, tag, nature in _NOTICES:
        if tag in places:
            return f"{nature}: {places[tag]}" if places[tag] else nature
    return ""


def _name_author(author: etree._Element) -> str:
    parts = {part.tag: part.text or "" for part in author}
    family, given = parts.get("LastName", ""), parts.get("Initials") or parts.get("ForeName", "")
    return author_name(family or text_of(author.find("CollectiveName")), given)


def _read_version(pmid: etree._Element) -> int:
    """The version, from 1. A revised record may keep its number; then it comes in a later file."""
    version = pmid.get("Version") or ""
    return int(version) if version.isascii() and version.isdigit() and len(version) < 6 else 1


def _read_title(article: etree._Element | None) -> str:
    if article is None:
        return ""
    return text_of(article.find("ArticleTitle")) or text_of(article.find("Book/BookTitle"))


def _abstract_part(part: etree._Element) -> str:
    text, label = text_of(part), (part.get("Label") or "").strip()
    return f"{label}: {text}" if text and label.upper() not in _UNLABELLED else text


_PLACES = ("Journal/JournalIssue/PubDate", "Book/PubDate", "ArticleDate")


def _read_when(article: etree._Element) -> str:
    """The first date that tells a year, its parts apart: "2019 11"."""
    places = (place for place in map(article.find, _PLACES) if place is not None)
    return next(filter(year_in, (" ".join(map(text_of, place)) for place in places)), "")


_FIELD = re.compile(r"([A-Z][A-Z0-9]{1,3}) *- ?(.*)")
# A value goes on in lines that begin with six blanks.
_CONTINUATION = "      "

Fields = dict[str, list[str]]
"""Values by tag."""


class Medline:
    name = "medline"

    def matches(self, name: str, head: bytes) -> bool:
        return plain_head(head).startswith((b"PMID- ", b"PMID - "))

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, fields in tagged_records(stream, name, _FIELD, {"PMID"}, _CONTINUATION):
            yield _read_tagged(fields, f"{name}:{number}")


def tagged_records(
    stream: BinaryIO, name: str, field: re.Pattern[str], bounds: Set[str], indent: str
) -> Iterator[tuple[int, Fields]]:
    """The number of each record's first line, and its fields.

    `field` matches a tag and a value, which goes on in lines that begin with `indent`. A tag of
    `bounds` ends the record before it; ER, of RIS, is no more than that.
    """
    fields: Fields = {}
    begin, tag = 1, ""
    for number, line in enumerate(utf8_lines(stream, name), start=1):
        match = field.match(line)
        if match and match[1] in bounds and fields:
            yield begin, fields
            fields = {}
        if match and match[1] != "ER":
            tag = match[1]
            begin = begin if fields else number
            fields.setdefault(tag, []).append(match[2].strip())
        elif not match and fields and line.startswith(indent) and line.strip():
            fields[tag][-1] += f" {line.strip()}"
    if fields:
        yield begin, fields


def _read_tagged(fields: Fields, place: str) -> Record:
    def first_value(tag: str) -> str:
        return one_line(fields.get(tag, [""])[0])

    pmid, title = first_value("PMID"), first_value("TI") or first_value("BTI")
    where, text = f"{place}: PMID {pmid}", first_value("AB") or title
    if not _is_pmid(pmid):
        return Drop(where, "no PMID")
    if not text:
        return Drop(where, "no title")
    names = [*fields.get("AU", []), *fields.get("CN", [])]
    dois = [one for tag in ("LID", "AID") for one in fields.get(tag, []) if one.endswith("[doi]")]
    return _build_document(
        pmid,
        text,
        first_value("DP"),
        map(one_line, fields.get("PT", [])),
        _gravest_notice({tag: first_value(tag) for _, tag, _ in _NOTICES if tag in fields}),
        title=title,
        version=1,
        authors=tuple(filter(None, map(one_line, names)))[:MOST_AUTHORS],
        journal=first_value("TA") or first_value("JT"),
        doi=next((one.removesuffix("[doi]").strip() for one in dois), ""),
    )
