"""MIMIC-III and MIMIC-IV (module hosp): one document a subject, from a folder of CSV tables.

The folder is one unit: PATIENTS, ADMISSIONS and DIAGNOSES_ICD must be there, the
procedures, the prescriptions and the two dictionaries of codes may be. MIMIC is
de-identified by its publisher; of what it still tells, dates, insurance, language,
religion, marital status and ethnicity are left out, and ages above 89 become
"90 or over".
"""

from __future__ import annotations

import csv
import io
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from osler.errors import MalformedSource
from osler.kb.formats.containers import open_file
from osler.kb.formats.people import age_between, age_text
from osler.kb.formats.scratch import Values, fill, scratch, table_in
from osler.kb.records import Document, Drop, Record, Section
from osler.text import one_line, slug

_REQUIRED = ("patients", "admissions", "diagnoses_icd")
_READ = (*_REQUIRED, "procedures_icd", "prescriptions", "d_icd_diagnoses", "d_icd_procedures")
_SEXES = {"F": "female", "M": "male"}

_TABLES = (
    "CREATE TABLE patient (subject TEXT, sex TEXT, born TEXT, age TEXT, year TEXT)",
    "CREATE TABLE admission (subject TEXT, hadm TEXT, at TEXT, type TEXT, reason TEXT, died TEXT)",
    "CREATE TABLE fact (subject TEXT, hadm TEXT, kind TEXT, seq INTEGER, code TEXT, version TEXT)",
    "CREATE TABLE title (kind TEXT, code TEXT, version TEXT, title TEXT)",
)
_INDEXES = (
    "CREATE INDEX admission_of ON admission (subject)",
    "CREATE INDEX fact_of ON fact (hadm, kind)",
    "CREATE INDEX fact_by ON fact (subject)",
    "CREATE INDEX title_of ON title (kind, code, version)",
)
_SUBJECTS = "SELECT * FROM patient ORDER BY CAST(subject AS INTEGER), subject"
_ADMISSIONS = (
    "SELECT hadm, at, type, reason, died FROM admission WHERE subject = ? ORDER BY at, hadm"
)
_FACTS = """
SELECT fact.code, fact.version, max(title.title) FROM fact
LEFT JOIN title ON title.kind = fact.kind AND title.code = fact.code
               AND title.version = fact.version
WHERE fact.hadm = ? AND fact.subject = ? AND fact.kind = ?
GROUP BY fact.code, fact.version ORDER BY min(fact.seq), min(fact.rowid)
"""
_NAMELESS = """
SELECT DISTINCT subject FROM admission
WHERE subject NOT IN (SELECT subject FROM patient) ORDER BY subject
"""
_STRAYS = """
SELECT DISTINCT subject, hadm FROM fact WHERE NOT EXISTS (
    SELECT 1 FROM admission WHERE admission.subject = fact.subject AND admission.hadm = fact.hadm)
ORDER BY subject, hadm
"""

Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Person:
    subject: str
    sex: str
    born: str
    age: str
    year: str

    def age_at(self, moment: str) -> int | None:
        """MIMIC-III has a (shifted) birth date, MIMIC-IV an age in an anchor year."""
        then, born = _date(moment), _date(self.born)
        if then and born:
            return age_between(born, then)
        if then and self.age.isdecimal() and self.year.isdecimal():
            return int(self.age) + then.year - int(self.year)
        return None


class Mimic:
    name = "mimic"

    def matches_folder(self, folder: Path) -> bool:
        return all(table_in(folder, f"{table}.csv") for table in _REQUIRED)

    def parse_folder(self, folder: Path) -> Iterator[Record]:
        """Subjects in order of their number; what could not be read comes first, as drops."""
        if not self.matches_folder(folder):
            raise MalformedSource(
                f"{folder.name} has not the tables of MIMIC",
                fix="name the folder with patients.csv, admissions.csv and diagnoses_icd.csv",
            )
        yield from _unread(folder)
        with scratch(*_TABLES) as database:
            yield from _load(folder, database)
            for (subject,) in database.execute(_NAMELESS):
                yield Drop(f"{folder.name}: subject {subject}", "subject not in patients")
            for subject, admission in database.execute(_STRAYS):
                where = f"{folder.name}: subject {subject}, admission {admission}"
                yield Drop(where, "admission not in admissions")
            for row in database.execute(_SUBJECTS):
                yield _record(database, _Person(*row), folder.name)


def _unread(folder: Path) -> Iterator[Drop]:
    for path in sorted(folder.iterdir()):
        table, _, end = path.name.lower().partition(".")
        if end in {"csv", "csv.gz"} and table not in _READ:
            yield Drop(f"{folder.name}/{path.name}", "table not read")


def _load(folder: Path, database: sqlite3.Connection) -> Iterator[Drop]:
    facts = "INSERT INTO fact VALUES (?, ?, ?, ?, ?, ?)"
    titles = "INSERT INTO title VALUES (?, ?, ?, ?)"
    for table, insert, values in (
        ("patients", "INSERT INTO patient VALUES (?, ?, ?, ?, ?)", _patient),
        ("admissions", "INSERT INTO admission VALUES (?, ?, ?, ?, ?, ?)", _admission),
        ("diagnoses_icd", facts, lambda row: _coded(row, "Diagnoses")),
        ("procedures_icd", facts, lambda row: _coded(row, "Procedures")),
        ("prescriptions", facts, _drug),
        ("d_icd_diagnoses", titles, lambda row: _code_title(row, "Diagnoses")),
        ("d_icd_procedures", titles, lambda row: _code_title(row, "Procedures")),
    ):
        yield from fill(database, insert, _rows(folder, table, values))
    for index in _INDEXES:
        database.execute(index)


def _rows(
    folder: Path, table: str, values: Callable[[Row], Values | None]
) -> Iterator[Values | Drop | None]:
    path = table_in(folder, f"{table}.csv")
    if path is None:
        return
    with io.TextIOWrapper(open_file(path), "utf-8-sig", errors="replace", newline="") as file:
        rows = csv.reader(file)
        header = [name.strip().lower() for name in next(rows, [])]
        while True:
            try:
                cells = next(rows)
            except StopIteration:
                return
            except csv.Error:
                yield Drop(f"{path.name}:{rows.line_num}", "malformed row")
                continue
            if cells:
                made = values(dict(zip(header, cells, strict=False)))
                yield made or Drop(f"{path.name}:{rows.line_num}", "malformed row")


def _patient(row: Row) -> Values | None:
    subject = _number(row, "subject_id")
    anchor = _number(row, "anchor_age"), _number(row, "anchor_year")
    return (subject, row.get("gender", ""), row.get("dob", ""), *anchor) if subject else None


def _admission(row: Row) -> Values | None:
    subject, admission = _number(row, "subject_id"), _number(row, "hadm_id")
    names = ("admittime", "admission_type", "diagnosis", "hospital_expire_flag")
    values = (one_line(row.get(name, "")) for name in names)
    return (subject, admission, *values) if subject and admission else None


def _coded(row: Row, kind: str) -> Values | None:
    subject, admission = _number(row, "subject_id"), _number(row, "hadm_id")
    (code, version), order = _code_of(row), _number(row, "seq_num")
    if not (subject and admission and code):
        return None
    return subject, admission, kind, int(order or 0), code, version


def _drug(row: Row) -> Values | None:
    subject, admission = _number(row, "subject_id"), _number(row, "hadm_id")
    drug = one_line(row.get("drug", ""))
    return (
        (subject, admission, "Medications", 0, drug, "") if subject and admission and drug else None
    )


def _number(row: Row, name: str) -> str:
    """A column of digits, "" for anything else; at most 18, which is what a database counts in."""
    value = row.get(name, "").strip()
    return value if value.isascii() and value.isdigit() and len(value) <= 18 else ""


def _code_title(row: Row, kind: str) -> Values | None:
    title = one_line(row.get("long_title") or row.get("short_title") or "")
    code, version = _code_of(row)
    return (kind, code, version, title) if code and title else None


def _code_of(row: Row) -> tuple[str, str]:
    """MIMIC-III knows only ICD-9 and names the column after it."""
    if "icd9_code" in row:
        return one_line(row["icd9_code"]), "9"
    return one_line(row.get("icd_code", "")), one_line(row.get("icd_version", ""))


def _record(database: sqlite3.Connection, person: _Person, folder: str) -> Record:
    admissions = database.execute(_ADMISSIONS, (person.subject,)).fetchall()
    if not admissions:
        return Drop(f"{folder}: subject {person.subject}", "no admission")
    sex = _SEXES.get(person.sex.strip().upper(), "sex unknown")
    last_age = age_text(person.age_at(admissions[-1][1]))
    sections = [Section(f"Patient: {sex}, age {last_age} at the latest admission.")]
    for number, (hadm, moment, kind, reason, died) in enumerate(admissions, start=1):
        path = (f"Admission {number}",)
        about = [
            f"age {age_text(person.age_at(moment))}",
            kind.lower(),
            f"for {reason}" * bool(reason),
        ]
        about.append("died in hospital" * (died == "1"))
        sections.append(Section(f"Admission: {', '.join(filter(None, about))}.", path))
        sections += _facts(database, person.subject, hadm, path)
    return Document(
        id=f"subject-{slug(person.subject)}",
        title=f"Patient, {sex}, age {last_age}",
        sections=tuple(sections),
        code=f"subject:{person.subject}",
        kind="Patient",
    )


def _facts(
    database: sqlite3.Connection, subject: str, hadm: str, path: tuple[str, ...]
) -> Iterator[Section]:
    for kind in ("Diagnoses", "Procedures", "Medications"):
        rows = database.execute(_FACTS, (hadm, subject, kind))
        if lines := [f"- {_line(kind, *row)}" for row in rows]:
            yield Section("\n".join(lines), (*path, kind))


def _line(kind: str, code: str, version: str, title: str | None) -> str:
    if kind == "Medications":
        return code
    written = f"ICD-{version or '?'} {dotted(code, version, is_procedure=kind == 'Procedures')}"
    return f"{title} [{written}]" if title else written


def dotted(code: str, version: str, *, is_procedure: bool) -> str:
    """A code as the world writes it; MIMIC leaves out the dot: 99591 is 995.91."""
    if is_procedure:
        place = 2 if version == "9" else len(code)
    else:
        place = 4 if version == "9" and code.startswith("E") else 3
    return f"{code[:place]}.{code[place:]}" if len(code) > place else code


def _date(moment: str) -> date | None:
    try:
        return date.fromisoformat(moment[:10])
    except ValueError:
        return None
