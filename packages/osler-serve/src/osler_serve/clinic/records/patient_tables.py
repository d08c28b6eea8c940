"""Patients from folders of tables: the framework of MIMIC, eICU, OMOP, CLIF and Synthea.

A format is a subclass of `PatientTables`: it names its tables and, for each of them, a
function from one row to rows of the scratch tables below. The scratch database, on disk,
groups them by person, so that memory holds one patient at a time whatever the size of the
export.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import ClassVar, TypeVar

from osler.errors import MalformedSource
from osler.sources.formats.tables import (
    Row,
    ScratchRow,
    fill_tables,
    find_table,
    find_unread,
    open_scratch,
    read_rows,
)
from osler.sources.patients import hash_pseudonym
from osler.sources.records import Drop, Record
from osler.text import make_slug
from osler_serve.clinic.records.codes import Code, CodeSystem
from osler_serve.clinic.records.patient import (
    Encounter,
    Fact,
    FactKind,
    Lab,
    Patient,
    age_between,
    group_age,
)
from osler_serve.clinic.records.patient_document import document_of

_TABLES = (
    "CREATE TABLE person (key TEXT PRIMARY KEY, id TEXT, code TEXT, sex TEXT, born TEXT,"
    " age TEXT, year TEXT) WITHOUT ROWID",
    "CREATE TABLE death (person TEXT)",
    "CREATE TABLE visit (person TEXT, id TEXT, at TEXT, end TEXT, kind TEXT, reason TEXT,"
    " age TEXT, died INTEGER)",
    "CREATE TABLE fact (person TEXT, visit TEXT, kind TEXT, seq INTEGER, at TEXT, system TEXT,"
    " code TEXT, words TEXT, says TEXT)",
    "CREATE TABLE title (kind TEXT, system TEXT, code TEXT, words TEXT)",
    "CREATE TABLE reading (person TEXT, visit TEXT, name TEXT, unit TEXT, at TEXT, value REAL)",
)
# Built when the tables are full: an index that grows row by row costs many times more.
_INDEXES = (
    "CREATE INDEX death_of ON death (person)",
    "CREATE INDEX visit_of ON visit (person)",
    "CREATE INDEX fact_of ON fact (person, visit)",
    "CREATE INDEX title_of ON title (kind, system, code)",
    "CREATE INDEX reading_of ON reading (person, visit, name, unit)",
)
_PEOPLE = "SELECT * FROM person ORDER BY CAST(key AS INTEGER), key"
_VISITS = "SELECT id, at, end, kind, reason, age, died FROM visit WHERE person = ? ORDER BY at, id"
_FACTS = """
SELECT fact.visit, fact.kind, min(fact.seq), min(fact.at), fact.system, fact.code,
       coalesce(nullif(fact.words, ''), max(title.words), ''), fact.says FROM fact
LEFT JOIN title ON title.kind = fact.kind AND title.system = fact.system
               AND title.code = fact.code
WHERE fact.person = ?
GROUP BY fact.visit, fact.kind, fact.system, fact.code, fact.words, fact.says
ORDER BY min(fact.seq), min(fact.at), min(fact.rowid)
"""
_READINGS = """
SELECT visit, coalesce((SELECT words FROM title WHERE title.kind = 'Laboratory'
       AND title.system = '' AND title.code = reading.name), name),
       unit, count(*), min(value), max(value),
       (SELECT value FROM reading AS latest WHERE latest.person = reading.person
        AND latest.visit = reading.visit AND latest.name = reading.name
        AND latest.unit = reading.unit ORDER BY latest.at DESC, latest.rowid DESC LIMIT 1)
FROM reading WHERE person = ? GROUP BY visit, name, unit ORDER BY visit, name, unit
"""
_NAMELESS = """
SELECT DISTINCT person FROM visit
WHERE person NOT IN (SELECT key FROM person) ORDER BY person
"""
_STRAYS = """
SELECT DISTINCT person, visit FROM fact WHERE visit != '' AND NOT EXISTS (
    SELECT 1 FROM visit WHERE visit.person = fact.person AND visit.id = fact.visit)
ORDER BY person, visit
"""

RowReader = Callable[[Row], Iterator[ScratchRow]]
"""Rows for the scratch tables; raises `MalformedRow` when a key of the row is missing."""

T = TypeVar("T")


class MalformedRow(Exception):
    """A row without a value that it needs; it becomes a drop with its line."""


def need(value: T | None) -> T:
    """The value. Raises `MalformedRow` when it is `None` or empty."""
    if not value:
        raise MalformedRow
    return value


class PatientTables:
    """A folder of tables as one document a patient: a `FolderParser`."""

    name: str
    """Of the format, for `--format` and for messages."""
    title: ClassVar[str]
    required: ClassVar[tuple[str, ...]]
    """Tables by which the folder is recognised; the first holds the persons."""
    tables: ClassVar[Mapping[str, RowReader]]
    """By table name, in the order of reading."""
    passed_over: ClassVar[frozenset[str]] = frozenset()
    """Tables that are known and hold nothing for a patient's document."""
    person: ClassVar[str] = "subject"
    visit: ClassVar[str] = "admission"
    stay: ClassVar[str] = "admission"
    by_stay: ClassVar[bool] = True
    """See `Patient.by_stay`."""
    joins_by_visit: ClassVar[bool] = False
    """Whether facts name only the encounter, which then names the person."""
    needs_visit: ClassVar[bool] = True
    """Whether a person without an encounter is a drop."""
    synthetic: ClassVar[bool] = False
    """Whether the patients are made up: the documents say so, and are marked as illustrative."""

    def matches_folder(self, folder: Path) -> bool:
        """Whether the folder itself holds the required tables."""
        return all(find_table(folder, table) for table in self.required)

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """Patients in the order of their keys; what could not be read comes first, as drops."""
        for record in self.read_patients(folder):
            yield record if isinstance(record, Drop) else document_of(record)

    def read_patients(self, folder: Path) -> Iterator[Patient | Drop]:
        """As `parse_folder`, before patients become documents; one of them in memory at a time.

        Raises `MalformedSource` when a required table is missing.
        """
        if not self.matches_folder(folder):
            raise MalformedSource(
                f"{folder.name} has not the tables of {self.title}",
                fix=f"name the folder with {', '.join(f'{t}.csv' for t in self.required)}",
            )
        yield from find_unread(folder, frozenset(self.tables) | self.passed_over)
        with open_scratch(*_TABLES) as database:
            for table, reader in self.tables.items():
                if path := find_table(folder, table):
                    yield from fill_tables(database, _scratch_rows(path, reader))
            if self.joins_by_visit:
                _join_persons(database)
            for index in _INDEXES:
                database.execute(index)
            yield from self._find_lost(folder.name, database)
            finish = self.patient_finisher(folder, database)
            for row in database.execute(_PEOPLE):
                record = self._read_patient(database, _Person(*row), folder.name)
                yield record if isinstance(record, Drop) else finish(record)

    def patient_finisher(
        self, folder: Path, database: sqlite3.Connection
    ) -> Callable[[Patient], Patient]:
        """The last step of reading a patient, made when all tables are loaded."""
        return lambda patient: patient

    def _find_lost(self, folder: str, database: sqlite3.Connection) -> Iterator[Drop]:
        home = self.required[0]
        for (person,) in database.execute(_NAMELESS):
            yield Drop(f"{folder}: {self.person} {person}", f"{self.person} not in {home}")
        if self.needs_visit:
            for person, visit in database.execute(_STRAYS):
                where = f"{folder}: {self.person} {person}, {self.visit} {visit}"
                yield Drop(where, f"{self.visit} not in {self.visit}s")

    def _read_patient(
        self, database: sqlite3.Connection, person: _Person, folder: str
    ) -> Patient | Drop:
        visits = database.execute(_VISITS, (person.key,)).fetchall()
        if self.needs_visit and not visits:
            return Drop(f"{folder}: {self.person} {person.key}", f"no {self.visit}")
        numbers = {visit[0]: place for place, visit in enumerate(visits, start=1)}
        encounters = tuple(_read_encounters(person, visits))
        facts = tuple(_read_facts(database, person, numbers))
        labs = tuple(
            Lab(name, unit, count, low, high, last, numbers.get(visit))
            for visit, name, unit, count, low, high, last in database.execute(
                _READINGS, (person.key,)
            )
        )
        if not (encounters or facts):
            return Drop(f"{folder}: {self.person} {person.key}", "no coded fact")
        latest = encounters[-1].age if encounters else None
        if latest is None or not self.by_stay:
            ages = [*(each.age for each in encounters), *(each.age for each in facts)]
            latest = max((age for age in ages if age is not None), default=None)
        died = database.execute("SELECT 1 FROM death WHERE person = ?", (person.key,)).fetchone()
        return Patient(
            person.id,
            person.sex,
            latest,
            encounters,
            facts,
            labs,
            person.code,
            died=died is not None,
            stay=self.stay,
            by_stay=self.by_stay,
            synthetic=self.synthetic,
        )


def person_row(
    key: str, ids: tuple[str, str], sex: str, *, born: str = "", anchor: tuple[str, str] = ("", "")
) -> ScratchRow:
    """`ids`: see `published_ids` and `hashed_ids`. `anchor`: an age and the year of that age."""
    return "person", (key, *ids, sex, born, *anchor)


def death_row(person: str) -> ScratchRow:
    return "death", (person,)


def visit_rows(
    person: str,
    visit: str,
    at: str = "",
    end: str = "",
    *,
    kind: str = "",
    reason: str = "",
    age: str = "",
    died: bool = False,
) -> Iterator[ScratchRow]:
    """An encounter, and the death of the person in it."""
    yield "visit", (person, visit, at, end, kind, reason, age, died)
    if died:
        yield death_row(person)


def fact_row(
    person: str,
    visit: str,
    kind: FactKind,
    code: Code | None = None,
    *,
    words: str = "",
    seq: str = "",
    at: str = "",
    says: str = "",
) -> ScratchRow:
    system, value = (code.system.value, code.value) if code else ("", "")
    return "fact", (person, visit, kind.value, int(seq or 0), at, system, value, words, says)


def reading_row(
    person: str, visit: str, name: str, unit: str, at: str, value: float | None
) -> Iterator[ScratchRow]:
    """One measurement, or nothing for a text result (`value` is `None`)."""
    if value is not None:
        yield "reading", (person, visit, name, unit, at, value)


def title_row(kind: FactKind, code: Code, words: str) -> ScratchRow:
    """The display of a code, for facts that come without one."""
    return "title", (kind.value, code.system.value, code.value, words)


def lab_title_row(item: str, words: str) -> ScratchRow:
    """The display of a measurement that readings name by `item`."""
    return "title", ("Laboratory", "", item, words)


def published_ids(kind: str, key: str) -> tuple[str, str]:
    """Id and citation of a person whom the publisher has given a pseudonym already."""
    return f"{kind}-{make_slug(key)}", f"{kind}:{key}"


def hashed_ids(key: str) -> tuple[str, str]:
    """Id of a person whose key must not be published, and no citation."""
    return hash_pseudonym(key), ""


@dataclass(frozen=True, slots=True)
class _Person:
    key: str
    id: str
    code: str
    sex: str
    born: str
    age: str
    year: str

    def age_at(self, moment: str) -> int | None:
        """Whole years of age, by the birth date or by an age in an anchor year."""
        then, born = _parse_date(moment), _parse_date(self.born)
        if then and born:
            return age_between(born, then)
        # MIMIC-IV shifts dates by patient: only the distance to the anchor year is true.
        if then and self.age.isdecimal() and self.year.isdecimal():
            return int(self.age) + then.year - int(self.year)
        return None


def _scratch_rows(path: Path, reader: RowReader) -> Iterator[ScratchRow | Drop]:
    for line, row in enumerate(read_rows(path), start=2):
        if isinstance(row, Drop):
            yield row
            continue
        try:
            yield from list(reader(row))  # all rows of the line, or none
        except MalformedRow:
            yield Drop(f"{path.name}:{line}", "malformed row")


def _join_persons(database: sqlite3.Connection) -> None:
    database.execute("CREATE INDEX visit_by_id ON visit (id)")
    for table in ("fact", "reading"):
        database.execute(
            f"UPDATE {table} SET person = coalesce("  # noqa: S608 - one of two names
            f"(SELECT visit.person FROM visit WHERE visit.id = {table}.visit), '')"
        )


def _read_encounters(person: _Person, visits: Sequence[tuple[str, ...]]) -> Iterator[Encounter]:
    first = _parse_date(visits[0][1]) if visits else None
    for place, (_, at, end, kind, reason, age, died) in enumerate(visits, start=1):
        begin, last = _parse_date(at), _parse_date(end)
        yield Encounter(
            place,
            kind,
            reason,
            group_age(int(age) if age.isdecimal() else person.age_at(at)),
            (begin - first).days if begin and first else None,
            max(0, (last - begin).days) if begin and last else None,
            bool(died),
        )


def _read_facts(
    database: sqlite3.Connection, person: _Person, numbers: dict[str, int]
) -> Iterator[Fact]:
    for visit, kind, seq, at, system, code, words, says in database.execute(_FACTS, (person.key,)):
        if visit and visit not in numbers:
            continue  # reported as lost already
        yield Fact(
            FactKind(kind),
            words,
            Code(CodeSystem(system), code) if code else None,
            numbers.get(visit),
            seq,
            group_age(person.age_at(at)) if at else None,
            says,
        )


def _parse_date(moment: str) -> date | None:
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None
