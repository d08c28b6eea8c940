"""The facts that the FHIR R4 resources of a request state; what they do not state stays unknown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
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
# Of an issue's severity or code; some systems send warnings with every list.
_NOT_WHOLE = {"fatal", "error", "incomplete"}
_CREATININE = ("2160-0", "14682-9", "38483-4")
_WEIGHT = ("29463-7", "3141-9")
_KILOGRAMS = {"kg": 1.0, "g": 0.001, "[lb_av]": 0.45359237, "lb": 0.45359237, "lbs": 0.45359237}
_MG_PER_DL = {"mg/dl": 1.0, "umol/l": 1 / 88.4, "µmol/l": 1 / 88.4, "μmol/l": 1 / 88.4}
_OLDEST = timedelta(days=365)
# A day begins so long before it does in UTC, and many records have local times without a zone.
_FURTHEST_EAST = timedelta(hours=14)


@dataclass(frozen=True, slots=True)
class NamedItem:
    """A drug or an allergy, in the record's words."""

    text: str
    """Empty where only a code is given."""
    reference: str
    """As in "MedicationRequest/1"."""


@dataclass(frozen=True, slots=True)
class Measured:
    value: float | None
    """Creatinine in mg/dL, weight in kg; `None` where it cannot be read."""
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
    """Prefetched lists that say themselves that they are not whole."""


def read_chart(asked: HookRequest, prefetch: dict[str, Resource], now: datetime) -> Chart:
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
        age=_read_age(person.get("birthDate"), now.date()),
        sex=sex if (sex := person.get("gender")) in ("female", "male") else None,
        creatinine=_newest(prefetch.get("creatinine"), _CREATININE, _MG_PER_DL, now),
        weight=_newest(prefetch.get("weight"), _WEIGHT, _KILOGRAMS, now),
        cut_short=tuple(name for name, given in prefetch.items() if _is_cut_short(given)),
    )


def _resources(bundle: Resource | None) -> Iterator[Resource]:
    held = (value_at(entry, "resource") for entry in items_at(bundle, "entry"))
    return (resource for resource in held if isinstance(resource, dict))


def _text(given: Any, *path: str) -> str:
    return text_at(given, *path).strip()


def _is_cut_short(given: Resource) -> bool:
    """Whether it has more pages, holds fewer than it counts, or tells of a failed search."""
    modes = [_text(one, "search", "mode") for one in items_at(given, "entry")]
    total = given.get("total")
    return (
        any(_text(one, "relation") == "next" for one in items_at(given, "link"))
        or (isinstance(total, int) and total > sum(one in ("", "match") for one in modes))
        or any(
            {_text(issue, "severity"), _text(issue, "code")} & _NOT_WHOLE
            for one in _resources(given)
            if _text(one, "resourceType") == "OperationOutcome"
            for issue in items_at(one, "issue")
        )
    )


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


def _read_moment(value: object) -> datetime | None:
    """A day without a time, or with one that cannot be read, stands for its beginning."""
    if (day := _read_day(value)) is None:
        return None
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        moment = datetime(day.year, day.month, day.day)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _newest(
    bundle: Resource | None, codes: tuple[str, ...], units: dict[str, float], now: datetime
) -> Measured | None:
    """The latest final value of these LOINC codes within a year, in the first unit.

    No older value stands in for one that cannot be read.
    """
    found: list[tuple[datetime, Measured]] = []
    for one in _resources(bundle):
        coded = {_text(c, "code") for c in items_at(one, "code", "coding")}
        moment = _read_moment(one.get("effectiveDateTime") or one.get("issued"))
        if (
            coded.isdisjoint(codes)
            or _text(one, "status") not in ("final", "amended", "corrected")
            or moment is None
            or not -_FURTHEST_EAST <= now - moment <= _OLDEST
            or not any(given for name, given in one.items() if name.startswith("value"))
        ):
            continue
        found.append((moment, _measured(one, units, moment.date())))
    return max(found, key=lambda pair: pair[0])[1] if found else None


def _measured(observation: Resource, units: dict[str, float], day: date) -> Measured:
    quantity = value_at(observation, "valueQuantity")
    number, sign = value_at(quantity, "value"), _text(quantity, "comparator")
    unit = _text(quantity, "code") or _text(quantity, "unit")
    if isinstance(number, bool) or not isinstance(number, int | float):
        return Measured(None, f"a value without a number on {day}")
    factor = None if sign else units.get(unit.casefold())
    said = f"{sign}{number:g} {unit} on {day}"
    return Measured(None if factor is None else number * factor, said)
