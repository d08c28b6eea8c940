"""One patient, whatever database the record comes from, without identifying data.

De-identification is built into the types: there is no field for a name, an address, a number of
an office or a date. Time is counted in days since the first encounter, and an age above 89 is
`OLDEST` (HIPAA Safe Harbor, 45 CFR 164.514(b)(2)(i)(C)).

Pseudonyms are made under the secret of a knowledge base. Without it, whoever knows the numbers of a
hospital can find a patient by hashing them all. It is handed on in the environment: files are also
read in processes of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from pathlib import Path

from osler.errors import KnowledgeBaseError
from osler.sources.catalogue import EMR
from osler.sources.patients.codes import Code

FILE = "pseudonym.key"
_KEY, _SOURCES = "OSLER_PSEUDONYM_KEY", "OSLER_DEIDENTIFIED"
# The environment is the process's: two knowledge bases are written in turn.
_TURN = threading.RLock()


def make_secret(folder: Path) -> None:
    """Makes the file of the secret, for its owner alone, and flushes it with its name: with an
    empty one pseudonyms would be plain hashes. Raises `OSError`."""
    handle = os.open(folder / FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "wb") as file:
        key = secrets.token_hex(32)
        file.write(f"{key} {_sum_key(key)}".encode())
        file.flush()
        os.fsync(file.fileno())
    names = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(names)
    finally:
        os.close(names)


def _sum_key(key: str) -> str:
    return hashlib.sha256(f"sum of {key}".encode()).hexdigest()[:16]


def read_secret(folder: Path) -> str:
    """The secret of a knowledge base in 64 hexadecimal digits, "" for none.

    Raises `KnowledgeBaseError` where it is not as it was made, and `OSError`.
    """
    path = folder / FILE
    if not path.exists():
        return ""
    key, *sums = path.read_text("ascii", errors="replace").strip().split(" ")
    if re.fullmatch("[0-9a-f]{64}", key) and (not sums or sums == [_sum_key(key)]):
        return key
    raise KnowledgeBaseError(
        f"{path} is damaged: patients would get other pseudonyms",
        fix="put the file back from a backup",
    )


@contextmanager
def use_secret(folder: Path, deidentified: Collection[str]) -> Iterator[None]:
    """Within it, pseudonyms are those of this knowledge base. One that was made before there was
    a secret has none, and its pseudonyms stay plain hashes. Raises what `read_secret` does."""
    values = {
        _KEY: read_secret(folder),
        _SOURCES: ",".join(sorted(deidentified)),
    }
    with _TURN:
        before = {name: os.environ.get(name) for name in values}
        os.environ.update(values)
        try:
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value


def hash_keyed(text: str) -> str:
    """16 hexadecimal digits: HMAC-SHA256 under the secret, plain SHA-256 without one."""
    data = text.encode("utf-8", "surrogatepass")
    if key := os.environ.get(_KEY):
        return hmac.new(bytes.fromhex(key), data, hashlib.sha256).hexdigest()[:16]
    return hashlib.sha256(data).hexdigest()[:16]


def is_deidentified(source: str) -> bool:
    """Whether texts of the source lose their identifiers when they are added."""
    return source in os.environ.get(_SOURCES, "").split(",")


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


def hash_pseudonym(key: str) -> str:
    """A pseudonym for a person: `patient-` and 16 hexadecimal digits of the key's keyed hash."""
    return f"patient-{hash_keyed(key)}"


def pseudonymize_place(source: str, name: str) -> str:
    """The stored name of a file or a member of an archive: in the source `emr`, and where texts are
    de-identified, a hash of it.

    Exports of patients are often called after them.
    """
    is_hidden = source == EMR or is_deidentified(source)
    return f"file-{hash_keyed(name)}" if is_hidden and name else name


_RESOURCE = re.compile(
    r'"resourceType"\s*:\s*"(?:Patient|Condition|Observation|Encounter|Procedure|AllergyIntolerance'
    r'|Medication(?:Request|Statement|Administration)|DiagnosticReport|DocumentReference)"'
)
_OF_PERSON = re.compile(r'"(?:subject|patient|birthDate|gender|telecom|address)"\s*:\s*[\[{"]')


def holds_resources(text: str) -> bool:
    """Whether FHIR resources of a patient stand in a text, as in a bundle under another name."""
    return _RESOURCE.search(text) is not None and _OF_PERSON.search(text) is not None
