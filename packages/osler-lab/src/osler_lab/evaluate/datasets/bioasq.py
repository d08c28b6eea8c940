"""BioASQ's four types of question; its golden files mix them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osler.types import Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    Rows,
    UnusableRow,
    chain_files,
    json_records,
)
from osler_lab.evaluate.datasets.choice import YES_NO_MAYBE, letter_of
from osler_lab.evaluate.record import Gold, Sample


def bioasq_rows(*kinds: str) -> Rows:
    """The questions of these types, of all files (a golden file of BioASQ mixes the types)."""

    def of_kinds(path: Path) -> Iterator[DatasetRow]:
        return (row for row in json_records(path, "questions") if row.data.get("type") in kinds)

    return chain_files(of_kinds)


def bioasq_sample(row: DatasetRow, task: str) -> Sample:
    """Makes a sample: yes/no is a choice, factoid and list are short, summary is long."""
    kind = row.text_of("type")
    id, text = row.text_of("id"), row.text_of("body")
    # Documents are addresses that end in the PubMed id.
    support = tuple(f"PMID:{url.rpartition('/')[2]}" for url in row.texts_of("documents"))
    tags = (("type", kind), ("mirage", id))
    if kind == "yesno":
        question = Question(id, text, YES_NO_MAYBE[:2])
        exact = row.texts_of("exact_answer")
        # "exact_answer" may be a word or a list of it.
        letter = letter_of(exact[0] if exact else "", YES_NO_MAYBE[:2])
        gold = Gold((letter,), row.texts_of("ideal_answer"), support)
        return Sample(task, "choice", question, gold, tags)
    question = Question(id, text)
    if kind in ("factoid", "list"):
        return Sample(
            task, "short", question, Gold((), row.texts_of("exact_answer"), support), tags
        )
    if kind == "summary":
        return Sample(task, "long", question, Gold((), row.texts_of("ideal_answer"), support), tags)
    raise UnusableRow(f"type {kind!r}")


READERS: dict[str, DatasetReader] = {
    f"bioasq-{kind}": DatasetReader(bioasq_rows(kind), bioasq_sample)
    for kind in ("yesno", "summary", "factoid", "list")
}
