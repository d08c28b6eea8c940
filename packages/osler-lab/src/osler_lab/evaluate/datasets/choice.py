"""Multiple choice: MedQA, MedMCQA, MMLU's medical subjects, PubMedQA; and Osler's own questions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from osler.errors import MalformedSource
from osler.text import language_of
from osler.types import LETTERS, Language, Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    Rows,
    UnusableRow,
    chain_files,
    csv_records,
    hash_id,
    json_records,
    json_rows,
    make_row,
    options_by_letter,
    read_json,
    read_text,
)
from osler_lab.evaluate.record import Gold, Kind, Sample

YES_NO_MAYBE = ("yes", "no", "maybe")


def medqa_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """MedQA's JSON Lines; a second file gives MIRAGE's id for each line.

    Raises `MalformedSource` where the two have not the same number of lines.
    """
    ids = read_text(paths[1]).split() if len(paths) > 1 else None
    rows = list(json_records(paths[0]))
    if ids is not None and len(ids) != len(rows):
        raise MalformedSource(f"{paths[1]}: {len(ids)} ids for {len(rows)} questions")
    for row in rows:
        mirage = {} if ids is None else {"mirage": ids[row.number]}
        yield DatasetRow(row.place, row.number, {**row.data, **mirage})


def medqa_sample(row: DatasetRow, task: str) -> Sample:
    """Reads question, options {A: …}, answer_idx, answer; the two answers must agree."""
    text = row.text_of("question")
    options = options_by_letter(row.object_of("options"))
    letter = row.text_of("answer_idx")
    # MedQA has no ids; the options belong to the hash, as stems repeat.
    question = Question(hash_id(text, *options), text, options, language_of(text))
    if letter in question.letters and row.optional_text("answer") not in (
        "",
        question.option_text(letter),
    ):
        raise UnusableRow("answer and answer_idx differ")
    tags = row.tags_of(mirage="mirage", step="meta_info")
    return Sample(task, "choice", question, Gold((letter,)), tags)


def medmcqa_sample(row: DatasetRow, task: str) -> Sample:
    """Reads question, opa … opd, cop (1 to 4), id, subject_name; `exp` may be null.

    Raises `MalformedSource` for a `cop` of 0: where options are counted from 0, as in copies of
    the data, every other gold would be the option before the right one.
    """
    options = tuple(row.text_of(key) for key in ("opa", "opb", "opc", "opd"))
    number = row.data.get("cop")
    if number == 0:
        raise MalformedSource(
            f"{row.place}: cop counts the options from 0",
            fix="give the file of github.com/MedMCQA/MedMCQA, where it is 1 to 4",
        )
    if not isinstance(number, int) or not 1 <= number <= len(options):
        raise UnusableRow("gold outside the options")
    question = Question(row.text_of("id"), row.text_of("question"), options)
    tags = row.tags_of(subject="subject_name", topic="topic_name", choice="choice_type")
    return Sample(task, "choice", question, Gold((LETTERS[number - 1],)), tags)


MMLU_COLUMNS = ("question", "A", "B", "C", "D", "answer")


def mmlu_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """Headerless CSV files, one a subject: "anatomy_test.csv"."""
    for path in paths:
        subject = path.stem.removesuffix("_test")
        for row in csv_records(path, columns=MMLU_COLUMNS):
            # MIRAGE numbers the rows of a subject from 000 in the order of the file.
            id = f"{subject}-{row.number:03d}"
            yield DatasetRow(row.place, row.number, {**row.data, "id": id, "subject": subject})


def mmlu_sample(row: DatasetRow, task: str) -> Sample:
    """The id is MIRAGE's: subject and row number."""
    options = tuple(row.text_of(letter) for letter in "ABCD")
    question = Question(row.text_of("id"), row.text_of("question"), options)
    tags = (("subject", row.text_of("subject")), ("mirage", row.text_of("id")))
    return Sample(task, "choice", question, Gold((row.text_of("answer"),)), tags)


def pubmedqa_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """An object of questions by PMID; a second file gives the gold answers by PMID."""
    records = _read_object(paths[0])
    gold = _read_object(paths[1]) if len(paths) > 1 else {}
    for number, (pmid, value) in enumerate(records.items()):
        row = make_row(paths[0], number, value)
        # The test's gold stands in a file of its own (test_ground_truth.json).
        final = gold.get(pmid, row.data.get("final_decision"))
        joined = {**row.data, "pmid": pmid, "final": final}
        yield DatasetRow(f"{paths[0].name}[{pmid}]", number, joined)


def pubmedqa_sample(row: DatasetRow, task: str) -> Sample:
    """The contexts are not given to a solver: the evidence is to be found (Omni-RAG D.2)."""
    question = Question(row.text_of("pmid"), row.text_of("QUESTION"), YES_NO_MAYBE)
    letter = letter_of(row.text_of("final").lower(), YES_NO_MAYBE)
    support = (f"PMID:{question.id}",)
    gold = Gold((letter,), row.texts_of("LONG_ANSWER"), support)
    return Sample(task, "choice", question, gold, row.tags_of(year="YEAR", mirage="pmid"))


def letter_of(word: str, options: Sequence[str]) -> str:
    """Letter of the option equal to `word`. Raises `UnusableRow` for none."""
    try:
        return LETTERS[options.index(word)]
    except ValueError:
        raise UnusableRow("gold outside the options") from None


def _read_object(path: Path) -> Mapping[str, object]:
    document = read_json(path)
    if not isinstance(document, dict):
        raise MalformedSource(f"{path}: expected a JSON object by PMID")
    return document


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
    "medqa": DatasetReader(medqa_rows, medqa_sample),
    "medmcqa": DatasetReader(json_rows, medmcqa_sample),
    "mmlu": DatasetReader(mmlu_rows, mmlu_sample),
    "pubmedqa": DatasetReader(pubmedqa_rows, pubmedqa_sample),
    "sample-choice": DatasetReader(_rows_of("choice", "yesno"), packaged_sample),
    "sample-open": DatasetReader(_rows_of("open"), packaged_sample),
    "sample-formula": DatasetReader(_rows_of("formula"), packaged_sample),
    "sample-steps": DatasetReader(_rows_of("steps"), packaged_sample),
}
