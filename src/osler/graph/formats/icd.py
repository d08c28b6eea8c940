"""Tables of ICD-9-CM and ICD-10-CM: codes with their titles, and mappings between the two."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from osler.graph.formats.base import TableImporter, TableRow, has_columns
from osler.graph.items import ConceptMapping, Item, Name, Relation
from osler.sources.formats.containers import open_file
from osler.sources.formats.reading import plain_head
from osler.sources.patients.codes import dotted_code
from osler.sources.records import Drop

_CMS = re.compile(rb"([0-9EV]\d{2,4}|\d{2,4}) {1,3}[^\s,|]")
_CODE_10 = re.compile(rb'[A-TV-Z]\d[0-9A-Z]{1,5},"')
_BARE = re.compile(r"[A-Z0-9]{2,7}")
_TITLED = re.compile(r"(\S+)\s+(\S.*)")
# By column: the prefix of the identifiers, and the version for the place of the dot.
_SYSTEMS = {"icd9cm": ("ICD9CM", "9"), "icd10cm": ("ICD10CM", "10")}


class IcdTitles:
    """Codes with titles: CMS's long titles of ICD-9-CM (diagnoses and procedures), NBER's
    table of it, and a plain table of ICD-10-CM. A code is narrower than the next shorter one.
    """

    name = "icd"

    def matches(self, path: Path, head: bytes) -> bool:
        begin = plain_head(head)
        return (
            begin.startswith(b'"dgns_cd","longdesc"')
            or ("DESC_LONG" in path.name and _CMS.match(begin) is not None)
            or _CODE_10.match(begin) is not None
        )

    def read(self, path: Path) -> Iterator[Item]:
        with open_file(path) as file:
            lines = [_decode_line(line) for line in file]  # some MiB
        if lines and lines[0].startswith('"dgns_cd"'):
            yield from _code_items(_split_cells(lines[1:], 2), path.name, "ICD9CM", shift=2)
        elif "DESC_LONG" in path.name:
            procedures = "_SG" in path.name
            titled = ((n, _split_code(line)) for n, line in enumerate(lines, 1) if line.strip())
            system = "ICD9CM.procedure" if procedures else "ICD9CM"
            yield from _code_items(titled, path.name, system)
        else:
            yield from _code_items(_split_cells(lines, 1), path.name, "ICD10CM")


def _decode_line(line: bytes) -> str:
    # CMS publishes in Windows-1252.
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        return line.decode("cp1252", errors="replace").rstrip("\r\n")


def _split_cells(lines: list[str], first: int) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines, first):
        if line.strip():
            yield number, next(csv.reader([line]), [])


def _split_code(line: str) -> list[str]:
    match = _TITLED.fullmatch(line.strip())
    return [match[1], match[2]] if match else [line]


def _code_items(
    rows: Iterator[tuple[int, list[str]]], file: str, system: str, *, shift: int = 0
) -> Iterator[Item]:
    """Names first, then the hierarchy of the codes that were named."""
    procedures, version = system.endswith("procedure"), "9" if "9" in system else "10"
    known: dict[str, str] = {}
    for number, cells in rows:
        where = f"{file}:{number}"
        if len(cells) < 2 or not cells[0].strip() or not cells[1].strip():
            yield Drop(where, "wrong number of columns", number)
            continue
        bare = cells[0].strip().replace(".", "").upper()
        if _BARE.fullmatch(bare) is None:
            yield Drop(where, "no code", number)
            continue
        id = f"{system}:{dotted_code(bare, version, is_procedure=procedures)}"
        known[bare] = id
        yield Name(id, cells[1], system.partition(".")[0], 0, "en", where)
        for short in filter(str.strip, cells[shift : shift + 1] if shift else []):
            yield Name(id, short, system.partition(".")[0], 2, "en", where)
    for bare, id in known.items():
        shorter = (bare[:length] for length in range(len(bare) - 1, 1, -1))
        above = next((known[code] for code in shorter if code in known), None)
        if above is not None:
            yield Relation(id, "is_a", above, system.partition(".")[0], "", f"{file}: {bare}")


class Gem(TableImporter):
    """General Equivalence Mappings in NBER's table: an approximate match is a relation."""

    name = "icd-gem"
    needed = ("icd9cm", "icd10cm", "flags", "approximate", "no_map")
    delimiter = ","

    def matches(self, path: Path, head: bytes) -> bool:
        return has_columns(head, "icd9cm", "icd10cm") or has_columns(head, "icd10cm", "icd9cm")

    def row_items(self, row: TableRow, seen: set[str]) -> Iterator[Item]:
        # The file's direction is the order of its columns.
        one, other = (_icd_curie(row.cells[name], name) for name in row.cells if name in _SYSTEMS)
        if row.cells["no_map"].strip() == "1":
            yield Drop(row.where, "code without a counterpart")
        elif not (one and other):
            yield Drop(row.where, "no id")
        elif row.cells["approximate"].strip() == "0":
            yield ConceptMapping(one, other, "gem", row.where)
        else:
            yield Relation(one, "close_to", other, "GEM", "approximate", row.where)


def _icd_curie(code: str, system: str) -> str:
    name, version = _SYSTEMS[system]
    bare = code.strip().upper()
    return f"{name}:{dotted_code(bare, version, is_procedure=False)}" if bare else ""
