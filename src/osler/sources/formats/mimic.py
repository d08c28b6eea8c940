"""MIMIC-III and MIMIC-IV (module hosp): one document a subject, from a folder of tables.

The folder is one unit: PATIENTS, ADMISSIONS and DIAGNOSES_ICD must be there, the procedures, the
prescriptions, the laboratory values and the dictionaries of codes may be. MIMIC is de-identified
by its publisher; of what it still contains, dates, insurance, language, religion, marital status,
ethnicity and all notes are left out, and ages above 89 become "90 or over".
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from osler.sources.formats import patient_tables as to
from osler.sources.formats.patient_tables import PatientTables, need
from osler.sources.formats.scratch import ScratchRow
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind

SEXES = {"F": "female", "M": "male"}


def _patient_rows(row: Row) -> Iterator[ScratchRow]:
    subject, sex = need(row.digits("subject_id")), SEXES.get(row.text("gender").upper(), "")
    anchor = row.digits("anchor_age"), row.digits("anchor_year")
    ids = to.published_ids("subject", subject)
    yield to.person_row(subject, ids, sex, born=row.text("dob"), anchor=anchor)


def _admission_rows(row: Row) -> Iterator[ScratchRow]:
    subject, admission = _keys(row)
    died = row.text("hospital_expire_flag") == "1"
    kind, reason = row.text("admission_type"), row.text("diagnosis")
    at, end = row.text("admittime"), row.text("dischtime")
    yield to.visit_row(subject, admission, at, end, kind=kind, reason=reason, died=died)
    if died:
        yield to.death_row(subject)


def _coded_rows(row: Row, kind: FactKind) -> Iterator[ScratchRow]:
    yield to.fact_row(*_keys(row), kind, need(_icd_code(row, kind)), seq=row.digits("seq_num"))


def _drug_rows(row: Row) -> Iterator[ScratchRow]:
    yield to.fact_row(*_keys(row), FactKind.MEDICATION, words=need(row.text("drug")))


def _reading_rows(row: Row) -> Iterator[ScratchRow]:
    """The item's number stands for its name until the dictionary gives it."""
    subject, item = need(row.digits("subject_id")), need(row.digits("itemid"))
    if admission := row.digits("hadm_id"):  # else it was taken outside a stay
        unit, at, value = row.text("valueuom"), row.text("charttime"), row.number("valuenum")
        yield from to.reading_row(subject, admission, f"item {item}", unit, at, value)


def _item_rows(row: Row) -> Iterator[ScratchRow]:
    yield to.lab_title_row(f"item {need(row.digits('itemid'))}", need(row.text("label")))


def _title_rows(row: Row, kind: FactKind) -> Iterator[ScratchRow]:
    words = need(row.text("long_title", "short_title"))
    yield to.title_row(kind, need(_icd_code(row, kind)), words)


def _keys(row: Row) -> tuple[str, str]:
    return need(row.digits("subject_id")), need(row.digits("hadm_id"))


def _icd_code(row: Row, kind: FactKind) -> Code | None:
    """MIMIC-III knows only ICD-9 and names the column after it."""
    is_procedure = kind is FactKind.PROCEDURE
    if value := row.text("icd9_code"):
        return icd_code(value, "9", is_procedure=is_procedure)
    value, version = row.text("icd_code"), row.text("icd_version")
    if version in {"9", "10"} and value:
        return icd_code(value, version, is_procedure=is_procedure)
    return Code(CodeSystem.LOCAL, value) if value else None


class Mimic(PatientTables):
    name = "mimic"
    title = "MIMIC"
    required = ("patients", "admissions", "diagnoses_icd")
    tables: ClassVar = {
        "patients": _patient_rows,
        "admissions": _admission_rows,
        "diagnoses_icd": partial(_coded_rows, kind=FactKind.DIAGNOSIS),
        "procedures_icd": partial(_coded_rows, kind=FactKind.PROCEDURE),
        "prescriptions": _drug_rows,
        "labevents": _reading_rows,
        "d_labitems": _item_rows,
        "d_icd_diagnoses": partial(_title_rows, kind=FactKind.DIAGNOSIS),
        "d_icd_procedures": partial(_title_rows, kind=FactKind.PROCEDURE),
    }
