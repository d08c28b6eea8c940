"""Documents cut into passages: the three papers' ways, and the user's own numbers.

A cut falls at the widest boundary that fits: paragraph, line, sentence, word. Without an
overlap the chunks of a section, joined, are the section's text; with one, each chunk
begins that far before the end of the one before it. No character is ever lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from semantic_text_splitter import TextSplitter

from osler.errors import BadConfig
from osler.kb.ingest.windows import cut_windows
from osler.sources.catalogue import WEB
from osler.sources.records import Document, Section
from osler.types import Locator, Passage

LIMIT = 1000

Unit = Literal["characters", "tokens"]


@dataclass(frozen=True, slots=True)
class Chunking:
    """Sizes and units for cutting texts; `name` is stored with each document, and read back."""

    name: str
    size: int
    """The most that a chunk holds, in `unit`s; at least 1."""
    overlap: int = 0
    """Length of a chunk's end that the next one repeats; less than half of `size`."""
    unit: Unit = "characters"
    """A token is a Han character, a word or number of another script, or a mark."""
    web_by_paragraph: bool = False
    """Makes each paragraph of a web page a chunk of its own."""

    def __post_init__(self) -> None:
        if self.size < 1 or not 0 <= 2 * self.overlap < self.size:
            raise BadConfig(
                f"chunks of {self.size} {self.unit} cannot overlap by {self.overlap}",
                fix="take an overlap of less than half of the size",
            )


OMNI = Chunking("omni", LIMIT)
"""Omni-RAG §3.1: at most 1,000 characters."""
KAG = Chunking("kag", LIMIT, web_by_paragraph=True)
"""KAG-Thinker App. 14: by chapter, at most 1,000 characters, the chapter path kept; a
paragraph of a web page is a chunk."""
TC_RAG = Chunking("tc-rag", 128, overlap=50, unit="tokens")
"""TC-RAG App. 8.5: 128 tokens, the last 50 of them repeated."""
PRESETS = {preset.name: preset for preset in (OMNI, KAG, TC_RAG)}

_NUMBERS = re.compile(r"(?P<size>\d{1,6})(?P<unit>c|t)?(?:\+(?P<overlap>\d{1,6}))?", re.ASCII)
_SMALLEST = 16
_BLOCK = 2**14
_BLOCK_ENDS = ("\n", "。", ". ", " ")


def parse_chunking(name: str) -> Chunking:
    """Reads a preset by its name, or the user's numbers: "800", "800+100", "256t+64".

    A size alone is in characters ("c"); "t" counts tokens; what follows "+" is the
    overlap. Raises `BadConfig` for anything else.
    """
    if name in PRESETS:
        return PRESETS[name]
    numbers = _NUMBERS.fullmatch(name)
    if numbers is None or int(numbers["size"]) < _SMALLEST:
        raise BadConfig(
            f"unknown chunking {name!r}",
            fix=f"use {', '.join(PRESETS)}, or numbers as in 800, 800+100 or 256t+64"
            f" (at least {_SMALLEST})",
        )
    unit: Unit = "tokens" if numbers["unit"] == "t" else "characters"
    return Chunking(name, int(numbers["size"]), int(numbers["overlap"] or 0), unit)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The stretch `section.text[start:end]`."""

    section: Section
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.section.text[self.start : self.end]


def chunk_document(
    document: Document, *, limit: int = LIMIT, how: Chunking | None = None, source: str = ""
) -> Iterator[Chunk]:
    """Cuts a document section by section, in order; `how` goes before `limit` (characters, >= 1).

    A chunk never crosses a section, so that its heading path is true for all of
    it; a section that fits is one chunk, and an empty one is none.
    """
    how = how or Chunking("", limit)
    by_paragraph = how.web_by_paragraph and source == WEB
    # trim=False: the pieces, joined, must be the section's text.
    splitter = TextSplitter(how.size, trim=False)
    for section in document.sections:
        for start, end in (
            _paragraph_spans(section.text) if by_paragraph else [(0, len(section.text))]
        ):
            for piece in _cut_text(section.text[start:end], how, splitter):
                yield Chunk(section, start + piece[0], start + piece[1])


def _cut_text(text: str, how: Chunking, splitter: TextSplitter) -> Iterator[tuple[int, int]]:
    if how.unit == "characters" and len(text) <= how.size:
        if text:
            yield 0, len(text)
    elif how.unit == "characters" and not how.overlap:
        for begin, end in _text_blocks(text):
            for start, piece in splitter.chunk_indices(text[begin:end]):
                yield begin + start, begin + start + len(piece)
    else:
        yield from cut_windows(text, how.size, how.overlap, how.unit)


def _text_blocks(text: str) -> Iterator[tuple[int, int]]:
    """Splits long texts into blocks: the splitter's work grows with a line's length squared."""
    start = 0
    while len(text) - start > _BLOCK:
        limit, earliest = start + _BLOCK, start + _BLOCK // 2
        places = (text.rfind(mark, earliest, limit) + len(mark) for mark in _BLOCK_ENDS)
        end = next((place for place in places if place > earliest), limit)
        yield start, end
        start = end
    yield start, len(text)


def _paragraph_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields each paragraph with the line ends behind it."""
    start = 0
    for gap in re.finditer(r"\n+", text):
        yield start, gap.end()
        start = gap.end()
    if start < len(text):
        yield start, len(text)


def document_passages(
    document: Document, source: str, licence: str = "", how: Chunking = OMNI
) -> Iterator[Passage]:
    """Makes the document's passages, numbered from 0: id `source:document#n`.

    Each is a chunk without the white space at its two ends; a chunk of nothing but
    white space is skipped and takes no number. Offsets into a passage's text
    (`Evidence.start`) therefore count from its first visible character. `licence` is
    that of the source; a document's own goes before it.
    """
    pieces = chunk_document(document, how=how, source=source)
    visible = (piece for piece in pieces if piece.text.strip())
    for number, piece in enumerate(visible):
        yield Passage(
            id=f"{source}:{document.id}#{number}",
            text=piece.text.strip(),
            source=source,
            title=document.title,
            locator=_make_locator(document, piece.section),
            licence=document.licence or licence,
            language=document.language,
            illustrative=document.illustrative,
        )


def _make_locator(document: Document, section: Section) -> Locator:
    return Locator(
        section=" > ".join(section.path),
        page=section.page,
        year=document.year,
        url=document.url,
        code=document.code,
        kind=document.kind,
    )
