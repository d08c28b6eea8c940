"""One FHIR resource as one line of words, from its codes and quantities only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from osler.sources.patients.codes import Code, System, icd
from osler.sources.patients.patient import Kind
from osler.text import is_cjk, one_line

Resource = dict[str, Any]

_KIND_OF = {
    "Condition": Kind.CONDITION,
    "MedicationRequest": Kind.MEDICATION,
    "MedicationStatement": Kind.MEDICATION,
    "Observation": Kind.OBSERVATION,
    "AllergyIntolerance": Kind.ALLERGY,
    "Procedure": Kind.PROCEDURE,
}
_SYSTEMS = {
    "http://snomed.info/sct": System.SNOMED,
    "http://loinc.org": System.LOINC,
    "http://www.nlm.nih.gov/research/umls/rxnorm": System.RXNORM,
    "http://hl7.org/fhir/sid/icd-10-cm": System.ICD10,
    "http://hl7.org/fhir/sid/icd-10": System.ICD10_WHO,
    "http://hl7.org/fhir/sid/icd-9-cm": System.ICD9,
    "http://hl7.org/fhir/sid/ndc": System.NDC,
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
_NOT_SO = frozenset({"entered-in-error", "refuted", "cancelled", "not-done"})


@dataclass(frozen=True, slots=True)
class Stated:
    """What one resource states."""

    kind: Kind
    when: date | None
    concept: Resource
    reference: str
    """Where the concept stands when it is not in the resource itself."""
    says: str
    """Status, value or reaction."""


def fact_of(resource: Resource) -> Stated | None:
    """The fact that a resource states; `None` when it states none, or denies or withdraws it."""
    kind = _KIND_OF.get(resource["resourceType"])
    states = (word(resource, "status"), *_codes(at(resource, "verificationStatus")))
    if kind is None or _NOT_SO.intersection(states):
        return None
    says = _value(resource) if kind is Kind.OBSERVATION else _state(resource)
    if kind is Kind.OBSERVATION and not says:
        return None
    concept = at(resource, "medicationCodeableConcept") or at(resource, "code")
    return Stated(
        kind,
        next(iter(dates_in(resource)), None),
        concept if isinstance(concept, dict) else {},
        word(resource, "medicationReference", "reference"),
        says,
    )


def words_of(concept: Resource, own_words: frozenset[str]) -> str:
    """The display of a concept, or its typed text where that is safe; "" for neither."""
    return display(concept) or _typed(concept, own_words)


def code_of(concept: Resource) -> Code | None:
    """The first code of a vocabulary that is known."""
    return next(_coded(concept), None)


def display(concept: Any) -> str:
    """The first display among a concept's codings, or ""."""
    shown = (one_line(word(coding, "display")) for coding in each(concept, "coding"))
    return next(filter(None, shown), "")


def at(value: Any, *path: str) -> Any:
    """What stands at a path of keys; `None` where the path breaks off."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def word(value: Any, *path: str) -> str:
    """The text at a path; "" for anything else."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def each(value: Any, *path: str) -> list[Any]:
    """The list at a path; empty for anything else."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def own_words_of(*values: Any) -> frozenset[str]:
    """Every word of two characters or more, anywhere inside JSON values, in lower case."""
    words: set[str] = set()
    left = list(values)
    while left:
        match left.pop():
            case str() as text:
                words.update(found for found in _WORDS.findall(text.lower()) if len(found) > 1)
            case list() as items:
                left += items
            case dict() as fields:
                left += fields.values()
    return frozenset(words)


def dates_in(resource: Resource, *fields: str) -> list[date]:
    """The dates of the fields, or of all that say when something was; unknown parts are 1."""
    paths = tuple((name,) for name in fields) or _WHEN
    return [day for path in paths if (day := _date(at(resource, *path)))]


def _date(value: Any) -> date | None:
    found = _DATE.match(value) if isinstance(value, str) else None
    if found is None:
        return None
    try:
        return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        return None


def _typed(concept: Resource, own_words: frozenset[str]) -> str:
    """A concept's free text, unless a word of it is one of the patient's own."""
    text = one_line(word(concept, "text"))
    said = text.lower()
    names = own_words.intersection(_WORDS.findall(said))
    # A Chinese name is not set off by spaces.
    return "" if names or any(is_cjk(own[0]) and own in said for own in own_words) else text


def _coded(concept: Any) -> Iterator[Code]:
    for coding in each(concept, "coding"):
        system, value = _SYSTEMS.get(word(coding, "system")), word(coding, "code").strip()
        if system in (System.ICD9, System.ICD10) and _CODE.fullmatch(value):
            yield icd(value, "9" if system is System.ICD9 else "10")
        elif system and _CODE.fullmatch(value):
            yield Code(system, value)


def _codes(concept: Any) -> Iterator[str]:
    return (code for coding in each(concept, "coding") if (code := word(coding, "code")))


def _state(resource: Resource) -> str:
    """Clinical status, the status of an order, and what an allergy does."""
    status = next(_codes(at(resource, "clinicalStatus")), "")
    if resource["resourceType"].startswith("Medication"):
        status = word(resource, "status")
    reactions = (
        display(manifestation)
        for reaction in each(resource, "reaction")
        for manifestation in each(reaction, "manifestation")
    )
    return ", ".join(filter(None, (status, *reactions)))


def _value(observation: Resource) -> str:
    """A quantity, a number, yes or no, a coded value, or the components; never typed text."""
    if value := _simple_value(observation):
        return value
    parts = (
        f"{display(at(part, 'code'))} {value}"
        for part in each(observation, "component")
        if (value := _simple_value(part))
    )
    return ", ".join(part.strip() for part in parts)


def _simple_value(holder: Any) -> str:
    amount = at(holder, "valueQuantity", "value")
    whole, truth = at(holder, "valueInteger"), at(holder, "valueBoolean")
    if isinstance(amount, int | float):
        return f"{_rounded(amount)} {one_line(word(holder, 'valueQuantity', 'unit'))}".strip()
    if isinstance(truth, bool):
        return "yes" if truth else "no"
    return str(whole) if isinstance(whole, int) else display(at(holder, "valueCodeableConcept"))


def _rounded(amount: float) -> str:
    """At most two decimals: more is the machine's, not the measurement's."""
    return f"{amount:.2f}".rstrip("0").rstrip(".") if isinstance(amount, float) else str(amount)
