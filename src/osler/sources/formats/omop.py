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
    Layout,
    Made,
    TablesOfPatients,
    decimal,
    fact,
    known,
    lab_title,
    pseudonym,
)
from osler.sources.formats.tables import Row
from osler.sources.patients.codes import Code, System, icd, version_of
from osler.sources.patients.patient import Kind, Patient
from osler.sources.records import Drop
from osler.text import one_line, slug

_SEXES = {"8507": "male", "8532": "female", "8521": "other"}
"""Concepts of OMOP's own vocabulary Gender."""
_LETTERS = {"m": "male", "f": "female", "male": "male", "female": "female"}
_VOCABULARIES = {
    "ICD9CM": System.ICD9,
    "ICD10CM": System.ICD10,
    "ICD10": System.ICD10_WHO,
    "ICD9Proc": System.ICD9,
    "ICD10PCS": System.PCS,
    "SNOMED": System.SNOMED,
    "RxNorm": System.RXNORM,
    "LOINC": System.LOINC,
    "NDC": System.NDC,
    "CPT4": System.CPT,
}
_ICD = re.compile(r"[EV]\d{2,5}")
_NDC = re.compile(r"\d{9,11}")
_NUMBER = re.compile(r"-?\d{1,19}")
_CPT = re.compile(r"\d{4}[0-9A-Z]")


class Omop(TablesOfPatients):
    def __init__(self) -> None:
        super().__init__(
            Layout(
                name="omop",
                title="OMOP",
                required=("person", "condition_occurrence"),
                read={
                    "person": _person,
                    "visit_occurrence": _visit,
                    "condition_occurrence": _condition,
                    "procedure_occurrence": _procedure,
                    "drug_exposure": _drug,
                    "measurement": _reading,
                    "death": _death,
                    "concept": _concept,
                },
                passed_over=frozenset({"condition_era", "drug_era", "observation_period"}),
                person="person",
                visit="visit",
                stay="visit",
                needs_visit=False,
            )
        )

    def patients(self, folder: Path) -> Iterator[Patient | Drop]:
        vocabulary = _vocabulary(folder)
        for patient in super().patients(folder):
            yield patient if isinstance(patient, Drop) else _named(patient, vocabulary)


def _person(row: Row) -> Made:
    key, year = _key(row, "person_id"), known(row, "year_of_birth")
    if not key:
        return None
    sex = _SEXES.get(known(row, "gender_concept_id")) or _LETTERS.get(
        known(row, "gender_source_value").lower(), ""
    )
    # A birthday in the middle of the year is at most half a year wrong, where only it is known.
    born = f"{year}-07-01" if year.isdecimal() and len(year) == 4 else ""
    return [("person", (key, pseudonym(f"omop:{key}"), "", sex, born, "", ""))]


def _visit(row: Row) -> Made:
    person, visit = _key(row, "person_id"), _key(row, "visit_occurrence_id")
    if not (person and visit):
        return None
    at = known(row, "visit_start_datetime", "visit_start_date")
    end = known(row, "visit_end_datetime", "visit_end_date")
    return [("visit", (person, visit, at, end, "", "", "", ""))]


def _condition(row: Row) -> Made:
    return _fact(row, Kind.DIAGNOSIS, "condition", known(row, "condition_start_date"))


def _procedure(row: Row) -> Made:
    return _fact(row, Kind.PROCEDURE, "procedure", known(row, "procedure_date"))


def _drug(row: Row) -> Made:
    return _fact(row, Kind.MEDICATION, "drug", known(row, "drug_exposure_start_date"))


def _reading(row: Row) -> Made:
    person, visit = _key(row, "person_id"), _key(row, "visit_occurrence_id")
    item, value = known(row, "measurement_concept_id"), decimal(row.get("value_as_number", ""))
    if not person:
        return None
    if value is None or not item:
        return ()
    unit, at = known(row, "unit_source_value"), known(row, "measurement_date")
    return [("reading", (person, visit, f"concept {item}", unit, at, value))]


def _death(row: Row) -> Made:
    person = _key(row, "person_id")
    return [("death", (person,))] if person else None


def _concept(row: Row) -> Made:
    """Words for the measurements; the other concepts are looked up by `_used`."""
    number, words = known(row, "concept_id"), known(row, "concept_name")
    if not (number and words):
        return None
    return [lab_title(f"concept {number}", words)] if row.get("domain_id") == "Measurement" else ()


def _fact(row: Row, kind: Kind, stem: str, at: str) -> Made:
    person = _key(row, "person_id")
    if not person:
        return None
    coding = _Coding.of(row, stem)
    if not coding.says_something:
        return ()
    code = Code(System.LOCAL, str(coding))
    return [fact(person, _key(row, "visit_occurrence_id"), kind, code, at=at)]


def _key(row: Row, name: str) -> str:
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
    def of(cls, row: Row, stem: str) -> _Coding:
        return cls(
            _key(row, f"{stem}_source_concept_id"),
            _key(row, f"{stem}_concept_id"),
            one_line(row.get(f"{stem}_source_value", "")),
        )

    @classmethod
    def read(cls, text: str) -> _Coding:
        return cls(*text.split("|", 2))

    def __str__(self) -> str:
        return f"{self.source_concept}|{self.concept}|{self.source}"

    @property
    def says_something(self) -> bool:
        return bool(self.source) or not {self.source_concept, self.concept} <= {"", "0"}


Vocabulary = dict[str, tuple[Code | None, str]]
"""Concept to its code, where the vocabulary is one that is known, and its words."""


def _vocabulary(folder: Path) -> Vocabulary:
    """Of the concepts that are used, not of the millions that there are."""
    path = tables.find(folder, "concept")
    if path is None:
        return {}
    used = _used(folder)
    found: Vocabulary = {}
    for row in tables.rows(path):
        if isinstance(row, Drop) or (concept := _key(row, "concept_id")) not in used:
            continue
        system = _VOCABULARIES.get(known(row, "vocabulary_id"))
        value = known(row, "concept_code")
        code = Code(system, value) if system and value else None
        found[concept] = code, known(row, "concept_name")
    return found


def _used(folder: Path) -> set[str]:
    used: set[str] = set()
    for table, stem in (
        ("condition_occurrence", "condition"),
        ("procedure_occurrence", "procedure"),
        ("drug_exposure", "drug"),
    ):
        path = tables.find(folder, table)
        for row in tables.rows(path) if path else ():
            if not isinstance(row, Drop):
                used |= {_key(row, f"{stem}_source_concept_id"), _key(row, f"{stem}_concept_id")}
    return used


def _named(patient: Patient, vocabulary: Vocabulary) -> Patient:
    """The patient with each coding made a code with its words."""
    codings = [_Coding.read(fact.code.value) if fact.code else None for fact in patient.facts]
    votes: dict[int | None, Counter[str]] = {}
    for each, coding in zip(patient.facts, codings, strict=True):
        if coding and each.kind is Kind.DIAGNOSIS and (version := version_of(coding.source)):
            votes.setdefault(each.encounter, Counter())[version] += 1
    facts = []
    for each, coding in zip(patient.facts, codings, strict=True):
        if coding is not None:
            most = votes.get(each.encounter, Counter[str]()).most_common(1)
            code, words = _code_of(coding, each.kind, vocabulary, most[0][0] if most else "")
            facts.append(replace(each, code=code, words=words))
    return replace(patient, facts=tuple(facts))


def _code_of(
    coding: _Coding, kind: Kind, vocabulary: Vocabulary, version: str
) -> tuple[Code | None, str]:
    """`version` is what the other codes of the visit are of."""
    code, words = vocabulary.get(coding.source_concept, (None, ""))
    standard, standard_words = vocabulary.get(coding.concept, (None, ""))
    words = words or standard_words
    return code or _by_sight(coding.source, kind, version) or standard or _own(coding), words


def _by_sight(source: str, kind: Kind, version: str) -> Code | None:
    if not source:
        return None
    if kind is Kind.DIAGNOSIS:
        version = version_of(source) or (version if _ICD.fullmatch(source) else "")
        return icd(source, version) if version else None
    if kind is Kind.PROCEDURE:
        return Code(System.CPT, source) if _CPT.fullmatch(source) else None
    return Code(System.NDC, source) if _NDC.fullmatch(source) else None


def _own(coding: _Coding) -> Code:
    value = coding.source or f"concept-{coding.concept or coding.source_concept}"
    return Code(System.LOCAL, slug(value))
