"""Chinese sets: in the record format of TC-RAG's code CMB-Exam, MMCU-Medical, CMB-Clin; consumers'
questions with their doctors' replies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from osler.prompts import render_prompt
from osler.types import Question
from osler_lab.evaluate.datasets.base import (
    DatasetReader,
    DatasetRow,
    UnusableRow,
    hash_id,
    json_records,
    json_rows,
    make_row,
    options_by_letter,
)
from osler_lab.evaluate.record import Gold, Sample

SEVERAL = "多项选择题"
_TAGS = {name: name for name in ("exam_type", "exam_class", "exam_subject", "question_type")}


def exam_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """The questions; a second file is CMB's official key, joined by id."""
    key = {
        row.optional_text("id"): row.optional_text("answer")
        for path in paths[1:]
        for row in json_records(path)
    }
    for row in json_records(paths[0]):
        answer = row.optional_text("answer") or key.get(row.optional_text("id"), "")
        yield DatasetRow(row.place, row.number, {**row.data, "answer": answer})


def exam_sample(row: DatasetRow, task: str) -> Sample:
    """Reads question, option {A: …}, answer ("B", "BD"), exam_type, exam_class, exam_subject.

    A question is of several answers when it says so, or when its gold has several letters.
    """
    options = row.object_of("option")
    answer = row.text_of("answer")
    question = Question(
        row.text_of("id"), row.text_of("question"), options_by_letter(options), "zh"
    )
    if not set(answer) <= set(question.letters):
        raise UnusableRow("gold outside the options")
    letters = tuple(letter for letter in question.letters if letter in answer)
    # Letters in the question's order, in whatever order the row has them.
    several = len(letters) > 1 or row.optional_text("question_type") == SEVERAL
    return Sample(
        task, "choices" if several else "choice", question, Gold(letters), row.tags_of(**_TAGS)
    )


def framed_sample(row: DatasetRow, task: str) -> Sample:
    """Reads the same, with the question in the frame that names its exam (TC-RAG App. 8.5).

    Rejects a question whose exam is not named whole.
    """
    sample = exam_sample(row, task)
    exam = {name: row.text_of(name) for name in _TAGS}
    framed = render_prompt("evaluate/exam", "zh", question=sample.question.text, **exam)
    return replace(sample, question=replace(sample.question, text=framed.text.strip()))


def clinical_sample(row: DatasetRow, task: str) -> Sample:
    """Reads CMB-Clin: a case with its question at the end, and the reference answer."""
    text = row.text_of("question")
    question = Question(hash_id(text), text, language="zh")
    return Sample(task, "long", question, Gold((), (row.text_of("answers"),)))


def native_clinical_rows(paths: Sequence[Path]) -> Iterator[DatasetRow]:
    """CMB's own nested form: cases with `description` and `QA_pairs`; one row a question."""
    for path in paths:
        for case in json_records(path):
            pairs = case.data.get("QA_pairs")
            for number, pair in enumerate(pairs if isinstance(pairs, list) else [None]):
                inner = make_row(path, number, pair)
                parts = case.optional_text("description"), inner.optional_text("question")
                data = {
                    "question": "\n".join(parts).strip(),
                    "answers": inner.optional_text("answer"),
                }
                yield DatasetRow(f"{case.place}.QA_pairs[{number}]", case.number, data)


def consultation_sample(row: DatasetRow, task: str) -> Sample:
    """Reads title (the question), ask (the letter), answer; asks the title."""
    return _consultation(row, task, row.text_of("title"))


def letter_sample(row: DatasetRow, task: str) -> Sample:
    """The same, and asks the whole letter."""
    return _consultation(row, task, row.text_of("ask"))


def _consultation(row: DatasetRow, task: str, text: str) -> Sample:
    # Several people ask in the same words, and get different replies.
    question = Question(f"{hash_id(text)}-{row.number + 1}", text, language="zh")
    gold = Gold((), (row.text_of("answer"),))
    return Sample(task, "long", question, gold, row.tags_of(department="department"))


READERS: dict[str, DatasetReader] = {
    "exam": DatasetReader(exam_rows, exam_sample),
    "exam-framed": DatasetReader(exam_rows, framed_sample),
    "consultation": DatasetReader(json_rows, consultation_sample),
    "consultation-letter": DatasetReader(json_rows, letter_sample),
    "cmb-clin": DatasetReader(json_rows, clinical_sample),
    "cmb-clin-native": DatasetReader(native_clinical_rows, clinical_sample),
}
