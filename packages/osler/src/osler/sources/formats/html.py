"""Web pages: the visible text under its headings, without menus and scripts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import BinaryIO

import lxml.html
from lxml import etree

from osler.errors import MalformedSource
from osler.sources.formats.json_lines import text_at
from osler.sources.formats.reading import (
    date_in,
    decode_text,
    extension_of,
    id_of,
    names_in,
    plain_head,
    read_whole,
    title_of,
    year_in,
)
from osler.sources.formats.safe_xml import fill_spans, keep_powers
from osler.sources.formats.sections import HeadingPath, finish_document
from osler.sources.records import Document, Record, Section
from osler.text import clean_text, one_line

_LEFT_OUT = names_in(
    "script style noscript template nav header footer aside form button select iframe object"
    " embed svg canvas dialog menu del s strike"
)
_PROSE = ("p", "table", "main", "article", "h1", "h2", "h3")
_NOTE = re.compile(
    r"warning|caution|danger|alert|important|\bnote|警告|警示|注意|禁忌|慎用", re.IGNORECASE
)
_BLOCKS = names_in(
    "p div section article main ul ol dl dt dd table tr thead tbody tfoot caption blockquote pre"
    " figure figcaption hr form aside address center details dir fieldset hgroup legend listing"
    " search xmp"
)
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_QUESTION = 8
_LEVELS["summary"] = 7
_ANSWERS = {"details": 7, "dl": _QUESTION}
"""Elements that end with the answer to the question that they begin with."""
_TOLD = re.compile(
    r"<script[^>]{0,200}application/ld\+json[^>]{0,200}>([^<]{0,100000}FAQPage.{0,1000000}?)</script>",
    re.DOTALL | re.IGNORECASE,
)
_LIKE = 40
"""Characters by which an answer is known again."""
_BEFORE = {"br": "\n", "li": "\n- ", "td": " | ", "th": " | "}
# Or struck out, which is no less gone.
_HIDDEN = re.compile(
    r"text-decoration(?:-line)?\s*:[^;]*line-through|display\s*:\s*none|visibility\s*:\s*hidden|opacity\s*:\s*0(?![.\d])|font-size\s*:\s*0(?![.\d])"
)
_DATES = names_in(
    "citation_publication_date citation_date article:published_time dc.date dc.date.issued"
    " dcterms.date dcterms.issued datepublished date pubdate"
)
_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset\s*=\s*["']?([\w-]{2,20})""", re.IGNORECASE)
# The WHATWG Encoding Standard: browsers decode these names as the wider encoding.
_WIDER = {"gb2312": "gb18030", "gbk": "gb18030", "iso-8859-1": "cp1252", "us-ascii": "cp1252"}
_MOST_TAGS = 1_000_000
_SPACES = re.compile(r"\s+")
_ROW_START = re.compile(r"^ \| (?:[| ]*$)?", re.MULTILINE)


class Html:
    name = "html"

    def matches(self, name: str, head: bytes) -> bool:
        begin = plain_head(head)[:200].lower()
        return extension_of(name) in {".html", ".htm", ".xhtml"} or begin.startswith(
            (b"<!doctype html", b"<html")
        )

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        yield finish_document(read_page(read_whole(stream, name), name, id_of(name)), name)


def read_page(data: bytes, name: str, identifier: str) -> Document:
    """The document of a page, without sections where it has no text.

    Raises `MalformedSource` for a page in no known encoding, and for one of a million tags.
    """
    if data.count(b"<") > _MOST_TAGS:  # a tree takes many times the room of its text
        raise MalformedSource(
            f"{name} has more than {_MOST_TAGS:,} tags", fix="split it into pages"
        )
    text = _decode_page(data, name)
    page = _parse_page(text)
    if page is None:
        return Document(identifier, title_of(name), ())
    sections = _read_sections(_find_main(page))
    if "FAQPage" in text:
        seen = "\n".join(one.text for one in sections)
        sections = (*sections, *_read_told(text, seen))
    return Document(
        id=identifier,
        title=_find_title(page) or title_of(name),
        sections=sections,
        year=year_in(_find_date(page)),
        date=date_in(_find_date(page)),
        url=_find_url(page),
    )


def fragment_sections(fragment: str) -> tuple[Section, ...]:
    """The text of a piece of a page under its own headings."""
    page = _parse_page(f"<div>{fragment}</div>")
    return () if page is None else _read_sections(_find_main(page))


def _decode_page(data: bytes, name: str) -> str:
    """The page decoded as it declares, or failing that as any other text."""
    declared = _CHARSET.search(data[:4096])
    charset = declared[1].decode("ascii").lower() if declared else "utf-8"
    try:
        return data.decode(_WIDER.get(charset, charset))
    except (UnicodeDecodeError, LookupError):
        return decode_text(data, name)


def _parse_page(text: str) -> etree._Element | None:
    parser = lxml.html.HTMLParser(
        encoding="utf-8", no_network=True, huge_tree=False, remove_comments=True, remove_pis=True
    )
    try:
        page = lxml.html.document_fromstring(clean_text(text).encode(), parser=parser)
    except etree.ParserError:  # nothing but white space or comments
        return None
    for element in list(page.iter()):
        if (element.tag in _LEFT_OUT and not _is_read(element)) or _is_hidden(element):
            _remove_element(element)
    keep_powers(page)
    fill_spans(page)
    return page


def _is_read(element: etree._Element) -> bool:
    """Whether an element of a kind that is left out belongs to the text all the same."""
    match element.tag:
        case "form":  # around the whole page, as some servers write it
            return next(element.iter(*_PROSE), None) is not None
        case "button":  # which opens the part below a heading, and is all of it
            heading = next(element.iterancestors(*_LEVELS), None)
            return heading is not None and _text_in(heading) == _text_in(element)
        case "aside":
            named = (element.get("class"), element.get("role"), _text_in(element)[:40])
            return _NOTE.search(" ".join(filter(None, named))) is not None
    return False


def _text_in(element: etree._Element) -> str:
    return one_line("".join(map(str, element.itertext())))


def _is_hidden(element: etree._Element) -> bool:
    return (
        element.get("hidden") is not None
        or element.get("aria-hidden") == "true"
        or _HIDDEN.search((element.get("style") or "").lower()) is not None
    )


def _remove_element(element: etree._Element) -> None:
    """Removes an element and keeps the text that follows it."""
    parent, before = element.getparent(), element.getprevious()
    if parent is None:
        element.clear()
        return
    if before is not None:
        before.tail = (before.tail or "") + (element.tail or "")
    else:
        parent.text = (parent.text or "") + (element.tail or "")
    parent.remove(element)


def _find_main(page: etree._Element) -> etree._Element:
    for path in (".//main", ".//*[@role='main']", ".//article"):
        elements = page.findall(path)
        # Several are teasers or comments: then the body is the article.
        if len(elements) == 1:
            return elements[0]
    body = page.find("body")
    return page if body is None else body


def _read_sections(root: etree._Element) -> tuple[Section, ...]:
    sections: list[Section] = []
    outline, pieces = HeadingPath(), list[str]()
    has_title = False

    def close_section() -> None:
        if text := clean_text(_ROW_START.sub("", "".join(pieces))):
            sections.append(Section(text, outline.path))
        pieces.clear()

    for event, element in etree.iterwalk(root, events=("start", "end")):
        level = _level_of(element)
        if event == "start":
            if level:
                close_section()
            pieces.append(_BEFORE.get(element.tag, "\n" if element.tag in _BLOCKS else ""))
            pieces.append(_SPACES.sub(" ", element.text or ""))
            continue
        if level:
            heading = one_line("".join(pieces))
            pieces.clear()
            outline.enter_heading(level, heading if level > 1 or has_title else "")
            has_title = has_title or level == 1
        if element.tag in _ANSWERS:
            close_section()
            outline.enter_heading(_ANSWERS[element.tag], "")
        pieces.append("\n" if element.tag in _BLOCKS else "")
        if element is not root:
            pieces.append(_SPACES.sub(" ", element.tail or ""))
    close_section()
    return tuple(sections)


def _level_of(element: etree._Element) -> int:
    """The level of a heading, 0 for none; a question in a list is one above its answer."""
    if element.tag == "dt":
        is_asked = _text_in(element).endswith(("?", "？"))
        return _QUESTION if is_asked else 0
    return _LEVELS.get(element.tag, 0)


def _read_told(text: str, seen: str) -> Iterator[Section]:
    """Questions and answers that a page has for machines (schema.org's FAQPage) and does not
    show."""
    for script in _TOLD.findall(text):
        try:
            waiting = [json.loads(script)]
        except (ValueError, RecursionError):
            continue
        while waiting:
            value = waiting.pop(0)
            if isinstance(value, list):
                waiting = [*value, *waiting]
            elif isinstance(value, dict) and value.get("@type") == "Question":
                question = one_line(text_at(value, "name"))
                for one in fragment_sections(text_at(value, "acceptedAnswer", "text")):
                    if question and one.text[:_LIKE] not in seen:
                        yield replace(one, path=(question, *one.path))
            elif isinstance(value, dict):
                waiting = [*value.values(), *waiting]


def _find_title(page: etree._Element) -> str:
    meta = _read_meta(page)
    heading = page.find(".//h1")
    return (
        one_line(page.findtext(".//title") or "")
        or one_line(meta.get("og:title", ""))
        or (_text_in(heading) if heading is not None else "")
    )


def _read_meta(page: etree._Element) -> dict[str, str]:
    return {
        (tag.get("name") or tag.get("property") or tag.get("itemprop") or "").lower(): content
        for tag in page.iter("meta")
        if (content := tag.get("content"))
    }


def _find_date(page: etree._Element) -> str:
    dates = (content for name, content in _read_meta(page).items() if name in _DATES)
    return next(filter(year_in, dates), "")


def _find_url(page: etree._Element) -> str:
    for link in page.iter("link"):
        if link.get("rel") == "canonical":
            return clean_text(link.get("href") or "")
    return clean_text(_read_meta(page).get("og:url", ""))
