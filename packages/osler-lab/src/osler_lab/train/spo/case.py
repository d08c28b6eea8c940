"""A question to train on: its gold answer, its gold documents, and the part that it is in.

A file of cases is a question file (`osler.questions`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from osler.errors import BadQuestion
from osler.questions import LabeledQuestion, read_labeled
from osler.text import split_words
from osler.types import Question
from osler_lab.evaluate.record import Gold, Sample

Part = Literal["train", "held-out", "all"]
PARTS: tuple[Part, ...] = get_args(Part)
HELD_OUT = 0.2
"""Share of the questions that no training sees."""


@dataclass(frozen=True, slots=True)
class TrainingCase:
    """A sample, and where its answer stands."""

    sample: Sample
    documents: tuple[str, ...] = ()
    """Ids of the documents that hold the answer, as the knowledge base has them; empty = unknown.
    """

    @property
    def question(self) -> Question:
        return self.sample.question

    @property
    def key(self) -> str:
        """Key of the case among those of all tasks."""
        return f"{self.sample.task}/{self.sample.id}"

    @property
    def gold(self) -> str:
        """The gold answer in words, as a judge reads it; empty where it is not known."""
        question, gold = self.question, self.sample.gold
        # Letter and text: a judge is to find the option's words in the documents.
        named = [f"{letter}. {question.option_text(letter)}" for letter in gold.letters]
        return "\n".join(named or gold.texts[:1])


def part_of(question: Question, *, seed: int = 0, held_out: float = HELD_OUT) -> Part:
    """Assigns a question to a part by a hash of its words alone, whatever set it stands in.

    So the same words, in another case or with other marks, never stand in both parts.
    `held_out` is a share, 0 to 1.
    """
    words = " ".join(split_words(question.text))
    digest = hashlib.sha256(f"{seed}\n{words}".encode()).digest()
    # Eight bytes as a number in [0, 1): a larger share holds out all of a smaller one.
    return "held-out" if int.from_bytes(digest[:8]) / 2**64 < held_out else "train"


def of_part(
    cases: Iterable[TrainingCase], part: Part, *, seed: int = 0, held_out: float = HELD_OUT
) -> list[TrainingCase]:
    """Filters the cases of one part, in their order."""
    if part == "all":
        return list(cases)
    return [c for c in cases if part_of(c.question, seed=seed, held_out=held_out) == part]


def read_cases(path: Path) -> list[TrainingCase]:
    """The cases of a question file (`osler.questions`).

    Raises `BadQuestion` naming file and line, and for two cases with one id.
    """
    cases = [_make_case(one) for one in read_labeled(path)]
    seen: set[str] = set()
    for number, case in enumerate(cases, 1):
        if case.key in seen:
            raise BadQuestion(f"{path}: case {number} has the id of another: {case.key}")
        seen.add(case.key)
    return cases


def _make_case(one: LabeledQuestion) -> TrainingCase:
    known = (one.answer,) if one.answer else ()
    if one.question.options:
        if known:
            one.require_gold()
        sample = Sample(one.task, "choice", one.question, Gold(known))
    else:
        sample = Sample(one.task, "long", one.question, Gold((), known))
    return TrainingCase(sample, one.documents)


def to_line(case: TrainingCase) -> str:
    """Encodes a case as the line that `read_cases` reads."""
    question, gold = case.question, case.sample.gold
    record = {
        "id": question.id,
        "task": case.sample.task,
        "question": question.text,
        "options": list(question.options),
        "answer": next(iter((*gold.letters, *gold.texts)), ""),
        "documents": list(case.documents),
    }
    return json.dumps({key: value for key, value in record.items() if value}, ensure_ascii=False)


def cases_of(samples: Sequence[Sample]) -> list[TrainingCase]:
    """Samples of a data set as cases; what they rest on is not named by documents of ours."""
    return [TrainingCase(sample) for sample in samples]
