"""eICU Collaborative Research Database: one document a person, from a folder of CSV tables.

The folder is one unit: `patient` and `diagnosis` must be there, `medication`, `treatment` and
`lab` may be. An encounter is a stay in an intensive care unit. Times are minutes from the
beginning of the stay, so no dates can come in; ethnicity, hospital and ward are left out, and
"> 89" becomes "90 or over". `physicalExam`, `admissionDx` and notes are not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from osler.sources.formats import patient_tables as to
from osler.sources.formats.patient_tables import PatientTables, need
from osler.sources.formats.tables import Row, ScratchRow
from osler.sources.patients.codes import Code, icd_code, version_of
from osler.sources.patients.patient import OLDEST, FactKind

_RANKS = {"primary": "1", "major": "2", "other": "3"}
_SEXES = frozenset({"female", "male", "other"})


def _stay_rows(row: Row) -> Iterator[ScratchRow]:
    stay, person = need(row.digits("patientunitstayid")), need(row.text("uniquepid"))
    gender, age = row.text("gender").lower(), row.text("age")
    # Stays have no date; the year, the hospital stay and the visit number give their order.
    order = "-".join(
        row.text(name).rjust(12, "0")
        for name in ("hospitaldischargeyear", "patienthealthsystemstayid", "unitvisitnumber")
    )
    outcomes = (row.text("hospitaldischargestatus"), row.text("unitdischargestatus"))
    died = "expired" in map(str.lower, outcomes)
    yield to.person_row(
        person, to.published_ids("person", person), gender if gender in _SEXES else ""
    )
    yield from to.visit_rows(
        person,
        stay,
        order,
        kind=row.text("unittype"),
        reason=row.text("apacheadmissiondx"),
        age=str(OLDEST) if age.startswith(">") else age,
        died=died,
    )


def _diagnosis_rows(row: Row) -> Iterator[ScratchRow]:
    """A cell holds codes of both versions for one diagnosis ("491.20, J44.9"), or none."""
    stay, words = need(row.digits("patientunitstayid")), _leaf_words(row, "diagnosisstring")
    seq = _RANKS.get(row.text("diagnosispriority").lower(), "4")
    codes: list[Code | None] = [
        icd_code(part, version)
        for part in row.text("icd9code").split(",")
        if (version := version_of(part.strip()))
    ]
    for code in codes or [None]:
        yield to.fact_row("", stay, FactKind.DIAGNOSIS, code, words=words, seq=seq)


def _treatment_rows(row: Row) -> Iterator[ScratchRow]:
    stay, words = need(row.digits("patientunitstayid")), _leaf_words(row, "treatmentstring")
    yield to.fact_row("", stay, FactKind.PROCEDURE, words=words)


def _leaf_words(row: Row, column: str) -> str:
    """The last two parts of a path such as "pulmonary|disorders of airways|COPD"."""
    path = [part.strip() for part in row.text(column).split("|") if part.strip()]
    return need(", ".join(path[-2:]))


def _drug_rows(row: Row) -> Iterator[ScratchRow]:
    stay, drug = need(row.digits("patientunitstayid")), row.text("drugname")
    # eICU leaves the name out where it could identify, and keeps cancelled orders.
    if drug and row.text("drugordercancelled").lower() != "yes":
        yield to.fact_row("", stay, FactKind.MEDICATION, words=drug)


def _reading_rows(row: Row) -> Iterator[ScratchRow]:
    stay, name = need(row.digits("patientunitstayid")), need(row.text("labname"))
    unit = row.text("labmeasurenamesystem", "labmeasurenameinterface")
    offset = row.text("labresultoffset")
    # Sorted as text: minutes before the stay come before those within it.
    minutes = int(offset) if offset.lstrip("-").isdecimal() else 0
    at = f"{minutes + 10**9:012d}"
    yield from to.reading_row("", stay, name, unit, at, row.number("labresult"))


class Eicu(PatientTables):
    """Stays have no subject in the tables of facts: the person is found through the stay."""

    name = "eicu"
    title = "eICU"
    required = ("patient", "diagnosis")
    tables: ClassVar = {
        "patient": _stay_rows,
        "diagnosis": _diagnosis_rows,
        "treatment": _treatment_rows,
        "medication": _drug_rows,
        "lab": _reading_rows,
    }
    person = "person"
    visit = stay = "stay"
    joins_by_visit = True
