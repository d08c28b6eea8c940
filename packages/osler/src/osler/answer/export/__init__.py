"""An answer as a file for other programs: a text with its references, or the references alone.

| Module | Writes |
|---|---|
| `layout` | the blocks of an answer, in order, and the cited documents with their identifiers |
| `texts` | Markdown and HTML |
| `fhir` | FHIR R4 resources with the AIAST label |

This module writes Word and PDF, by python-docx and reportlab (extra `export`); references for
reference managers (RIS, BibTeX); and the evidence, and what its studies state, as tables (CSV).
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from html import escape
from importlib.util import find_spec
from typing import Any, Literal, get_args

from osler.answer.evidence_table import flat_rows, tabulate_studies
from osler.answer.export import fhir, texts
from osler.answer.export.layout import Block, ExportedAnswer, Reference, find_identifiers, lay_out
from osler.answer.export.texts import is_web_address
from osler.errors import BadArgument, require_extra
from osler.sources.catalogue import BOOK, GUIDELINE, RESEARCH
from osler.sources.citable import FINDERS
from osler.text import escape_controls

# A source as RIS and BibTeX name the kind of its documents.
_KINDS = {
    RESEARCH: ("JOUR", "article"),
    BOOK: ("CHAP", "inbook"),
    GUIDELINE: ("RPRT", "techreport"),
}
_OTHER = ("ELEC", "misc")
_COLUMNS = (
    *("number", "statement", "quote", "title", "section", "source", "kind", "authors", "journal"),
    *("notice", "year", "page"),
    *FINDERS,
    *("url", "passage", "licence"),
)
_STUDY_COLUMNS = (
    *("title", "year", "design", "design_by", "design_said", "n", "people", "measure", "value"),
    *("unit", "low", "high", "hints", "quote", "start", "end", "passage"),
    *FINDERS,
)
_INITIALS = re.compile(r" ([A-Z]{1,4})$")
_SIGNED = re.compile(r"[-+]\d+(?:\.\d+)?")
_TEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{char: f"\\{char}" for char in "&%$#_"},
}


def _all_references(answers: Sequence[ExportedAnswer]) -> list[Reference]:
    """Each document once; a later turn may cite it again."""
    found: dict[str, Reference] = {}
    for one in answers:
        for reference in one.references:
            found.setdefault(reference.first.id.partition("#")[0], reference)
    return list(found.values())


def write_ris(answers: Sequence[ExportedAnswer]) -> bytes:
    lines: list[str] = []
    for one in _all_references(answers):
        lines += [f"{tag}  - {' '.join(value.split())}" for tag, value in _ris_fields(one) if value]
        lines += ["ER  - ", ""]
    return "\r\n".join(lines).encode()


def _ris_fields(one: Reference) -> Iterator[tuple[str, str]]:
    place, found = one.first.locator, one.identifiers
    yield "TY", _KINDS.get(one.first.source, _OTHER)[0]
    yield "ID", one.key
    yield "TI", one.first.title
    for author in place.authors:
        yield "AU", _invert_name(author)
    yield "PY", str(place.year or "")
    yield "JO", place.journal
    yield "SP", str(place.page or "")
    yield "DO", found.get("doi", "")
    yield (
        "AN",
        next((found[name] for name in ("pmid", "nct", "eudract", "nbk") if name in found), ""),
    )
    yield "C2", found.get("pmcid", "")
    yield "SN", found.get("isbn", "")
    yield "UR", one.url
    yield "DB", one.first.source
    yield "LA", one.first.language
    for name, value in found.items():
        yield "N1", f"{name.upper()}: {value}"
    for note in (place.notice, *one.quotes):
        yield "N1", note


def _invert_name(name: str) -> str:
    """ "Smith JA" as reference managers write it, "Smith, JA"; another name as it is."""
    return _INITIALS.sub(r", \1", name)


def write_bibtex(answers: Sequence[ExportedAnswer]) -> bytes:
    entries = []
    for one in _all_references(answers):
        place = one.first.locator
        fields = {
            "title": f"{{{_escape_tex(one.first.title or one.key)}}}",
            "author": " and ".join(map(_name_tex, place.authors)),
            "journal": _escape_tex(place.journal),
            "year": str(place.year or ""),
            "chapter": _escape_tex(place.section),
            "pages": str(place.page or ""),
            **{name: _escape_tex(value) for name, value in one.identifiers.items()},
            # BibTeX and its readers take addresses as they are.
            "url": re.sub(r"[{}\\\s]", "", one.url),
            "note": _escape_tex(" ".join(filter(None, (place.notice, *one.quotes)))),
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        kind = _KINDS.get(one.first.source, _OTHER)[1]
        entries.append("\n".join([f"@{kind}{{{one.key},", *lines, "}\n"]))
    return "\n".join(entries).encode()


def _name_tex(name: str) -> str:
    """In braces where it is not of one person: a consortium's "and" parts no authors."""
    inverted = _invert_name(_escape_tex(name))
    return inverted if inverted != _escape_tex(name) or " " not in name else f"{{{inverted}}}"


def _escape_tex(text: str) -> str:
    return "".join(_TEX.get(char, char) for char in " ".join(text.split()))


def write_csv(answers: Sequence[ExportedAnswer]) -> bytes:
    """One row for each citation: the statement, the quote that it rests on, and its origin."""
    return _write_table(_COLUMNS, [row for one in answers for row in _evidence_rows(one)])


def write_studies(answers: Sequence[ExportedAnswer]) -> bytes:
    """One row for each effect that the cited passages state, and one for a study that states none:
    design, sample, measure, value and interval, all quotes."""
    hits = (evidence.hit for one in answers for evidence in one.solution.answer.evidence)
    rows = tabulate_studies(hits)
    names = {row.passage.id: find_identifiers(row.passage) for row in rows}
    flat = [{**row, **names[row["passage"]]} for row in flat_rows(rows)]
    cells = [{name: "" if v is None else str(v) for name, v in row.items()} for row in flat]
    return _write_table(_STUDY_COLUMNS, cells)


def _write_table(columns: Sequence[str], rows: Sequence[Mapping[str, str]]) -> bytes:
    out = io.StringIO(newline="")
    table = csv.DictWriter(out, columns)
    table.writeheader()
    for row in rows:
        table.writerow({name: _plain_cell(value) for name, value in row.items()})
    return b"\xef\xbb\xbf" + out.getvalue().encode()  # spreadsheets read UTF-8 by this mark


def _evidence_rows(exported: ExportedAnswer) -> Iterator[dict[str, str]]:
    answer = exported.solution.answer
    for number, (evidence, mark) in enumerate(zip(answer.evidence, answer.marks, strict=True), 1):
        citing = [one.text for one in answer.statements if number in one.cites]
        passage, place = evidence.passage, evidence.passage.locator
        yield {
            "number": mark.strip("[]"),
            "statement": " ".join(citing),
            "quote": evidence.quote,
            "title": passage.title,
            "section": place.section,
            "source": passage.source,
            "kind": place.kind,
            "authors": "; ".join(place.authors),
            "journal": place.journal,
            "notice": place.notice,
            "year": str(place.year or ""),
            "page": str(place.page or ""),
            **find_identifiers(passage),
            "url": place.url,
            "passage": passage.id,
            "licence": passage.licence,
        }


def _plain_cell(value: str) -> str:
    """A cell that no spreadsheet takes for a formula."""
    starts = value[:1] in ("=", "+", "-", "@", "\t", "\r")
    return f"'{value}" if starts and not _SIGNED.fullmatch(value) else value


_WIDE_FONTS = (
    "wqy/wqy-zenhei.ttc",
    "simsun.ttc",
    "Arial Unicode.ttf",
    "Supplemental/Arial Unicode.ttf",
)
"""Files of Linux, Windows and macOS with Chinese, Greek and signs such as ≥; what is used of the
first that is there is put into the PDF. reportlab knows the folders of fonts."""
# One of Adobe's, which is not put in: a reader of PDF may have it.
_ADOBE_FONT = "STSong-Light"
# Helvetica has Latin-1 and these quotation marks, dashes and dots.
_NOT_LATIN = re.compile(r"[^\x00-\x7e\xa0-\xff\u2018\u2019\u201c\u201d\u2013\u2014\u2026]+")


def _require_export() -> AbstractContextManager[None]:
    return require_extra("export", "Word and PDF need the extra `export`")


def write_docx(answers: Sequence[ExportedAnswer]) -> bytes:
    """Raises `BadConfig` without the extra."""
    with _require_export():
        from docx import Document
    document = Document()
    for number, one in enumerate(answers):
        if number:
            document.add_page_break()  # type: ignore[no-untyped-call]
        for block in lay_out(one):
            _add_block(document, block)
    if answers:
        document.core_properties.title = escape_controls(answers[0].question.text)[:255]
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def _add_block(document: Any, block: Block) -> None:
    text = escape_controls(block.text)
    match block.kind:
        case "title":
            document.add_heading(text, level=1)
        case "heading":
            document.add_heading(text, level=2)
        case "item":
            document.add_paragraph(text, style="List Bullet")
        case "danger":
            document.add_paragraph().add_run(text).bold = True
        case "note":
            document.add_paragraph().add_run(text).italic = True
        case "paragraph" | "reference":
            link = f" {block.url}" if is_web_address(block.url) else ""
            document.add_paragraph(text + link)


def write_pdf(answers: Sequence[ExportedAnswer]) -> bytes:
    """Raises `BadConfig` without the extra."""
    with _require_export():
        from reportlab.lib.styles import getSampleStyleSheet
        from reportlab.platypus import PageBreak, Paragraph, SimpleDocTemplate
    wide = _register_wide_font()
    styles = getSampleStyleSheet()
    named = {"title": "Heading1", "heading": "Heading2", "note": "Italic"}
    story: list[Any] = []
    for number, one in enumerate(answers):
        if number:
            story.append(PageBreak())
        for block in lay_out(one):
            style = styles[named.get(block.kind, "BodyText")]
            bullet = "\u2022" if block.kind == "item" else None
            story.append(Paragraph(_pdf_markup(block, wide), style, bulletText=bullet))
    out = io.BytesIO()
    title = escape_controls(answers[0].question.text) if answers else ""
    SimpleDocTemplate(out, title=title, invariant=1).build(story)
    return out.getvalue()


def _register_wide_font() -> str:
    from reportlab.pdfbase import pdfmetrics
    from reportlab.pdfbase.cidfonts import UnicodeCIDFont
    from reportlab.pdfbase.ttfonts import TTFError, TTFont

    for name in _WIDE_FONTS:
        with suppress(TTFError):
            pdfmetrics.registerFont(TTFont(name, name))
            return name
    pdfmetrics.registerFont(UnicodeCIDFont(_ADOBE_FONT))
    return _ADOBE_FONT


def _pdf_markup(block: Block, wide: str) -> str:
    """The text as reportlab's markup: what Helvetica lacks in the other font."""
    text = escape(escape_controls(block.text))
    text = _NOT_LATIN.sub(lambda found: f'<font name="{wide}">{found[0]}</font>', text)
    if block.kind == "danger":
        text = f"<b>{text}</b>"
    if is_web_address(block.url):
        address = escape(block.url, quote=True)
        text += f' <link href="{address}">{address}</link>'
    return text


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
        write_docx,
        ".docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        is_text=False,
        needs="docx",
    ),
    "pdf": FileKind(write_pdf, ".pdf", "application/pdf", is_text=False, needs="reportlab"),
    "ris": FileKind(write_ris, ".ris", "application/x-research-info-systems"),
    "bibtex": FileKind(write_bibtex, ".bib", "application/x-bibtex"),
    "csv": FileKind(write_csv, ".csv", "text/csv; charset=utf-8"),
    "studies": FileKind(write_studies, ".csv", "text/csv; charset=utf-8"),
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
