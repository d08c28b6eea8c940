"""MIMIC-IV-ED: one document a subject, from the tables of the emergency department.

The folder is one unit: `edstays` and `diagnosis` must be there; `triage`, `vitalsign`, `medrecon`
(what the patient took before) and `pyxis` (what was given) may be. An encounter is a stay in the
department. Dates, race, means of arrival and pain, which is free text, are left out. Ages stand
in MIMIC-IV's `patients` and are unknown here.
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Layout,
    Made,
    TablesOfPatients,
    decimal,
    fact,
    known,
    number,
    published,
)
from osler.sources.formats.scratch import Values
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, System, icd
from osler.sources.patients.patient import Kind

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


class MimicEd(TablesOfPatients):
    def __init__(self) -> None:
        super().__init__(
            Layout(
                name="mimic-ed",
                title="MIMIC-IV-ED",
                required=("edstays", "diagnosis"),
                read={
                    "edstays": _stay,
                    "diagnosis": _diagnosis,
                    "triage": _triage,
                    "vitalsign": _vitals,
                    "medrecon": lambda row: _drug(row, "taken before the stay"),
                    "pyxis": lambda row: _drug(row, "given in the stay"),
                },
                stay="emergency stay",
                visit="stay",
            )
        )


def _stay(row: Row) -> Made:
    subject, stay = number(row, "subject_id"), number(row, "stay_id")
    if not (subject and stay):
        return None
    sex = _SEXES.get(known(row, "gender").upper(), "")
    disposition = known(row, "disposition")
    died = disposition.upper() == "EXPIRED"
    told = [known(row, name) for name in ("intime", "outtime")]
    visit = (subject, stay, *told, "emergency", "", "", "1" if died else "0")
    made = [("person", (subject, *published("subject", subject), sex, "", "", ""))]
    return [*made, ("visit", visit), *([("death", (subject,))] if died else [])]


def _diagnosis(row: Row) -> Made:
    subject, stay = number(row, "subject_id"), number(row, "stay_id")
    value, version = known(row, "icd_code"), known(row, "icd_version")
    if not (subject and stay and value):
        return None
    code = icd(value, version) if version in {"9", "10"} else Code(System.LOCAL, value)
    words, seq = known(row, "icd_title"), number(row, "seq_num")
    return [fact(subject, stay, Kind.DIAGNOSIS, code, words=words, seq=seq)]


def _triage(row: Row) -> Made:
    """Vital signs at arrival, what the patient came with, and the urgency (1 highest to 5)."""
    subject, stay = number(row, "subject_id"), number(row, "stay_id")
    if not (subject and stay):
        return None
    complaint, acuity = known(row, "chiefcomplaint"), known(row, "acuity").removesuffix(".0")
    made = [*_readings(row, subject, stay, "")]
    if complaint:
        told = fact(subject, stay, Kind.OBSERVATION, words="chief complaint", says=complaint)
        made.append(told)
    if acuity:
        made.append(fact(subject, stay, Kind.OBSERVATION, words="triage acuity", says=acuity))
    return made


def _vitals(row: Row) -> Made:
    subject, stay = number(row, "subject_id"), number(row, "stay_id")
    return _readings(row, subject, stay, known(row, "charttime")) if subject and stay else None


def _readings(row: Row, subject: str, stay: str, at: str) -> list[tuple[str, Values]]:
    values = {column: decimal(row.get(column, "")) for column in _SIGNS}
    return [
        ("reading", (subject, stay, *_SIGNS[column], at, value))
        for column, value in values.items()
        if value is not None
    ]


def _drug(row: Row, says: str) -> Made:
    subject, stay = number(row, "subject_id"), number(row, "stay_id")
    drug = known(row, "name")
    if not (subject and stay and drug):
        return None
    return [fact(subject, stay, Kind.MEDICATION, words=drug, says=says)]
