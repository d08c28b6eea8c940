"""The questions that come with Osler, over the texts, the graph and the formulas of the sample."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from osler.types import Language, Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    Rows,
    UnusableRow,
    chain_files,
    json_records,
    options_by_letter,
)
from osler_lab.evaluate.record import Gold, Kind, Sample


def sample_folder() -> Path:
    """Where the packaged questions lie."""
    return Path(str(files("osler.sample")))


def _rows_of(*kinds: str) -> Rows:
    def read(path: Path) -> Iterator[DatasetRow]:
        return (row for row in json_records(path) if row.data.get("kind") in kinds)

    return chain_files(read)


def packaged_sample(row: DatasetRow, task: str) -> Sample:
    """Makes a sample: a choice where there are options; its gold documents are passages."""
    kind, answer = row.text_of("kind"), row.text_of("answer")
    offered = row.data.get("options") or {}
    if not isinstance(offered, dict):
        raise UnusableRow("options are not an object")
    options = options_by_letter(offered)
    language: Language = "zh" if row.text_of("language") == "zh" else "en"
    question = Question(row.text_of("id"), row.text_of("question"), options, language)
    gold = row.data.get("gold") or ()
    support = tuple(dict.fromkeys(one["passage"] for one in gold if one.get("passage")))
    tags = (("type", kind),)
    if options:
        return Sample(task, "choice", question, Gold((answer,), (), support), tags)
    how: Kind = "long" if kind == "open" else "short"
    return Sample(task, how, question, Gold((), (answer,), support), tags)


READERS: dict[str, DatasetReader] = {
    "sample-choice": DatasetReader(_rows_of("choice", "yesno"), packaged_sample),
    "sample-open": DatasetReader(_rows_of("open"), packaged_sample),
    "sample-formula": DatasetReader(_rows_of("formula"), packaged_sample),
    "sample-steps": DatasetReader(_rows_of("steps"), packaged_sample),
}
