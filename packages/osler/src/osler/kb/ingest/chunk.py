"""Documents cut into passages: the three papers' ways, and the user's own numbers.

A cut falls at the widest boundary that fits: paragraph, line, sentence, word. Without an
overlap the chunks of a section, joined, are the section's text; with one, each chunk
begins that far before the end of the one before it. No character is ever lost.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal

from semantic_text_splitter import TextSplitter

from osler.errors import BadConfig
from osler.sources.catalogue import WEB
from osler.sources.records import Document, Section
from osler.text import is_cjk, split_sentences
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
    document: Document, *, how: Chunking = OMNI, source: str = ""
) -> Iterator[Chunk]:
    """Cuts a document section by section, in order.

    A chunk never crosses a section, so that its heading path is true for all of
    it; a section that fits, or has a number, is one chunk, and an empty one is none.
    """
    by_paragraph = how.web_by_paragraph and source == WEB
    # trim=False: the pieces, joined, must be the section's text.
    splitter = TextSplitter(how.size, trim=False)
    for section in document.sections:
        text = section.text
        if section.number is not None:
            yield Chunk(section, 0, len(text))
            continue
        for start, end in _paragraph_spans(text) if by_paragraph else [(0, len(text))]:
            for first, last in _cut_text(text[start:end], how, splitter):
                yield Chunk(section, start + first, start + last)


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
    """Makes the document's passages, numbered from 0 or as their sections: `source:document#n`.

    Each is a chunk without the white space at its two ends; a chunk of nothing but
    white space is skipped and takes no number. Offsets into a passage's text
    (`Evidence.start`) therefore count from its first visible character. `licence` is
    that of the source; a document's own goes before it.
    """
    pieces = chunk_document(document, how=how, source=source)
    visible = (piece for piece in pieces if piece.text.strip())
    for number, piece in enumerate(visible):
        own = piece.section.number
        yield Passage(
            id=f"{source}:{document.id}#{number if own is None else own}",
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
        date=document.date,
        url=document.url,
        code=document.code,
        kind=document.kind,
        authors=document.authors,
        journal=document.journal,
        notice=document.notice,
        key=document.key,
    )


_CJK = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Possessive quantifiers: without backtracking the work is linear in the text.
_ATOM = re.compile(rf"(?:\d+(?:[.,]\d+)*+|(?:(?![{_CJK}])[^\W_])++|[\s\S])\s*+")
_JOINER = "\u200d"


def cut_windows(text: str, size: int, overlap: int, unit: str) -> Iterator[tuple[int, int]]:
    """Yields spans of at most `size` units; each begins `overlap` units before the last one's end.

    Counted in tokens the overlap is exact; counted in characters it is the most that
    fits without cutting a word. A word longer than a window is cut between characters,
    a character with its marks only where it alone is longer. `2 * overlap < size`.
    """
    starts, weights = _text_atoms(text, size, unit)
    total = [0, *accumulate(weights)]
    ends = _sentence_ends(text, starts)
    first, last = 0, len(weights)
    while first < last:
        end = bisect_right(total, total[first] + size) - 1
        if end < last:
            end = _at_sentence(ends, end, bisect_left(total, total[first] + size // 2 + 1))
        yield starts[first], starts[end]
        if end == last:
            return
        repeated = bisect_left(total, total[end] - overlap)
        # With so much repeated that what follows does not fit, a window would stand still.
        first = max(first + 1, repeated, bisect_left(total, total[end + 1] - size))


def _text_atoms(text: str, size: int, unit: str) -> tuple[list[int], list[int]]:
    """Returns where each atom begins, with the text's end last, and the weight of each."""
    in_characters = unit == "characters"
    starts: list[int] = []
    for start, end in _atom_spans(text):
        if in_characters and end - start > size:
            starts += _split_atom(text, start, end, size)
        else:
            starts.append(start)
    starts.append(len(text))
    spans = pairwise(starts)
    # White space before the first word is no token.
    weights = [
        end - start if in_characters else int(bool(text[start:end].strip())) for start, end in spans
    ]
    return starts, weights


def _atom_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields words, Han characters and marks; a combining mark holds together what is around it."""
    begun, ended = 0, 0
    for atom in _ATOM.finditer(text):
        if ended and not _is_joined(text, atom.start()):
            yield begun, ended
            begun = atom.start()
        ended = atom.end()
    if ended:
        yield begun, ended


def _is_joined(text: str, place: int) -> bool:
    """Returns whether the character at `place` must not be parted from the one before it."""
    here, before = text[place], text[place - 1]
    if unicodedata.category(here)[0] == "M" or _JOINER in (here, before):
        return True
    # "é" as two characters within a word: the letters after the mark go on with the word.
    return unicodedata.category(before)[0] == "M" and here.isalnum() and not is_cjk(here)


def _split_atom(text: str, start: int, end: int, size: int) -> Iterator[int]:
    """Yields cuts in an atom that is too long: between letters, not before their marks."""
    while start < end:
        yield start
        place = min(start + size, end)
        if place < end:
            place = next((p for p in range(place, start, -1) if not _is_mark(text[p])), place)
        start = place


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M" or char == _JOINER


def _sentence_ends(text: str, starts: Sequence[int]) -> list[int]:
    """Lists numbers of the atoms before which a sentence has just ended, in order."""
    places = (bisect_left(starts, end) for _, end in split_sentences(text))
    return [place for place in places if place < len(starts)]


def _at_sentence(ends: Sequence[int], end: int, earliest: int) -> int:
    """Returns the last sentence end from `earliest` to `end`; `end` if absent."""
    place = bisect_right(ends, end) - 1
    return ends[place] if place >= 0 and ends[place] >= earliest else end


def token_count(text: str) -> int:
    """Counts tokens as `cut_windows` does."""
    return sum(1 for start, end in _atom_spans(text) if text[start:end].strip())
