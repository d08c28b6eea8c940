"""eICU Collaborative Research Database: one document a person, from a folder of CSV tables.

The folder is one unit: `patient` and `diagnosis` must be there, `medication`, `treatment` and
`lab` may be. An encounter is a stay in an intensive care unit. Times are minutes from the
beginning of the stay, so no dates can come in; ethnicity, hospital and ward are left out, and
"> 89" becomes "90 or over". `physicalExam`, `admissionDx` and notes are not read.

CLIF 2.1 (Common Longitudinal ICU Format), from Parquet or CSV: `clif_patient` and
`clif_hospitalization` must be there; diagnoses, laboratory values, vital signs and the tables of
given medication may be. An encounter is a hospitalisation. Race, ethnicity, language, birth dates,
places and addresses are left out, and a patient's number is hashed: a site's own export need not be
de-identified.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from osler.sources.formats.tables import Row, ScratchRow
from osler_serve.clinic.records import patient_tables as to
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code, version_of
from osler_serve.clinic.records.patient import OLDEST, FactKind
from osler_serve.clinic.records.patient_tables import PatientTables, need

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


_CLIF_SEXES = frozenset({"male", "female"})
_VERSIONS = {"ICD9CM": "9", "ICD10CM": "10"}
_PASSED_OVER = ("adt", "position", "respiratory_support", "patient_assessments", "code_status")


def _patient_rows(row: Row) -> Iterator[ScratchRow]:
    patient, sex = need(row.text("patient_id")), row.text("sex_category").lower()
    ids, born = to.hashed_ids(f"clif:{patient}"), row.text("birth_date")
    yield to.person_row(patient, ids, sex if sex in _CLIF_SEXES else "", born=born)
    if row.text("death_dttm"):
        yield to.death_row(patient)


def _hospitalization_rows(row: Row) -> Iterator[ScratchRow]:
    yield from to.visit_rows(
        need(row.text("patient_id")),
        need(row.text("hospitalization_id")),
        row.text("admission_dttm"),
        row.text("discharge_dttm"),
        kind=row.text("admission_type_category"),
        age=row.text("age_at_admission").removesuffix(".0"),
        died=row.text("discharge_category").lower() == "expired",
    )


def _clif_diagnosis_rows(row: Row) -> Iterator[ScratchRow]:
    stay, value = need(row.text("hospitalization_id")), need(row.text("diagnosis_code"))
    version = _VERSIONS.get(row.text("diagnosis_code_format").upper())
    code = icd_code(value, version) if version else Code(CodeSystem.LOCAL, value)
    is_first = row.text("diagnosis_primary").removesuffix(".0") == "1"
    yield to.fact_row("", stay, FactKind.DIAGNOSIS, code, seq="1" if is_first else "2")


def _clif_drug_rows(row: Row) -> Iterator[ScratchRow]:
    stay, drug = need(row.text("hospitalization_id")), need(row.text("med_name", "med_category"))
    # A dose that was ordered and not given is no medication of the patient.
    if row.text("mar_action_category").lower() not in {"not_given", "stop"}:
        yield to.fact_row("", stay, FactKind.MEDICATION, words=drug)


def _lab_rows(row: Row) -> Iterator[ScratchRow]:
    stay, name = need(row.text("hospitalization_id")), need(row.text("lab_name", "lab_category"))
    at = row.text("lab_collect_dttm", "lab_result_dttm", "lab_order_dttm")
    value = row.number("lab_value_numeric", "lab_value")
    yield from to.reading_row("", stay, name, row.text("reference_unit"), at, value)


def _vital_rows(row: Row) -> Iterator[ScratchRow]:
    """The category carries the unit where there is more than one ("weight_kg", "temp_c")."""
    stay, name = need(row.text("hospitalization_id")), need(row.text("vital_category"))
    at, value = row.text("recorded_dttm"), row.number("vital_value")
    yield from to.reading_row("", stay, name, row.text("reference_unit"), at, value)


class Clif(PatientTables):
    """Tables of facts name only the hospitalisation, which names the patient."""

    name = "clif"
    title = "CLIF"
    required = ("clif_patient", "clif_hospitalization")
    tables: ClassVar = {
        "clif_patient": _patient_rows,
        "clif_hospitalization": _hospitalization_rows,
        "clif_hospital_diagnosis": _clif_diagnosis_rows,
        "clif_medication_admin_intermittent": _clif_drug_rows,
        "clif_medication_admin_continuous": _clif_drug_rows,
        "clif_labs": _lab_rows,
        "clif_vitals": _vital_rows,
    }
    passed_over = frozenset(f"clif_{name}" for name in _PASSED_OVER)
    person = "patient"
    visit = "hospitalization"
    joins_by_visit = True
