"""CLIF 2.1 (Common Longitudinal ICU Format): one document a patient, from Parquet or CSV tables.

The folder is one unit: `clif_patient` and `clif_hospitalization` must be there; diagnoses,
laboratory values, vital signs and the two tables of given medication may be. An encounter is a
hospitalisation. Race, ethnicity, language, birth dates, places and addresses are left out, and a
patient's number is hashed: a site's own export need not be de-identified.
"""

from __future__ import annotations

from osler.sources.formats.cohort import (
    Layout,
    Made,
    TablesOfPatients,
    decimal,
    fact,
    known,
    pseudonym,
)
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, System, icd
from osler.sources.patients.patient import Kind

_SEXES = {"male": "male", "female": "female"}
_VERSIONS = {"ICD9CM": "9", "ICD10CM": "10"}
_NOT_TOLD = ("adt", "position", "respiratory_support", "patient_assessments", "code_status")


class Clif(TablesOfPatients):
    """Tables of facts name only the hospitalisation, which names the patient."""

    def __init__(self) -> None:
        super().__init__(
            Layout(
                name="clif",
                title="CLIF",
                required=("clif_patient", "clif_hospitalization"),
                read={
                    "clif_patient": _patient,
                    "clif_hospitalization": _hospitalization,
                    "clif_hospital_diagnosis": _diagnosis,
                    "clif_medication_admin_intermittent": _drug,
                    "clif_medication_admin_continuous": _drug,
                    "clif_labs": _lab,
                    "clif_vitals": _vital,
                },
                passed_over=frozenset(f"clif_{name}" for name in _NOT_TOLD),
                person="patient",
                visit="hospitalization",
                stay="admission",
                joins_by_visit=True,
            )
        )


def _patient(row: Row) -> Made:
    patient = known(row, "patient_id")
    if not patient:
        return None
    sex = _SEXES.get(known(row, "sex_category").lower(), "")
    born = known(row, "birth_date")
    made = [("person", (patient, pseudonym(f"clif:{patient}"), "", sex, born, "", ""))]
    return [*made, ("death", (patient,))] if known(row, "death_dttm") else made


def _hospitalization(row: Row) -> Made:
    patient, stay = known(row, "patient_id"), known(row, "hospitalization_id")
    if not (patient and stay):
        return None
    told = [known(row, name) for name in ("admission_dttm", "discharge_dttm")]
    age = known(row, "age_at_admission").removesuffix(".0")
    died = known(row, "discharge_category").lower() == "expired"
    kind = known(row, "admission_type_category")
    return [("visit", (patient, stay, *told, kind, "", age, "1" if died else "0"))]


def _diagnosis(row: Row) -> Made:
    stay, value = known(row, "hospitalization_id"), known(row, "diagnosis_code")
    if not (stay and value):
        return None
    version = _VERSIONS.get(known(row, "diagnosis_code_format").upper())
    code = icd(value, version) if version else Code(System.LOCAL, value)
    is_first = known(row, "diagnosis_primary").removesuffix(".0") == "1"
    return [fact("", stay, Kind.DIAGNOSIS, code, seq="1" if is_first else "2")]


def _drug(row: Row) -> Made:
    stay, drug = known(row, "hospitalization_id"), known(row, "med_name", "med_category")
    if not (stay and drug):
        return None
    # A dose that was ordered and not given tells nothing of what the patient had.
    if known(row, "mar_action_category").lower() in {"not_given", "stop"}:
        return ()
    return [fact("", stay, Kind.MEDICATION, words=drug)]


def _lab(row: Row) -> Made:
    at = known(row, "lab_collect_dttm", "lab_result_dttm", "lab_order_dttm")
    value = decimal(known(row, "lab_value_numeric", "lab_value"))
    return _reading(row, known(row, "lab_name", "lab_category"), at, value)


def _vital(row: Row) -> Made:
    """The category carries the unit where there is more than one ("weight_kg", "temp_c")."""
    at, value = known(row, "recorded_dttm"), decimal(known(row, "vital_value"))
    return _reading(row, known(row, "vital_category"), at, value)


def _reading(row: Row, name: str, at: str, value: float | None) -> Made:
    stay = known(row, "hospitalization_id")
    if not (stay and name):
        return None
    if value is None:
        return ()  # a text result
    return [("reading", ("", stay, name, known(row, "reference_unit"), at, value))]
