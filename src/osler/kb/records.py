"""What a parser yields: a document, or a record it had to drop and why.

Nothing is swallowed: `Drop` is a value, counted and shown by `osler kb info`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from osler.types import Language


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of running text under one heading path."""

    text: str
    path: tuple[str, ...] = ()
    """Headings above it, outermost first, without the document's title."""
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One article, chapter, guideline, concept or patient, before it is cut into passages."""

    id: str
    """Unique within its source; letters, digits, `.`, `_`, `-` (see `slug`)."""
    title: str
    sections: tuple[Section, ...]
    language: Language = "en"
    year: int | None = None
    url: str = ""
    code: str = ""
    kind: str = ""
    licence: str = ""
    illustrative: bool = False


@dataclass(frozen=True, slots=True)
class Drop:
    """A record that did not become a document."""

    where: str
    """File, and the place in it: "pubmed.xml.gz: PMID 123", "medical.json:17"."""
    reason: str
    """Short and the same for equal causes, so that it can be counted: "no abstract"."""


Record = Document | Drop


class Parser(Protocol):
    """One public format. Streams: memory does not grow with the file."""

    name: str
    """Short name for `--format` and reports: "pubmed-xml"."""

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file called `name` that begins with `head` (4 KiB) is of this format."""
        ...

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Documents and drops, in the file's order.

        Raises `MalformedSource` only when the file as a whole cannot be read;
        a single bad record is a `Drop`.
        """
        ...


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file found by `kb add`: on disk, or a member of an archive."""

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path.name}!{self.member}" if self.member else self.path.name
