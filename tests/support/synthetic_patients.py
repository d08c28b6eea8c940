"""Patients who do not exist, as a record system sends them to a CDS Hooks service."""

from __future__ import annotations

import csv
import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

Resource = dict[str, Any]
CASES = Path(__file__).parents[1] / "fixtures" / "cds_hooks_cases.csv"
_DRUGS = (
    "Warfarin 3 mg oral tablet",
    "Amiodarone 200 mg tablet",
    "Metformin 500 mg",
    "Ibuprofen 400 MG Oral Tablet",
    "Simvastatin 40 mg",
    "Clarithromycin 500 mg",
    "Amoxicillin 500 mg capsule",
    "Dabigatran 110 mg",
    "Enoxaparin injection",
    "Spironolactone 25 mg",
    "Ramipril 5 mg",
    "Lithium carbonate 400 mg",
    "华法林钠片 2.5 mg",
    "Paracetamol 500 mg",
    "Vitamin D3 800 IU",
)
# Once: two readings of a record are the same.
_MEASURED = datetime.now(UTC) - timedelta(days=20)
_ALLERGIES = ("Penicillin", "Allergy to ibuprofen", "No known drug allergy", "Peanut", "青霉素过敏")


@dataclass(frozen=True)
class SyntheticPatient:
    """What a record has of a patient, and what is ordered now."""

    id: str = "p-1"
    taken: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    allergies: tuple[str, ...] = ()
    age: int | None = 70
    sex: str = "female"
    creatinine: tuple[float, str] | None = None
    weight: tuple[float, str] | None = None

    def resources(self) -> list[Resource]:
        """Everything that a request about the patient holds, but the bundles."""
        found = [self._person()]
        found += self._drugs(self.taken, "active", "order")
        found += self._drugs(self.ordered, "draft", "plan")
        found += [self._allergy(n, text) for n, text in enumerate(self.allergies)]
        if self.creatinine:
            mass = "2160-0" if self.creatinine[1] == "mg/dL" else "14682-9"
            found.append(self._observation("creatinine", mass, *self.creatinine))
        if self.weight:
            found.append(self._observation("weight", "29463-7", *self.weight))
        return found

    def request(self, hook: str, **changed: Any) -> dict[str, Any]:
        """A request as a CDS client sends it."""
        by_kind: dict[str, list[Resource]] = {}
        for one in self.resources():
            by_kind.setdefault(f"{one['resourceType']}/{one['id']}".rsplit("-", 1)[0], []).append(
                one
            )
        context: dict[str, Any] = {"userId": "Practitioner/1", "patientId": self.id}
        drafts = by_kind.get("MedicationRequest/plan", [])
        if hook != "patient-view":
            context["draftOrders"] = bundle(drafts)
        if hook == "order-select":
            context["selections"] = [f"MedicationRequest/{one['id']}" for one in drafts]
        request: dict[str, Any] = {
            "hook": hook,
            "hookInstance": str(UUID(int=random.Random(self.id + hook).getrandbits(128))),
            "context": context,
            "prefetch": {
                "patient": self._person(),
                "medications": bundle(by_kind.get("MedicationRequest/order", [])),
                "allergies": bundle(by_kind.get("AllergyIntolerance/allergy", [])),
                "creatinine": bundle(by_kind.get("Observation/creatinine", [])),
                "weight": bundle(by_kind.get("Observation/weight", [])),
            },
        }
        return request | changed

    def _person(self) -> Resource:
        person: Resource = {"resourceType": "Patient", "id": self.id, "gender": self.sex}
        if self.age is not None:
            born = date.today() - timedelta(days=round(365.25 * self.age) + 30)
            person["birthDate"] = born.isoformat()
        return person

    def _drugs(self, texts: tuple[str, ...], status: str, name: str) -> list[Resource]:
        return [
            {
                "resourceType": "MedicationRequest",
                "id": f"{name}-{n}",
                "status": status,
                "intent": "order",
                "subject": {"reference": f"Patient/{self.id}"},
                "medicationCodeableConcept": {"text": text},
            }
            for n, text in enumerate(texts)
        ]

    def _allergy(self, n: int, text: str) -> Resource:
        system = "http://terminology.hl7.org/CodeSystem/allergyintolerance-clinical"
        return {
            "resourceType": "AllergyIntolerance",
            "id": f"allergy-{n}",
            "clinicalStatus": {"coding": [{"system": system, "code": "active"}]},
            "code": {"text": text},
            "patient": {"reference": f"Patient/{self.id}"},
        }

    def _observation(self, name: str, loinc: str, value: float, unit: str) -> Resource:
        return {
            "resourceType": "Observation",
            "id": f"{name}-0",
            "status": "final",
            "code": {"coding": [{"system": "http://loinc.org", "code": loinc}]},
            "subject": {"reference": f"Patient/{self.id}"},
            "effectiveDateTime": _MEASURED.isoformat(timespec="seconds"),
            "valueQuantity": {"value": value, "unit": unit, "code": unit},
        }


def bundle(resources: list[Resource]) -> Resource:
    entries = [{"resource": one} for one in resources]
    return {"resourceType": "Bundle", "type": "searchset", "entry": entries}


def make_patients(number: int, seed: int) -> list[SyntheticPatient]:
    """The same for the same seed."""
    chance = random.Random(seed)
    made = []
    for n in range(number):
        in_si = chance.random() < 0.5
        value = chance.uniform(50, 400) if in_si else chance.uniform(0.5, 5)
        made.append(
            SyntheticPatient(
                id=f"synthetic-{n}",
                taken=tuple(chance.sample(_DRUGS, chance.randint(0, 6))),
                ordered=tuple(chance.sample(_DRUGS, chance.randint(1, 3))),
                allergies=tuple(chance.sample(_ALLERGIES, chance.randint(0, 2))),
                age=chance.choice([None, chance.randint(18, 99)]),
                sex=chance.choice(["female", "male", "unknown"]),
                creatinine=(round(value, 2), "umol/L" if in_si else "mg/dL")
                if chance.random() < 0.8
                else None,
                weight=(round(chance.uniform(40, 130), 1), "kg") if chance.random() < 0.8 else None,
            )
        )
    return made


def read_labelled_cases() -> list[tuple[str, SyntheticPatient, list[str]]]:
    """The check, a patient, and the summaries of the warnings that are right."""

    def parts(text: str) -> tuple[str, ...]:
        return tuple(text.split("; ")) if text else ()

    def quantity(text: str) -> tuple[float, str] | None:
        number, _, unit = text.partition(" ")
        return (float(number), unit) if text else None

    with CASES.open(encoding="utf-8", newline="") as file:
        return [
            (
                row["check"],
                SyntheticPatient(
                    taken=parts(row["taken"]),
                    ordered=parts(row["ordered"]),
                    allergies=parts(row["allergies"]),
                    age=int(row["age"]) if row["age"] else None,
                    creatinine=quantity(row["creatinine"]),
                    weight=quantity(row["weight"]),
                ),
                list(parts(row["warnings"])),
            )
            for row in csv.DictReader(file)
        ]
