"""MIMIC-III and MIMIC-IV (module hosp): one document a subject, from a folder of tables.

The folder is one unit: PATIENTS, ADMISSIONS and DIAGNOSES_ICD must be there, the procedures, the
prescriptions, the laboratory values and the dictionaries of codes may be. MIMIC is de-identified
by its publisher; of what it still tells, dates, insurance, language, religion, marital status,
ethnicity and all notes are left out, and ages above 89 become "90 or over".
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Made,
    PatientTables,
    TableLayout,
    digits_in,
    fact_row,
    first_value,
    lab_title,
    parse_decimal,
    published_id,
)
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind
from osler.text import one_line

_SEXES = {"F": "female", "M": "male"}


class Mimic(PatientTables):
    def __init__(self) -> None:
        super().__init__(
            TableLayout(
                name="mimic",
                title="MIMIC",
                required=("patients", "admissions", "diagnoses_icd"),
                read={
                    "patients": _patient_rows,
                    "admissions": _admission_rows,
                    "diagnoses_icd": lambda row: _coded_rows(row, FactKind.DIAGNOSIS),
                    "procedures_icd": lambda row: _coded_rows(row, FactKind.PROCEDURE),
                    "prescriptions": _drug_rows,
                    "labevents": _reading_rows,
                    "d_labitems": _item_rows,
                    "d_icd_diagnoses": lambda row: _title_rows(row, FactKind.DIAGNOSIS),
                    "d_icd_procedures": lambda row: _title_rows(row, FactKind.PROCEDURE),
                },
            )
        )


def _patient_rows(row: Row) -> Made:
    subject = digits_in(row, "subject_id")
    if not subject:
        return None
    sex = _SEXES.get(row.get("gender", "").strip().upper(), "")
    anchor = digits_in(row, "anchor_age"), digits_in(row, "anchor_year")
    return [
        ("person", (subject, *published_id("subject", subject), sex, row.get("dob", ""), *anchor))
    ]


def _admission_rows(row: Row) -> Made:
    subject, admission = digits_in(row, "subject_id"), digits_in(row, "hadm_id")
    if not (subject and admission):
        return None
    names = ("admittime", "dischtime", "admission_type", "diagnosis")
    told = [one_line(row.get(name, "")) for name in names]
    died = one_line(row.get("hospital_expire_flag", ""))
    made = [("visit", (subject, admission, *told, "", died))]
    return [*made, ("death", (subject,))] if died == "1" else made


def _coded_rows(row: Row, kind: FactKind) -> Made:
    subject, admission = digits_in(row, "subject_id"), digits_in(row, "hadm_id")
    code = _icd_code(row, kind)
    if not (subject and admission and code):
        return None
    return [fact_row(subject, admission, kind, code, seq=digits_in(row, "seq_num"))]


def _drug_rows(row: Row) -> Made:
    subject, admission = digits_in(row, "subject_id"), digits_in(row, "hadm_id")
    drug = one_line(row.get("drug", ""))
    if not (subject and admission and drug):
        return None
    return [fact_row(subject, admission, FactKind.MEDICATION, words=drug)]


def _reading_rows(row: Row) -> Made:
    """The item's number stands for its name until the dictionary gives it."""
    subject, admission = digits_in(row, "subject_id"), digits_in(row, "hadm_id")
    value, item = parse_decimal(row.get("valuenum", "")), digits_in(row, "itemid")
    if not (subject and item):
        return None
    if value is None or not admission:
        return ()  # a text result, or one taken outside a stay
    unit, at = first_value(row, "valueuom"), row.get("charttime", "")
    return [("reading", (subject, admission, f"item {item}", unit, at, value))]


def _item_rows(row: Row) -> Made:
    item, label = digits_in(row, "itemid"), first_value(row, "label")
    return [lab_title(f"item {item}", label)] if item and label else None


def _title_rows(row: Row, kind: FactKind) -> Made:
    words, code = first_value(row, "long_title", "short_title"), _icd_code(row, kind)
    if not (code and words):
        return None
    return [("title", (kind.value, code.system.value, code.value, words))]


def _icd_code(row: Row, kind: FactKind) -> Code | None:
    """MIMIC-III knows only ICD-9 and names the column after it."""
    is_procedure = kind is FactKind.PROCEDURE
    if value := first_value(row, "icd9_code"):
        return icd_code(value, "9", is_procedure=is_procedure)
    value, version = first_value(row, "icd_code"), first_value(row, "icd_version")
    if not value:
        return None
    if version not in {"9", "10"}:
        return Code(CodeSystem.LOCAL, value)
    return icd_code(value, version, is_procedure=is_procedure)
