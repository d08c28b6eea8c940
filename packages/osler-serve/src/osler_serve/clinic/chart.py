"""The facts that the FHIR R4 resources of a request state; what they do not state stays unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from osler.sources.formats.json_lines import items_at, text_at, value_at
from osler_serve.clinic.hook_wire import HookRequest
from osler_serve.clinic.records.patient import age_between
from osler_serve.problems import RefusedRequest

Resource = dict[str, Any]
_TAKEN = ("active", "on-hold")
# "No known allergy to penicillin" names the drug as well.
_NO_ALLERGY = re.compile(
    r"^(?:no known|no|denies)\b.*\ballerg|^(?:否认|没有|无(?!法)).*过敏", re.IGNORECASE
)
_CREATININE = ("2160-0", "14682-9", "38483-4")
_WEIGHT = ("29463-7", "3141-9")
_KILOGRAMS = {"kg": 1.0, "g": 0.001, "[lb_av]": 0.45359237, "lb": 0.45359237, "lbs": 0.45359237}
_MG_PER_DL = {"mg/dl": 1.0, "umol/l": 1 / 88.4, "µmol/l": 1 / 88.4, "μmol/l": 1 / 88.4}
_OLDEST_DAYS = 365


@dataclass(frozen=True, slots=True)
class NamedItem:
    """A drug or an allergy, in the record's words."""

    text: str
    """Empty where only a code is given."""
    reference: str
    """As in "MedicationRequest/1"."""


@dataclass(frozen=True, slots=True)
class Measured:
    value: float
    """Creatinine in mg/dL, weight in kg."""
    said: str
    """As the record has it, with its unit and day."""


@dataclass(frozen=True, slots=True)
class Chart:
    """What a request says of a patient."""

    taken: tuple[NamedItem, ...] = ()
    ordered: tuple[NamedItem, ...] = ()
    allergies: tuple[NamedItem, ...] = ()
    age: int | None = None
    """Whole years; `None` where the birth date is not a whole date."""
    sex: str | None = None
    """female or male."""
    creatinine: Measured | None = None
    weight: Measured | None = None
    cut_short: tuple[str, ...] = ()
    """Prefetched lists that had more pages."""


def read_chart(asked: HookRequest, prefetch: dict[str, Resource], today: date) -> Chart:
    """Raises `RefusedRequest` (400) for resources of another patient."""
    context = asked.context
    held = context.draftOrders
    drafts = list(_resources({"entry": held.entry} if held is not None else None))
    _require_same_patient(context.patientId, prefetch, drafts)
    person = prefetch.get("patient", {})
    if asked.hook == "order-select":
        drafts = [one for one in drafts if _reference_of(one) in context.selections]
    return Chart(
        taken=_read_drugs(_resources(prefetch.get("medications")), _TAKEN),
        ordered=_read_drugs(drafts, ("draft", "active")),
        allergies=tuple(_read_allergies(_resources(prefetch.get("allergies")))),
        age=_read_age(person.get("birthDate"), today),
        sex=sex if (sex := person.get("gender")) in ("female", "male") else None,
        creatinine=_newest(prefetch.get("creatinine"), _CREATININE, _MG_PER_DL, today),
        weight=_newest(prefetch.get("weight"), _WEIGHT, _KILOGRAMS, today),
        cut_short=tuple(name for name, given in prefetch.items() if _has_more(given)),
    )


def _resources(bundle: Resource | None) -> Iterator[Resource]:
    held = (value_at(entry, "resource") for entry in items_at(bundle, "entry"))
    return (resource for resource in held if isinstance(resource, dict))


def _text(given: Any, *path: str) -> str:
    return text_at(given, *path).strip()


def _has_more(given: Resource) -> bool:
    return any(_text(one, "relation") == "next" for one in items_at(given, "link"))


def _reference_of(resource: Resource) -> str:
    return f"{_text(resource, 'resourceType')}/{_text(resource, 'id')}"


def _require_same_patient(
    patient: str, prefetch: dict[str, Resource], drafts: Iterable[Resource]
) -> None:
    person = prefetch.get("patient")
    named = [_text(person, "id")] if person is not None else []
    for given in prefetch.values():
        named += [_patient_of(one) for one in _resources(given)]
    named += [_patient_of(one) for one in drafts]
    if any(name not in ("", patient) for name in named):
        refusal = "the request holds resources of another patient than context.patientId"
        raise RefusedRequest(400, "other_patient", refusal, fix="send those of this patient alone")


def _patient_of(resource: Resource) -> str:
    subject = value_at(resource, "subject")
    named = subject if subject and isinstance(subject, dict) else value_at(resource, "patient")
    return _text(named, "reference").rpartition("/")[2]


def _concept_text(resource: Any, field: str) -> str:
    codings = items_at(resource, field, "coding")
    words = [_text(resource, field, "text"), *(_text(one, "display") for one in codings)]
    return " | ".join(dict.fromkeys(word for word in words if word))


def _read_drugs(resources: Iterable[Resource], statuses: tuple[str, ...]) -> tuple[NamedItem, ...]:
    found = list(resources)
    medicines = {_reference_of(one): one for one in found}
    return tuple(
        NamedItem(_drug_text(one, medicines), _reference_of(one))
        for one in found
        if _text(one, "resourceType") in ("MedicationRequest", "MedicationStatement")
        and _text(one, "status") in statuses
        and one.get("doNotPerform") is not True
    )


def _drug_text(order: Resource, medicines: dict[str, Resource]) -> str:
    names = [_concept_text(order, "medicationCodeableConcept")]
    target = _text(order, "medicationReference", "reference")
    contained = {f"#{_text(one, 'id')}": one for one in items_at(order, "contained")}
    medicine = contained.get(target) or medicines.get("/".join(target.split("/")[-2:])) or {}
    names += [_concept_text(medicine, "code"), _text(order, "medicationReference", "display")]
    return " | ".join(dict.fromkeys(one for one in names if one))


def _read_allergies(resources: Iterable[Resource]) -> Iterator[NamedItem]:
    for one in resources:
        if _text(one, "resourceType") != "AllergyIntolerance":
            continue
        codes = {
            _text(coding, "code")
            for name in ("clinicalStatus", "verificationStatus")
            for coding in items_at(one, name, "coding")
        }
        text = _concept_text(one, "code")
        if codes & {"inactive", "resolved", "refuted", "entered-in-error"}:
            continue
        if not _NO_ALLERGY.search(text):
            yield NamedItem(text, _reference_of(one))


def _read_day(value: object) -> date | None:
    try:
        return date.fromisoformat(value[:10]) if isinstance(value, str) else None
    except ValueError:
        return None


def _read_age(born: object, today: date) -> int | None:
    day = _read_day(born)
    return None if day is None or day > today else age_between(day, today)


def _newest(
    bundle: Resource | None, codes: tuple[str, ...], units: dict[str, float], today: date
) -> Measured | None:
    """The latest final value of these LOINC codes within a year, in the first unit."""
    found: list[tuple[date, Measured]] = []
    for one in _resources(bundle):
        coded = {_text(c, "code") for c in items_at(one, "code", "coding")}
        day = _read_day(one.get("effectiveDateTime") or one.get("issued"))
        value = value_at(one, "valueQuantity", "value")
        unit = _text(one, "valueQuantity", "code") or _text(one, "valueQuantity", "unit")
        factor = units.get(unit.casefold())
        if (
            coded.isdisjoint(codes)
            or _text(one, "status") not in ("final", "amended", "corrected")
            or day is None
            or not 0 <= (today - day).days <= _OLDEST_DAYS
            or isinstance(value, bool)
            or not isinstance(value, int | float)
            or factor is None
        ):
            continue
        found.append((day, Measured(value * factor, f"{value:g} {unit} on {day.isoformat()}")))
    return max(found, key=lambda pair: pair[0])[1] if found else None
