"""Files of reference managers: RIS, BibTeX, CSL-JSON and EndNote's XML (NBIB is `medline`).

A reference is a document: its abstract is the text, or its title where it has none. Keywords are
publication types of the form "tag: sepsis", by which searches are filtered.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from osler.sources.citable import FINDERS, normalise_id
from osler.sources.formats.containers import require_package
from osler.sources.formats.json_lines import array_items, items_at, text_at, text_in
from osler.sources.formats.json_records import keys_of
from osler.sources.formats.pubmed import Fields, tagged_records, url_of
from osler.sources.formats.reading import (
    MOST_AUTHORS,
    author_name,
    date_in,
    decode_text,
    extension_of,
    inverted_name,
    plain_head,
    plain_markup,
    read_whole,
    year_in,
)
from osler.sources.formats.safe_xml import iterate_elements, root_tag, text_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, language_of, make_slug, one_line

_LARGEST_BIBTEX = 64 * 2**20
# The names of the managers for what is cited most; another one stays as it is.
_KINDS = {
    **dict.fromkeys(("jour", "article", "article-journal", "journalarticle"), "Journal Article"),
    **dict.fromkeys(("chap", "inbook", "incollection", "booksection", "chapter"), "Book Chapter"),
    **dict.fromkeys(("rprt", "techreport", "report"), "Report"),
    **dict.fromkeys(("conf", "cpaper", "inproceedings", "paper-conference"), "Conference Paper"),
}


@dataclass(frozen=True)
class Reference:
    """A work as a reference manager knows it; each text as it is written there."""

    title: str
    abstract: str = ""
    authors: Iterable[str] = ()
    """As `author_name` writes them."""
    date: str = ""
    journal: str = ""
    kind: str = ""
    doi: str = ""
    about: str = ""
    """What may name a PMID or a DOI: accession numbers, addresses, notes."""
    url: str = ""
    key: str = ""
    tags: Iterable[str] = ()
    more: tuple[Section, ...] = ()
    """Sections after the abstract."""
    retracted: bool = False
    day: str = ""
    """Where it is told apart from `date`."""

    def make_document(self, where: str) -> Record:
        """The document, or why there is none."""
        title = one_line(self.title)
        if not title:
            return Drop(where, "no title")
        told = f"{self.doi} {self.about} {self.url}"
        pmid, doi = (_find_id(kind, told) for kind in ("pmid", "doi"))
        text, kind = clean_text(self.abstract), one_line(self.kind)
        kind = _KINDS.get(kind.casefold(), kind)
        sections = () if self.more and not text else (Section(text or title),)
        name = pmid or doi or self.key or f"{title} {self.date}"
        return Document(
            id=make_slug(name),
            name=name,
            title=title,
            sections=(*sections, *self.more),
            language=language_of(text or title),
            year=year_in(self.date),
            date=date_in(self.day or self.date),
            url=f"https://doi.org/{doi}" if doi else url_of(pmid) if pmid else self.url,
            code=f"PMID:{pmid}" if pmid else f"DOI:{doi}" if doi else "",
            kind=kind,
            kinds=tuple(dict.fromkeys(filter(None, (kind, *map(one_line, self.tags))))),
            retracted=self.retracted,
            authors=tuple(filter(None, map(one_line, self.authors)))[:MOST_AUTHORS],
            journal=one_line(self.journal),
            key=one_line(self.key),
            doi=doi,
        )


def _find_id(kind: str, text: str) -> str:
    found = FINDERS[kind].search(text)
    return normalise_id(kind, found[1]) if found else ""


def label_pmid(number: str, *told: str) -> str:
    """What may name a PMID, with the number of a field that holds nothing else."""
    return " ".join((*told, f"PMID:{number}" if number.isdecimal() else ""))


def tags_of(words: Iterable[str]) -> Iterator[str]:
    return (f"tag: {word.strip()}" for word in words if word.strip())


# Whose accession numbers are PMIDs.
_NLM = re.compile("pubmed|medline|nlm", re.IGNORECASE)
_RIS_LINE = re.compile(r"([A-Z][A-Z0-9])  - ?(.*)")
_RIS_BEGINS = re.compile(rb"TY  - ")


class Ris:
    name = "ris"

    def matches(self, name: str, head: bytes) -> bool:
        return _RIS_BEGINS.match(plain_head(head)) is not None

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, tagged in tagged_records(stream, name, _RIS_LINE, {"TY", "ER"}, ""):
            yield _read_ris(tagged).make_document(f"{name}:{number}")


def _read_ris(tagged: Fields) -> Reference:
    def first(*tags: str) -> str:
        return next((tagged[tag][0] for tag in tags if tag in tagged), "")

    number = first("AN") if _NLM.search(first("DB")) else ""
    when = first("PY", "Y1", "DA")
    # Year, month and day; what stands behind them ("Print") says no more of it.
    days = ("/".join(first(tag).split("/")[:3]) for tag in ("DA", "PY", "Y1"))
    return Reference(
        first("TI", "T1", "CT"),
        "\n".join(tagged.get("AB") or tagged.get("N2", [])),
        [inverted_name(name) for tag in ("AU", "A1") for name in tagged.get(tag, [])],
        when,
        first("JO", "JF", "T2", "JA"),
        first("TY"),
        first("DO"),
        label_pmid(number, *tagged.get("N1", [])),
        first("UR"),
        first("ID"),
        tags_of(tagged.get("KW", [])),
        day=next((one for one in days if date_in(one) and year_in(one) == year_in(when)), ""),
    )


class Bibtex:
    name = "bibtex"

    def matches(self, name: str, head: bytes) -> bool:
        return extension_of(name) == ".bib"

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Entries in order; a block that is not BibTeX is a drop. The file is in memory."""
        require_package("bibtexparser", "references", name)
        from bibtexparser.entrypoint import parse_string

        library = parse_string(decode_text(read_whole(stream, name, _LARGEST_BIBTEX), name))
        for block in library.failed_blocks:
            line = (block.start_line or 0) + 1
            yield Drop(f"{name}:{line}", "malformed entry", line)
        for entry in library.entries:
            fields = {one.key.lower(): str(one.value) for one in entry.fields}
            where = f"{name}:{(entry.start_line or 0) + 1}"
            yield _read_bibtex(entry.entry_type, entry.key, fields).make_document(where)


def _read_bibtex(kind: str, key: str, fields: Mapping[str, str]) -> Reference:
    from bibtexparser.middlewares.names import split_multiple_persons_names as split_names

    told = {name: _plain_tex(value) for name, value in fields.items()}
    return Reference(
        told.get("title", ""),
        told.get("abstract", ""),
        map(_name_of_tex, split_names(fields.get("author", ""))),
        told.get("year") or told.get("date", ""),
        told.get("journal") or told.get("journaltitle") or told.get("booktitle", ""),
        kind,
        fields.get("doi", ""),
        label_pmid(fields.get("pmid", ""), fields.get("note", "")),
        fields.get("url", ""),
        key,
        tags_of(re.split("[,;]", told.get("keywords", ""))),
        day=told.get("date") or " ".join(told.get(one, "") for one in ("year", "month", "day")),
    )


def _name_of_tex(written: str) -> str:
    from bibtexparser.middlewares.names import parse_single_name_into_parts as part_name

    if written.startswith("{"):
        return _plain_tex(written)
    parts = part_name(written, strict=False)
    return author_name(
        _plain_tex(" ".join([*parts.von, *parts.last])), _plain_tex(" ".join(parts.first))
    )


def _plain_tex(value: str) -> str:
    """The words without TeX; the decoder takes a hundredth of a second for a field."""
    if "\\" not in value:
        return value.replace("{", "").replace("}", "").replace("~", " ")
    from pylatexenc.latex2text import LatexNodes2Text

    return str(LatexNodes2Text().latex_to_text(value))


class CslJson:
    name = "csl-json"

    def matches(self, name: str, head: bytes) -> bool:
        keys = keys_of(head)
        dated = keys & {"issued", "container-title", "DOI"}
        return plain_head(head).startswith(b"[") and keys >= {"type", "title"} and bool(dated)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, item in enumerate(array_items(stream, name), start=1):
            where = f"{name}:{number}"
            is_item = isinstance(item, dict)
            yield _read_csl(item).make_document(where) if is_item else Drop(where, "not an object")


def _read_csl(item: Mapping[str, Any]) -> Reference:
    issued = items_at(item, "issued", "date-parts")
    year = str(issued[0][0]) if issued and isinstance(issued[0], list) and issued[0] else ""
    return Reference(
        plain_markup(text_in(item, "title")),
        plain_markup(text_in(item, "abstract")),
        [
            author_name(text_at(one, "family"), text_at(one, "given")) or text_at(one, "literal")
            for one in items_at(item, "author")
        ],
        year or text_at(item, "issued", "raw"),
        plain_markup(text_in(item, "container-title")),
        text_in(item, "type"),
        text_in(item, "DOI"),
        label_pmid(text_in(item, "PMID"), text_in(item, "note")),
        text_in(item, "URL"),
        text_in(item, "citation-key") or text_in(item, "id"),
        tags_of(re.split("[,;]", text_in(item, "keyword"))),
        day="-".join(map(str, issued[0])) if year else "",
    )


class EndnoteXml:
    name = "endnote-xml"

    def matches(self, name: str, head: bytes) -> bool:
        return root_tag(head) == "xml" and b"<record" in head

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        records = iterate_elements(stream, name, ("record",))
        for number, record in enumerate(records, start=1):
            yield _read_endnote(record).make_document(f"{name}: record {number}")


def _read_endnote(record: Any) -> Reference:
    def first(*places: str) -> str:
        return next(filter(None, (text_of(record.find(place)) for place in places)), "")

    kind = record.find("ref-type")
    number = first("accession-num") if _NLM.search(first("remote-database-name")) else ""
    return Reference(
        first("titles/title"),
        first("abstract"),
        [inverted_name(text_of(one)) for one in record.iterfind("contributors/authors/author")],
        first("dates/year"),
        first("periodical/full-title", "titles/secondary-title", "periodical/abbr-1"),
        "" if kind is None else kind.get("name", ""),
        first("electronic-resource-num"),
        label_pmid(number, first("notes")),
        first("urls/related-urls/url"),
        first("label"),
        tags_of(map(text_of, record.iterfind("keywords/keyword"))),
    )
