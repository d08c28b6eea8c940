"""The values that a parser yields: documents, deletions, and drops with their reasons.

Nothing is swallowed: `Drop` is a value, counted and shown by `osler kb info`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
    number: int | None = None
    """Of a passage that was cut before (an export's), and is not cut again; `None`: no passage."""


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
    kinds: tuple[str, ...] = ()
    """Every publication type; `kind` is the most informative of them."""
    retracted: bool = False
    trust: int | None = None
    """1 (least) to 5, see `osler.sources.catalogue.trust_of`; `None` = that of its source."""
    version: int = 0
    """Grows with each revision by the publisher. Of two documents with one id the greater
    stays, and of equal ones (above 0) that of the file whose name sorts later; 0 = the
    publisher counts none, and the first one read stays."""
    origin: str = ""
    """Path or address it first came from, where that is not the file it is read from."""
    checksum: str = ""
    """SHA-256 of the file at `origin`, in hexadecimal."""
    name: str = field(default="", compare=False)
    """Its identifier as its publisher writes it: tells "a/b" from "a b", whose `id` is one."""
    source: str = ""
    """The source it was exported from; "" for other formats."""
    authors: tuple[str, ...] = ()
    """As in `osler.types.Locator`, and so are the next three; the first 50."""
    journal: str = ""
    notice: str = ""
    key: str = ""
    doi: str = ""
    date: str = ""
    """As in `osler.types.Locator`."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A document that its publisher has taken back (PubMed's DeleteCitation): an earlier file's
    version of it is removed."""

    document: str
    """Its id within the source."""
    where: str = ""
    """As `Drop.where`."""


@dataclass(frozen=True, slots=True)
class Drop:
    """A record that did not become a document."""

    where: str
    """File, and the place in it: "pubmed.xml.gz: PMID 123", "medical.json:17"."""
    reason: str
    """Short and the same for equal causes, so that it can be counted: "no abstract"."""
    line: int | None = None
    """Line of the file, from 1, where the parser knows it."""


Record = Document | Deleted | Drop


class Parser(Protocol):
    """One public format. Streams: memory does not grow with the file."""

    name: str
    """Short name for `--format` and reports: "pubmed-xml"."""

    def matches(self, name: str, head: bytes) -> bool:
        """Whether a file called `name` that begins with `head` (4 KiB) is of this format."""

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Documents and drops, in the file's order.

        Raises `MalformedSource` only when the file as a whole cannot be read;
        a single bad record is a `Drop`.
        """


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file found by `kb add`: on disk, or a member of an archive."""

    path: Path
    member: str = ""

    def __str__(self) -> str:
        return f"{self.path.name}!{self.member}" if self.member else self.path.name
