"""Patients from tables: a folder is poured into a scratch database and read out by person."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path

from osler.errors import MalformedSource
from osler.sources.formats import tables
from osler.sources.formats.scratch import Values, fill_table, open_scratch
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem
from osler.sources.patients.patient import (
    Encounter,
    Fact,
    FactKind,
    Lab,
    Patient,
    age_between,
    group_age,
)
from osler.sources.patients.patient_document import document_of
from osler.sources.records import Drop, Record
from osler.text import make_slug, one_line

_TABLES = (
    "CREATE TABLE person (key TEXT PRIMARY KEY, id TEXT, code TEXT, sex TEXT, born TEXT,"
    " age TEXT, year TEXT) WITHOUT ROWID",
    "CREATE TABLE death (person TEXT)",
    "CREATE TABLE visit (person TEXT, id TEXT, at TEXT, end TEXT, kind TEXT, reason TEXT,"
    " age TEXT, died TEXT)",
    "CREATE TABLE fact (person TEXT, visit TEXT, kind TEXT, seq INTEGER, at TEXT, system TEXT,"
    " code TEXT, words TEXT, says TEXT)",
    "CREATE TABLE title (kind TEXT, system TEXT, code TEXT, words TEXT)",
    "CREATE TABLE reading (person TEXT, visit TEXT, name TEXT, unit TEXT, at TEXT, value REAL)",
)
_INDEXES = (
    "CREATE INDEX death_of ON death (person)",
    "CREATE INDEX visit_of ON visit (person)",
    "CREATE INDEX fact_of ON fact (person, visit)",
    "CREATE INDEX title_of ON title (kind, system, code)",
    "CREATE INDEX reading_of ON reading (person, visit, name, unit)",
)
_INSERTS = {
    "person": "INSERT OR IGNORE INTO person VALUES (?, ?, ?, ?, ?, ?, ?)",
    "death": "INSERT INTO death VALUES (?)",
    "visit": "INSERT INTO visit VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "fact": "INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "title": "INSERT INTO title VALUES (?, ?, ?, ?)",
    "reading": "INSERT INTO reading VALUES (?, ?, ?, ?, ?, ?)",
}
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

_BATCH = 10_000

Made = Iterable[tuple[str, Values]] | None
"""Rows for the scratch tables, each with its table's name; `None` = the row is malformed."""


@dataclass(frozen=True)
class TableLayout:
    """Which tables a database has, and what their rows become."""

    name: str
    """Of the format, for `--format` and for messages."""
    title: str
    required: tuple[str, ...]
    read: dict[str, Callable[[Row], Made]]
    """By table name, in the order of reading."""
    passed_over: frozenset[str] = field(default_factory=frozenset)
    """Tables that are known and hold nothing that is told of a patient."""
    person: str = "subject"
    visit: str = "admission"
    stay: str = "admission"
    by_stay: bool = True
    """See `Patient.by_stay`."""
    joins_by_visit: bool = False
    """Whether facts name only the encounter, which then names the person."""
    needs_visit: bool = True
    """Whether a person without an encounter is a drop."""
    synthetic: bool = False
    """Whether nobody is meant: the documents say so, and are marked as illustrative."""


class PatientTables:
    """A folder of tables as one document a patient: a `FolderParser`."""

    def __init__(self, layout: TableLayout) -> None:
        self.layout = layout
        self.name = layout.name

    def matches_folder(self, folder: Path) -> bool:
        return all(tables.find_table(folder, table) for table in self.layout.required)

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """Patients in the order of their keys; what could not be read comes first, as drops."""
        for record in self.read_patients(folder):
            yield record if isinstance(record, Drop) else document_of(record)

    def read_patients(self, folder: Path) -> Iterator[Patient | Drop]:
        """As `parse_folder`, before they are told. Memory holds one patient at a time."""
        layout = self.layout
        if not self.matches_folder(folder):
            raise MalformedSource(
                f"{folder.name} has not the tables of {layout.title}",
                fix=f"name the folder with {', '.join(f'{t}.csv' for t in layout.required)}",
            )
        known = frozenset(layout.read) | layout.passed_over
        yield from tables.find_unread(folder, known)
        with open_scratch(*_TABLES) as database:
            yield from _load_tables(folder, layout, database)
            if layout.joins_by_visit:
                _join_persons(database)
            for index in _INDEXES:
                database.execute(index)
            yield from _find_lost(folder.name, layout, database)
            for row in database.execute(_PEOPLE):
                yield _read_patient(database, _Person(*row), layout, folder.name)


def lab_title(item: str, words: str) -> tuple[str, Values]:
    """What a measurement is called where readings name it by `item`."""
    return "title", ("Laboratory", "", item, words)


def first_value(row: Row, *names: str) -> str:
    """The first of the columns that is not empty, on one line."""
    return next((value for name in names if (value := one_line(row.get(name, "")))), "")


def digits_in(row: Row, name: str) -> str:
    """A column of digits, "" for anything else; at most 18, which is what a database counts in."""
    value = row.get(name, "").strip()
    return value if value.isascii() and value.isdigit() and len(value) <= 18 else ""


def parse_decimal(text: str) -> float | None:
    """A finite number, or `None`."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if abs(value) < 1e15 else None


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
) -> tuple[str, Values]:
    system, value = (code.system.value, code.value) if code else ("", "")
    return "fact", (person, visit, kind.value, int(seq or 0), at, system, value, words, says)


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
        """From a birth date, or from an age in an anchor year."""
        then, born = _parse_date(moment), _parse_date(self.born)
        if then and born:
            return age_between(born, then)
        if then and self.age.isdecimal() and self.year.isdecimal():
            return int(self.age) + then.year - int(self.year)
        return None


def _load_tables(folder: Path, layout: TableLayout, database: sqlite3.Connection) -> Iterator[Drop]:
    for table, made in layout.read.items():
        path = tables.find_table(folder, table)
        if path is None:
            continue
        pending: dict[str, list[Values]] = {}
        for line, row in enumerate(tables.read_rows(path), start=2):
            if isinstance(row, Drop):
                yield row
                continue
            outcome = made(row)
            if outcome is None:
                yield Drop(f"{path.name}:{line}", "malformed row")
                continue
            for name, values in outcome:
                batch = pending.setdefault(name, [])
                batch.append(values)
                if len(batch) == _BATCH:
                    yield from fill_table(database, _INSERTS[name], batch)
                    batch.clear()
        for name, batch in pending.items():
            yield from fill_table(database, _INSERTS[name], batch)


def _join_persons(database: sqlite3.Connection) -> None:
    database.execute("CREATE INDEX visit_by_id ON visit (id)")
    for table in ("fact", "reading"):
        database.execute(
            f"UPDATE {table} SET person = coalesce("  # noqa: S608 - one of two names
            f"(SELECT visit.person FROM visit WHERE visit.id = {table}.visit), '')"
        )


def _find_lost(folder: str, layout: TableLayout, database: sqlite3.Connection) -> Iterator[Drop]:
    home = layout.required[0]
    for (person,) in database.execute(_NAMELESS):
        yield Drop(f"{folder}: {layout.person} {person}", f"{layout.person} not in {home}")
    if layout.needs_visit:
        for person, visit in database.execute(_STRAYS):
            where = f"{folder}: {layout.person} {person}, {layout.visit} {visit}"
            yield Drop(where, f"{layout.visit} not in {layout.visit}s")


def _read_patient(
    database: sqlite3.Connection, person: _Person, layout: TableLayout, folder: str
) -> Patient | Drop:
    visits = database.execute(_VISITS, (person.key,)).fetchall()
    if layout.needs_visit and not visits:
        return Drop(f"{folder}: {layout.person} {person.key}", f"no {layout.visit}")
    numbers = {visit[0]: place for place, visit in enumerate(visits, start=1)}
    encounters = tuple(_read_encounters(person, visits))
    facts = tuple(_read_facts(database, person, numbers))
    labs = tuple(
        Lab(name, unit, count, low, high, last, numbers.get(visit))
        for visit, name, unit, count, low, high, last in database.execute(_READINGS, (person.key,))
    )
    if not (encounters or facts):
        return Drop(f"{folder}: {layout.person} {person.key}", "no coded fact")
    ages = [
        age for age in (*(e.age for e in encounters), *(f.age for f in facts)) if age is not None
    ]
    latest = encounters[-1].age if encounters else None
    if latest is None or not layout.by_stay:
        latest = max(ages, default=None)
    gone = database.execute("SELECT 1 FROM death WHERE person = ?", (person.key,)).fetchone()
    return Patient(
        person.id,
        person.sex,
        latest,
        encounters,
        facts,
        labs,
        person.code,
        died=gone is not None,
        stay=layout.stay,
        by_stay=layout.by_stay,
        synthetic=layout.synthetic,
    )


def _read_encounters(person: _Person, visits: Sequence[tuple[str, ...]]) -> Iterator[Encounter]:
    first = _parse_date(visits[0][1]) if visits else None
    for place, (_, at, end, kind, reason, age, died) in enumerate(visits, start=1):
        begun, ended = _parse_date(at), _parse_date(end)
        told = int(age) if age.isdecimal() else person.age_at(at)
        yield Encounter(
            place,
            kind,
            reason,
            group_age(told),
            (begun - first).days if begun and first else None,
            max(0, (ended - begun).days) if begun and ended else None,
            died == "1",
        )


def _read_facts(
    database: sqlite3.Connection, person: _Person, numbers: dict[str, int]
) -> Iterator[Fact]:
    for visit, kind, seq, at, system, code, words, says in database.execute(_FACTS, (person.key,)):
        if visit and visit not in numbers:
            continue  # it was reported as lost
        yield Fact(
            FactKind(kind),
            words,
            Code(CodeSystem(system), code) if code else None,
            numbers.get(visit),
            seq,
            group_age(person.age_at(at)) if at else None,
            says,
        )


def hash_pseudonym(key: str) -> str:
    """A name for a person that does not tell the key: `patient-` and 16 hexadecimal digits."""
    return f"patient-{hashlib.sha256(key.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def published_id(kind: str, key: str) -> tuple[str, str]:
    """Id and citation of a person whom the publisher has given a pseudonym already."""
    return f"{kind}-{make_slug(key)}", f"{kind}:{key}"


def _parse_date(moment: str) -> date | None:
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None
