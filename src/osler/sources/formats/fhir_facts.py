"""One FHIR resource as one line of words, from its codes and quantities only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from osler.sources.formats.json_lines import items_at, text_at, value_at
from osler.sources.patients.codes import Code, CodeSystem, icd_code
from osler.sources.patients.patient import FactKind
from osler.text import is_cjk, one_line

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
    return next(_known_codings(concept), None)


def first_display(concept: Any) -> str:
    """The first display among a concept's codings, or ""."""
    displays = (one_line(text_at(coding, "display")) for coding in items_at(concept, "coding"))
    return next(filter(None, displays), "")


def own_words_of(*values: Any) -> frozenset[str]:
    """Every word of two characters or more, anywhere inside JSON values, in lower case."""
    words: set[str] = set()
    left = list(values)
    while left:
        match left.pop():
            case str() as text:
                words.update(word for word in _WORDS.findall(text.lower()) if len(word) > 1)
            case list() as items:
                left += items
            case dict() as fields:
                left += fields.values()
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
    lowered = text.lower()
    names = own_words.intersection(_WORDS.findall(lowered))
    # A Chinese name is not set off by spaces.
    return "" if names or any(is_cjk(own[0]) and own in lowered for own in own_words) else text


def _known_codings(concept: Any) -> Iterator[Code]:
    for coding in items_at(concept, "coding"):
        system, value = _SYSTEMS.get(text_at(coding, "system")), text_at(coding, "code").strip()
        if system in (CodeSystem.ICD9, CodeSystem.ICD10) and _CODE.fullmatch(value):
            yield icd_code(value, "9" if system is CodeSystem.ICD9 else "10")
        elif system and _CODE.fullmatch(value):
            yield Code(system, value)


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
