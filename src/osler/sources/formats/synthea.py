"""Synthea's CSV export: one document a synthetic patient, from a folder of tables.

The folder is one unit: `patients`, `conditions` and `encounters` must be there; medications,
procedures, observations and allergies may be. Names, addresses, birth dates, social security,
driver's and passport numbers, providers, payers and costs are left out, although nobody bears
them; every document says that it is of a synthetic patient.
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
from osler.sources.formats.scratch import Values
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem
from osler.sources.patients.patient import FactKind

_SEXES = {"F": "female", "M": "male"}


class Synthea(PatientTables):
    def __init__(self) -> None:
        super().__init__(
            TableLayout(
                name="synthea",
                title="Synthea",
                required=("patients", "conditions", "encounters"),
                read={
                    "patients": _patient_rows,
                    "encounters": _encounter_rows,
                    "conditions": lambda row: _coded_rows(
                        row, FactKind.CONDITION, CodeSystem.SNOMED
                    ),
                    "medications": lambda row: _coded_rows(
                        row, FactKind.MEDICATION, CodeSystem.RXNORM
                    ),
                    "procedures": lambda row: _coded_rows(
                        row, FactKind.PROCEDURE, CodeSystem.SNOMED
                    ),
                    "immunizations": lambda row: _coded_rows(
                        row, FactKind.PROCEDURE, CodeSystem.CVX
                    ),
                    "allergies": lambda row: _coded_rows(row, FactKind.ALLERGY, CodeSystem.SNOMED),
                    "observations": _observation_rows,
                },
                passed_over=frozenset(
                    {"organizations", "providers", "payers", "payer_transitions", "claims"}
                    | {"claims_transactions"}
                ),
                person="patient",
                visit="encounter",
                stay="encounter",
                by_stay=False,
                needs_visit=False,
                synthetic=True,
            )
        )


def _patient_rows(row: Row) -> Made:
    key = first_value(row, "id")
    if not key:
        return None
    sex = _SEXES.get(row.get("gender", "").strip().upper(), "")
    person: Values = (key, hash_pseudonym(key), "", sex, row.get("birthdate", ""), "", "")
    made = [("person", person)]
    return [*made, ("death", (key,))] if first_value(row, "deathdate") else made


def _encounter_rows(row: Row) -> Made:
    person, visit = first_value(row, "patient"), first_value(row, "id")
    if not (person and visit):
        return None
    kind = first_value(row, "encounterclass")
    return [
        (
            "visit",
            (person, visit, first_value(row, "start"), first_value(row, "stop"), kind, "", "", ""),
        )
    ]


def _coded_rows(row: Row, kind: FactKind, system: CodeSystem) -> Made:
    person, value = first_value(row, "patient"), first_value(row, "code")
    if not (person and value):
        return None
    words, at = first_value(row, "description"), first_value(row, "start", "date")
    code = Code(CodeSystem.SNOMED if "SNOMED" in row.get("system", "") else system, value)
    return [fact_row(person, first_value(row, "encounter"), kind, code, words=words, at=at)]


def _observation_rows(row: Row) -> Made:
    """Numbers are measurements; what is text (an address of a survey's words) is not told."""
    person, name = first_value(row, "patient"), first_value(row, "description")
    if not (person and name):
        return None
    value = parse_decimal(row.get("value", ""))
    if value is None:
        return ()
    unit, at = first_value(row, "units"), first_value(row, "date")
    return [("reading", (person, first_value(row, "encounter"), name, unit, at, value))]
