"""MIMIC-III, MIMIC-IV (module hosp) and MIMIC-IV-ED: one document a subject, from tables.

A folder is one unit. Of the hospital, PATIENTS, ADMISSIONS and DIAGNOSES_ICD must be there, the
procedures, the prescriptions, the laboratory values and the dictionaries of codes may be. Of the
emergency department, `edstays` and `diagnosis` must be there; `triage`, `vitalsign`, `medrecon`
(what the patient took before) and `pyxis` (what was given) may be; an encounter is a stay in the
department, and ages stand in MIMIC-IV's `patients` and are unknown.

MIMIC is de-identified by its publisher; of what it still contains, dates, insurance, language,
religion, marital status, race, means of arrival and all free text are left out, and ages above 89
become "90 or over".

Synthea's CSV export of synthetic patients: `patients`, `conditions` and `encounters` must be there;
medications, procedures, observations and allergies may be. Names, addresses, birth dates, numbers
of offices, providers, payers and costs are left out, although they are invented; every document is
marked as that of a synthetic patient.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from osler.sources.formats.tables import Row, ScratchRow
from osler_serve.clinic.records import patient_tables as to
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code
from osler_serve.clinic.records.patient import FactKind
from osler_serve.clinic.records.patient_tables import PatientTables, need

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
    yield from to.visit_rows(subject, admission, at, end, kind=kind, reason=reason, died=died)


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


# Columns of vital signs: their names and units.
_SIGNS = {
    "temperature": ("temperature", "°F"),
    "heartrate": ("heart rate", "/min"),
    "resprate": ("respiratory rate", "/min"),
    "o2sat": ("oxygen saturation", "%"),
    "sbp": ("systolic pressure", "mmHg"),
    "dbp": ("diastolic pressure", "mmHg"),
}


def _ed_keys(row: Row) -> tuple[str, str]:
    return need(row.digits("subject_id")), need(row.digits("stay_id"))


def _stay_rows(row: Row) -> Iterator[ScratchRow]:
    subject, stay = _ed_keys(row)
    died = row.text("disposition").upper() == "EXPIRED"
    sex = SEXES.get(row.text("gender").upper(), "")
    at, end = row.text("intime"), row.text("outtime")
    yield to.person_row(subject, to.published_ids("subject", subject), sex)
    yield from to.visit_rows(subject, stay, at, end, kind="emergency", died=died)


def _ed_diagnosis_rows(row: Row) -> Iterator[ScratchRow]:
    code = need(_icd_code(row, FactKind.DIAGNOSIS))
    words, seq = row.text("icd_title"), row.digits("seq_num")
    yield to.fact_row(*_ed_keys(row), FactKind.DIAGNOSIS, code, words=words, seq=seq)


def _triage_rows(row: Row) -> Iterator[ScratchRow]:
    """Vital signs at arrival, the chief complaint, and the urgency (1 highest to 5)."""
    yield from _vitals_rows(row)  # `triage` has no column `charttime`
    for words, says in (
        ("chief complaint", row.text("chiefcomplaint")),
        ("triage acuity", row.text("acuity").removesuffix(".0")),
    ):
        if says:
            yield to.fact_row(*_ed_keys(row), FactKind.OBSERVATION, words=words, says=says)


def _vitals_rows(row: Row) -> Iterator[ScratchRow]:
    keys, at = _ed_keys(row), row.text("charttime")
    for column, (name, unit) in _SIGNS.items():
        yield from to.reading_row(*keys, name, unit, at, row.number(column))


def _ed_drug_rows(row: Row, says: str) -> Iterator[ScratchRow]:
    yield to.fact_row(*_ed_keys(row), FactKind.MEDICATION, words=need(row.text("name")), says=says)


class MimicEd(PatientTables):
    name = "mimic-ed"
    title = "MIMIC-IV-ED"
    required = ("edstays", "diagnosis")
    tables: ClassVar = {
        "edstays": _stay_rows,
        "diagnosis": _ed_diagnosis_rows,
        "triage": _triage_rows,
        "vitalsign": _vitals_rows,
        "medrecon": partial(_ed_drug_rows, says="taken before the stay"),
        "pyxis": partial(_ed_drug_rows, says="given in the stay"),
    }
    stay = "emergency stay"
    visit = "stay"


_SYSTEMS = {"SNOMED-CT": CodeSystem.SNOMED, "RxNorm": CodeSystem.RXNORM}


def _synthetic_patient_rows(row: Row) -> Iterator[ScratchRow]:
    key, sex = need(row.text("id")), SEXES.get(row.text("gender").upper(), "")
    yield to.person_row(key, to.hashed_ids(key), sex, born=row.text("birthdate"))
    if row.text("deathdate"):
        yield to.death_row(key)


def _encounter_rows(row: Row) -> Iterator[ScratchRow]:
    person, visit = need(row.text("patient")), need(row.text("id"))
    at, end = row.text("start"), row.text("stop")
    yield from to.visit_rows(person, visit, at, end, kind=row.text("encounterclass"))


def _synthetic_coded_rows(row: Row, kind: FactKind, system: CodeSystem) -> Iterator[ScratchRow]:
    person, value = need(row.text("patient")), need(row.text("code"))
    # Allergies name their vocabulary: SNOMED CT for most, RxNorm for drugs.
    code = Code(_SYSTEMS.get(row.text("system"), system), value)
    words, at = row.text("description"), row.text("start", "date")
    yield to.fact_row(person, row.text("encounter"), kind, code, words=words, at=at)


def _observation_rows(row: Row) -> Iterator[ScratchRow]:
    """Measurements only: what has no number holds the text of a survey or an address."""
    person, name = need(row.text("patient")), need(row.text("description"))
    visit, unit, at = row.text("encounter"), row.text("units"), row.text("date")
    yield from to.reading_row(person, visit, name, unit, at, row.number("value"))


class Synthea(PatientTables):
    name = "synthea"
    title = "Synthea"
    required = ("patients", "conditions", "encounters")
    tables: ClassVar = {
        "patients": _synthetic_patient_rows,
        "encounters": _encounter_rows,
        "conditions": partial(
            _synthetic_coded_rows, kind=FactKind.CONDITION, system=CodeSystem.SNOMED
        ),
        "medications": partial(
            _synthetic_coded_rows, kind=FactKind.MEDICATION, system=CodeSystem.RXNORM
        ),
        "procedures": partial(
            _synthetic_coded_rows, kind=FactKind.PROCEDURE, system=CodeSystem.SNOMED
        ),
        "immunizations": partial(
            _synthetic_coded_rows, kind=FactKind.PROCEDURE, system=CodeSystem.CVX
        ),
        "allergies": partial(
            _synthetic_coded_rows, kind=FactKind.ALLERGY, system=CodeSystem.SNOMED
        ),
        "observations": _observation_rows,
    }
    passed_over = frozenset(
        {"organizations", "providers", "payers", "payer_transitions"}
        | {"claims", "claims_transactions"}
    )
    person = "patient"
    visit = stay = "encounter"
    by_stay = False
    needs_visit = False
    synthetic = True
