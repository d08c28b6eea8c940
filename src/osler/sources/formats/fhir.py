"""FHIR R4 bundles: one de-identified document a patient.

What goes in: sex, age, and coded facts with the patient's age at the time. What
never does: names, addresses, phone numbers, identifiers, dates, narrative and notes.
The words of a fact are its code's display; text that somebody typed is used only
where there is no display, and only if it holds nothing of the patient's own. Ages
above 89 become "90 or over". A document's identifier is a hash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from typing import Any, BinaryIO

from osler.sources.formats.fhir_facts import (
    Resource,
    StatedFact,
    code_of,
    dates_in,
    fact_of,
    own_words_of,
    words_of,
)
from osler.sources.formats.json_lines import items_at, read_items, text_at, value_at
from osler.sources.formats.reading import plain_head
from osler.sources.patients.patient import (
    Encounter,
    Fact,
    Patient,
    age_between,
    group_age,
    hash_pseudonym,
)
from osler.sources.patients.patient_document import document_of
from osler.sources.records import Drop, Record

_BUNDLE = re.compile(rb'"resourceType"\s*:\s*"Bundle"')
_SEXES = frozenset({"male", "female", "other"})
_IDENTIFYING = ("name", "telecom", "address", "identifier", "contact")
# Part of the system of identifiers by Synthea, which invents patients.
_SYNTHEA = "github.com/synthetichealth/synthea"


@dataclass(slots=True)
class _Patient:
    """One patient while the bundle is read."""

    # Whether the bundle holds the Patient resource, not only references to it.
    is_described: bool = False
    sex: str = ""
    born: date | None = None
    latest: date | None = None
    own_words: frozenset[str] = frozenset()
    died: bool = False
    synthetic: bool = False
    encounters: list[tuple[date, str]] = field(default_factory=list)
    facts: list[StatedFact] = field(default_factory=list)

    def note_dates(self, dates: list[date]) -> None:
        self.latest = max([*dates, *filter(None, [self.latest])], default=None)

    def age_at(self, then: date | None) -> int | None:
        return age_between(self.born, then) if self.born and then else None


class _Bundle:
    def __init__(self) -> None:
        self.patients: dict[str, _Patient] = {}
        self.medications: dict[str, Resource] = {}
        self._other_key: dict[str, str] = {}

    def add_entry(self, entry: Any) -> None:
        resource = value_at(entry, "resource")
        match value_at(resource, "resourceType"):
            case "Patient":
                self._add_person(resource, _reference_key(value_at(entry, "fullUrl")))
            case "Medication":
                for key in {
                    _reference_key(resource.get("id")),
                    _reference_key(value_at(entry, "fullUrl")),
                }:
                    self.medications[key] = value_at(resource, "code")
            case str():
                self._add_fact(resource)

    def _add_person(self, resource: Resource, full_url: str) -> None:
        key = _reference_key(resource.get("id")) or full_url
        if full_url and full_url != key:
            self._other_key[full_url] = key
        patient = self.patients.setdefault(key, _Patient())
        patient.is_described = True
        patient.sex = gender if (gender := text_at(resource, "gender")) in _SEXES else ""
        patient.born = next(iter(dates_in(resource, "birthDate")), None)
        patient.own_words = own_words_of(*(resource.get(name) for name in _IDENTIFYING))
        patient.note_dates(dates_in(resource, "deceasedDateTime"))
        patient.died = bool(text_at(resource, "deceasedDateTime")) or (
            value_at(resource, "deceasedBoolean") is True
        )
        systems = [text_at(one, "system") for one in items_at(resource, "identifier")]
        patient.synthetic = any(_SYNTHEA in system for system in systems)

    def _add_fact(self, resource: Resource) -> None:
        reference = text_at(resource, "subject", "reference") or text_at(
            resource, "patient", "reference"
        )
        if not reference:
            return
        patient = self.patients.setdefault(_reference_key(reference), _Patient())
        patient.note_dates(dates_in(resource))
        if fact := fact_of(resource):
            patient.facts.append(fact)
        if resource["resourceType"] == "Encounter" and (begun := dates_in(resource)):
            patient.encounters.append((begun[0], text_at(resource, "class", "code")))

    def join_by_url(self) -> None:
        """Merges the facts that name a patient by its entry's URL into those that name its id."""
        for other, key in self._other_key.items():
            if named_so := self.patients.pop(other, None):
                self.patients[key].facts += named_so.facts
                self.patients[key].encounters += named_so.encounters
                self.patients[key].note_dates([named_so.latest] if named_so.latest else [])


class Fhir:
    name = "fhir"

    def matches(self, name: str, head: bytes) -> bool:
        return plain_head(head).startswith(b"{") and _BUNDLE.search(head) is not None

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """One document a patient; memory holds their facts, not the resources."""
        bundle = _Bundle()
        for entry in read_items(stream, "entry", name):
            bundle.add_entry(entry)
        bundle.join_by_url()
        # Exports are called after their patients: the file's name may be a person's.
        where = f"FHIR bundle {_hash_key(name)}"
        if not any(patient.is_described for patient in bundle.patients.values()):
            yield Drop(where, "no patient")
            return
        for number, (key, patient) in enumerate(bundle.patients.items(), start=1):
            yield _build_record(key, patient, bundle.medications, f"{where}: patient {number}")


def _build_record(
    key: str, patient: _Patient, medications: dict[str, Resource], where: str
) -> Record:
    if not patient.is_described:
        return Drop(where, "patient not in the bundle")
    facts = tuple(_build_facts(patient, medications))
    if not facts:
        return Drop(where, "no coded fact")
    return document_of(
        Patient(
            hash_pseudonym(key),
            patient.sex,
            group_age(patient.age_at(patient.latest)),
            tuple(_build_encounters(patient)),
            facts,
            died=patient.died,
            stay="encounter",
            by_stay=False,
            synthetic=patient.synthetic,
        )
    )


def _build_encounters(patient: _Patient) -> Iterator[Encounter]:
    begun = sorted(patient.encounters)
    for number, (day, kind) in enumerate(begun, start=1):
        age = group_age(patient.age_at(day))
        yield Encounter(number, kind, age=age, day=(day - begun[0][0]).days)


def _build_facts(patient: _Patient, medications: dict[str, Resource]) -> Iterator[Fact]:
    for stated in sorted(patient.facts, key=lambda fact: fact.when or date.min):
        concept = stated.concept or medications.get(_reference_key(stated.reference)) or {}
        words, code = words_of(concept, patient.own_words), code_of(concept)
        if words or code:
            age = group_age(patient.age_at(stated.when))
            yield Fact(stated.kind, words, code, age=age, says=stated.says)


def _reference_key(reference: Any) -> str:
    """The last part of "Patient/123", "urn:uuid:123" or "123"; "" for anything else."""
    return re.split(r"[/:]", reference)[-1] if isinstance(reference, str) else ""


def _hash_key(text: str) -> str:
    return hash_pseudonym(text).removeprefix("patient-")
