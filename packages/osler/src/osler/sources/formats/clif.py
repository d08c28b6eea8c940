"""CLIF 2.1 (Common Longitudinal ICU Format): one document a patient, from Parquet or CSV tables.

The folder is one unit: `clif_patient` and `clif_hospitalization` must be there; diagnoses,
laboratory values, vital signs and the two tables of given medication may be. An encounter is a
hospitalisation. Race, ethnicity, language, birth dates, places and addresses are left out, and a
patient's number is hashed: a site's own export need not be de-identified.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from osler.sources.formats import patient_tables as to
from osler.sources.formats.patient_tables import PatientTables, need
from osler.sources.formats.tables import Row, ScratchRow
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind

_SEXES = frozenset({"male", "female"})
_VERSIONS = {"ICD9CM": "9", "ICD10CM": "10"}
_PASSED_OVER = ("adt", "position", "respiratory_support", "patient_assessments", "code_status")


def _patient_rows(row: Row) -> Iterator[ScratchRow]:
    patient, sex = need(row.text("patient_id")), row.text("sex_category").lower()
    ids, born = to.hashed_ids(f"clif:{patient}"), row.text("birth_date")
    yield to.person_row(patient, ids, sex if sex in _SEXES else "", born=born)
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


def _diagnosis_rows(row: Row) -> Iterator[ScratchRow]:
    stay, value = need(row.text("hospitalization_id")), need(row.text("diagnosis_code"))
    version = _VERSIONS.get(row.text("diagnosis_code_format").upper())
    code = icd_code(value, version) if version else Code(CodeSystem.LOCAL, value)
    is_first = row.text("diagnosis_primary").removesuffix(".0") == "1"
    yield to.fact_row("", stay, FactKind.DIAGNOSIS, code, seq="1" if is_first else "2")


def _drug_rows(row: Row) -> Iterator[ScratchRow]:
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
        "clif_hospital_diagnosis": _diagnosis_rows,
        "clif_medication_admin_intermittent": _drug_rows,
        "clif_medication_admin_continuous": _drug_rows,
        "clif_labs": _lab_rows,
        "clif_vitals": _vital_rows,
    }
    passed_over = frozenset(f"clif_{name}" for name in _PASSED_OVER)
    person = "patient"
    visit = "hospitalization"
    joins_by_visit = True
