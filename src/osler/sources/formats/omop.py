"""OMOP Common Data Model 5.3 and 5.4: one document a person, from CSV or Parquet tables.

The folder is one unit: `person` and `condition_occurrence` must be there; `visit_occurrence`,
`procedure_occurrence`, `drug_exposure`, `measurement`, `death` and the vocabulary (`concept`, as
it comes from Athena) may be. With `concept` each source code has its vocabulary and its words.
Without it the code itself tells ICD-9-CM from ICD-10-CM; codes that could be either are named
after the other codes of their visit, and if these do not tell, stay "source code".

Birth dates, race, ethnicity, locations, providers, source identifiers and notes are not read into
the record; a person's number is hashed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from osler.sources.formats import tables
from osler.sources.formats.cohort import (
    Made,
    PatientTables,
    TableLayout,
    fact_row,
    first_value,
    hash_pseudonym,
    lab_title,
    parse_decimal,
)
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, CodeSystem, icd_code, version_of
from osler.sources.patients.patient import FactKind, Patient
from osler.sources.records import Drop
from osler.text import make_slug, one_line

_SEXES = {"8507": "male", "8532": "female", "8521": "other"}
"""Concepts of OMOP's own vocabulary Gender."""
_LETTERS = {"m": "male", "f": "female", "male": "male", "female": "female"}
_VOCABULARIES = {
    "ICD9CM": CodeSystem.ICD9,
    "ICD10CM": CodeSystem.ICD10,
    "ICD10": CodeSystem.ICD10_WHO,
    "ICD9Proc": CodeSystem.ICD9,
    "ICD10PCS": CodeSystem.PCS,
    "SNOMED": CodeSystem.SNOMED,
    "RxNorm": CodeSystem.RXNORM,
    "LOINC": CodeSystem.LOINC,
    "NDC": CodeSystem.NDC,
    "CPT4": CodeSystem.CPT,
}
_ICD = re.compile(r"[EV]\d{2,5}")
_NDC = re.compile(r"\d{9,11}")
_NUMBER = re.compile(r"-?\d{1,19}")
_CPT = re.compile(r"\d{4}[0-9A-Z]")


class Omop(PatientTables):
    def __init__(self) -> None:
        super().__init__(
            TableLayout(
                name="omop",
                title="OMOP",
                required=("person", "condition_occurrence"),
                read={
                    "person": _person_rows,
                    "visit_occurrence": _visit_rows,
                    "condition_occurrence": _condition_rows,
                    "procedure_occurrence": _procedure_rows,
                    "drug_exposure": _drug_rows,
                    "measurement": _reading_rows,
                    "death": _death_rows,
                    "concept": _concept_rows,
                },
                passed_over=frozenset({"condition_era", "drug_era", "observation_period"}),
                person="person",
                visit="visit",
                stay="visit",
                needs_visit=False,
            )
        )

    def read_patients(self, folder: Path) -> Iterator[Patient | Drop]:
        vocabulary = _read_vocabulary(folder)
        for patient in super().read_patients(folder):
            yield patient if isinstance(patient, Drop) else _name_codings(patient, vocabulary)


def _person_rows(row: Row) -> Made:
    key, year = _identifier_in(row, "person_id"), first_value(row, "year_of_birth")
    if not key:
        return None
    sex = _SEXES.get(first_value(row, "gender_concept_id")) or _LETTERS.get(
        first_value(row, "gender_source_value").lower(), ""
    )
    # A birthday in the middle of the year is at most half a year wrong, where only it is known.
    born = f"{year}-07-01" if year.isdecimal() and len(year) == 4 else ""
    return [("person", (key, hash_pseudonym(f"omop:{key}"), "", sex, born, "", ""))]


def _visit_rows(row: Row) -> Made:
    person, visit = _identifier_in(row, "person_id"), _identifier_in(row, "visit_occurrence_id")
    if not (person and visit):
        return None
    at = first_value(row, "visit_start_datetime", "visit_start_date")
    end = first_value(row, "visit_end_datetime", "visit_end_date")
    return [("visit", (person, visit, at, end, "", "", "", ""))]


def _condition_rows(row: Row) -> Made:
    return _fact_rows(
        row, FactKind.DIAGNOSIS, "condition", first_value(row, "condition_start_date")
    )


def _procedure_rows(row: Row) -> Made:
    return _fact_rows(row, FactKind.PROCEDURE, "procedure", first_value(row, "procedure_date"))


def _drug_rows(row: Row) -> Made:
    return _fact_rows(
        row, FactKind.MEDICATION, "drug", first_value(row, "drug_exposure_start_date")
    )


def _reading_rows(row: Row) -> Made:
    person, visit = _identifier_in(row, "person_id"), _identifier_in(row, "visit_occurrence_id")
    item, value = (
        first_value(row, "measurement_concept_id"),
        parse_decimal(row.get("value_as_number", "")),
    )
    if not person:
        return None
    if value is None or not item:
        return ()
    unit, at = first_value(row, "unit_source_value"), first_value(row, "measurement_date")
    return [("reading", (person, visit, f"concept {item}", unit, at, value))]


def _death_rows(row: Row) -> Made:
    person = _identifier_in(row, "person_id")
    return [("death", (person,))] if person else None


def _concept_rows(row: Row) -> Made:
    """Words for the measurements; the other concepts are looked up by `_used_concepts`."""
    number, words = first_value(row, "concept_id"), first_value(row, "concept_name")
    if not (number and words):
        return None
    return [lab_title(f"concept {number}", words)] if row.get("domain_id") == "Measurement" else ()


def _fact_rows(row: Row, kind: FactKind, stem: str, at: str) -> Made:
    person = _identifier_in(row, "person_id")
    if not person:
        return None
    coding = _Coding.from_row(row, stem)
    if not coding.says_something:
        return ()
    code = Code(CodeSystem.LOCAL, str(coding))
    return [fact_row(person, _identifier_in(row, "visit_occurrence_id"), kind, code, at=at)]


def _identifier_in(row: Row, name: str) -> str:
    """An OMOP identifier may be a negative 64-bit number; Parquet may give it as 12.0."""
    value = row.get(name, "").strip().removesuffix(".0")
    return value if _NUMBER.fullmatch(value) else ""


@dataclass(frozen=True, slots=True)
class _Coding:
    """How a row names what it is about: its own code, and two concepts of the vocabulary."""

    source_concept: str
    concept: str
    source: str

    @classmethod
    def from_row(cls, row: Row, stem: str) -> _Coding:
        return cls(
            _identifier_in(row, f"{stem}_source_concept_id"),
            _identifier_in(row, f"{stem}_concept_id"),
            one_line(row.get(f"{stem}_source_value", "")),
        )

    @classmethod
    def from_text(cls, text: str) -> _Coding:
        return cls(*text.split("|", 2))

    def __str__(self) -> str:
        return f"{self.source_concept}|{self.concept}|{self.source}"

    @property
    def says_something(self) -> bool:
        return bool(self.source) or not {self.source_concept, self.concept} <= {"", "0"}


Vocabulary = dict[str, tuple[Code | None, str]]
"""Concept to its code, where the vocabulary is one that is known, and its words."""


def _read_vocabulary(folder: Path) -> Vocabulary:
    """Of the concepts that are used, not of the millions that there are."""
    path = tables.find_table(folder, "concept")
    if path is None:
        return {}
    used = _used_concepts(folder)
    found: Vocabulary = {}
    for row in tables.read_rows(path):
        if isinstance(row, Drop) or (concept := _identifier_in(row, "concept_id")) not in used:
            continue
        system = _VOCABULARIES.get(first_value(row, "vocabulary_id"))
        value = first_value(row, "concept_code")
        code = Code(system, value) if system and value else None
        found[concept] = code, first_value(row, "concept_name")
    return found


def _used_concepts(folder: Path) -> set[str]:
    used: set[str] = set()
    for table, stem in (
        ("condition_occurrence", "condition"),
        ("procedure_occurrence", "procedure"),
        ("drug_exposure", "drug"),
    ):
        path = tables.find_table(folder, table)
        for row in tables.read_rows(path) if path else ():
            if not isinstance(row, Drop):
                used |= {
                    _identifier_in(row, f"{stem}_source_concept_id"),
                    _identifier_in(row, f"{stem}_concept_id"),
                }
    return used


def _name_codings(patient: Patient, vocabulary: Vocabulary) -> Patient:
    """The patient with each coding made a code with its words."""
    codings = [_Coding.from_text(fact.code.value) if fact.code else None for fact in patient.facts]
    votes: dict[int | None, Counter[str]] = {}
    for each, coding in zip(patient.facts, codings, strict=True):
        if coding and each.kind is FactKind.DIAGNOSIS and (version := version_of(coding.source)):
            votes.setdefault(each.encounter, Counter())[version] += 1
    facts = []
    for each, coding in zip(patient.facts, codings, strict=True):
        if coding is not None:
            most = votes.get(each.encounter, Counter[str]()).most_common(1)
            code, words = _code_of(coding, each.kind, vocabulary, most[0][0] if most else "")
            facts.append(replace(each, code=code, words=words))
    return replace(patient, facts=tuple(facts))


def _code_of(
    coding: _Coding, kind: FactKind, vocabulary: Vocabulary, version: str
) -> tuple[Code | None, str]:
    """`version` is what the other codes of the visit are of."""
    code, words = vocabulary.get(coding.source_concept, (None, ""))
    standard, standard_words = vocabulary.get(coding.concept, (None, ""))
    words = words or standard_words
    return code or _by_sight(coding.source, kind, version) or standard or _own_code(coding), words


def _by_sight(source: str, kind: FactKind, version: str) -> Code | None:
    if not source:
        return None
    if kind is FactKind.DIAGNOSIS:
        version = version_of(source) or (version if _ICD.fullmatch(source) else "")
        return icd_code(source, version) if version else None
    if kind is FactKind.PROCEDURE:
        return Code(CodeSystem.CPT, source) if _CPT.fullmatch(source) else None
    return Code(CodeSystem.NDC, source) if _NDC.fullmatch(source) else None


def _own_code(coding: _Coding) -> Code:
    value = coding.source or f"concept-{coding.concept or coding.source_concept}"
    return Code(CodeSystem.LOCAL, make_slug(value))
