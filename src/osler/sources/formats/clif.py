"""CLIF 2.1 (Common Longitudinal ICU Format): one document a patient, from Parquet or CSV tables.

The folder is one unit: `clif_patient` and `clif_hospitalization` must be there; diagnoses,
laboratory values, vital signs and the two tables of given medication may be. An encounter is a
hospitalisation. Race, ethnicity, language, birth dates, places and addresses are left out, and a
patient's number is hashed: a site's own export need not be de-identified.
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Made,
    PatientTables,
    TableLayout,
    fact_row,
    first_value,
    hash_pseudonym,
    parse_decimal,
)
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind

_SEXES = {"male": "male", "female": "female"}
_VERSIONS = {"ICD9CM": "9", "ICD10CM": "10"}
_NOT_TOLD = ("adt", "position", "respiratory_support", "patient_assessments", "code_status")


class Clif(PatientTables):
    """Tables of facts name only the hospitalisation, which names the patient."""

    def __init__(self) -> None:
        super().__init__(
            TableLayout(
                name="clif",
                title="CLIF",
                required=("clif_patient", "clif_hospitalization"),
                read={
                    "clif_patient": _patient_rows,
                    "clif_hospitalization": _hospitalization_rows,
                    "clif_hospital_diagnosis": _diagnosis_rows,
                    "clif_medication_admin_intermittent": _drug_rows,
                    "clif_medication_admin_continuous": _drug_rows,
                    "clif_labs": _lab_rows,
                    "clif_vitals": _vital_rows,
                },
                passed_over=frozenset(f"clif_{name}" for name in _NOT_TOLD),
                person="patient",
                visit="hospitalization",
                stay="admission",
                joins_by_visit=True,
            )
        )


def _patient_rows(row: Row) -> Made:
    patient = first_value(row, "patient_id")
    if not patient:
        return None
    sex = _SEXES.get(first_value(row, "sex_category").lower(), "")
    born = first_value(row, "birth_date")
    made = [("person", (patient, hash_pseudonym(f"clif:{patient}"), "", sex, born, "", ""))]
    return [*made, ("death", (patient,))] if first_value(row, "death_dttm") else made


def _hospitalization_rows(row: Row) -> Made:
    patient, stay = first_value(row, "patient_id"), first_value(row, "hospitalization_id")
    if not (patient and stay):
        return None
    told = [first_value(row, name) for name in ("admission_dttm", "discharge_dttm")]
    age = first_value(row, "age_at_admission").removesuffix(".0")
    died = first_value(row, "discharge_category").lower() == "expired"
    kind = first_value(row, "admission_type_category")
    return [("visit", (patient, stay, *told, kind, "", age, "1" if died else "0"))]


def _diagnosis_rows(row: Row) -> Made:
    stay, value = first_value(row, "hospitalization_id"), first_value(row, "diagnosis_code")
    if not (stay and value):
        return None
    version = _VERSIONS.get(first_value(row, "diagnosis_code_format").upper())
    code = icd_code(value, version) if version else Code(CodeSystem.LOCAL, value)
    is_first = first_value(row, "diagnosis_primary").removesuffix(".0") == "1"
    return [fact_row("", stay, FactKind.DIAGNOSIS, code, seq="1" if is_first else "2")]


def _drug_rows(row: Row) -> Made:
    stay, drug = (
        first_value(row, "hospitalization_id"),
        first_value(row, "med_name", "med_category"),
    )
    if not (stay and drug):
        return None
    # A dose that was ordered and not given tells nothing of what the patient had.
    if first_value(row, "mar_action_category").lower() in {"not_given", "stop"}:
        return ()
    return [fact_row("", stay, FactKind.MEDICATION, words=drug)]


def _lab_rows(row: Row) -> Made:
    at = first_value(row, "lab_collect_dttm", "lab_result_dttm", "lab_order_dttm")
    value = parse_decimal(first_value(row, "lab_value_numeric", "lab_value"))
    return _reading_rows(row, first_value(row, "lab_name", "lab_category"), at, value)


def _vital_rows(row: Row) -> Made:
    """The category carries the unit where there is more than one ("weight_kg", "temp_c")."""
    at, value = first_value(row, "recorded_dttm"), parse_decimal(first_value(row, "vital_value"))
    return _reading_rows(row, first_value(row, "vital_category"), at, value)


def _reading_rows(row: Row, name: str, at: str, value: float | None) -> Made:
    stay = first_value(row, "hospitalization_id")
    if not (stay and name):
        return None
    if value is None:
        return ()  # a text result
    return [("reading", ("", stay, name, first_value(row, "reference_unit"), at, value))]
