"""A patient as a document, and the codes, age and sex read back from it.

The two are inverse as far as patients are compared: `profile_of` reads from the passages of
`document_of(patient)` exactly the patient's diagnoses, age and sex. So the knowledge base keeps
one form of a patient, the one that can be read and cited, and no second one beside it.

The entries of a record are read back from its passages too. Each points at the line that it was
read from, so whoever is given a few of them can open the rest.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler.sources.catalogue import PATIENT, SYNTHETIC
from osler.sources.records import Document, Section
from osler.text import one_line
from osler.types import Passage
from osler_serve.clinic.records.codes import Code, CodeSystem
from osler_serve.clinic.records.patient import (
    OLDEST,
    Encounter,
    Fact,
    FactKind,
    Lab,
    Patient,
    age_text,
)

# Characters of a display, at most: a line must fit into a passage, whole.
_WORDS = 200
# Characters of a summary; a passage has 1,000.
_SUMMARY = 900

_BY_STAY = (FactKind.DIAGNOSIS, FactKind.PROCEDURE, FactKind.MEDICATION)
_BY_LIFE = (
    FactKind.CONDITION,
    FactKind.MEDICATION,
    FactKind.OBSERVATION,
    FactKind.ALLERGY,
    FactKind.PROCEDURE,
)
LABS = "Laboratory"
_COMPARED = frozenset({FactKind.DIAGNOSIS.value, FactKind.CONDITION.value})

_SYSTEMS = "|".join(re.escape(system.value) for system in sorted(CodeSystem, key=len, reverse=True))
LINE = re.compile(
    rf"- (?:(?P<words>.*) \[(?P<system>{_SYSTEMS}) (?P<code>[^\s\]]+)\]"
    rf"|(?P<bare>{_SYSTEMS}) (?P<only>[^\s:,]+))(?:(?:: .*)?(?:, at age .*)?)?"
)
# Text in the words of a fact that would read as its code.
_FORGED = re.compile(rf"\[(?=(?:{_SYSTEMS}) )")
# Words without a code must not end like a coded line.
_ROUND = str.maketrans("[]", "()")
_TITLE = re.compile(r"Patient, (?P<sex>.+), age (?P<age>\d+|90 or over|unknown)")


@dataclass(frozen=True, slots=True)
class PatientProfile:
    """The parts of a patient that are compared."""

    id: str
    codes: frozenset[Code] = frozenset()
    age: int | None = None
    sex: str = ""
    """ "" = not known."""


def document_of(patient: Patient) -> Document:
    """The patient in sections; the first is a summary of at most one passage."""
    who = f"{patient.sex or 'sex unknown'}, age {age_text(patient.age)}"
    sections = _by_stay(patient) if patient.by_stay else _by_life(patient)
    return Document(
        id=patient.id,
        title=f"Patient, {who}",
        sections=(Section(_summary_text(patient, who)), *sections),
        code=patient.code,
        kind=SYNTHETIC if patient.synthetic else PATIENT,
        illustrative=patient.synthetic,
    )


def profile_of(id: str, passages: Iterable[Passage | Section], title: str) -> PatientProfile:
    """Reads the profile back from the passages (or sections) and title of `document_of`."""
    return PatientProfile(
        id, frozenset(code for code, _ in coded_lines(passages)), *_describe_person(title)
    )


def coded_lines(passages: Iterable[Passage | Section]) -> Iterator[tuple[Code, str]]:
    """Every diagnosis in the passages of a patient, with its words."""
    for passage in passages:
        if isinstance(passage, Section):
            heading = passage.path[-1] if passage.path else ""
        else:
            heading = passage.locator.section.rpartition(" > ")[2]
        if heading not in _COMPARED:
            continue
        for line in passage.text.splitlines():
            if match := LINE.fullmatch(line.strip()):
                system, value = match["system"] or match["bare"], match["code"] or match["only"]
                yield Code(CodeSystem(system), value), match["words"] or ""


def line_of(fact: Fact) -> str:
    """ "Asthma [SNOMED CT 195967001]: active"; "" when the fact has neither words nor code.

    Words that would read as a code of their own are changed so that they do not.
    """
    words = one_line(fact.words)[:_WORDS].strip()
    says = _FORGED.sub("(", one_line(fact.says)[:_WORDS])
    label = f"{words} [{fact.code}]" if words and fact.code else words or str(fact.code or "")
    line = f"{label}: {says}" if label and says else label
    if fact.code is None and LINE.fullmatch(f"- {line}"):
        line = f"({line.translate(_ROUND)})"
    return line


def _describe_person(title: str) -> tuple[int | None, str]:
    match = _TITLE.fullmatch(title)
    if match is None:
        return None, ""
    text = match["age"]
    age = int(text) if text.isdecimal() else OLDEST if text == "90 or over" else None
    return age, "" if match["sex"] == "sex unknown" else match["sex"]


def _summary_text(patient: Patient, who: str) -> str:
    latest = patient.stay if patient.by_stay else "entry"
    lines = [f"Patient: {who} at the latest {latest}."]
    if patient.by_stay and len(patient.encounters) > 1:
        last = max((each.day or 0 for each in patient.encounters), default=0)
        span = f" within {last:,} days" if last else ""
        lines[0] += f" {len(patient.encounters)} {patient.stay}s{span}."
    if patient.died:
        lines[0] += " Died."
    if patient.synthetic:
        lines[0] += " Synthetic: the record of nobody."
    if main := _main_diagnoses(patient):
        lines.append(_cut_items("Main diagnoses: ", main))
    return "\n".join(lines)


def _main_diagnoses(patient: Patient) -> list[str]:
    """Labels of diagnoses, the most frequent first, then those ranked highest."""
    wanted = [f for f in patient.facts if f.kind in (FactKind.DIAGNOSIS, FactKind.CONDITION)]
    labels = [(f, (one_line(f.words)[:_WORDS].strip() or str(f.code or ""))) for f in wanted]
    often = Counter(label for _, label in labels if label)
    rank: dict[str, int] = {}
    for fact, label in labels:
        rank[label] = min(rank.get(label, 10**6), fact.order or 10**6)
    return sorted(often, key=lambda label: (-often[label], rank[label], label))


def _cut_items(opening: str, items: Sequence[str]) -> str:
    text, left = opening, len(items)
    for item in items:
        if len(text) + len(item) > _SUMMARY:
            break
        text += ("" if text == opening else "; ") + item
        left -= 1
    return f"{text}; and {left} more." if left else f"{text}."


def _by_stay(patient: Patient) -> Iterator[Section]:
    name = patient.stay.capitalize()
    for encounter in patient.encounters:
        path = (f"{name} {encounter.number}",)
        yield Section(_stay_line(encounter, name), path)
        facts = [fact for fact in patient.facts if fact.encounter == encounter.number]
        yield from _list_facts(facts, _BY_STAY, path)
        labs = [lab for lab in patient.labs if lab.encounter == encounter.number]
        if labs:
            yield Section("\n".join(f"- {_lab_line(lab)}" for lab in labs), (*path, LABS))
    loose = [fact for fact in patient.facts if fact.encounter is None]
    yield from _list_facts(loose, tuple(FactKind), ())


def _by_life(patient: Patient) -> Iterator[Section]:
    facts = [replace(fact, encounter=None) for fact in patient.facts]
    facts.sort(key=lambda fact: (fact.age is not None, fact.age or 0))
    latest = {(f.words, f.code): f for f in facts if f.kind is FactKind.OBSERVATION}
    others = [f for f in facts if f.kind is not FactKind.OBSERVATION]
    yield from _list_facts([*others, *latest.values()], _BY_LIFE, ())
    if patient.labs:
        yield Section(
            "\n".join(f"- {_lab_line(lab)}" for lab in _merge_labs(patient.labs)), (LABS,)
        )


def _merge_labs(labs: Iterable[Lab]) -> Iterator[Lab]:
    """The labs of all encounters merged; `last` is that of the last encounter with a value."""
    by_name: dict[tuple[str, str], list[Lab]] = {}
    for lab in sorted(labs, key=lambda lab: lab.encounter or 0):
        by_name.setdefault((lab.name, lab.unit), []).append(lab)
    for (name, unit), group in sorted(by_name.items()):
        low, high = min(lab.low for lab in group), max(lab.high for lab in group)
        yield Lab(name, unit, sum(lab.count for lab in group), low, high, group[-1].last)


def _list_facts(
    facts: Sequence[Fact], kinds: Sequence[FactKind], path: tuple[str, ...]
) -> Iterator[Section]:
    for kind in kinds:
        lines: dict[str, None] = {}
        for fact in facts:
            if fact.kind is kind and (line := line_of(fact)):
                is_told = fact.age is not None and fact.encounter is None
                at = f", at age {age_text(fact.age)}" if is_told else ""
                lines[f"- {line}{at}"] = None
        if lines:
            yield Section("\n".join(lines), (*path, kind.value))


def _stay_line(encounter: Encounter, name: str) -> str:
    about = [f"age {age_text(encounter.age)}", encounter.kind.lower()]
    about.append(f"for {encounter.reason[:_WORDS]}" * bool(encounter.reason))
    if encounter.day:
        about.append(f"{encounter.day:,} days after the first")
    if encounter.days:
        about.append(f"{encounter.days} day{'s' * (encounter.days != 1)} long")
    about.append("died in hospital" * encounter.died)
    return f"{name}: {', '.join(filter(None, about))}."


def _lab_line(lab: Lab) -> str:
    unit = f" {lab.unit}" if lab.unit else ""
    if lab.count == 1:
        return f"{lab.name}: {_format_number(lab.last)}{unit}"
    between = f"{_format_number(lab.low)} to {_format_number(lab.high)} in {lab.count} values"
    return f"{lab.name}: last {_format_number(lab.last)}{unit}, {between}"


def _format_number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


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
