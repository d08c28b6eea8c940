"""OMOP Common Data Model 5.3 and 5.4: one document a person, from CSV or Parquet tables.

The folder is one unit: `person` and `condition_occurrence` must be there; `visit_occurrence`,
`procedure_occurrence`, `drug_exposure`, `measurement`, `death` and the vocabulary (`concept`, as
it comes from Athena) may be. With `concept` each source code has its vocabulary and its words.
Without it the code's form decides between ICD-9-CM and ICD-10-CM; a code that could be either
takes the version of the other codes of its visit, or else stays a "source code".

Birth dates, race, ethnicity, locations, providers, source identifiers and notes are not read into
the record; a person's number is hashed.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from osler.sources.formats.tables import Row, ScratchRow, find_table, read_rows
from osler.sources.records import Drop
from osler.text import make_slug
from osler_serve.clinic.records import patient_tables as to
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code, version_of
from osler_serve.clinic.records.patient import FactKind, Patient
from osler_serve.clinic.records.patient_tables import PatientTables, need

# Concepts of OMOP's own vocabulary Gender.
_SEXES = {"8507": "male", "8532": "female", "8521": "other"}
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

Vocabulary = dict[str, tuple[Code | None, str]]
"""Concept to its code, where the vocabulary is one that is known, and its words."""


def _person_rows(row: Row) -> Iterator[ScratchRow]:
    key, year = need(_identifier_in(row, "person_id")), row.text("year_of_birth")
    sex = _SEXES.get(row.text("gender_concept_id")) or _LETTERS.get(
        row.text("gender_source_value").lower(), ""
    )
    # A birthday in the middle of the year is at most half a year wrong, where only it is known.
    born = f"{year}-07-01" if year.isdecimal() and len(year) == 4 else ""
    yield to.person_row(key, to.hashed_ids(f"omop:{key}"), sex, born=born)


def _visit_rows(row: Row) -> Iterator[ScratchRow]:
    yield from to.visit_rows(
        need(_identifier_in(row, "person_id")),
        need(_identifier_in(row, "visit_occurrence_id")),
        row.text("visit_start_datetime", "visit_start_date"),
        row.text("visit_end_datetime", "visit_end_date"),
    )


def _fact_rows(row: Row, kind: FactKind, stem: str, date: str) -> Iterator[ScratchRow]:
    person, visit = _keys(row)
    coding = _Coding.from_row(row, stem)
    if coding.says_something:
        # Kept whole until the vocabulary is read: see `Omop.patient_finisher`.
        code = Code(CodeSystem.LOCAL, str(coding))
        yield to.fact_row(person, visit, kind, code, at=row.text(date))


def _reading_rows(row: Row) -> Iterator[ScratchRow]:
    person, visit = _keys(row)
    if item := row.text("measurement_concept_id"):
        unit, at = row.text("unit_source_value"), row.text("measurement_date")
        value = row.number("value_as_number")
        yield from to.reading_row(person, visit, f"concept {item}", unit, at, value)


def _death_rows(row: Row) -> Iterator[ScratchRow]:
    yield to.death_row(need(_identifier_in(row, "person_id")))


def _concept_rows(row: Row) -> Iterator[ScratchRow]:
    """Words for the measurements; codes of facts are looked up by `_read_vocabulary`."""
    concept, words = need(row.text("concept_id")), need(row.text("concept_name"))
    if row.get("domain_id") == "Measurement":
        yield to.lab_title_row(f"concept {concept}", words)


def _keys(row: Row) -> tuple[str, str]:
    """Of the person, and of the visit where it is known."""
    return need(_identifier_in(row, "person_id")), _identifier_in(row, "visit_occurrence_id")


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
            row.text(f"{stem}_source_value"),
        )

    @classmethod
    def from_text(cls, text: str) -> _Coding:
        return cls(*text.split("|", 2))

    def __str__(self) -> str:
        return f"{self.source_concept}|{self.concept}|{self.source}"

    @property
    def says_something(self) -> bool:
        return bool(self.source) or not {self.source_concept, self.concept} <= {"", "0"}


class Omop(PatientTables):
    name = "omop"
    title = "OMOP"
    required = ("person", "condition_occurrence")
    tables: ClassVar = {
        "person": _person_rows,
        "visit_occurrence": _visit_rows,
        "condition_occurrence": partial(
            _fact_rows, kind=FactKind.DIAGNOSIS, stem="condition", date="condition_start_date"
        ),
        "procedure_occurrence": partial(
            _fact_rows, kind=FactKind.PROCEDURE, stem="procedure", date="procedure_date"
        ),
        "drug_exposure": partial(
            _fact_rows, kind=FactKind.MEDICATION, stem="drug", date="drug_exposure_start_date"
        ),
        "measurement": _reading_rows,
        "death": _death_rows,
        "concept": _concept_rows,
    }
    passed_over = frozenset({"condition_era", "drug_era", "observation_period"})
    person = "person"
    visit = stay = "visit"
    needs_visit = False

    def patient_finisher(
        self, folder: Path, database: sqlite3.Connection
    ) -> Callable[[Patient], Patient]:
        """Replaces each coding by a code of a known vocabulary with its words."""
        codings = [
            _Coding.from_text(text)
            for (text,) in database.execute("SELECT DISTINCT code FROM fact")
        ]
        concepts = {each for c in codings for each in (c.source_concept, c.concept)}
        return partial(_name_codings, vocabulary=_read_vocabulary(folder, concepts))


def _read_vocabulary(folder: Path, concepts: set[str]) -> Vocabulary:
    """Entries of the concepts that are used, not of the millions that Athena exports."""
    path = find_table(folder, "concept")
    vocabulary: Vocabulary = {}
    for row in read_rows(path) if path else ():
        if isinstance(row, Drop) or (concept := _identifier_in(row, "concept_id")) not in concepts:
            continue
        system, value = _VOCABULARIES.get(row.text("vocabulary_id")), row.text("concept_code")
        code = Code(system, value) if system and value else None
        vocabulary[concept] = code, row.text("concept_name")
    return vocabulary


def _name_codings(patient: Patient, vocabulary: Vocabulary) -> Patient:
    codings = [(fact, _Coding.from_text(fact.code.value)) for fact in patient.facts if fact.code]
    votes: defaultdict[int | None, Counter[str]] = defaultdict(Counter)
    for fact, coding in codings:
        if fact.kind is FactKind.DIAGNOSIS and (version := version_of(coding.source)):
            votes[fact.encounter][version] += 1
    facts = []
    for fact, coding in codings:
        most = votes[fact.encounter].most_common(1)
        code, words = _code_of(coding, fact.kind, vocabulary, most[0][0] if most else "")
        facts.append(replace(fact, code=code, words=words))
    return replace(patient, facts=tuple(facts))


def _code_of(
    coding: _Coding, kind: FactKind, vocabulary: Vocabulary, version: str
) -> tuple[Code | None, str]:
    """Code and words. `version` is the ICD version of the other codes of the visit."""
    code, words = vocabulary.get(coding.source_concept, (None, ""))
    standard, standard_words = vocabulary.get(coding.concept, (None, ""))
    words = words or standard_words
    code = code or _code_by_form(coding.source, kind, version) or standard
    own = coding.source or f"concept-{coding.concept or coding.source_concept}"
    return code or Code(CodeSystem.LOCAL, make_slug(own)), words


def _code_by_form(source: str, kind: FactKind, version: str) -> Code | None:
    """The code whose form the source code has; `None` when it could be of several vocabularies."""
    if not source:
        return None
    if kind is FactKind.DIAGNOSIS:
        version = version_of(source) or (version if _ICD.fullmatch(source) else "")
        return icd_code(source, version) if version else None
    if kind is FactKind.PROCEDURE:
        return Code(CodeSystem.CPT, source) if _CPT.fullmatch(source) else None
    return Code(CodeSystem.NDC, source) if _NDC.fullmatch(source) else None
