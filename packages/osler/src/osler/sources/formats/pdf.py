"""PDF with a text layer, page by page, so that a citation names its page. Needs the extra `pdf`.

Lines that stand at the top or the bottom of most pages (running heads, page numbers) are
left out, and so are addresses and lists of references (Omni-RAG §3.1). The bookmarks, where
there are any, are the heading paths. A page without text (a scan) is a drop, and counted;
a file of nothing else is named, with what makes text of it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any, BinaryIO

from osler.errors import MalformedSource
from osler.sources.formats.containers import Unreadable, require_package
from osler.sources.formats.markdown import unwrap_lines
from osler.sources.formats.reading import id_of, on_disk, title_of
from osler.sources.formats.sections import HeadingPath, finish_cleaned, is_apparatus
from osler.sources.records import Document, Drop, Record, Section
from osler.text import clean_text, one_line

_MOST_PAGES = 20_000
# Characters of one document; more than any book has.
_MOST_TEXT = 64 * 2**20
# A damaged outline may have no end.
_MOST_BOOKMARKS = 20_000
_EDGE_LINES = 3
_FEWEST_REPEATS = 3
# Of the pages: a line at the edge of so many is a running head or foot.
_SHARE = 0.4
# A chapter's head stands on pages near each other.
_NEAR_PAGES = 4
_SHORTEST_HEAD, _LONGEST_HEAD = 4, 120
_FIRST_WORD, _LAST_WORD = re.compile(r"(\d{1,5})(?:\s|$)"), re.compile(r"(?:^|\s)(\d{1,5})$")
_DIGITS = re.compile(r"\d+|(?<![^\W\d_])[ivxlc]+(?![^\W\d_])")
_CITED = re.compile(r"(?:19|20)\d\d\b|\bet al\b|\bdoi\b|\d+\s*[:(]\s*\d+|\[[JM]\]", re.IGNORECASE)
# Of the lines of a list of references: so many hold a citation; an entry takes two or three.
_SHARE_CITED = 0.25
# PDFium's mark of a hyphen at a line's end that is no part of the word.
_JOINED = re.compile("[\ufffe\x02]\\s*")
_MADE = re.compile(r"^(?:microsoft|untitled)|\.[a-z][a-z\d]{1,3}$", re.IGNORECASE)
_NO_TEXT = "page without text"
_PASSWORD = 4  # FPDF_ERR_PASSWORD

Page = tuple[int, list[str]]
"""Number from 1, and lines."""


class Pdf:
    name = "pdf"

    def matches(self, name: str, head: bytes) -> bool:
        # By its name too: what is called a PDF and is none is told to be broken, not unknown.
        return head[:1024].find(b"%PDF-") >= 0 or name.lower().endswith(".pdf")

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        require_package("pypdfium2", "pdf", name)
        with on_disk(stream, ".pdf") as path:
            yield from _read_records(path, name)


def _read_records(path: Path, name: str) -> Iterator[Record]:
    import pypdfium2

    try:
        pdf = pypdfium2.PdfDocument(path)
    except pypdfium2.PdfiumError as error:
        # PDFium's error code is global: a file without pages shows that of an earlier file.
        if error.err_code == _PASSWORD and _says_encrypted(path):
            raise Unreadable(name, "encrypted", fix="save it without a password") from error
        raise MalformedSource(
            f"{name} is not a PDF that can be opened", fix="fetch it again"
        ) from error
    with closing(pdf):
        yield from _of_document(pdf, name)


def _says_encrypted(path: Path) -> bool:
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as content:
        return content.find(b"/Encrypt") >= 0


def _of_document(pdf: Any, name: str) -> Iterator[Record]:
    pages: list[Page] = []
    scanned: list[Drop] = []
    total = 0
    for number, lines in _read_pages(pdf, name):
        if isinstance(lines, Drop):
            scanned.append(lines)
            continue
        total += sum(map(len, lines))
        if total > _MOST_TEXT:
            raise MalformedSource(
                f"{name} holds more than {_MOST_TEXT // 2**20} million characters",
                fix="split it into volumes",
            )
        pages.append((number, lines))
    if not pages and {one.reason for one in scanned} == {_NO_TEXT}:
        raise Unreadable(
            *(name, "pictures of pages: make their text with ocrmypdf first"),
            fix=f"ocrmypdf {name} with-text.pdf, and add that",
        )
    yield from scanned
    paths = _bookmark_paths(pdf)
    # Without a year: the file knows the day on which it was made, not that of publication.
    document = Document(
        id=id_of(name),
        title=_document_title(one_line(pdf.get_metadata_value("Title")), name),
        sections=tuple(_build_sections(_without_furniture(pages), paths)),
    )
    yield from finish_cleaned(document, name)


def _read_pages(pdf: Any, name: str) -> Iterator[tuple[int, list[str] | Drop]]:
    import pypdfium2

    count = len(pdf)
    for number in range(1, min(count, _MOST_PAGES) + 1):
        where = f"{name}: p. {number}"
        try:
            with closing(pdf[number - 1]) as page, closing(page.get_textpage()) as layer:
                text = clean_text(_JOINED.sub("", layer.get_text_range()))
        except pypdfium2.PdfiumError:
            yield number, Drop(where, "unreadable page")
        else:
            yield number, text.split("\n") if text else Drop(where, _NO_TEXT)
    if count > _MOST_PAGES:
        yield count, Drop(f"{name}: p. {_MOST_PAGES + 1} to {count}", "too many pages")


def _without_furniture(pages: list[Page]) -> Iterator[Page]:
    """The pages without lines that repeat at their edges, whatever numbers stand in them, and
    without those with the page's number: a book's heads change with its chapters."""
    edges = {number: set(map(_exact, _edge_lines(lines))) for number, lines in pages}
    seen = Counter(key for _, lines in pages for key in set(map(_line_key, _edge_lines(lines))))
    often = max(_FEWEST_REPEATS, _SHARE * len(pages))
    printed = _printed_numbers(pages)

    def is_furniture(line: str, number: int, at: str) -> bool:
        if seen[_line_key(line)] >= often:
            return True
        if len(line) > _LONGEST_HEAD:  # a hyphen at the page's end may join text to the foot
            return False
        if printed & _numbers_beside(line, at, number):
            return True
        near = range(number - _NEAR_PAGES, number + _NEAR_PAGES + 1)
        told = sum(_exact(line) in edges.get(page, ()) for page in near)
        return told >= _FEWEST_REPEATS and len(line) >= _SHORTEST_HEAD

    for number, lines in pages:
        top, bottom = 0, len(lines)
        while top < min(_EDGE_LINES, bottom) and is_furniture(lines[top], number, "top"):
            top += 1
        while bottom > max(top, len(lines) - _EDGE_LINES) and is_furniture(
            lines[bottom - 1], number, "bottom"
        ):
            bottom -= 1
        yield number, lines[top:bottom]


Printed = tuple[str, str, int]
"""Edge of the page, end of the line, and the number there less the page's place in the file."""


def _printed_numbers(pages: list[Page]) -> set[Printed]:
    """Where pages print their numbers: a heading "4 Diagnosis" on page 4 is none of them."""
    apart = Counter(
        one
        for number, lines in pages
        if lines
        for at, line in (("top", lines[0]), ("bottom", lines[-1]))
        for one in _numbers_beside(line, at, number)
    )
    often = max(_FEWEST_REPEATS, _SHARE / 2 * len(pages))  # left and right pages differ
    return {one for one, times in apart.items() if times >= often}


def _numbers_beside(line: str, at: str, number: int) -> set[Printed]:
    """The numbers that a line begins and ends with."""
    ends = {"begin": _FIRST_WORD.match(line), "end": _LAST_WORD.search(line)}
    return {(at, end, int(found[1]) - number) for end, found in ends.items() if found}


def _exact(line: str) -> str:
    return one_line(line).casefold()


def _edge_lines(lines: list[str]) -> list[str]:
    return [*lines[:_EDGE_LINES], *lines[-_EDGE_LINES:]]


def _line_key(line: str) -> str:
    return _DIGITS.sub("#", _exact(line))


def _build_sections(pages: Iterator[Page], paths: dict[int, tuple[str, ...]]) -> Iterator[Section]:
    """One section a page, so that the page of every passage is known."""
    path: tuple[str, ...] = ()
    in_references = False
    for number, lines in pages:
        path = paths.get(number, path)
        in_references = in_references and _are_references(lines)
        end = 0 if in_references else _references_begin(lines)
        in_references = in_references or end < len(lines)
        if text := clean_text(unwrap_lines("\n".join(lines[:end]))):
            yield Section(text, path, number)


def _references_begin(lines: list[str]) -> int:
    """The line of the heading of the references, or the number of lines.

    A table of contents names that heading as well, but no references follow.
    """
    for place, line in enumerate(lines):
        if is_apparatus(line) and _are_references(lines[place + 1 :]):
            return place
    return len(lines)


def _are_references(lines: list[str]) -> bool:
    cited = sum(_CITED.search(line) is not None for line in lines)
    return cited >= max(2, _SHARE_CITED * len(lines))


def _bookmark_paths(pdf: Any) -> dict[int, tuple[str, ...]]:
    """The heading path of the last bookmark on each page that has one."""
    outline, paths = HeadingPath(), dict[int, tuple[str, ...]]()
    for number, item in enumerate(pdf.get_toc()):
        if number == _MOST_BOOKMARKS:
            break
        target = item.get_dest()
        index = target.get_index() if target is not None else None
        outline.enter_heading(item.level + 1, one_line(item.get_title()))
        if index is not None:
            paths[index + 1] = outline.path
    return paths


def _document_title(title: str, name: str) -> str:
    """The PDF's own title, unless a program wrote it ("Microsoft Word - draft3.doc")."""
    return title_of(name) if not title or _MADE.search(title) else title
