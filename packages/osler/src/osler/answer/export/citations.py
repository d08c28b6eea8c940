"""References for reference managers (RIS, BibTeX), and tables of evidence (CSV)."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence

from osler.answer.evidence_table import flat_rows, tabulate_studies
from osler.answer.export.layout import ExportedAnswer, Reference, find_identifiers
from osler.sources.catalogue import BOOK, GUIDELINE, RESEARCH

# A source as RIS and BibTeX name the kind of its documents.
_KINDS = {
    RESEARCH: ("JOUR", "article"),
    BOOK: ("CHAP", "inbook"),
    GUIDELINE: ("RPRT", "techreport"),
}
_OTHER = ("ELEC", "misc")
_COLUMNS = (
    *("number", "statement", "quote", "title", "section", "source", "kind", "year", "page"),
    *("pmid", "doi", "pmcid", "nct", "eudract", "isbn", "nbk", "guideline", "url"),
    *("passage", "licence"),
)
_STUDY_COLUMNS = (
    *("title", "year", "design", "design_by", "design_said", "n", "people", "measure", "value"),
    *("unit", "low", "high", "hints", "quote", "start", "end", "passage"),
    *("pmid", "doi", "pmcid", "nct", "eudract", "isbn", "nbk", "guideline"),
)
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
    yield "PY", str(place.year or "")
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
    for quote in one.quotes:
        yield "N1", quote


def write_bibtex(answers: Sequence[ExportedAnswer]) -> bytes:
    entries = []
    for one in _all_references(answers):
        place = one.first.locator
        fields = {
            "title": f"{{{_escape_tex(one.first.title or one.key)}}}",
            "year": str(place.year or ""),
            "chapter": _escape_tex(place.section),
            "pages": str(place.page or ""),
            **{name: _escape_tex(value) for name, value in one.identifiers.items()},
            # BibTeX and its readers take addresses as they are.
            "url": re.sub(r"[{}\\\s]", "", one.url),
            "note": _escape_tex(" ".join(one.quotes)),
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        kind = _KINDS.get(one.first.source, _OTHER)[1]
        entries.append("\n".join([f"@{kind}{{{one.key},", *lines, "}\n"]))
    return "\n".join(entries).encode()


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
    for number, evidence in enumerate(answer.evidence, 1):
        citing = [one.text for one in answer.statements if number in one.cites]
        passage, place = evidence.passage, evidence.passage.locator
        yield {
            "number": str(number),
            "statement": " ".join(citing),
            "quote": evidence.quote,
            "title": passage.title,
            "section": place.section,
            "source": passage.source,
            "kind": place.kind,
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
