"""Markdown and plain text.

Markdown has a chapter path for each section, and embedded HTML is read as text. Fenced code stays
as it is written. Links, emphasis and kramdown attributes lose their marks, so that a quotation
reads like the page.

Plain text: a file is a document, its paragraphs are one section. The transcriptions of Chinese
classics mark their headings, <目录> for a part and <篇名> for a chapter; where these stand they
become heading paths, the book's own name (书名：) becomes the title, and the marks before a
chapter's text (内容：, 属性：, \\x) go. Addresses and lists of references are left out
(Omni-RAG §3.1) and counted.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import BinaryIO

from osler.sources.formats.reading import (
    date_in,
    decode_text,
    extension_of,
    id_of,
    plain_head,
    raise_marked,
    read_parts,
    read_whole,
    title_of,
    utf8_head,
    year_in,
)
from osler.sources.formats.sections import Heading, finish_cleaned, sections_of
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, is_cjk, one_line

_SENTENCE_END = re.compile(r"[\w)\"”][.!?](?:\s|$)|[。！？；]")
_MARKUP = re.compile(rb"[{\[]|<[!?/A-Za-z]")
# Marks of the corpus of TCM classics, with the levels of their headings.
_CLASSIC = {"<目录>": 1, "<篇名>": 2}
_CHAPTER = re.compile(r"^<(?:篇名|目录)>", re.MULTILINE)
_BOOK = re.compile(r"^书名：(.{1,60})$", re.MULTILINE)
_MARKS = re.compile(r"^(?:内容|属性)：|\\x", re.MULTILINE)
# Characters of a line that may have been wrapped to a width; a shorter one ended by itself.
_NARROWEST = 25


class Plain:
    name = "plain"

    def matches(self, name: str, head: bytes) -> bool:
        """Whether it is a .txt file of sentences: lists, tables, markup and JSON are not."""
        plain = plain_head(utf8_head(head))
        if extension_of(name) not in {".txt", ".text"} or b"\0" in plain:
            return False
        return _MARKUP.match(plain) is None and _is_prose(plain)

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        for number, data in enumerate(read_parts(stream, name), 1):
            identifier = f"{id_of(name)}-{number}" if number > 1 else id_of(name)
            yield from self._read_part(decode_text(data, name), name, identifier)

    def _read_part(self, text: str, name: str, identifier: str) -> Iterator[Record]:
        text = unwrap_lines(clean_text(text))
        if is_classic := _CHAPTER.search(text) is not None:
            text = _MARKS.sub("", text)
        document = Document(
            id=identifier,
            title=(_book_title(text) if is_classic else "") or title_of(name),
            sections=sections_of(text, _heading_of),
        )
        yield from finish_cleaned(document, name)


def _is_prose(head: bytes) -> bool:
    """Whether at least a fifth of the lines hold the end of a sentence, and most no columns."""
    # Read as the wrong encoding, a text has no sentence ends: the right one is found by trying.
    for encoding in ("utf-8", "gb18030"):
        text = head.decode(encoding, errors="ignore")
        lines = [line for raw in text.splitlines() if (line := raw.strip())]
        columns = sum(line.count("\t") + line.count("|") for line in lines)
        ends = sum(_SENTENCE_END.search(line) is not None for line in lines)
        if ends and ends * 5 >= len(lines) > columns:
            return True
    return False


def _heading_of(line: str) -> Heading | None:
    mark = line[:4]
    return (_CLASSIC[mark], one_line(line[4:])) if mark in _CLASSIC else None


def _book_title(text: str) -> str:
    match = _BOOK.search(text)
    return one_line(match[1]) if match else ""


def unwrap_lines(text: str) -> str:
    """The text with lines joined that were wrapped to a width within a sentence."""
    lines: list[str] = []
    last = ""
    for line in text.split("\n"):
        joint = _join_mark(last, line)
        if joint is None:
            lines.append(line)
        else:
            lines[-1] += joint + line
        last = line
    return "\n".join(lines)


def _join_mark(before: str, after: str) -> str | None:
    """The text between two parts of a wrapped line: a space; "" in Chinese and within a word;
    `None`: a real end."""
    if len(before) < _NARROWEST or not after or before[-1] in ".!?:;。！？：；":
        return None
    is_word = before[-1] == "-" and before[-2:-1].isalpha() and after[0].islower()
    if not is_word and _is_item(before, after):
        return None
    if after[0].islower() or after[0] == "(":
        return "" if is_word else " "
    ends, begins = is_cjk(before[-1]), is_cjk(after[0])
    is_chinese = (ends or before[-1] in "，、") and (begins or after[0] in "，、。；")
    return "" if is_chinese else None


def _is_item(before: str, after: str) -> bool:
    """Whether a line is too short to be a part of a text as wide as the line before, or its end."""
    is_short = len(after) < min(_NARROWEST, len(before) * 0.75)
    return is_short and _SENTENCE_END.search(after) is None


_ATX = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
# A key first, and nothing but YAML: a page may also begin with a text between two rules.
_KEY = r"[\w\"'][^:\n]{0,60}:(?:[ \t][^\n]*)?\n"
_FRONT_MATTER = re.compile(
    rf"\A---[ \t]*\n({_KEY}(?:{_KEY}|(?:[ \t]|- |#)[^\n]*\n|-?\n)*?)---[ \t]*(?:\n|\Z)"
)
_FRONT_FIELD = re.compile(r"^(title|date|year)[ \t]*:[ \t]*(.*)$", re.MULTILINE | re.IGNORECASE)

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BREAK = re.compile(
    r"</?(?:p|div|br|hr|tr|li|ul|ol|dl|dt|dd|table|thead|tbody|h[1-6]|blockquote|figure"
    r"|figcaption|section|caption)\b[^<>]{0,2000}>",
    re.IGNORECASE,
)
_CELL = re.compile(r"</t[dh]\s*>\s*<t[dh]\b[^<>]{0,2000}>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,2000})?/?>")
_KRAMDOWN = re.compile(r"\{:[^{}\n]{0,1000}\}|^\^[ \t]*$", re.MULTILINE)

_IN_BRACKETS = r"((?:\\.|[^\[\]\\\n]|\[[^\[\]\n]{0,200}\]){0,2000})"
_TARGET = r"""\(\s*<?([^()\s<>]{0,2000})>?(?:\s+(?:"[^"]{0,4000}"|'[^']{0,4000}'))?\s*\)"""
# "([link](#fig-1))": a cross-reference that a converter could not name says nothing.
_BLIND_REFERENCE = re.compile(r"\[\\\[link\\\]\]\(#[^()\s]{0,500}\)")
_IMAGE_OR_LINK = re.compile(rf"!?\[{_IN_BRACKETS}\]{_TARGET}")
_ENTRY = re.compile(
    rf"\s*(?:\d{{1,4}}\.|[-*+])\s+(?:\{{:[^{{}}]{{0,200}}\}}\s*)?[^\[\]]{{0,40}}\[{_IN_BRACKETS}\]{_TARGET}\s*"
)
_FEWEST_ENTRIES = 10
# Each stops at the next mark of its kind: no text costs more than its length times a constant.
_STRUCK_TAG = re.compile(
    r"<(s|del|strike)(?:\s[^<>]{0,200})?>(?:[^<]|<(?!/?(?:s|del|strike)\b)){0,2000}+</\1\s*>",
    re.IGNORECASE,
)
_STRUCK = re.compile(r"(?<!~)~~(?![~\s])(?:[^~\n]|~(?!~)){1,400}+(?<!\s)~~(?!~)")
_STRONG = re.compile(r"(\*\*|__)(?=\S)([^\n]{1,400}?)(?<=\S)\1")
_EMPHASIS = re.compile(r"(?<![\w*])\*(?![\s*])([^*\n]{1,400})(?<![\s*])\*(?![\w*])")
_ESCAPED = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|>~<])")
# What the patterns above begin with. A text without any is as it reads: of a file of short
# headings, looking for marks that are not there was most of the work.
_MARK = re.compile(r"[<{^&\[*_\\~]")


class Markdown:
    name = "markdown"

    def matches(self, name: str, head: bytes) -> bool:
        return extension_of(name) in {".md", ".markdown", ".mdown"}

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        text = clean_text(decode_text(read_whole(stream, name), name))
        front, text = _front_matter(text)
        if _is_contents(text):
            yield Drop(name, "table of contents")
            return
        document = Document(
            id=id_of(name),
            title=front.get("title") or first_title(text) or title_of(name),
            sections=markdown_sections(text, front.get("title", "")),
            year=year_in(front.get("date", "") or front.get("year", "")),
            date=date_in(front.get("date", "")),
        )
        yield from finish_cleaned(document, name)


def _is_contents(text: str) -> bool:
    """Whether a page is little but a list of links to others (GitBook's SUMMARY.md)."""
    lines = [line for line in text.split("\n") if line.strip()]
    entries = sum(_ENTRY.fullmatch(line) is not None for line in lines)
    return entries >= _FEWEST_ENTRIES and entries * 5 >= len(lines) * 4


def markdown_sections(text: str, title: str = "") -> tuple[Section, ...]:
    """Sections under their headings; the first heading of level 1 is the title, not a path, unless
    there is another `title`."""
    outline = _Headings(title)
    return sections_of(text, outline.heading_of, _plain_text)


def first_title(text: str) -> str:
    """The first heading of level 1, or ""."""
    outline = _Headings()
    for line in text.split("\n"):
        outline.heading_of(line)
        if outline.title:
            return outline.title
    return ""


class _Headings:
    """Recognises heading lines; keeps the open fence of code and the title."""

    def __init__(self, title: str = "") -> None:
        self.title = title
        self._fence = _Fence()

    def heading_of(self, line: str) -> Heading | None:
        if self._fence.is_passed(line) or self._fence.mark or "#" not in line:
            return None
        match = _ATX.fullmatch(line)
        if match is None:
            return None
        level, heading = len(match[1]), one_line(_plain_text(match[2] or ""))
        if level == 1 and self.title.casefold() in {"", heading.casefold()}:
            self.title, heading = heading, ""
        return level, heading


def _may_fence(text: str) -> bool:
    return "```" in text or "~~~" in text


class _Fence:
    """The fence of code that is open, by its mark; "" for none."""

    mark = ""

    def is_passed(self, line: str) -> bool:
        """Whether the line opens a fence, or closes the one that is open."""
        match = _FENCE.match(line) if _may_fence(line) else None
        if match is None or not match[1].startswith(self.mark):
            return False
        if self.mark and line.strip() != match[1]:
            return False
        self.mark = "" if self.mark else match[1]
        return True


def _front_matter(text: str) -> tuple[dict[str, str], str]:
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    fields = {
        key.lower(): value.strip().strip("\"'") for key, value in _FRONT_FIELD.findall(match[1])
    }
    return fields, text[match.end() :]


def _plain_text(text: str) -> str:
    """A section's lines without marks; fenced code stays as it is."""
    if not _may_fence(text):
        return clean_text(_without_marks(text))
    fence = _Fence()
    told = [(fence.is_passed(line) or bool(fence.mark), line) for line in text.split("\n")]
    parts = []
    for is_code, lines in groupby(told, key=itemgetter(0)):
        part = "\n".join(line for _, line in lines)
        parts.append(part if is_code else _without_marks(part))
    return clean_text("\n".join(parts))


def _without_marks(text: str) -> str:
    return text if _MARK.search(text) is None else _strip_marks(_without_html(text))


def _without_html(text: str) -> str:
    text = _STRUCK_TAG.sub("", _KRAMDOWN.sub("", _COMMENT.sub("", text)))
    text = _BREAK.sub("\n", _CELL.sub(" | ", raise_marked(text)))
    return html.unescape(_TAG.sub("", text))


def _strip_marks(text: str) -> str:
    text = _STRUCK.sub("", text)
    text = _IMAGE_OR_LINK.sub(r"\1", _BLIND_REFERENCE.sub("", text))
    text = _IMAGE_OR_LINK.sub(r"\1", text)  # once more for a link around an image
    text = _EMPHASIS.sub(r"\1", _STRONG.sub(r"\2", text))
    return _ESCAPED.sub(r"\1", text)
