"""Documents cut into passages of at most 1,000 characters (Omni-RAG §3.1).

A cut falls at the widest boundary that fits: paragraph, line, sentence, word. No
character is lost: the chunks of a section, joined, are the section's text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from semantic_text_splitter import TextSplitter

from osler.kb.records import Document, Section
from osler.types import Locator, Passage

LIMIT = 1000


@dataclass(frozen=True, slots=True)
class Chunk:
    """The stretch `section.text[start:end]`."""

    section: Section
    start: int
    end: int

    @property
    def text(self) -> str:
        return self.section.text[self.start : self.end]


def chunk(document: Document, *, limit: int = LIMIT) -> Iterator[Chunk]:
    """Chunks of at most `limit` characters, section by section, in order.

    A chunk never crosses a section, so that its heading path is true for all of
    it; a section that fits is one chunk, and an empty one is none. `limit` >= 1.
    """
    splitter = TextSplitter(limit, trim=False)
    for section in document.sections:
        if len(section.text) <= limit:
            pieces = [(0, section.text)] if section.text else []
        else:
            pieces = splitter.chunk_indices(section.text)
        for start, piece in pieces:
            yield Chunk(section, start, start + len(piece))


def passages(document: Document, source: str, licence: str = "") -> Iterator[Passage]:
    """The document's passages, numbered from 0: id `source:document#n`.

    Each is a chunk without the white space at its two ends; a chunk of nothing but
    white space is skipped and takes no number. Offsets into a passage's text
    (`Evidence.start`) therefore count from its first visible character. `licence` is
    that of the source; a document's own goes before it.
    """
    visible = (piece for piece in chunk(document) if piece.text.strip())
    for number, piece in enumerate(visible):
        yield Passage(
            id=f"{source}:{document.id}#{number}",
            text=piece.text.strip(),
            source=source,
            title=document.title,
            locator=_locator(document, piece.section),
            licence=document.licence or licence,
            language=document.language,
            illustrative=document.illustrative,
        )


def _locator(document: Document, section: Section) -> Locator:
    return Locator(
        section=" > ".join(section.path),
        page=section.page,
        year=document.year,
        url=document.url,
        code=document.code,
        kind=document.kind,
    )
