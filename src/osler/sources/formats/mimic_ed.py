"""MIMIC-IV-ED: one document a subject, from the tables of the emergency department.

The folder is one unit: `edstays` and `diagnosis` must be there; `triage`, `vitalsign`, `medrecon`
(what the patient took before) and `pyxis` (what was given) may be. An encounter is a stay in the
department. Dates, race, means of arrival and pain, which is free text, are left out. Ages stand
in MIMIC-IV's `patients` and are unknown here.
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Made,
    PatientTables,
    TableLayout,
    digits_in,
    fact_row,
    first_value,
    parse_decimal,
    published_id,
)
from osler.sources.formats.scratch import Values
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind

_SEXES = {"F": "female", "M": "male"}
_SIGNS = {
    "temperature": ("temperature", "°F"),
    "heartrate": ("heart rate", "/min"),
    "resprate": ("respiratory rate", "/min"),
    "o2sat": ("oxygen saturation", "%"),
    "sbp": ("systolic pressure", "mmHg"),
    "dbp": ("diastolic pressure", "mmHg"),
}
"""Columns of vital signs: their names and units."""


class MimicEd(PatientTables):
    def __init__(self) -> None:
        super().__init__(
            TableLayout(
                name="mimic-ed",
                title="MIMIC-IV-ED",
                required=("edstays", "diagnosis"),
                read={
                    "edstays": _stay_rows,
                    "diagnosis": _diagnosis_rows,
                    "triage": _triage_rows,
                    "vitalsign": _vitals_rows,
                    "medrecon": lambda row: _drug_rows(row, "taken before the stay"),
                    "pyxis": lambda row: _drug_rows(row, "given in the stay"),
                },
                stay="emergency stay",
                visit="stay",
            )
        )


def _stay_rows(row: Row) -> Made:
    subject, stay = digits_in(row, "subject_id"), digits_in(row, "stay_id")
    if not (subject and stay):
        return None
    sex = _SEXES.get(first_value(row, "gender").upper(), "")
    disposition = first_value(row, "disposition")
    died = disposition.upper() == "EXPIRED"
    told = [first_value(row, name) for name in ("intime", "outtime")]
    visit = (subject, stay, *told, "emergency", "", "", "1" if died else "0")
    made = [("person", (subject, *published_id("subject", subject), sex, "", "", ""))]
    return [*made, ("visit", visit), *([("death", (subject,))] if died else [])]


def _diagnosis_rows(row: Row) -> Made:
    subject, stay = digits_in(row, "subject_id"), digits_in(row, "stay_id")
    value, version = first_value(row, "icd_code"), first_value(row, "icd_version")
    if not (subject and stay and value):
        return None
    code = icd_code(value, version) if version in {"9", "10"} else Code(CodeSystem.LOCAL, value)
    words, seq = first_value(row, "icd_title"), digits_in(row, "seq_num")
    return [fact_row(subject, stay, FactKind.DIAGNOSIS, code, words=words, seq=seq)]


def _triage_rows(row: Row) -> Made:
    """Vital signs at arrival, what the patient came with, and the urgency (1 highest to 5)."""
    subject, stay = digits_in(row, "subject_id"), digits_in(row, "stay_id")
    if not (subject and stay):
        return None
    complaint, acuity = (
        first_value(row, "chiefcomplaint"),
        first_value(row, "acuity").removesuffix(".0"),
    )
    made = [*_reading_rows(row, subject, stay, "")]
    if complaint:
        told = fact_row(
            subject, stay, FactKind.OBSERVATION, words="chief complaint", says=complaint
        )
        made.append(told)
    if acuity:
        made.append(
            fact_row(subject, stay, FactKind.OBSERVATION, words="triage acuity", says=acuity)
        )
    return made


def _vitals_rows(row: Row) -> Made:
    subject, stay = digits_in(row, "subject_id"), digits_in(row, "stay_id")
    return (
        _reading_rows(row, subject, stay, first_value(row, "charttime"))
        if subject and stay
        else None
    )


def _reading_rows(row: Row, subject: str, stay: str, at: str) -> list[tuple[str, Values]]:
    values = {column: parse_decimal(row.get(column, "")) for column in _SIGNS}
    return [
        ("reading", (subject, stay, *_SIGNS[column], at, value))
        for column, value in values.items()
        if value is not None
    ]


def _drug_rows(row: Row, says: str) -> Made:
    subject, stay = digits_in(row, "subject_id"), digits_in(row, "stay_id")
    drug = first_value(row, "name")
    if not (subject and stay and drug):
        return None
    return [fact_row(subject, stay, FactKind.MEDICATION, words=drug, says=says)]
