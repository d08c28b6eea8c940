"""Synthea's CSV export: one document a synthetic patient, from a folder of tables.

The folder is one unit: `patients`, `conditions` and `encounters` must be there; medications,
procedures, observations and allergies may be. Names, addresses, birth dates, social security,
driver's and passport numbers, providers, payers and costs are left out, although they
are invented; every document is marked as that of a synthetic patient.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import ClassVar

from osler.sources.formats import patient_tables as to
from osler.sources.formats.mimic import SEXES
from osler.sources.formats.patient_tables import PatientTables, need
from osler.sources.formats.tables import Row, ScratchRow
from osler.sources.patients.codes import Code, CodeSystem
from osler.sources.patients.patient import FactKind

_SYSTEMS = {"SNOMED-CT": CodeSystem.SNOMED, "RxNorm": CodeSystem.RXNORM}


def _patient_rows(row: Row) -> Iterator[ScratchRow]:
    key, sex = need(row.text("id")), SEXES.get(row.text("gender").upper(), "")
    yield to.person_row(key, to.hashed_ids(key), sex, born=row.text("birthdate"))
    if row.text("deathdate"):
        yield to.death_row(key)


def _encounter_rows(row: Row) -> Iterator[ScratchRow]:
    person, visit = need(row.text("patient")), need(row.text("id"))
    at, end = row.text("start"), row.text("stop")
    yield from to.visit_rows(person, visit, at, end, kind=row.text("encounterclass"))


def _coded_rows(row: Row, kind: FactKind, system: CodeSystem) -> Iterator[ScratchRow]:
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
        "patients": _patient_rows,
        "encounters": _encounter_rows,
        "conditions": partial(_coded_rows, kind=FactKind.CONDITION, system=CodeSystem.SNOMED),
        "medications": partial(_coded_rows, kind=FactKind.MEDICATION, system=CodeSystem.RXNORM),
        "procedures": partial(_coded_rows, kind=FactKind.PROCEDURE, system=CodeSystem.SNOMED),
        "immunizations": partial(_coded_rows, kind=FactKind.PROCEDURE, system=CodeSystem.CVX),
        "allergies": partial(_coded_rows, kind=FactKind.ALLERGY, system=CodeSystem.SNOMED),
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
