"""Decisions about patients (DDXPlus, MedS-Bench's tasks, MIMIC-IV-ED), and BioASQ's questions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import islice, product
from pathlib import Path
from typing import Any

from osler.errors import MalformedSource
from osler.text import clean_text
from osler.types import Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    Rows,
    UnusableRow,
    chain_files,
    csv_records,
    json_records,
    make_row,
    read_json,
)
from osler_lab.evaluate.datasets.choice import YES_NO_MAYBE, letter_of
from osler_lab.evaluate.record import Gold, Sample

_ASK_DDX = "Which diagnosis is the most likely?"
# MedS-Bench's definitions list labels as Python does: ['a', "b's", …].
_LABELS = re.compile(r"\[(.*)\]", re.DOTALL)
_LABEL = re.compile(r"'([^']*)'|\"([^\"]*)\"")
_PREAMBLE = re.compile(r"(?:the diagnosis result is|the answer is)\s*", re.IGNORECASE)


def ddxplus_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """Patients (CSV), evidences (JSON), conditions (JSON), put into words.

    Raises `MalformedSource` where the two JSON files are none of DDXPlus.
    """
    evidences, conditions = _read_table(paths[1]), _read_table(paths[2])
    names = tuple(sorted(conditions))
    for row in csv_records(paths[0]):
        fields = {**row.data, "options": names, "description": None}
        # A patient that cannot be described is counted by `ddxplus_sample` as a row without one.
        with suppress(KeyError, ValueError, SyntaxError, UnusableRow):
            fields["description"] = _describe_patient(row, evidences)
        yield DatasetRow(row.place, row.number, fields)


def ddxplus_sample(row: DatasetRow, task: str) -> Sample:
    """The options are all conditions, by name; the gold is PATHOLOGY, in English or French."""
    description, pathology = row.text_of("description"), row.text_of("PATHOLOGY")
    options = tuple(row.data["options"])
    letter = letter_of(pathology, options)
    id = f"ddxplus-{row.number:06d}"
    question = Question(id, f"{description}\n{_ASK_DDX}", options)
    return Sample(task, "choice", question, Gold((letter,)), (("sex", row.optional_text("SEX")),))


def _describe_patient(row: DatasetRow, evidences: Mapping[str, Any]) -> str:
    """Describes age, sex, complaint, and each finding as its question with the answer."""
    # The column holds a Python list as text, not JSON.
    codes = [str(code) for code in ast.literal_eval(row.text_of("EVIDENCES"))]
    first = row.text_of("INITIAL_EVIDENCE")
    lines = [f"Age: {row.text_of('AGE')}", f"Sex: {row.text_of('SEX')}"]
    lines.append(f"Complaint: {_describe_finding(first, evidences)}")
    # The initial evidence is listed again among the findings; once is enough.
    lines += [_describe_finding(code, evidences) for code in codes if code != first]
    return "\n".join(lines)


def _describe_finding(code: str, evidences: Mapping[str, Any]) -> str:
    """A code such as "E_54_@_V_161" in words. Raises `KeyError` for an unknown one."""
    # "_@_" parts an evidence of several values from the value; a bare code is binary.
    name, _, value = code.partition("_@_")
    entry = evidences[name]
    asked = str(entry.get("question_en") or entry["question_fr"])
    if not value:
        return f"{asked} Yes"
    meaning = entry.get("value_meaning", {}).get(value, {})
    return f"{asked} {meaning.get('en') or meaning.get('fr') or value}"


def _read_table(path: Path) -> dict[str, Any]:
    table = read_json(path)
    if not isinstance(table, dict) or not all(isinstance(v, dict) for v in table.values()):
        raise MalformedSource(f"{path}: expected a JSON object of DDXPlus")
    return table


def medsbench_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """Reads MedS-Bench: one task per file, with `Definition` and `Instances`."""
    for path in paths:
        document = read_json(path)
        instances = document.get("Instances") if isinstance(document, dict) else None
        if not isinstance(instances, list):
            raise MalformedSource(f"{path}: Instances should be a list")
        definition = " ".join(map(str, document.get("Definition", ())))
        for number, value in enumerate(instances):
            row = make_row(path, number, value)
            yield DatasetRow(row.place, number, {**row.data, "definition": definition})


def medsbench_sample(row: DatasetRow, task: str) -> Sample:
    """The labels that the definition lists are the options; without a list, true and false."""
    options = read_labels(row.text_of("definition"))
    answer = row.texts_of("output")
    label = _stated_label(answer[0] if answer else "")
    folded = [_plain_label(option) for option in options]
    letter = letter_of(_plain_label(label), folded)
    question = Question(row.text_of("id"), row.text_of("input"), options)
    return Sample(task, "choice", question, Gold((letter,)))


def _stated_label(text: str) -> str:
    """The label of "The answer is LABEL."; empty where the text has more than one line."""
    text = text.strip()
    opening = _PREAMBLE.match(text)
    label = text[opening.end() :] if opening else text
    return "" if "\n" in label else label.removesuffix(".").rstrip().casefold()


def read_labels(definition: str) -> tuple[str, ...]:
    """The labels in the brackets of a definition, in order; ("True", "False") without any."""
    match = _LABELS.search(definition)
    listed = [clean_text(a or b) for a, b in _LABEL.findall(match.group(1))] if match else []
    return tuple(dict.fromkeys(listed)) or ("True", "False")


def _plain_label(label: str) -> str:
    """Drops commas: MedS-Bench lists "inguinal, hernia" and writes "inguinal hernia" elsewhere."""
    return " ".join(label.casefold().replace(",", " ").split())


_TRIAGE = (
    ("temperature", "temperature (°F)"),
    ("heartrate", "heart rate (/min)"),
    ("resprate", "respiratory rate (/min)"),
    ("o2sat", "oxygen saturation (%)"),
    ("sbp", "systolic pressure (mmHg)"),
    ("dbp", "diastolic pressure (mmHg)"),
    ("pain", "pain"),
    ("acuity", "triage acuity"),
)


def emergency_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """Joins edstays and triage of MIMIC-IV-ED (plain or gzip) by stay.

    Each row says whether the patient was admitted, and whether another stay began within
    72 hours of leaving.
    """
    triage = {row.optional_text("stay_id"): row.data for row in csv_records(paths[1])}
    stays = list(csv_records(paths[0]))
    # Two passes: a patient's later stays may stand anywhere in the file.
    begins: dict[str, list[datetime]] = {}
    for row in stays:
        if (when := _parse_time(row.optional_text("intime"))) is not None:
            begins.setdefault(row.optional_text("subject_id"), []).append(when)
    for row in stays:
        left = _parse_time(row.optional_text("outtime"))
        later = begins.get(row.optional_text("subject_id"), ())
        back = left is not None and any(left < when <= left + timedelta(hours=72) for when in later)
        joined = {**triage.get(row.optional_text("stay_id"), {}), **row.data, "back": str(back)}
        yield DatasetRow(row.place, row.number, joined)


def admission_sample(row: DatasetRow, task: str) -> Sample:
    """Whether the patient is admitted (MedS-Bench task 117)."""
    disposition = row.text_of("disposition")
    asked = "Does this patient need to be admitted to hospital?"
    return _stay_sample(row, task, asked, disposition == "ADMITTED")


def return_visit(row: DatasetRow, task: str) -> Sample:
    """Whether the patient comes back within 72 hours (MedS-Bench task 118)."""
    # A stay without an end cannot be labelled: the call raises, and the row is counted.
    row.text_of("outtime")
    asked = "Will this patient come back to the emergency department within 72 hours?"
    return _stay_sample(row, task, asked, row.text_of("back") == "True")


def _stay_sample(row: DatasetRow, task: str, asked: str, yes: bool) -> Sample:
    lines = [f"Sex: {row.text_of('gender')}", f"Complaint: {row.text_of('chiefcomplaint')}"]
    lines += [
        f"{name}: {row.optional_text(key)}" for key, name in _TRIAGE if row.optional_text(key)
    ]
    text = "\n".join([*lines, asked])
    question = Question(row.text_of("stay_id"), text, ("yes", "no"))
    return Sample(task, "choice", question, Gold(("A" if yes else "B",)))


def _parse_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


# Ways to name a list: 3 of BioASQ's 108 have more, up to 1,536.
_MOST_NAMES = 64


def bioasq_rows(*kinds: str) -> Rows:
    """The questions of these types, of all files (a golden file of BioASQ mixes the types)."""

    def of_kinds(path: Path) -> Iterator[DatasetRow]:
        return (row for row in json_records(path, "questions") if row.data.get("type") in kinds)

    return chain_files(of_kinds)


def bioasq_sample(row: DatasetRow, task: str) -> Sample:
    """Makes a sample: yes/no is a choice, factoid and list are short, summary is long.

    The gold of a list is all its items, "A; B", in the names that each of them has.
    """
    kind = row.text_of("type")
    id, text = row.text_of("id"), row.text_of("body")
    # Documents are addresses that end in the PubMed id.
    support = tuple(f"PMID:{url.rpartition('/')[2]}" for url in row.texts_of("documents"))
    tags = (("type", kind), ("mirage", id))
    if kind == "yesno":
        question = Question(id, text, YES_NO_MAYBE[:2])
        exact = row.texts_of("exact_answer")
        # "exact_answer" may be a word or a list of it.
        letter = letter_of(exact[0].lower() if exact else "", YES_NO_MAYBE[:2])
        gold = Gold((letter,), row.texts_of("ideal_answer"), support)
        return Sample(task, "choice", question, gold, tags)
    question = Question(id, text)
    if kind in ("factoid", "list"):
        texts = row.texts_of("exact_answer")
        if kind == "list":
            named = islice(product(*row.lists_of("exact_answer")), _MOST_NAMES)
            texts = tuple(dict.fromkeys("; ".join(names) for names in named if names))
        return Sample(task, "short", question, Gold((), texts, support), tags)
    if kind == "summary":
        return Sample(task, "long", question, Gold((), row.texts_of("ideal_answer"), support), tags)
    raise UnusableRow(f"type {kind!r}")


READERS: dict[str, DatasetReader] = {
    "ddxplus": DatasetReader(ddxplus_rows, ddxplus_sample),
    "medsbench": DatasetReader(medsbench_rows, medsbench_sample),
    "ed-admission": DatasetReader(emergency_rows, admission_sample),
    "ed-return": DatasetReader(emergency_rows, return_visit),
    **{
        f"bioasq-{kind}": DatasetReader(bioasq_rows(kind), bioasq_sample)
        for kind in ("yesno", "summary", "factoid", "list")
    },
}
