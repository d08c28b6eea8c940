"""One patient, whatever database the record comes from, without identifying data.

De-identification is built into the types: there is no field for a name, an address, a number of
an office or a date. Time is counted in days since the first encounter, and an age above 89 is
`OLDEST` (HIPAA Safe Harbor, 45 CFR 164.514(b)(2)(i)(C)).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from osler_serve.clinic.records.codes import Code

OLDEST = 90
"""Stands for every age from 90 on."""


class FactKind(StrEnum):
    """The kind of a fact; the value is its heading in the patient's document."""

    DIAGNOSIS = "Diagnoses"
    CONDITION = "Conditions"
    """A diagnosis on a problem list kept over a life, not made for one stay."""
    PROCEDURE = "Procedures"
    MEDICATION = "Medications"
    OBSERVATION = "Observations"
    ALLERGY = "Allergies"


@dataclass(frozen=True, slots=True)
class Fact:
    """One coded statement of the record."""

    kind: FactKind
    words: str
    """The code's display; "" when only the code is known."""
    code: Code | None = None
    encounter: int | None = None
    """Number of the encounter, from 1; `None` = of none, or not known."""
    order: int = 0
    """As ranked in the encounter, from 1 (the principal one); 0 = not ranked."""
    age: int | None = None
    """Whole years at the time, at most `OLDEST`."""
    says: str = ""
    """Status, value or reaction."""


@dataclass(frozen=True, slots=True)
class Lab:
    """All values of one measurement in one encounter."""

    name: str
    unit: str
    count: int
    low: float
    high: float
    last: float
    encounter: int | None = None


@dataclass(frozen=True, slots=True)
class Encounter:
    """A stay or a visit."""

    number: int
    """From 1, in the order of time as far as the source has it."""
    kind: str = ""
    """"emergency", "urgent", a unit's type."""
    reason: str = ""
    age: int | None = None
    day: int | None = None
    """Days from the beginning of the first encounter to the beginning of this one."""
    days: int | None = None
    """Length, in whole days."""
    died: bool = False


@dataclass(frozen=True, slots=True)
class Patient:
    """The record of one person under a pseudonym."""

    id: str
    """Of the publisher's own pseudonym, or a hash; unique within a source."""
    sex: str
    """"female", "male", "other"; "" = not known."""
    age: int | None
    """At the latest entry, at most `OLDEST`."""
    encounters: tuple[Encounter, ...] = ()
    facts: tuple[Fact, ...] = ()
    labs: tuple[Lab, ...] = ()
    code: str = ""
    """The publisher's pseudonym as it is cited: "subject:10006"."""
    died: bool = False
    """Whether the record states the death."""
    stay: str = "admission"
    """The name of an encounter in this source."""
    by_stay: bool = True
    """Whether the record is kept by stay, as in a hospital, or over a life, as by a doctor."""

    synthetic: bool = False
    """Made by a program: not the record of a person."""

    @property
    def diagnoses(self) -> frozenset[Code]:
        """The codes by which patients are compared."""
        wanted = (FactKind.DIAGNOSIS, FactKind.CONDITION)
        return frozenset(fact.code for fact in self.facts if fact.kind in wanted and fact.code)


def age_between(born: date, then: date) -> int:
    """Whole years of age on the day `then`; not below 0."""
    had_no_birthday = (then.month, then.day) < (born.month, born.day)
    return max(0, then.year - born.year - had_no_birthday)


def group_age(age: int | None) -> int | None:
    """The age as a record may keep it: clamped to 0 … `OLDEST`."""
    return None if age is None else min(max(age, 0), OLDEST)


def age_text(age: int | None) -> str:
    """ "70", "90 or over", "unknown"."""
    if age is None:
        return "unknown"
    return str(age) if age < OLDEST else "90 or over"
