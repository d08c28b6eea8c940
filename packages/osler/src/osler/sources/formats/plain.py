"""Plain text: a file is a document, its paragraphs are one section.

The transcriptions of Chinese classics mark their headings, <目录> for a part and
<篇名> for a chapter; where these stand they become heading paths, the book's own name
(书名：) becomes the title, and the marks before a chapter's text (内容：, 属性：, \\x) go.
Addresses and lists of references are left out (Omni-RAG §3.1) and counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from osler.sources.formats.headings import Heading, sections_of
from osler.sources.formats.noise import finish_cleaned
from osler.sources.formats.reading import (
    decode_text,
    extension_of,
    id_of,
    plain_head,
    read_whole,
    title_of,
    utf8_head,
)
from osler.sources.records import Document, Record
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
        text = unwrap_lines(clean_text(decode_text(read_whole(stream, name), name)))
        if is_classic := _CHAPTER.search(text) is not None:
            text = _MARKS.sub("", text)
        document = Document(
            id=id_of(name),
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
    """The text between two parts of a wrapped line: a space, in Chinese ""; `None`: a real end."""
    if len(before) < _NARROWEST or not after or before[-1] in ".!?:;。！？：；":
        return None
    if after[0].islower() or after[0] == "(":
        return " "
    ends, begins = is_cjk(before[-1]), is_cjk(after[0])
    is_chinese = (ends or before[-1] in "，、") and (begins or after[0] in "，、。；")
    return "" if is_chinese else None
