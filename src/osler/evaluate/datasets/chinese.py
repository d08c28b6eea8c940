"""Chinese sets in the record format of TC-RAG (F-TC-67): CMB-Exam, MMCU-Medical, CMB-Clin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from osler.evaluate.datasets.base import Row, Unusable, hashed, json_records, lettered, record
from osler.evaluate.sample import Gold, Sample
from osler.types import Question

SINGLE, SEVERAL = "单项选择题", "多项选择题"
_TAGS = ("exam_type", "exam_class", "exam_subject", "question_type")


def exam_rows(paths: Sequence[Path]) -> Iterator[Row]:
    """The questions; a second file is CMB's official key, joined by id."""
    key = {
        row.optional("id"): row.optional("answer")
        for path in paths[1:]
        for row in json_records(path)
    }
    for row in json_records(paths[0]):
        answer = row.optional("answer") or key.get(row.optional("id"), "")
        yield Row(row.place, row.number, {**row.data, "answer": answer})


def exam(row: Row, task: str) -> Sample:
    """question, option {A: …}, answer ("B", "BD"), exam_type, exam_class, exam_subject.

    A question is of several answers when it says so, or when its gold has several letters.
    """
    options = row.data.get("option")
    if not isinstance(options, dict):
        raise Unusable("no 'option'")
    answer = row.text("answer")
    question = Question(row.text("id"), row.text("question"), lettered(options), "zh")
    if not set(answer) <= set(question.letters):
        raise Unusable("gold outside the options")
    letters = tuple(letter for letter in question.letters if letter in answer)
    several = len(letters) > 1 or row.optional("question_type") == SEVERAL
    tags = tuple((name, row.optional(name)) for name in _TAGS if row.optional(name))
    return Sample(task, "choices" if several else "choice", question, Gold(letters), tags)


def clinical(row: Row, task: str) -> Sample:
    """CMB-Clin: a case with its question at the end, and the reference answer."""
    text = row.text("question")
    question = Question(hashed(text), text, language="zh")
    return Sample(task, "long", question, Gold((), (row.text("answers"),)))


def native_clinical_rows(paths: Sequence[Path]) -> Iterator[Row]:
    """CMB's own nested form: cases with `description` and `QA_pairs`; one row a question."""
    for path in paths:
        for case in json_records(path):
            pairs = case.data.get("QA_pairs")
            for number, pair in enumerate(pairs if isinstance(pairs, list) else [None]):
                inner = record(path, number, pair)
                text = f"{case.optional('description')}\n{inner.optional('question')}".strip()
                data = {"question": text, "answers": inner.optional("answer")}
                yield Row(f"{case.place}.QA_pairs[{number}]", case.number, data)
