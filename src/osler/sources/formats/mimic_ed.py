"""MIMIC-IV-ED: one document a subject, from the tables of the emergency department.

The folder is one unit: `edstays` and `diagnosis` must be there; `triage`, `vitalsign`, `medrecon`
(what the patient took before) and `pyxis` (what was given) may be. An encounter is a stay in the
department. Dates, race, means of arrival and pain, which is free text, are left out. Ages stand
in MIMIC-IV's `patients` and are unknown here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from osler.sources.formats import patient_tables as to
from osler.sources.formats.mimic import SEXES
from osler.sources.formats.patient_tables import PatientTables, need
from osler.sources.formats.scratch import ScratchRow
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind

# Columns of vital signs: their names and units.
_SIGNS = {
    "temperature": ("temperature", "°F"),
    "heartrate": ("heart rate", "/min"),
    "resprate": ("respiratory rate", "/min"),
    "o2sat": ("oxygen saturation", "%"),
    "sbp": ("systolic pressure", "mmHg"),
    "dbp": ("diastolic pressure", "mmHg"),
}


def _keys(row: Row) -> tuple[str, str]:
    return need(row.digits("subject_id")), need(row.digits("stay_id"))


def _stay_rows(row: Row) -> Iterator[ScratchRow]:
    subject, stay = _keys(row)
    died = row.text("disposition").upper() == "EXPIRED"
    sex = SEXES.get(row.text("gender").upper(), "")
    at, end = row.text("intime"), row.text("outtime")
    yield to.person_row(subject, to.published_ids("subject", subject), sex)
    yield to.visit_row(subject, stay, at, end, kind="emergency", died=died)
    if died:
        yield to.death_row(subject)


def _diagnosis_rows(row: Row) -> Iterator[ScratchRow]:
    value, version = need(row.text("icd_code")), row.text("icd_version")
    is_icd = version in {"9", "10"}
    code = icd_code(value, version) if is_icd else Code(CodeSystem.LOCAL, value)
    words, seq = row.text("icd_title"), row.digits("seq_num")
    yield to.fact_row(*_keys(row), FactKind.DIAGNOSIS, code, words=words, seq=seq)


def _triage_rows(row: Row) -> Iterator[ScratchRow]:
    """Vital signs at arrival, the chief complaint, and the urgency (1 highest to 5)."""
    yield from _vitals_rows(row)  # `triage` has no column `charttime`
    for words, says in (
        ("chief complaint", row.text("chiefcomplaint")),
        ("triage acuity", row.text("acuity").removesuffix(".0")),
    ):
        if says:
            yield to.fact_row(*_keys(row), FactKind.OBSERVATION, words=words, says=says)


def _vitals_rows(row: Row) -> Iterator[ScratchRow]:
    keys, at = _keys(row), row.text("charttime")
    for column, (name, unit) in _SIGNS.items():
        yield from to.reading_row(*keys, name, unit, at, row.number(column))


def _drug_rows(row: Row, says: str) -> Iterator[ScratchRow]:
    yield to.fact_row(*_keys(row), FactKind.MEDICATION, words=need(row.text("name")), says=says)


class MimicEd(PatientTables):
    name = "mimic-ed"
    title = "MIMIC-IV-ED"
    required = ("edstays", "diagnosis")
    tables: ClassVar = {
        "edstays": _stay_rows,
        "diagnosis": _diagnosis_rows,
        "triage": _triage_rows,
        "vitalsign": _vitals_rows,
        "medrecon": partial(_drug_rows, says="taken before the stay"),
        "pyxis": partial(_drug_rows, says="given in the stay"),
    }
    stay = "emergency stay"
    visit = "stay"
