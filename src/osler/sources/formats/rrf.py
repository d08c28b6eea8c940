"""UMLS Metathesaurus (Rich Release Format): one document a concept (Omni-RAG §3.2).

A folder is one unit: names stand in MRCONSO, definitions in MRDEF, relations in
MRREL, semantic types in MRSTY, languages of vocabularies in MRSAB. They are joined
in a database on disk, so that memory does not grow with the release. Suppressible
rows (SUPPRESS other than N) are left out, and so is what is neither English nor
Chinese.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

from osler.errors import MalformedSource
from osler.sources.formats.concept_text import Triple, concept_sections, names_line
from osler.sources.formats.containers import open_file
from osler.sources.formats.scratch import Values, fill_table, open_scratch, table_in
from osler.sources.records import Document, Drop, Record
from osler.text import language_of, make_slug, one_line

_LANGUAGES = {"ENG": 0, "CHI": 2}
_DEFINERS = {"MSH": 0, "NCI": 1, "ICF": 2, "CSP": 3, "HPO": 4}
"""Whose definition of a concept is taken (F-OM-88); any other vocabulary comes after."""

# MRREL says how the second concept stands to the first. RELA names it; where that is
# empty, REL tells only the kind. DEL and XR, not here, say that they are not related.
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

_TABLES = (
    "CREATE TABLE name (cui TEXT, rank INTEGER, str TEXT)",
    "CREATE TABLE definition (cui TEXT, rank INTEGER, def TEXT)",
    "CREATE TABLE relation (cui1 TEXT, rel TEXT, cui2 TEXT)",
    "CREATE TABLE type (cui TEXT, sty TEXT)",
)
# Built when the tables are full: an index that grows row by row costs many times more.
_INDEXES = (
    "CREATE INDEX name_of ON name (cui, rank)",
    "CREATE INDEX definition_of ON definition (cui, rank)",
    "CREATE INDEX relation_to ON relation (cui2, cui1)",
    "CREATE INDEX relation_from ON relation (cui1, cui2)",
    "CREATE INDEX type_of ON type (cui)",
)
_NAMES = "SELECT str FROM name WHERE cui = ? ORDER BY rank, rowid"
_DEFINITION = "SELECT def FROM definition WHERE cui = ? ORDER BY rank, rowid LIMIT 1"
_TYPES = "SELECT DISTINCT sty FROM type WHERE cui = ? ORDER BY sty"
# A release states most relations twice, once from each end. The one that the concept
# is the subject of is taken; the other only where the first is missing.
_RELATIONS = """
SELECT DISTINCT 1, rel,
       (SELECT str FROM name WHERE cui = relation.cui1 ORDER BY rank, rowid LIMIT 1) AS other
FROM relation WHERE cui2 = :cui AND other IS NOT NULL
UNION
SELECT DISTINCT 0, rel,
       (SELECT str FROM name WHERE cui = relation.cui2 ORDER BY rank, rowid LIMIT 1) AS other
FROM relation WHERE cui1 = :cui AND other IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM relation AS back WHERE back.cui2 = :cui AND back.cui1 = relation.cui2)
ORDER BY 1 DESC, 2, 3
"""

Row = list[str]


class Rrf:
    name = "umls-rrf"

    def matches_folder(self, folder: Path) -> bool:
        return table_in(folder, "MRCONSO.RRF") is not None

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """Concepts in order of CUI; rows that cannot be read come first, as drops."""
        if not self.matches_folder(folder):
            raise MalformedSource(
                f"{folder.name} has no MRCONSO.RRF", fix="name the META folder of a UMLS release"
            )
        with open_scratch(*_TABLES) as database:
            yield from _load_tables(folder, database)
            for (cui,) in database.execute("SELECT DISTINCT cui FROM name ORDER BY cui"):
                yield _read_concept(database, cui, f"{folder.name}: {cui}")


def _load_tables(folder: Path, database: sqlite3.Connection) -> Iterator[Drop]:
    foreign = _foreign_vocabularies(folder)

    def read_definition(row: Row) -> Values | None:
        text = one_line(row[5])
        if row[6] != "N" or row[4] in foreign or not text:
            return None
        return row[0], _DEFINERS.get(row[4], len(_DEFINERS)), text

    for table, width, insert, values in (
        ("MRCONSO.RRF", 18, "INSERT INTO name VALUES (?, ?, ?)", _name_values),
        ("MRDEF.RRF", 8, "INSERT INTO definition VALUES (?, ?, ?)", read_definition),
        ("MRREL.RRF", 16, "INSERT INTO relation VALUES (?, ?, ?)", _relation_values),
        ("MRSTY.RRF", 6, "INSERT INTO type VALUES (?, ?)", _type_values),
    ):
        yield from fill_table(database, insert, _read_rows(folder, table, width, values))
    for index in _INDEXES:
        database.execute(index)


def _read_rows(
    folder: Path, table: str, width: int, values: Callable[[Row], Values | None]
) -> Iterator[Values | Drop | None]:
    """A table's rows as values; nothing for a table that the release leaves out."""
    path = table_in(folder, table)
    if path is None:
        return
    with open_file(path) as file:
        for number, line in enumerate(file, start=1):
            try:
                row = line.decode().rstrip("\r\n").split("|")
            except UnicodeDecodeError:
                yield Drop(f"{path.name}:{number}", "not UTF-8")
                continue
            ok = len(row) >= width and row[0]
            yield values(row) if ok else Drop(f"{path.name}:{number}", "malformed row")


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


def _name_values(row: Row) -> Values | None:
    name = one_line(row[14])
    if row[16] != "N" or row[1] not in _LANGUAGES or not name:
        return None
    preferred = (row[2], row[4], row[6]) == ("P", "PF", "Y")
    return row[0], _LANGUAGES[row[1]] + (not preferred), name


def _relation_values(row: Row) -> Values | None:
    relation = row[7] or _REL.get(row[3], "")
    if row[14] != "N" or not relation or row[3] in {"DEL", "XR"} or row[0] == row[4]:
        return None
    return row[0], relation, row[4]


def _type_values(row: Row) -> Values:
    return row[0], one_line(row[3])


def _read_concept(database: sqlite3.Connection, cui: str, where: str) -> Record:
    names = [name for (name,) in database.execute(_NAMES, (cui,))]
    (definition,) = database.execute(_DEFINITION, (cui,)).fetchone() or ("",)
    sections = concept_sections(definition, _read_triples(database, cui, names[0]))
    if not sections:
        return Drop(where, "no definition and no relation")
    title = names_line(names)
    return Document(
        id=make_slug(cui),
        title=title,
        sections=sections,
        language=language_of(definition or title),
        url=f"https://uts.nlm.nih.gov/uts/umls/concept/{cui}",
        code=f"CUI:{cui}",
        kind="; ".join(sty for (sty,) in database.execute(_TYPES, (cui,))),
    )


def _read_triples(database: sqlite3.Connection, cui: str, name: str) -> Iterator[Triple]:
    for is_subject, relation, other in database.execute(_RELATIONS, {"cui": cui}):
        if other.casefold() != name.casefold():
            yield (name, relation, other) if is_subject else (other, relation, name)
