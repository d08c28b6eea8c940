"""JATS: full text of PMC and of publishers (NXML), and BITS: StatPearls, Bookshelf.

An article, a book part and each sub-article is a document; its sections are its
headings, the abstract first. Figures and tables give their captions, tables their rows
as well. Left out: references and their marks, pictures, supplementary files, footnotes,
acknowledgements, authors' notes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.reading import (
    MOST_AUTHORS,
    author_name,
    date_in,
    id_of,
    names_in,
    year_in,
)
from osler.sources.formats.safe_xml import (
    CELL,
    GONE,
    Element,
    ElementRoles,
    find_descendant,
    first_child,
    iterate_elements,
    licence_of,
    local_name,
    raw_text,
    root_tag,
    sections_of_tree,
    text_of,
)
from osler.sources.formats.sections import finish_document
from osler.sources.records import Document, Record, Section
from osler.text import make_slug, one_line

_ROOTS = frozenset({"article", "book-part-wrapper", "book-part", "pmc-articleset"})
_DOCUMENTS = ("{*}article", "{*}book-part-wrapper")
_META = ("article-meta", "book-part-meta", "front-stub", "book-meta")
_HREF = "{http://www.w3.org/1999/xlink}href"
_TEX = re.compile(r"\\begin\{document\}(.*?)\\end\{document\}", re.DOTALL)
_LETTER = re.compile(r"[^\W\d_]{2}")
_RETRACTED_BY = frozenset({"retraction-forward", "retracted-by"})
_PAPERS_APART = frozenset({"sub-article", "response"})


def _replace_element(element: Element) -> str | None:
    """TeX for formulas, `GONE` for reference marks, `None` for elements that are walked."""
    match local_name(element):
        case "xref" if element.get("ref-type") == "bibr":
            # "Smith (2003)" is a word of its sentence; "12" is a mark.
            return None if _LETTER.search(text_of(element)) else GONE
        case "tex-math":
            match = _TEX.search(raw_text(element))
            return one_line(match[1] if match else raw_text(element)).strip("$ ")
        case "alternatives":
            tex = next((inner for inner in element if local_name(inner) == "tex-math"), None)
            return None if tex is None else _replace_element(tex)
        case "sec" if element.get("sec-type") == "supplementary-material":
            return ""
    return None


_GRAMMAR = ElementRoles(
    sections=names_in("sec abstract trans-abstract app boxed-text glossary"),
    title="title",
    blocks=names_in(
        "p title list def-list def-item disp-formula disp-quote table-wrap table thead tbody tr"
        " fig caption boxed-text preformat statement speech verse-group table-wrap-foot"
    ),
    left_out=names_in(
        "ref-list graphic inline-graphic media supplementary-material inline-supplementary-material"
        " object-id fn fn-group ack author-notes bio xref-group permissions kwd-group contrib-group"
        " back-matter processing-meta alt-text long-desc notes floats-group-title strike"
    ),
    before={"list-item": "\n- ", "def-item": "\n- ", "def": ": ", "td": CELL, "th": CELL}
    | {"break": "\n"},
    instead=_replace_element,
)


class Jats:
    name = "jats"

    def matches(self, name: str, head: bytes) -> bool:
        root = root_tag(head)
        if root == "article":  # also an element of HTML and of DocBook
            return b"<front" in head or b"journal-meta" in head or b"article-type" in head
        return root in _ROOTS

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """A document for each article and sub-article; memory holds one article."""
        for element in iterate_elements(stream, name, _DOCUMENTS):
            if any(local_name(above) == "article" for above in element.iterancestors()):
                continue
            yield from _read_documents(element, name)


def _read_documents(article: Element, name: str) -> Iterator[Record]:
    apart = [inner for inner in article if local_name(inner) in _PAPERS_APART]
    for inner in apart:
        article.remove(inner)
    main = _read_record(article, name, "")
    yield main
    base = main.id if isinstance(main, Document) else id_of(name)
    for number, inner in enumerate(apart, start=1):
        yield _read_record(inner, f"{name}: sub-article {number}", f"{base}-{number}")


def _read_record(article: Element, where: str, identifier: str) -> Record:
    metas = _find_metas(article)
    title = next(filter(None, map(_find_title, metas)), "")
    sections = _find_abstracts(metas) + _find_texts(article)
    ids = {key: value for meta in reversed(metas) for key, value in _read_ids(meta).items()}
    if not identifier:
        known = (ids[kind] for kind in ("pmc", "pmid", "doi") if kind in ids)
        identifier = next(known, "") or id_of(where)
    book = next((text_of(t) for t in article.iter("{*}book-title")), "")
    dates = _find_dates(metas)
    year = min((one for one, _ in dates), default=None)
    document = Document(
        id=make_slug(identifier),
        title=title or book or identifier,
        sections=sections,
        year=year,
        date=min((day for of, day in dates if day and of == year), default=""),
        url=_choose_url(ids),
        code=_choose_code(ids),
        kind=article.get("article-type") or ("book chapter" if book else ""),
        licence=_find_licence(metas),
        retracted=_is_retracted(metas),
        authors=_find_authors(metas),
        journal=next((text_of(title) for title in article.iter("{*}journal-title")), ""),
        doi=ids.get("doi", ""),
    )
    return finish_document(document, where)


def _find_metas(article: Element) -> list[Element]:
    """The metadata of a document, its own before that of the whole it is a part of."""
    by_name = {local_name(meta): meta for meta in article.iter() if local_name(meta) in _META}
    return [by_name[name] for name in _META if name in by_name]


def _find_title(meta: Element) -> str:
    group = first_child(meta, "title-group")
    for name in ("article-title", "title"):
        if text := text_of(first_child(group, name)):
            return text
    return text_of(find_descendant(meta, "book-title-group", "book-title"))


def _find_abstracts(metas: list[Element]) -> tuple[Section, ...]:
    sections: list[Section] = []
    for abstract in (one for meta in metas[:1] for one in meta if local_name(one) == "abstract"):
        # A title of its own ("Author Summary") is there; a plain abstract has none.
        title = first_child(abstract, "title")
        heading = text_of(title) or "Abstract"
        if title is not None:
            abstract.remove(title)
        sections += sections_of_tree(abstract, _GRAMMAR, (heading,))
    return tuple(sections)


def _find_texts(article: Element) -> tuple[Section, ...]:
    sections: list[Section] = []
    part = first_child(article, "book-part")
    for name in ("body", "floats-group", "back"):
        places = (first_child(article, name), first_child(part, name))
        for place in (place for place in places if place is not None):
            sections += sections_of_tree(place, _GRAMMAR)
    return tuple(sections)


def _read_ids(meta: Element) -> dict[str, str]:
    ids: dict[str, str] = {}
    for element in meta:
        if local_name(element) in {"article-id", "book-part-id", "book-id"}:
            kind = element.get("pub-id-type") or element.get("book-id-type") or ""
            kind = {"pmcid": "pmc", "pmc-uid": "pmc"}.get(kind, kind)
            ids.setdefault(kind, text_of(element))
    if pmc := ids.get("pmc"):
        bare = pmc.upper().removeprefix("PMC")
        ids["pmc"] = f"PMC{bare}" if bare.isdigit() else pmc
    return {kind: value for kind, value in ids.items() if value}


def _choose_code(ids: dict[str, str]) -> str:
    named = {"pmid": "PMID", "pmc": "PMCID", "doi": "DOI"}
    return next((f"{named[kind]}:{ids[kind]}" for kind in named if kind in ids), "")


def _choose_url(ids: dict[str, str]) -> str:
    pmc = ids.get("pmc", "")
    if pmc.startswith("PMC"):
        return f"https://pmc.ncbi.nlm.nih.gov/articles/{pmc}/"
    if pmc.startswith("NBK"):
        return f"https://www.ncbi.nlm.nih.gov/books/{pmc}/"
    return f"https://doi.org/{ids['doi']}" if "doi" in ids else ""


def _find_dates(metas: list[Element]) -> list[tuple[int, str]]:
    """The years of publication, and months or days where they are known."""
    told = (
        " ".join(text_of(first_child(date, part)) for part in ("year", "month", "day")).strip()
        for meta in metas
        for date in meta
        if local_name(date) in {"pub-date", "book-date"}
    )
    return [(year, date_in(one)) for one in told if (year := year_in(one))]


def _find_authors(metas: list[Element]) -> tuple[str, ...]:
    """The authors of the document itself, else those of the whole it is a part of."""
    for meta in metas:
        names = [
            _author_of(contributor)
            for contributor in meta.iter("{*}contrib")
            if contributor.get("contrib-type", "author") == "author"
        ]
        if any(names):
            return tuple(filter(None, names))[:MOST_AUTHORS]
    return ()


def _author_of(contributor: Element) -> str:
    name = find_descendant(contributor, "name-alternatives", "name")
    name = name if name is not None else first_child(contributor, "name")
    if name is None:
        return text_of(first_child(contributor, "collab"))
    return author_name(
        text_of(first_child(name, "surname")), text_of(first_child(name, "given-names"))
    )


def _find_licence(metas: list[Element]) -> str:
    for meta in metas:
        permissions = first_child(meta, "permissions")
        licence = first_child(permissions, "license")
        if licence is not None:
            links = [link.get(_HREF) or "" for link in licence.iter()]
            return licence_of(licence.get(_HREF) or "", *links, text_of(licence))
        for owner in (permissions, meta):
            if statement := text_of(first_child(owner, "copyright-statement")):
                return licence_of(statement)
    return ""


def _is_retracted(metas: list[Element]) -> bool:
    """Whether the article links to the notice of its own retraction."""
    return any(
        link.get("related-article-type") in _RETRACTED_BY
        for meta in metas
        for link in meta.iter("{*}related-article")
    )
