"""The entries of a patient's record, read back from its passages.

Every entry points at the line that it was read from, so whoever is given a few of them can open
the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from osler.sources.patients.patient_document import LABS, LINE
from osler.types import Passage

Resource = Literal[
    "Patient",
    "Encounter",
    "Condition",
    "Procedure",
    "MedicationStatement",
    "Observation",
    "AllergyIntolerance",
]
"""Resource types of FHIR R4."""
_HEADED: dict[str, Resource] = {
    "Diagnoses": "Condition",
    "Conditions": "Condition",
    "Procedures": "Procedure",
    "Medications": "MedicationStatement",
    "Observations": "Observation",
    "Allergies": "AllergyIntolerance",
    LABS: "Observation",
}
_AT = re.compile(r", at age (?P<age>[^,]+)$")


@dataclass(frozen=True, slots=True)
class RecordEntry:
    """One line of a record, and its place in a passage."""

    resource: Resource
    passage: str
    start: int
    end: int
    """Of the line in the passage's text, without its bullet."""
    text: str
    display: str
    code: str
    """ "ICD-9-CM 250.00"; "" = not coded."""
    says: str
    """Status, value or reaction."""
    at: str
    """ "age 64"; "" = not known."""
    section: str


def list_entries(passages: Iterable[Passage]) -> Iterator[RecordEntry]:
    """Every entry of a record, in order; the summary counts as `Patient`."""
    for passage in passages:
        section = passage.locator.section
        resource = _HEADED.get(section.rpartition(" > ")[2])
        for start, line in _split_lines(passage.text):
            listed = line.startswith("- ")
            kind = resource if listed else ("Encounter" if section else "Patient")
            if kind is not None:
                at = start + 2 * listed
                yield _build_entry(kind, passage.id, section, at, line[2 * listed :])


def _split_lines(text: str) -> Iterator[tuple[int, str]]:
    at = 0
    for line in text.splitlines(keepends=True):
        if bare := line.rstrip("\r\n"):
            yield at, bare
        at += len(line)


def _build_entry(kind: Resource, passage: str, section: str, at: int, text: str) -> RecordEntry:
    coded = LINE.fullmatch(f"- {text}")
    code = words = ""
    if coded:
        code = f"{coded['system'] or coded['bare']} {coded['code'] or coded['only']}"
        words = coded["words"] or ""
    age = _AT.search(text)
    rest = text[: age.start()] if age else text
    display = words or (rest.partition(": ")[0] if not coded else "")
    # The first ": " of an uncoded line ends its words; a code ends with "]: ".
    after = rest.partition("]: " if coded and words else ": ")[2]
    return RecordEntry(
        kind,
        passage,
        at,
        at + len(text),
        text,
        display,
        code,
        after,
        f"age {age['age']}" if age else "",
        section,
    )
