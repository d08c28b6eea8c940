"""A question to train on: its gold answer, its gold documents, and the part that it is in.

A file of cases is JSON Lines: `question`, and of these what is known: `id`, `task`, `options`
(list), `answer` (a letter where there are options), `documents` (ids of gold documents).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from osler.errors import BadQuestion, OslerError
from osler.evaluate.sample import Gold, Kind, Sample
from osler.questions import parse_question
from osler.text import split_words
from osler.types import Question

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
        """Of one case among those of all tasks."""
        return f"{self.sample.task}/{self.sample.id}"

    @property
    def gold(self) -> str:
        """The gold answer in words, as a judge reads it; empty where it is not known."""
        question, gold = self.question, self.sample.gold
        named = [f"{letter}. {question.option_text(letter)}" for letter in gold.letters]
        return "\n".join(named or gold.texts[:1])


def part_of(question: Question, *, seed: int = 0, held_out: float = HELD_OUT) -> Part:
    """Where a question belongs: by a hash of its words alone, whatever set it stands in.

    So the same words, in another case or with other marks, never stand in both parts.
    `held_out` is a share, 0 to 1.
    """
    said = " ".join(split_words(question.text))
    digest = hashlib.sha256(f"{seed}\n{said}".encode()).digest()
    return "held-out" if int.from_bytes(digest[:8]) / 2**64 < held_out else "train"


def of_part(
    cases: Iterable[TrainingCase], part: Part, *, seed: int = 0, held_out: float = HELD_OUT
) -> list[TrainingCase]:
    """Those of one part, in their order."""
    if part == "all":
        return list(cases)
    return [c for c in cases if part_of(c.question, seed=seed, held_out=held_out) == part]


def read_cases(path: Path) -> list[TrainingCase]:
    """Raises `BadQuestion` naming file and line, and for a file without a case."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise BadQuestion(f"{path} cannot be read: {error}") from error
    found = [_read_case(line, f"{path}:{n}") for n, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise BadQuestion(f"{path} holds no question")
    seen: set[str] = set()
    for number, case in enumerate(found, 1):
        if case.key in seen:
            raise BadQuestion(f"{path}: case {number} has the id of another: {case.key}")
        seen.add(case.key)
    return found


def _read_case(line: str, where: str) -> TrainingCase:
    try:
        record: dict[str, Any] = json.loads(line)
        question = parse_question(record["question"], options=tuple(record.get("options") or ()))
        question = replace(question, id=str(record.get("id") or question.id))
        gold, kind = _read_gold(str(record.get("answer") or ""), question)
        documents = tuple(map(str, record.get("documents") or ()))
        task = str(record.get("task") or "mine")
    except (ValueError, KeyError, TypeError, AttributeError, OslerError) as error:
        raise BadQuestion(
            f"{where} is no case: {error}",
            fix='write {"question", "answer"}, with "options" and "documents" where there are any',
        ) from error
    return TrainingCase(Sample(task, kind, question, gold), documents)


def _read_gold(answer: str, question: Question) -> tuple[Gold, Kind]:
    if not question.options:
        return Gold((), (answer,) if answer else ()), "long"
    if answer and answer not in question.letters:
        raise ValueError(f"the answer {answer!r} is none of {', '.join(question.letters)}")
    return Gold((answer,) if answer else ()), "choice"


def to_line(case: TrainingCase) -> str:
    """As `read_cases` reads it."""
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
