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

from osler.sources.formats.cohort import pseudonym
from osler.sources.formats.fhir_facts import (
    Resource,
    Stated,
    at,
    code_of,
    dates_in,
    each,
    fact_of,
    own_words_of,
    word,
    words_of,
)
from osler.sources.formats.json_lines import items
from osler.sources.formats.reading import plain_head
from osler.sources.patients.patient import Encounter, Fact, Patient, age_between, grouped
from osler.sources.patients.patient_document import document_of
from osler.sources.records import Drop, Record

_BUNDLE = re.compile(rb'"resourceType"\s*:\s*"Bundle"')
_SEXES = frozenset({"male", "female", "other"})
_IDENTIFYING = ("name", "telecom", "address", "identifier", "contact")
_SYNTHEA = "github.com/synthetichealth/synthea"
"""Stands in the system of an identifier that Synthea gave."""


@dataclass(slots=True)
class _Patient:
    """What is known of one patient while the bundle is read."""

    is_described: bool = False
    """Whether the bundle holds the Patient resource, not only references to it."""
    sex: str = ""
    born: date | None = None
    latest: date | None = None
    own_words: frozenset[str] = frozenset()
    died: bool = False
    synthetic: bool = False
    encounters: list[tuple[date, str]] = field(default_factory=list)
    facts: list[Stated] = field(default_factory=list)

    def saw(self, dates: list[date]) -> None:
        self.latest = max([*dates, *filter(None, [self.latest])], default=None)

    def age(self, then: date | None) -> int | None:
        return age_between(self.born, then) if self.born and then else None


class _Bundle:
    def __init__(self) -> None:
        self.patients: dict[str, _Patient] = {}
        self.medications: dict[str, Resource] = {}
        self._other_key: dict[str, str] = {}

    def add(self, entry: Any) -> None:
        resource = at(entry, "resource")
        match at(resource, "resourceType"):
            case "Patient":
                self._describe(resource, _key(at(entry, "fullUrl")))
            case "Medication":
                for key in {_key(resource.get("id")), _key(at(entry, "fullUrl"))}:
                    self.medications[key] = at(resource, "code")
            case str():
                self._add_fact(resource)

    def _describe(self, resource: Resource, full_url: str) -> None:
        key = _key(resource.get("id")) or full_url
        if full_url and full_url != key:
            self._other_key[full_url] = key
        patient = self.patients.setdefault(key, _Patient())
        patient.is_described = True
        patient.sex = gender if (gender := word(resource, "gender")) in _SEXES else ""
        patient.born = next(iter(dates_in(resource, "birthDate")), None)
        patient.own_words = own_words_of(*(resource.get(name) for name in _IDENTIFYING))
        patient.saw(dates_in(resource, "deceasedDateTime"))
        patient.died = bool(word(resource, "deceasedDateTime")) or (
            at(resource, "deceasedBoolean") is True
        )
        systems = [word(one, "system") for one in each(resource, "identifier")]
        patient.synthetic = any(_SYNTHEA in system for system in systems)

    def _add_fact(self, resource: Resource) -> None:
        reference = word(resource, "subject", "reference") or word(resource, "patient", "reference")
        if not reference:
            return
        patient = self.patients.setdefault(_key(reference), _Patient())
        patient.saw(dates_in(resource))
        if fact := fact_of(resource):
            patient.facts.append(fact)
        if resource["resourceType"] == "Encounter" and (begun := dates_in(resource)):
            patient.encounters.append((begun[0], word(resource, "class", "code")))

    def join(self) -> None:
        """Gives a patient the facts that name it by its entry's URL instead of its id."""
        for other, key in self._other_key.items():
            if named_so := self.patients.pop(other, None):
                self.patients[key].facts += named_so.facts
                self.patients[key].encounters += named_so.encounters
                self.patients[key].saw([named_so.latest] if named_so.latest else [])


class Fhir:
    name = "fhir"

    def matches(self, name: str, head: bytes) -> bool:
        return plain_head(head).startswith(b"{") and _BUNDLE.search(head) is not None

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """Memory holds the facts of the patients in the bundle, not its resources."""
        bundle = _Bundle()
        for entry in items(stream, "entry", name):
            bundle.add(entry)
        bundle.join()
        # Exports are called after their patients: the file's name may be a person's.
        where = f"FHIR bundle {_hashed(name)}"
        if not any(patient.is_described for patient in bundle.patients.values()):
            yield Drop(where, "no patient")
            return
        for number, (key, patient) in enumerate(bundle.patients.items(), start=1):
            yield _record(key, patient, bundle.medications, f"{where}: patient {number}")


def _record(key: str, patient: _Patient, medications: dict[str, Resource], where: str) -> Record:
    if not patient.is_described:
        return Drop(where, "patient not in the bundle")
    facts = tuple(_facts(patient, medications))
    if not facts:
        return Drop(where, "no coded fact")
    return document_of(
        Patient(
            pseudonym(key),
            patient.sex,
            grouped(patient.age(patient.latest)),
            tuple(_encounters(patient)),
            facts,
            died=patient.died,
            stay="encounter",
            by_stay=False,
            synthetic=patient.synthetic,
        )
    )


def _encounters(patient: _Patient) -> Iterator[Encounter]:
    begun = sorted(patient.encounters)
    for number, (day, kind) in enumerate(begun, start=1):
        age = grouped(patient.age(day))
        yield Encounter(number, kind, age=age, day=(day - begun[0][0]).days)


def _facts(patient: _Patient, medications: dict[str, Resource]) -> Iterator[Fact]:
    for stated in sorted(patient.facts, key=lambda fact: fact.when or date.min):
        concept = stated.concept or medications.get(_key(stated.reference)) or {}
        words, code = words_of(concept, patient.own_words), code_of(concept)
        if words or code:
            age = grouped(patient.age(stated.when))
            yield Fact(stated.kind, words, code, age=age, says=stated.says)


def _key(reference: Any) -> str:
    """The last part of "Patient/123", "urn:uuid:123" or "123"; "" for anything else."""
    return re.split(r"[/:]", reference)[-1] if isinstance(reference, str) else ""


def _hashed(text: str) -> str:
    return pseudonym(text).removeprefix("patient-")
