"""Question files of the user's own: JSON Lines with what is known about each question.

    {"question": "…", "options": ["…", "…"], "answer": "A", "id": "…", "task": "…",
     "documents": ["book:…"]}

Only `question` is required. Options are a list, or texts by letter, or stand in the question's
last lines; `answer` (or `gold`) is a letter where there are options, else words.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from osler.errors import BadQuestion, read_text_file
from osler.questions import parse_question
from osler.types import Question

_FIX = 'write lines like {"question": "…", "options": ["…", "…"], "answer": "A"}'


@dataclass(frozen=True, slots=True)
class LabeledQuestion:
    """A question with the facts on its line."""

    question: Question
    answer: str = ""
    """Answer in the words of the line; empty where it is not known."""
    task: str = "mine"
    documents: tuple[str, ...] = ()
    """Ids of gold documents."""
    place: str = ""
    """File and line."""

    @property
    def gold(self) -> str:
        """The letter of the right option; empty where it is not known."""
        return self.answer if self.answer in self.question.letters else ""

    def require_gold(self) -> None:
        """Raises `BadQuestion` for a question with options whose right one is not named."""
        if self.question.options and not self.gold:
            letters = ", ".join(self.question.letters)
            raise BadQuestion(
                f"{self.place}: the answer {self.answer!r} is not one of {letters}", fix=_FIX
            )


def read_labeled(path: Path) -> list[LabeledQuestion]:
    """Raises `BadQuestion` naming file, line and fix, and for a file without a question."""
    text = read_text_file(path, BadQuestion, "name JSON Lines")
    if not (questions := parse_labeled(text, str(path))):
        raise BadQuestion(f"{path} has no question", fix=_FIX)
    return questions


def parse_labeled(text: str, name: str) -> list[LabeledQuestion]:
    """The lines of a file called `name`. Raises `BadQuestion` naming file, line and fix."""
    # Not splitlines(): JSON strings may hold U+2028 and other line ends of Unicode.
    lines = enumerate(text.split("\n"), 1)
    return [_parse_line(line, f"{name}:{n}") for n, line in lines if line.strip()]


def _parse_line(line: str, place: str) -> LabeledQuestion:
    try:
        row: dict[str, Any] = json.loads(line)
        options = row.get("options") or ()
        listed = options.values() if isinstance(options, dict) else options
        question = parse_question(row["question"], options=tuple(map(str, listed)))
        return LabeledQuestion(
            replace(question, id=str(row.get("id") or question.id)),
            str(row.get("answer") or row.get("gold") or "").strip(),
            str(row.get("task") or "mine"),
            tuple(map(str, row.get("documents") or ())),
            place,
        )
    except (ValueError, TypeError, AttributeError, KeyError, BadQuestion) as error:
        raise BadQuestion(f"{place}: no question: {error}", fix=_FIX) from error


def read_posed(path: Path, *, marked: bool = False) -> list[LabeledQuestion]:
    """The questions of a file; `marked`: those with options, each with its right one.

    Raises `BadQuestion` naming file, line and fix.
    """
    questions = read_labeled(path)
    if not marked:
        return questions
    if not (closed := [one for one in questions if one.question.options]):
        raise BadQuestion(f"{path} has no question with options and their answer", fix=_FIX)
    for one in closed:
        one.require_gold()
    return closed
