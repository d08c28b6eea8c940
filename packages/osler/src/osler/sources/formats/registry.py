"""The choice of a parser by a file's name and first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

from osler.errors import BadConfig, MalformedSource
from osler.sources.formats.collection_xml import Cnxml, MedquadXml
from osler.sources.formats.containers import require_package
from osler.sources.formats.html import Html
from osler.sources.formats.jats import Jats
from osler.sources.formats.json_lines import OslerJsonl
from osler.sources.formats.json_records import (
    EvaluationFile,
    GuidelineJsonl,
    JsonRecords,
    MedragJsonl,
)
from osler.sources.formats.labels import OpenfdaLabels, Spl
from osler.sources.formats.markdown import Markdown, Plain
from osler.sources.formats.obo import Obo
from osler.sources.formats.office import Docx, Xlsx
from osler.sources.formats.pdf import Pdf
from osler.sources.formats.pubmed import Medline, PubmedXml
from osler.sources.formats.reading import extension_of
from osler.sources.formats.references import Bibtex, CslJson, EndnoteXml, Ris
from osler.sources.formats.rows import CsvRows, Parquet
from osler.sources.formats.rrf import Rrf
from osler.sources.formats.trials import ClinicalTrialsJson
from osler.sources.formats.wikis import Kilt, Mediawiki, WikiApi, Wikiextractor
from osler.sources.formats.zim import Zim
from osler.sources.formats.zotero import Zotero
from osler.sources.patients import CLINIC, has_clinic, import_clinic
from osler.sources.records import Parser, Record
from osler.text import load_plugins


@runtime_checkable
class FolderParser(Protocol):
    """A format whose tables belong together: a folder of them is one unit."""

    name: str

    def matches_folder(self, folder: Path) -> bool:
        """Whether the folder itself, without those inside it, holds the format's tables."""

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """As `Parser.parse`, for all tables of the folder together."""


@runtime_checkable
class CompanionParser(Protocol):
    """A format whose documents are named and ordered by companion files beside them."""

    name: str

    def is_companion(self, name: str) -> bool:
        """Whether a file of this name is a companion (e.g. a table of contents) without text."""

    def with_companions(self, paths: Sequence[Path]) -> Parser:
        """The parser with these companions. Raises `MalformedSource` for an unreadable one."""


class UnreadRecords:
    """Records of patients, where what leaves their names out is not installed: nothing else may
    read them, so they are dropped for that reason."""

    name = "records"

    def matches(self, name: str, head: bytes) -> bool:
        return _RESOURCE.search(head) is not None

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        require_package(CLINIC, "serve", name)
        yield from ()

    def matches_folder(self, folder: Path) -> bool:
        return any(_OF_PEOPLE.fullmatch(path.name) for path in folder.iterdir())

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        require_package(CLINIC, "serve", folder.name)
        yield from ()


_RESOURCE = re.compile(rb'"resourceType"\s*:|hl7\.org/fhir')
_OF_PEOPLE = re.compile(
    r"(?:(?:clif_)?patients?|person|edstays)\.(?:csv|parquet)(?:\.gz)?", re.IGNORECASE
)


def _record_parsers() -> tuple[tuple[Parser, ...], tuple[FolderParser, ...]]:
    if not has_clinic():
        return (UnreadRecords(),), (UnreadRecords(),)
    records = import_clinic("records.readers")
    return records.PARSERS, records.FOLDER_PARSERS


_RECORDS, _RECORD_FOLDERS = _record_parsers()

PARSERS: tuple[Parser, ...] = (
    *(parser() for parser in load_plugins("osler.formats").values()),
    OslerJsonl(),
    PubmedXml(),
    MedquadXml(),
    Jats(),
    Cnxml(),
    Spl(),
    Mediawiki(),
    Zim(),
    Pdf(),
    Parquet(),
    Xlsx(),
    Docx(),
    ClinicalTrialsJson(),
    OpenfdaLabels(),
    *_RECORDS,
    WikiApi(),
    GuidelineJsonl(),
    MedragJsonl(),
    Wikiextractor(),
    Kilt(),
    EvaluationFile(),
    CslJson(),
    JsonRecords(),
    CsvRows(),
    Obo(),
    Medline(),
    Ris(),
    Bibtex(),
    EndnoteXml(),
    Html(),
    Markdown(),
    Plain(),
)
"""In sniffing order: those of other packages (entry points of `osler.formats`, each a class), then
what is known by its contents, then what is known by its name."""

FOLDER_PARSERS: tuple[FolderParser, ...] = (
    Rrf(),
    *_RECORD_FOLDERS,
    Zotero(),
)

_KEYED = "rows:"
"""Before the names of columns, "rows:drug|form", as a format's name."""


class KeyedRows:
    """Tables of any kind whose rows are named by these columns."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.name = _KEYED + "|".join(keys)
        self._keys = keys

    def matches(self, name: str, head: bytes) -> bool:
        return False

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """As `Parser.parse`. Raises `MalformedSource` for what is no table."""
        kinds = (CsvRows, ".csv .tsv"), (Xlsx, ".xlsx .xlsm"), (Parquet, ".parquet")
        kind = next((one for one, ends in kinds if extension_of(name) in ends.split()), None)
        if kind is None:
            raise MalformedSource(f"{name} is no table", fix="leave out the key column")
        yield from kind(self._keys).parse(stream, name)


_TABLE = re.compile(r"\.(?:csv|parquet|rrf)(?:\.gz)?$|^zotero\.sqlite$", re.IGNORECASE)


def by_name(name: str) -> Parser | FolderParser:
    """The parser that `--format` names; raises `BadConfig`, with the names, for any other."""
    if name.startswith(_KEYED):
        return KeyedRows(name.removeprefix(_KEYED).split("|"))
    parsers: tuple[Parser | FolderParser, ...] = (*PARSERS, *FOLDER_PARSERS)
    for parser in parsers:
        if parser.name == name:
            return parser
    known = ", ".join(parser.name for parser in parsers)
    raise BadConfig(f"there is no format {name!r}", fix=f"use one of {known}")


def sniff_file(name: str, head: bytes) -> Parser | None:
    """The parser of a file called `name` that begins with `head` (4 KiB), if there is one."""
    return next((parser for parser in PARSERS if parser.matches(name, head)), None)


def sniff_folder(folder: Path) -> FolderParser | None:
    """The parser that takes the folder as one unit, if there is one."""
    # Each format lists the folder anew: most folders hold no tables, and are listed once.
    if not any(_TABLE.search(path.name) for path in folder.iterdir()):
        return None
    return next((parser for parser in FOLDER_PARSERS if parser.matches_folder(folder)), None)
