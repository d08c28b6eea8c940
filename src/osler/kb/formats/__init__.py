"""One parser for each public format; which one a file wants is told by its first bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from osler.errors import BadConfig
from osler.kb.formats.eicu import Eicu
from osler.kb.formats.fhir import Fhir
from osler.kb.formats.guideline_jsonl import GuidelineJsonl
from osler.kb.formats.html import Html
from osler.kb.formats.markdown import Markdown
from osler.kb.formats.medline import Medline
from osler.kb.formats.medquad_xml import MedquadXml
from osler.kb.formats.medrag_jsonl import MedragJsonl
from osler.kb.formats.mimic import Mimic
from osler.kb.formats.obo import Obo
from osler.kb.formats.omop import Omop
from osler.kb.formats.osler_jsonl import OslerJsonl
from osler.kb.formats.plain import Plain
from osler.kb.formats.pubmed_xml import PubmedXml
from osler.kb.formats.rrf import Rrf
from osler.kb.formats.synthea import Synthea
from osler.kb.formats.wikiextractor import Wikiextractor
from osler.kb.records import Parser, Record

__all__ = ["FOLDER_PARSERS", "PARSERS", "FolderParser", "by_name", "sniff", "sniff_folder"]


@runtime_checkable
class FolderParser(Protocol):
    """A format whose tables belong together: a folder of them is one unit."""

    name: str

    def matches_folder(self, folder: Path) -> bool:
        """Whether the folder itself, without those inside it, holds the format's tables."""
        ...

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """As `Parser.parse`, for all tables of the folder together."""
        ...


PARSERS: tuple[Parser, ...] = (
    OslerJsonl(),
    PubmedXml(),
    MedquadXml(),
    Fhir(),
    GuidelineJsonl(),
    MedragJsonl(),
    Wikiextractor(),
    Obo(),
    Medline(),
    Html(),
    Markdown(),
    Plain(),
)
"""In sniffing order: what is known by its contents goes before what is known by its name."""

FOLDER_PARSERS: tuple[FolderParser, ...] = (Rrf(), Mimic(), Eicu(), Omop(), Synthea())


def by_name(name: str) -> Parser | FolderParser:
    """The parser that `--format` names; raises `BadConfig`, with the names, for any other."""
    parsers: tuple[Parser | FolderParser, ...] = (*PARSERS, *FOLDER_PARSERS)
    for parser in parsers:
        if parser.name == name:
            return parser
    known = ", ".join(parser.name for parser in parsers)
    raise BadConfig(f"there is no format {name!r}", fix=f"use one of {known}")


def sniff(name: str, head: bytes) -> Parser | None:
    """The parser of a file called `name` that begins with `head` (4 KiB), if there is one."""
    return next((parser for parser in PARSERS if parser.matches(name, head)), None)


def sniff_folder(folder: Path) -> FolderParser | None:
    """The parser that takes the folder as one unit, if there is one."""
    return next((parser for parser in FOLDER_PARSERS if parser.matches_folder(folder)), None)
