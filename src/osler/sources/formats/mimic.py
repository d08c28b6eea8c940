"""MIMIC-III and MIMIC-IV (module hosp): one document a subject, from a folder of tables.

The folder is one unit: PATIENTS, ADMISSIONS and DIAGNOSES_ICD must be there, the procedures, the
prescriptions, the laboratory values and the dictionaries of codes may be. MIMIC is de-identified
by its publisher; of what it still tells, dates, insurance, language, religion, marital status,
ethnicity and all notes are left out, and ages above 89 become "90 or over".
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Layout,
    Made,
    TablesOfPatients,
    decimal,
    fact,
    known,
    lab_title,
    number,
    published,
)
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, System, icd
from osler.sources.patients.patient import Kind
from osler.text import one_line

_SEXES = {"F": "female", "M": "male"}


class Mimic(TablesOfPatients):
    def __init__(self) -> None:
        super().__init__(
            Layout(
                name="mimic",
                title="MIMIC",
                required=("patients", "admissions", "diagnoses_icd"),
                read={
                    "patients": _patient,
                    "admissions": _admission,
                    "diagnoses_icd": lambda row: _coded(row, Kind.DIAGNOSIS),
                    "procedures_icd": lambda row: _coded(row, Kind.PROCEDURE),
                    "prescriptions": _drug,
                    "labevents": _reading,
                    "d_labitems": _item,
                    "d_icd_diagnoses": lambda row: _title(row, Kind.DIAGNOSIS),
                    "d_icd_procedures": lambda row: _title(row, Kind.PROCEDURE),
                },
            )
        )


def _patient(row: Row) -> Made:
    subject = number(row, "subject_id")
    if not subject:
        return None
    sex = _SEXES.get(row.get("gender", "").strip().upper(), "")
    anchor = number(row, "anchor_age"), number(row, "anchor_year")
    return [("person", (subject, *published("subject", subject), sex, row.get("dob", ""), *anchor))]


def _admission(row: Row) -> Made:
    subject, admission = number(row, "subject_id"), number(row, "hadm_id")
    if not (subject and admission):
        return None
    names = ("admittime", "dischtime", "admission_type", "diagnosis")
    told = [one_line(row.get(name, "")) for name in names]
    died = one_line(row.get("hospital_expire_flag", ""))
    made = [("visit", (subject, admission, *told, "", died))]
    return [*made, ("death", (subject,))] if died == "1" else made


def _coded(row: Row, kind: Kind) -> Made:
    subject, admission = number(row, "subject_id"), number(row, "hadm_id")
    code = _code(row, kind)
    if not (subject and admission and code):
        return None
    return [fact(subject, admission, kind, code, seq=number(row, "seq_num"))]


def _drug(row: Row) -> Made:
    subject, admission = number(row, "subject_id"), number(row, "hadm_id")
    drug = one_line(row.get("drug", ""))
    if not (subject and admission and drug):
        return None
    return [fact(subject, admission, Kind.MEDICATION, words=drug)]


def _reading(row: Row) -> Made:
    """The item's number stands for its name until the dictionary gives it."""
    subject, admission = number(row, "subject_id"), number(row, "hadm_id")
    value, item = decimal(row.get("valuenum", "")), number(row, "itemid")
    if not (subject and item):
        return None
    if value is None or not admission:
        return ()  # a text result, or one taken outside a stay
    unit, at = known(row, "valueuom"), row.get("charttime", "")
    return [("reading", (subject, admission, f"item {item}", unit, at, value))]


def _item(row: Row) -> Made:
    item, label = number(row, "itemid"), known(row, "label")
    return [lab_title(f"item {item}", label)] if item and label else None


def _title(row: Row, kind: Kind) -> Made:
    words, code = known(row, "long_title", "short_title"), _code(row, kind)
    if not (code and words):
        return None
    return [("title", (kind.value, code.system.value, code.value, words))]


def _code(row: Row, kind: Kind) -> Code | None:
    """MIMIC-III knows only ICD-9 and names the column after it."""
    is_procedure = kind is Kind.PROCEDURE
    if value := known(row, "icd9_code"):
        return icd(value, "9", is_procedure=is_procedure)
    value, version = known(row, "icd_code"), known(row, "icd_version")
    if not value:
        return None
    if version not in {"9", "10"}:
        return Code(System.LOCAL, value)
    return icd(value, version, is_procedure=is_procedure)
