"""English multiple choice: MedQA, MedMCQA, MMLU's medical subjects, PubMedQA, BioASQ yes/no."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from osler.errors import MalformedSource
from osler.evaluate.datasets.base import (
    Row,
    Rows,
    Unusable,
    csv_records,
    hashed,
    json_records,
    lettered,
    read_json,
    read_text,
    record,
)
from osler.evaluate.sample import Gold, Sample
from osler.text import language_of
from osler.types import LETTERS, Question

YES_NO_MAYBE = ("yes", "no", "maybe")


def medqa_rows(paths: Sequence[Path]) -> Iterator[Row]:
    """MedQA's JSON Lines; a second file gives MIRAGE's id for each line.

    Raises `MalformedSource` where the two have not the same number of lines.
    """
    ids = read_text(paths[1]).split() if len(paths) > 1 else None
    rows = list(json_records(paths[0]))
    if ids is not None and len(ids) != len(rows):
        raise MalformedSource(f"{paths[1]}: {len(ids)} ids for {len(rows)} questions")
    for row in rows:
        mirage = {} if ids is None else {"mirage": ids[row.number]}
        yield Row(row.place, row.number, {**row.data, **mirage})


def medqa(row: Row, task: str) -> Sample:
    """question, options {A: …}, answer_idx, answer; the two answers must agree."""
    text = row.text("question")
    options = lettered(_mapping(row, "options"))
    letter = row.text("answer_idx")
    question = Question(hashed(text, *options), text, options, language_of(text))
    if letter in question.letters and row.optional("answer") not in ("", question.option(letter)):
        raise Unusable("answer and answer_idx differ")
    tags = _tags(row, mirage="mirage", step="meta_info")
    return Sample(task, "choice", question, Gold((letter,)), tags)


def medmcqa(row: Row, task: str) -> Sample:
    """question, opa … opd, cop (1 to 4), id, subject_name; `exp` may be null."""
    options = tuple(row.text(key) for key in ("opa", "opb", "opc", "opd"))
    number = row.data.get("cop")
    if not isinstance(number, int) or not 1 <= number <= len(options):
        raise Unusable("gold outside the options")
    question = Question(row.text("id"), row.text("question"), options)
    tags = _tags(row, subject="subject_name", topic="topic_name", choice="choice_type")
    return Sample(task, "choice", question, Gold((LETTERS[number - 1],)), tags)


MMLU_COLUMNS = ("question", "A", "B", "C", "D", "answer")


def mmlu_rows(paths: Sequence[Path]) -> Iterator[Row]:
    """Headerless CSV files, one a subject: "anatomy_test.csv"."""
    for path in paths:
        subject = path.stem.removesuffix("_test")
        for row in csv_records(path, columns=MMLU_COLUMNS):
            id = f"{subject}-{row.number:03d}"
            yield Row(row.place, row.number, {**row.data, "id": id, "subject": subject})


def mmlu(row: Row, task: str) -> Sample:
    """The id is MIRAGE's: subject and row number."""
    options = tuple(row.text(letter) for letter in "ABCD")
    question = Question(row.text("id"), row.text("question"), options)
    tags = (("subject", row.text("subject")), ("mirage", row.text("id")))
    return Sample(task, "choice", question, Gold((row.text("answer"),)), tags)


def pubmedqa_rows(paths: Sequence[Path]) -> Iterator[Row]:
    """An object of questions by PMID; a second file gives the gold answers by PMID."""
    records = _object(paths[0])
    gold = _object(paths[1]) if len(paths) > 1 else {}
    for number, (pmid, value) in enumerate(records.items()):
        row = record(paths[0], number, value)
        final = gold.get(pmid, row.data.get("final_decision"))
        joined = {**row.data, "pmid": pmid, "final": final}
        yield Row(f"{paths[0].name}[{pmid}]", number, joined)


def pubmedqa(row: Row, task: str) -> Sample:
    """The contexts are not given to a solver: the evidence is to be found (Omni-RAG D.2)."""
    question = Question(row.text("pmid"), row.text("QUESTION"), YES_NO_MAYBE)
    letter = _yes_no(row.text("final"), YES_NO_MAYBE)
    support = (f"PMID:{question.id}",)
    gold = Gold((letter,), row.texts("LONG_ANSWER"), support)
    return Sample(task, "choice", question, gold, _tags(row, year="YEAR", mirage="pmid"))


def bioasq_rows(*kinds: str) -> Rows:
    """The questions of these types, of all files (a golden file of BioASQ mixes the types)."""

    def rows(paths: Sequence[Path]) -> Iterator[Row]:
        for path in paths:
            yield from (
                row for row in json_records(path, "questions") if row.data.get("type") in kinds
            )

    return rows


def bioasq(row: Row, task: str) -> Sample:
    """All four types: yes/no is a choice, factoid and list are short, summary is long."""
    kind = row.text("type")
    id, text = row.text("id"), row.text("body")
    support = tuple(f"PMID:{url.rpartition('/')[2]}" for url in row.texts("documents"))
    tags = (("type", kind), ("mirage", id))
    if kind == "yesno":
        question = Question(id, text, YES_NO_MAYBE[:2])
        exact = row.texts("exact_answer")
        letter = _yes_no(exact[0] if exact else "", YES_NO_MAYBE[:2])
        gold = Gold((letter,), row.texts("ideal_answer"), support)
        return Sample(task, "choice", question, gold, tags)
    question = Question(id, text)
    if kind in ("factoid", "list"):
        return Sample(task, "short", question, Gold((), row.texts("exact_answer"), support), tags)
    if kind == "summary":
        return Sample(task, "long", question, Gold((), row.texts("ideal_answer"), support), tags)
    raise Unusable(f"type {kind!r}")


def _yes_no(word: str, options: Sequence[str]) -> str:
    try:
        return LETTERS[options.index(word.lower())]
    except ValueError:
        raise Unusable("gold outside the options") from None


def _object(path: Path) -> Mapping[str, object]:
    found = read_json(path)
    if not isinstance(found, dict):
        raise MalformedSource(f"{path}: a JSON object by PMID is wanted")
    return found


def _mapping(row: Row, key: str) -> Mapping[str, object]:
    found = row.data.get(key)
    if not isinstance(found, dict):
        raise Unusable(f"no {key!r}")
    return found


def _tags(row: Row, **keys: str) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, key in keys.items() if (value := row.optional(key)))
