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

from osler.sources.formats.json_lines import items_at, read_items, text_at, value_at
from osler.sources.formats.reading import plain_head
from osler.sources.patients import hash_pseudonym
from osler.sources.records import Drop, Record
from osler.text import is_cjk, one_line
from osler_serve.clinic.records.codes import Code, CodeSystem, icd_code
from osler_serve.clinic.records.patient import (
    Encounter,
    Fact,
    FactKind,
    Patient,
    age_between,
    group_age,
)
from osler_serve.clinic.records.patient_document import document_of

Resource = dict[str, Any]

_KIND_OF = {
    "Condition": FactKind.CONDITION,
    "MedicationRequest": FactKind.MEDICATION,
    "MedicationStatement": FactKind.MEDICATION,
    "Observation": FactKind.OBSERVATION,
    "AllergyIntolerance": FactKind.ALLERGY,
    "Procedure": FactKind.PROCEDURE,
}
_SYSTEMS = {
    "http://snomed.info/sct": CodeSystem.SNOMED,
    "http://loinc.org": CodeSystem.LOINC,
    "http://www.nlm.nih.gov/research/umls/rxnorm": CodeSystem.RXNORM,
    "http://hl7.org/fhir/sid/icd-10-cm": CodeSystem.ICD10,
    "http://hl7.org/fhir/sid/icd-10": CodeSystem.ICD10_WHO,
    "http://hl7.org/fhir/sid/icd-9-cm": CodeSystem.ICD9,
    "http://hl7.org/fhir/sid/ndc": CodeSystem.NDC,
}
_WHEN = (
    ("onsetDateTime",),
    ("onsetPeriod", "start"),
    ("effectiveDateTime",),
    ("effectivePeriod", "start"),
    ("performedDateTime",),
    ("performedPeriod", "start"),
    ("authoredOn",),
    ("recordedDate",),
    ("period", "start"),
    ("period", "end"),
)
_DATE = re.compile(r"(\d{4})(?:-(\d\d))?(?:-(\d\d))?")
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.^-]{0,63}")
_WORDS = re.compile(r"\w+")
# States of a resource that deny or withdraw what it says.
_NOT_SO = frozenset({"entered-in-error", "refuted", "cancelled", "not-done"})


@dataclass(frozen=True, slots=True)
class StatedFact:
    """The fact that one resource states."""

    kind: FactKind
    when: date | None
    concept: Resource
    reference: str
    """Of the resource that holds the concept, when this one does not."""
    says: str
    """Status, value or reaction."""


def fact_of(resource: Resource) -> StatedFact | None:
    """The fact that a resource states; `None` without one, or when it is denied or withdrawn."""
    kind = _KIND_OF.get(resource["resourceType"])
    states = (text_at(resource, "status"), *_codes_of(value_at(resource, "verificationStatus")))
    if kind is None or _NOT_SO.intersection(states):
        return None
    says = _value_text(resource) if kind is FactKind.OBSERVATION else _status_of(resource)
    if kind is FactKind.OBSERVATION and not says:
        return None
    concept = value_at(resource, "medicationCodeableConcept") or value_at(resource, "code")
    return StatedFact(
        kind,
        next(iter(dates_in(resource)), None),
        concept if isinstance(concept, dict) else {},
        text_at(resource, "medicationReference", "reference"),
        says,
    )


def words_of(concept: Resource, own_words: frozenset[str]) -> str:
    """The display of a concept, or its typed text where that is safe; "" for neither."""
    return first_display(concept) or _safe_text(concept, own_words)


def code_of(concept: Resource) -> Code | None:
    """The first code of a known vocabulary."""
    for coding in items_at(concept, "coding"):
        system, value = _SYSTEMS.get(text_at(coding, "system")), text_at(coding, "code").strip()
        if system in (CodeSystem.ICD9, CodeSystem.ICD10) and _CODE.fullmatch(value):
            return icd_code(value, "9" if system is CodeSystem.ICD9 else "10")
        if system and _CODE.fullmatch(value):
            return Code(system, value)
    return None


def first_display(concept: Any) -> str:
    """The first display among a concept's codings, or ""."""
    displays = (one_line(text_at(coding, "display")) for coding in items_at(concept, "coding"))
    return next(filter(None, displays), "")


def own_words_of(*values: Any) -> frozenset[str]:
    """Every word of two characters or more, anywhere inside JSON values, in lower case.

    A Chinese name is one word, however it is divided: a single character is no word of its own.
    """
    words: set[str] = set()
    left = list(values)
    while left:
        match left.pop():
            case str() as text:
                found = _WORDS.findall(text.lower())
                words.update(word for word in (*found, "".join(found)) if len(word) > 1)
            case list() as items:
                left += items
            case dict() as fields:
                left += fields.values()
                family, given = text_at(fields, "family"), items_at(fields, "given")
                first = "".join(one for one in given if isinstance(one, str))
                left += [first, family + first, first + family]
    return frozenset(words)


def dates_in(resource: Resource, *fields: str) -> list[date]:
    """The dates of the fields, by default all that date an event; a missing month or day is 1."""
    paths = tuple((name,) for name in fields) or _WHEN
    return [day for path in paths if (day := _parse_date(value_at(resource, *path)))]


def _parse_date(value: Any) -> date | None:
    match = _DATE.match(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        return date(int(match[1]), int(match[2] or 1), int(match[3] or 1))
    except ValueError:
        return None


def _safe_text(concept: Resource, own_words: frozenset[str]) -> str:
    """A concept's free text, unless it holds one of the patient's own words (name, address)."""
    text = one_line(text_at(concept, "text"))
    found = _WORDS.findall(text.lower())
    names, joined = own_words.intersection(found), "".join(found)
    # A Chinese name is not set off by spaces.
    return "" if names or any(is_cjk(own[0]) and own in joined for own in own_words) else text


def _codes_of(concept: Any) -> Iterator[str]:
    return (code for coding in items_at(concept, "coding") if (code := text_at(coding, "code")))


def _status_of(resource: Resource) -> str:
    """Clinical status or status of the order, and the manifestations of an allergy."""
    status = next(_codes_of(value_at(resource, "clinicalStatus")), "")
    if resource["resourceType"].startswith("Medication"):
        status = text_at(resource, "status")
    reactions = (
        first_display(manifestation)
        for reaction in items_at(resource, "reaction")
        for manifestation in items_at(reaction, "manifestation")
    )
    return ", ".join(filter(None, (status, *reactions)))


def _value_text(observation: Resource) -> str:
    """A quantity, a number, yes or no, a coded value, or the components; never typed text."""
    if value := _simple_value(observation):
        return value
    parts = (
        f"{first_display(value_at(part, 'code'))} {value}"
        for part in items_at(observation, "component")
        if (value := _simple_value(part))
    )
    return ", ".join(part.strip() for part in parts)


def _simple_value(holder: Any) -> str:
    amount = value_at(holder, "valueQuantity", "value")
    whole, truth = value_at(holder, "valueInteger"), value_at(holder, "valueBoolean")
    if isinstance(amount, int | float):
        return (
            f"{_format_amount(amount)} {one_line(text_at(holder, 'valueQuantity', 'unit'))}".strip()
        )
    if isinstance(truth, bool):
        return "yes" if truth else "no"
    return (
        str(whole)
        if isinstance(whole, int)
        else first_display(value_at(holder, "valueCodeableConcept"))
    )


def _format_amount(amount: float) -> str:
    # At most two decimals: more come from conversion, not from the measurement.
    return f"{amount:.2f}".rstrip("0").rstrip(".") if isinstance(amount, float) else str(amount)


_BUNDLE = re.compile(rb'"resourceType"\s*:\s*"Bundle"')
_IN_XML = re.compile(rb'<[A-Z]\w+[^<>]*\sxmlns="http://hl7\.org/fhir"')
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
        begin = plain_head(head)
        if begin.startswith(b"<"):  # known, so that no other format takes it; and then refused
            return _IN_XML.search(head) is not None
        return begin.startswith(b"{") and _BUNDLE.search(head) is not None

    def parse(self, stream: BinaryIO, name: str) -> Iterator[Record]:
        """One document a patient; memory holds their facts, not the resources."""
        bundle = _Bundle()
        for entry in read_items(stream, "entry", name):
            bundle.add_entry(entry)
        bundle.join_by_url()
        # Exports are called after their patients: the file's name may be a person's.
        where = f"FHIR bundle {hash_pseudonym(name).removeprefix('patient-')}"
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
