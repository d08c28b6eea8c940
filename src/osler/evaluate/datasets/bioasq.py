"""BioASQ's four types of question; a golden file of theirs mixes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from osler.evaluate.datasets.base import DataSet, Row, Rows, Unusable, json_records
from osler.evaluate.datasets.choice import YES_NO_MAYBE, letter_of
from osler.evaluate.sample import Gold, Kind, Sample
from osler.types import Question


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
        letter = letter_of(exact[0] if exact else "", YES_NO_MAYBE[:2])
        gold = Gold((letter,), row.texts("ideal_answer"), support)
        return Sample(task, "choice", question, gold, tags)
    question = Question(id, text)
    if kind in ("factoid", "list"):
        return Sample(task, "short", question, Gold((), row.texts("exact_answer"), support), tags)
    if kind == "summary":
        return Sample(task, "long", question, Gold((), row.texts("ideal_answer"), support), tags)
    raise Unusable(f"type {kind!r}")


def _set(name: str, about: str, type: str, kind: Kind, file: str) -> DataSet:
    return DataSet(
        name,
        about,
        kind,
        (f"bioasq/bioasq_{file}_golden.json",),
        bioasq_rows(type),
        bioasq,
        "github.com/Teddy-XiongGZ/MIRAGE",
        "CC BY 2.5",
    )


SETS = (
    _set("bioasq", "yes/no questions of experts", "yesno", "choice", "yesno"),
    _set("bioasq-summary", "questions for a summary", "summary", "long", "other"),
    _set("bioasq-factoid", "questions for one fact", "factoid", "short", "other"),
    _set("bioasq-list", "questions for a list of facts", "list", "short", "other"),
)
