"""Questions of the user's own, with their right options, as the studies ask them."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from osler.errors import BadQuestion
from osler.questions import parse_question
from osler.types import Question

_FIX = 'write lines like {"question": "…", "options": ["…", "…"], "answer": "A"}'


@dataclass(frozen=True, slots=True)
class LabeledQuestion:
    """A question, with the letter of its right option where that is known."""

    question: Question
    gold: str = ""


def read_posed(path: Path, *, marked: bool = False) -> list[LabeledQuestion]:
    """JSON Lines with `question` and, if it has them, `id`, `options` and `answer` (a letter).

    The options are a list, or texts by letter, or stand in the question's last lines; `gold` may
    stand for `answer`. `marked` leaves open questions out, and wants the right option of each
    other. Raises `BadQuestion` naming file, line and fix.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadQuestion(f"{path} cannot be read: {error}", fix="name JSON Lines") from error
    every = [
        _read_question(line, f"{path}:{n}", marked)
        for n, line in enumerate(lines, 1)
        if line.strip()
    ]
    found = [posed for posed in every if posed.question.options or not marked]
    if not found:
        lacking = "question with options and their answer" if marked else "question"
        raise BadQuestion(f"{path} has no {lacking}", fix=_FIX)
    return found


def _read_question(line: str, where: str, marked: bool) -> LabeledQuestion:
    try:
        row = json.loads(line)
        options = row.get("options") or ()
        listed = options.values() if isinstance(options, dict) else options
        question = parse_question(row["question"], options=tuple(map(str, listed)))
        gold = str(row.get("answer", row.get("gold")) or "").strip()
    except (ValueError, TypeError, AttributeError, KeyError, BadQuestion) as error:
        raise BadQuestion(f"{where}: no question: {error}", fix=_FIX) from error
    known = gold in question.letters
    if marked and question.options and not known:
        letters = ", ".join(question.letters)
        raise BadQuestion(f"{where}: the answer {gold!r} is none of {letters}", fix=_FIX)
    named = replace(question, id=str(row.get("id", question.id)))
    return LabeledQuestion(named, gold if known else "")
