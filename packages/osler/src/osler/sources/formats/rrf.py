"""UMLS Metathesaurus (Rich Release Format), and its passages: one document a concept.

`read_release` is the one reader of the tables, for the passages here (Omni-RAG §3.2) and
for the concept graph (`osler.graph.formats.tables`). A folder is one unit: names stand in
MRCONSO, definitions in MRDEF, relations in MRREL, semantic types in MRSTY, languages of
vocabularies in MRSAB. Suppressible rows (SUPPRESS other than N) are left out, and so is
what is neither English nor Chinese.

The passages join the tables in a database on disk, so that memory does not grow with the
release.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from osler.errors import MalformedSource
from osler.sources.formats.containers import open_file
from osler.sources.formats.sections import Triple, concept_record
from osler.sources.formats.tables import ScratchRow, fill_tables, open_scratch, table_in
from osler.sources.records import Drop, Record
from osler.text import make_slug, one_line

# By LAT: our name of the language, and the rank of its preferred names.
_LANGUAGES = {"ENG": ("en", 0), "CHI": ("zh", 2)}

# MRREL says how the second concept stands to the first. RELA names it; where that is
# empty, REL gives only the kind. DEL and XR, not here, mean that they are not related.
_REL = {
    "PAR": "parent_of",
    "CHD": "child_of",
    "RB": "broader_than",
    "RN": "narrower_than",
    "RO": "related_to",
    "RQ": "related_to",
    "RU": "related_to",
    "RL": "similar_to",
    "SIB": "sibling_of",
    "SY": "same_as",
    "AQ": "qualifier_of",
    "QB": "qualified_by",
}
_FOREIGN, _SUPPRESSED = "language other than English and Chinese", "suppressed"
_NO_RELATION, _TO_ITSELF = "not a relation", "relation to itself"
LEFT_OUT = frozenset({_FOREIGN, _SUPPRESSED, _NO_RELATION, _TO_ITSELF})
"""Reasons of rows that are sound and not wanted."""


class RrfName(NamedTuple):
    """A row of MRCONSO."""

    cui: str
    text: str
    language: str
    """ "en" or "zh"."""
    rank: int
    """0 for a preferred English name, 2 for a preferred Chinese one, 1 more for the others."""
    vocabulary: str
    code: str
    """In the vocabulary."""


class RrfDefinition(NamedTuple):
    """A row of MRDEF."""

    cui: str
    text: str
    vocabulary: str


class RrfType(NamedTuple):
    """A row of MRSTY."""

    cui: str
    type: str


class RrfRelation(NamedTuple):
    """A row of MRREL, turned round: (STR2, RELA, STR1)."""

    subject: str
    predicate: str
    object: str
    vocabulary: str


RrfRow = RrfName | RrfDefinition | RrfType | RrfRelation
_Cells = list[str]


def is_release(folder: Path) -> bool:
    """Whether the folder itself holds MRCONSO, plain or compressed."""
    return table_in(folder, "MRCONSO.RRF") is not None


def read_release(folder: Path) -> Iterator[tuple[str, RrfRow] | Drop]:
    """Each row with its place ("MRCONSO.RRF:17"), table by table: names, definitions, types,
    relations.

    Raises `MalformedSource` when there is no MRCONSO, `Unreadable` where a table breaks off.
    """
    if not is_release(folder):
        raise MalformedSource(
            f"{folder.name} has no MRCONSO.RRF", fix="name the META folder of a UMLS release"
        )
    foreign = _foreign_vocabularies(folder)

    def read_definition(cells: _Cells) -> RrfRow | str:
        if cells[4] in foreign:
            return _FOREIGN
        return RrfDefinition(cells[0], cells[5], cells[4]) if cells[6] == "N" else _SUPPRESSED

    yield from _read_table(folder, "MRCONSO.RRF", 18, _read_name)
    yield from _read_table(folder, "MRDEF.RRF", 8, read_definition)
    yield from _read_table(folder, "MRSTY.RRF", 6, lambda cells: RrfType(cells[0], cells[3]))
    yield from _read_table(folder, "MRREL.RRF", 16, _read_relation)


def _read_table(
    folder: Path, table: str, width: int, read: Callable[[_Cells], RrfRow | str]
) -> Iterator[tuple[str, RrfRow] | Drop]:
    """A table's rows; nothing for a table that the release leaves out."""
    path = table_in(folder, table)
    if path is None:
        return
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            where = f"{path.name}:{number}"
            try:
                cells = line.decode().rstrip("\r\n").split("|")
            except UnicodeDecodeError:
                yield Drop(where, "not UTF-8", number)
                continue
            # Every row ends in "|": one cell more than there are columns is right.
            if not width <= len(cells) <= width + 1 or not cells[0]:
                yield Drop(where, "wrong number of columns", number)
                continue
            row = read(cells)
            yield Drop(where, row) if isinstance(row, str) else (where, row)


def _foreign_vocabularies(folder: Path) -> frozenset[str]:
    """Vocabularies (RSAB) that MRSAB says are in neither English nor Chinese."""
    path = table_in(folder, "MRSAB.RRF")
    if path is None:
        return frozenset()
    with open_file(path) as file:
        rows = (line.decode(errors="replace").split("|") for line in file)
        return frozenset(
            row[3] for row in rows if len(row) > 19 and row[19] not in {*_LANGUAGES, ""}
        )


def _read_name(cells: _Cells) -> RrfRow | str:
    if cells[1] not in _LANGUAGES:
        return _FOREIGN
    if cells[16] != "N":
        return _SUPPRESSED
    language, rank = _LANGUAGES[cells[1]]
    # TS, STT and ISPREF: preferred term, preferred form of it, preferred atom of that.
    is_preferred = (cells[2], cells[4], cells[6]) == ("P", "PF", "Y")
    return RrfName(cells[0], cells[14], language, rank + (not is_preferred), cells[11], cells[13])


def _read_relation(cells: _Cells) -> RrfRow | str:
    predicate = cells[7] or _REL.get(cells[3], "")
    if cells[14] != "N":
        return _SUPPRESSED
    if not predicate or cells[3] in {"DEL", "XR"}:
        return _NO_RELATION
    if cells[0] == cells[4]:
        return _TO_ITSELF
    return RrfRelation(cells[4], predicate, cells[0], cells[10])


# Passages

# Whose definition of a concept is taken (Omni-RAG §3.2); any other vocabulary comes after.
_DEFINERS = {"MSH": 0, "NCI": 1, "ICF": 2, "CSP": 3, "HPO": 4}

_TABLES = (
    "CREATE TABLE name (cui TEXT, rank INTEGER, str TEXT)",
    "CREATE TABLE definition (cui TEXT, rank INTEGER, def TEXT)",
    "CREATE TABLE type (cui TEXT, sty TEXT)",
    "CREATE TABLE relation (subject TEXT, rel TEXT, object TEXT)",
)
# Built when the tables are full: an index that grows row by row costs many times more.
_INDEXES = (
    "CREATE INDEX name_of ON name (cui, rank)",
    "CREATE INDEX definition_of ON definition (cui, rank)",
    "CREATE INDEX relation_from ON relation (subject, object)",
    "CREATE INDEX relation_to ON relation (object, subject)",
    "CREATE INDEX type_of ON type (cui)",
)
_NAMES = "SELECT str FROM name WHERE cui = ? ORDER BY rank, rowid"
_DEFINITION = "SELECT def FROM definition WHERE cui = ? ORDER BY rank, rowid LIMIT 1"
_TYPES = "SELECT DISTINCT sty FROM type WHERE cui = ? ORDER BY sty"
# A release states most relations twice, once from each end. The one that the concept
# is the subject of is taken; the other only where the first is missing.
_RELATIONS = """
SELECT DISTINCT 1, rel,
       (SELECT str FROM name WHERE cui = relation.object ORDER BY rank, rowid LIMIT 1) AS other
FROM relation WHERE subject = :cui AND other IS NOT NULL
UNION
SELECT DISTINCT 0, rel,
       (SELECT str FROM name WHERE cui = relation.subject ORDER BY rank, rowid LIMIT 1) AS other
FROM relation WHERE object = :cui AND other IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM relation AS back WHERE back.subject = :cui AND back.object = relation.subject)
ORDER BY 1 DESC, 2, 3
"""


class Rrf:
    name = "umls-rrf"

    def matches_folder(self, folder: Path) -> bool:
        """Whether the folder itself holds a release."""
        return is_release(folder)

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """Concepts in order of CUI; rows that cannot be read come first, as drops."""
        with open_scratch(*_TABLES) as database:
            yield from fill_tables(database, _scratch_rows(folder))
            for index in _INDEXES:
                database.execute(index)
            for (cui,) in database.execute("SELECT DISTINCT cui FROM name ORDER BY cui"):
                yield _read_concept(database, cui, f"{folder.name}: {cui}")


def _scratch_rows(folder: Path) -> Iterator[ScratchRow | Drop]:
    for row in read_release(folder):
        if isinstance(row, Drop):
            if row.reason not in LEFT_OUT:
                yield row
            continue
        match row[1]:
            case RrfName(cui, text, _, rank):
                if name := one_line(text):
                    yield "name", (cui, rank, name)
            case RrfDefinition(cui, text, vocabulary):
                if text := one_line(text):
                    yield "definition", (cui, _DEFINERS.get(vocabulary, len(_DEFINERS)), text)
            case RrfType(cui, type_):
                yield "type", (cui, one_line(type_))
            case relation:
                yield "relation", (relation.subject, relation.predicate, relation.object)


def _read_concept(database: sqlite3.Connection, cui: str, where: str) -> Record:
    names = [name for (name,) in database.execute(_NAMES, (cui,))]
    (definition,) = database.execute(_DEFINITION, (cui,)).fetchone() or ("",)
    return concept_record(
        where,
        names,
        definition,
        _read_triples(database, cui, names[0]),
        id=make_slug(cui),
        url=f"https://uts.nlm.nih.gov/uts/umls/concept/{cui}",
        code=f"CUI:{cui}",
        kind="; ".join(sty for (sty,) in database.execute(_TYPES, (cui,))),
    )


def _read_triples(database: sqlite3.Connection, cui: str, name: str) -> Iterator[Triple]:
    for is_subject, relation, other in database.execute(_RELATIONS, {"cui": cui}):
        # Names that differ only in case would read as a relation of the concept to itself.
        if other.casefold() != name.casefold():
            yield (name, relation, other) if is_subject else (other, relation, name)
