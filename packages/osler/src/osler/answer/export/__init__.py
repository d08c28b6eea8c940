"""An answer as a file for other programs: a text with its references, or the references alone.

| Module | Writes |
|---|---|
| `layout` | the blocks of an answer, in order, and the cited documents with their identifiers |
| `texts` | Markdown and HTML |
| `office` | Word and PDF (extra `export`) |
| `fhir` | FHIR R4 resources with the AIAST label |
| `citations` | RIS, BibTeX; the evidence, and what its studies state, as tables (CSV) |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, get_args

from osler.answer.export import citations, fhir, office, texts
from osler.answer.export.layout import ExportedAnswer
from osler.errors import BadArgument

ExportFormat = Literal[
    "markdown",
    "html",
    "docx",
    "pdf",
    "ris",
    "bibtex",
    "csv",
    "studies",
    "fhir",
]
FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)


@dataclass(frozen=True, slots=True)
class FileKind:
    """How a format is written, and what its files are called."""

    write: Callable[[Sequence[ExportedAnswer]], bytes]
    suffix: str
    media: str
    is_text: bool = True
    needs: str = ""
    """The package without which nothing is written; empty = none but Osler's own."""


KINDS: dict[ExportFormat, FileKind] = {
    "markdown": FileKind(texts.write_markdown, ".md", "text/markdown; charset=utf-8"),
    "html": FileKind(texts.write_html, ".html", "text/html; charset=utf-8"),
    "docx": FileKind(
        office.write_docx,
        ".docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        is_text=False,
        needs="docx",
    ),
    "pdf": FileKind(office.write_pdf, ".pdf", "application/pdf", is_text=False, needs="reportlab"),
    "ris": FileKind(citations.write_ris, ".ris", "application/x-research-info-systems"),
    "bibtex": FileKind(citations.write_bibtex, ".bib", "application/x-bibtex"),
    "csv": FileKind(citations.write_csv, ".csv", "text/csv; charset=utf-8"),
    "studies": FileKind(citations.write_studies, ".csv", "text/csv; charset=utf-8"),
    "fhir": FileKind(fhir.write_fhir, ".fhir.json", "application/fhir+json"),
}


def write_export(answers: Sequence[ExportedAnswer], to: str) -> bytes:
    """One answer, or the turns of a conversation, as a file of format `to`.

    Raises `BadArgument` for an unknown format, and `BadConfig` without the extra `export` for
    one that needs it.
    """
    return find_kind(to).write(answers)


def usable_formats() -> tuple[ExportFormat, ...]:
    """Those that this installation can write: some need the extra `export`."""
    return tuple(
        name for name, kind in KINDS.items() if not kind.needs or find_spec(kind.needs) is not None
    )


def find_kind(to: str) -> FileKind:
    """Raises `BadArgument` for an unknown format."""
    for name, kind in KINDS.items():
        if name == to:
            return kind
    raise BadArgument(f"unknown format {to!r}", fix=f"choose one of {', '.join(FORMATS)}")


__all__ = ["FORMATS", "KINDS", "ExportFormat", "ExportedAnswer", "find_kind", "write_export"]
