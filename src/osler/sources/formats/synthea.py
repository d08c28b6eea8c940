"""Synthea's CSV export: one document a synthetic patient, from a folder of tables.

The folder is one unit: `patients`, `conditions` and `encounters` must be there; medications,
procedures, observations and allergies may be. Names, addresses, birth dates, social security,
driver's and passport numbers, providers, payers and costs are left out, although nobody bears
them; every document says that it is of a synthetic patient.
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
from osler.sources.formats.scratch import Values
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, System
from osler.sources.patients.patient import Kind

_SEXES = {"F": "female", "M": "male"}


class Synthea(TablesOfPatients):
    def __init__(self) -> None:
        super().__init__(
            Layout(
                name="synthea",
                title="Synthea",
                required=("patients", "conditions", "encounters"),
                read={
                    "patients": _patient,
                    "encounters": _encounter,
                    "conditions": lambda row: _coded(row, Kind.CONDITION, System.SNOMED),
                    "medications": lambda row: _coded(row, Kind.MEDICATION, System.RXNORM),
                    "procedures": lambda row: _coded(row, Kind.PROCEDURE, System.SNOMED),
                    "immunizations": lambda row: _coded(row, Kind.PROCEDURE, System.CVX),
                    "allergies": lambda row: _coded(row, Kind.ALLERGY, System.SNOMED),
                    "observations": _observation,
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


def _patient(row: Row) -> Made:
    key = known(row, "id")
    if not key:
        return None
    sex = _SEXES.get(row.get("gender", "").strip().upper(), "")
    person: Values = (key, pseudonym(key), "", sex, row.get("birthdate", ""), "", "")
    made = [("person", person)]
    return [*made, ("death", (key,))] if known(row, "deathdate") else made


def _encounter(row: Row) -> Made:
    person, visit = known(row, "patient"), known(row, "id")
    if not (person and visit):
        return None
    kind = known(row, "encounterclass")
    return [("visit", (person, visit, known(row, "start"), known(row, "stop"), kind, "", "", ""))]


def _coded(row: Row, kind: Kind, system: System) -> Made:
    person, value = known(row, "patient"), known(row, "code")
    if not (person and value):
        return None
    words, at = known(row, "description"), known(row, "start", "date")
    code = Code(System.SNOMED if "SNOMED" in row.get("system", "") else system, value)
    return [fact(person, known(row, "encounter"), kind, code, words=words, at=at)]


def _observation(row: Row) -> Made:
    """Numbers are measurements; what is text (an address of a survey's words) is not told."""
    person, name = known(row, "patient"), known(row, "description")
    if not (person and name):
        return None
    value = decimal(row.get("value", ""))
    if value is None:
        return ()
    unit, at = known(row, "units"), known(row, "date")
    return [("reading", (person, known(row, "encounter"), name, unit, at, value))]
