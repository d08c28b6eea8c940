"""UMLS Metathesaurus, a folder of RRF tables, row by row in constant memory.

Unlike the reader of passages (`osler.sources.formats.rrf`) it keeps concepts that have
neither a definition nor a relation: their names are still worth linking to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from osler.errors import MalformedSource
from osler.graph.curies import make_curie
from osler.graph.items import ConceptMapping, Definition, Item, Name, Relation, SemanticType
from osler.sources.formats.containers import open_file

# The same law of the same tables; two copies could come apart.
from osler.sources.formats.rrf import _LANGUAGES, _REL, _foreign_vocabularies
from osler.sources.formats.scratch import table_in
from osler.sources.records import Drop

_CODED = frozenset({"MSH", "HPO", "NCI", "OMIM", "MONDO", "DO", "SNOMEDCT_US"})
"""Vocabularies whose codes are identifiers that other graphs use."""
_TAGS = {"ENG": "en", "CHI": "zh"}

Cells = list[str]
Reader = Callable[[Cells, str], Iterator[Item]]


class Umls:
    name = "umls"

    def matches(self, path: Path, head: bytes) -> bool:
        return path.is_dir() and table_in(path, "MRCONSO.RRF") is not None

    def read(self, path: Path) -> Iterator[Item]:
        if table_in(path, "MRCONSO.RRF") is None:
            raise MalformedSource(
                f"{path.name} has no MRCONSO.RRF", fix="name the META folder of a UMLS release"
            )
        foreign = _foreign_vocabularies(path)

        def read_definition(row: Cells, where: str) -> Iterator[Item]:
            if row[4] in foreign:
                yield Drop(where, "language other than English and Chinese")
            elif row[6] != "N":
                yield Drop(where, "suppressed")
            else:
                yield Definition(_umls_curie(row[0]), row[5], row[4], where)

        yield from _read_rrf_table(path, "MRCONSO.RRF", 18, _name_items)
        yield from _read_rrf_table(path, "MRDEF.RRF", 8, read_definition)
        yield from _read_rrf_table(path, "MRSTY.RRF", 6, _type_items)
        yield from _read_rrf_table(path, "MRREL.RRF", 16, _relation_items)


def _umls_curie(cui: str) -> str:
    return f"UMLS:{cui}"


def _read_rrf_table(folder: Path, table: str, width: int, read: Reader) -> Iterator[Item]:
    path = table_in(folder, table)
    if path is None:
        return
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            where = f"{path.name}:{number}"
            try:
                row = line.decode().rstrip("\r\n").split("|")
            except UnicodeDecodeError:
                yield Drop(where, "not UTF-8", number)
                continue
            # Every row ends in "|", so that one cell more than columns is right.
            if width <= len(row) <= width + 1 + (width < 10) and row[0]:
                yield from read(row, where)
            else:
                yield Drop(where, "wrong number of columns", number)


def _name_items(row: Cells, where: str) -> Iterator[Item]:
    if row[1] not in _LANGUAGES:
        yield Drop(where, "language other than English and Chinese")
    elif row[16] != "N":
        yield Drop(where, "suppressed")
    else:
        preferred = (row[2], row[4], row[6]) == ("P", "PF", "Y")
        rank = _LANGUAGES[row[1]] + (not preferred)
        yield Name(_umls_curie(row[0]), row[14], row[11], rank, _TAGS[row[1]], where)
        if row[11] in _CODED:
            yield ConceptMapping(_umls_curie(row[0]), make_curie(row[11], row[13]), row[11], where)


def _type_items(row: Cells, where: str) -> Iterator[Item]:
    yield SemanticType(_umls_curie(row[0]), row[3], where)


def _relation_items(row: Cells, where: str) -> Iterator[Item]:
    """MRREL says how the second concept stands to the first: (STR2, RELA, STR1)."""
    relation = row[7] or _REL.get(row[3], "")
    if row[14] != "N":
        yield Drop(where, "suppressed")
    elif not relation or row[3] in {"DEL", "XR"}:
        yield Drop(where, "not a relation")
    elif row[0] == row[4]:
        yield Drop(where, "relation to itself")
    else:
        yield Relation(_umls_curie(row[4]), relation, _umls_curie(row[0]), row[10], "", where)
