"""Parses user input into a `Question`, with a clear error for unusable input.

A file of questions is JSON Lines, with what is known about each question:

    {"question": "…", "options": ["…", "…"], "answer": "A", "id": "…", "task": "…",
     "documents": ["book:…"]}

Only `question` is required. Options are a list, or texts by letter, or stand in the question's
last lines; `answer` (or `gold`) is a letter where there are options, else words.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from osler.errors import BadQuestion, read_text_file
from osler.text import language_of
from osler.types import Language, Question

LIMIT = 8_000
"""Upper bound on characters; three times a long case report with its options."""

QUERY_LIMIT = 4_000
"""Upper bound on characters of a query for one source."""

_OPTION = re.compile(r"^\s*\(?([A-H])\s*[.)、:：．]\s*(\S.*)$")
_HINT = 'ask in words, as in: osler ask "What is the first-line treatment of anaphylaxis?"'

_LINE_FIX = 'write lines like {"question": "…", "options": ["…", "…"], "answer": "A"}'


def parse_question(
    text: str | bytes, *, options: tuple[str, ...] = (), language: Language | None = None
) -> Question:
    """Parses a question, with options from `options` or from last lines like "A. …".

    Raises `BadQuestion` for text that is empty, binary, over `LIMIT` characters, or
    that has options but no question.
    """
    words = _decode_text(text).strip()
    if not words:
        raise BadQuestion("the question is empty", fix=_HINT)
    if len(words) > LIMIT:
        raise BadQuestion(
            f"the question has {len(words):,} characters, the limit is {LIMIT:,}",
            fix="ask one thing, and add long records with `osler kb add`",
        )
    stem, listed = _split_options(words)
    chosen = options or listed
    if not stem:
        raise BadQuestion("the input has options but no question", fix="put the question before A.")
    if len(chosen) == 1 or len(set(chosen)) < len(chosen):
        raise BadQuestion(
            "a choice needs two or more distinct options", fix="give two or more distinct options"
        )
    return Question(
        id=hashlib.sha256("\n".join((stem, *chosen)).encode()).hexdigest()[:12],
        text=stem,
        options=chosen,
        language=language or language_of(stem),
    )


def _decode_text(text: str | bytes) -> str:
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadQuestion(
                f"the question is not UTF-8 text (byte {error.start})", fix="send it as UTF-8"
            ) from error
    if any(unicodedata.category(c) in ("Cc", "Cs") and c not in "\n\r\t" for c in text):
        raise BadQuestion("the question is binary data, not text", fix=_HINT)
    return text


def _split_options(text: str) -> tuple[str, tuple[str, ...]]:
    """The stem, and the options when the last lines are a full list A., B., C. …"""
    lines = text.splitlines()
    listed = []
    for line in reversed(lines):
        if not (match := _OPTION.match(line)):
            break
        listed.append(match)
    listed.reverse()
    letters = "".join(match.group(1) for match in listed)
    # A gap in the letters means that the lines are not a list of options.
    if not letters or not "ABCDEFGH".startswith(letters):
        return text, ()
    stem = "\n".join(lines[: len(lines) - len(listed)]).strip()
    return stem, tuple(match.group(2).strip() for match in listed)


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
                f"{self.place}: the answer {self.answer!r} is not one of {letters}", fix=_LINE_FIX
            )


def read_labeled(path: Path) -> list[LabeledQuestion]:
    """Raises `BadQuestion` naming file, line and fix, and for a file without a question."""
    text = read_text_file(path, BadQuestion, "name JSON Lines")
    if not (questions := parse_labeled(text, str(path))):
        raise BadQuestion(f"{path} has no question", fix=_LINE_FIX)
    return questions


def parse_labeled(text: str, name: str) -> list[LabeledQuestion]:
    """The lines of a file called `name`. Raises `BadQuestion` naming file, line and fix."""
    # Not splitlines(): JSON strings may hold U+2028 and other line ends of Unicode.
    lines = enumerate(text.split("\n"), 1)
    return [_parse_line(line, f"{name}:{n}") for n, line in lines if line.strip()]


def _listed_options(row: dict[str, Any]) -> tuple[str, ...]:
    """The options in the order of their letters, which a JSON object may have in any other."""
    options = row.get("options") or ()
    if not isinstance(options, dict):
        return tuple(map(str, options))
    letters = sorted(options, key=str.upper)
    wanted = [chr(ord("A") + n) for n in range(len(letters))]
    if [letter.upper() for letter in letters] != wanted or None in options.values():
        raise ValueError("options are not A, B, C, …")
    return tuple(str(options[letter]) for letter in letters)


def _parse_line(line: str, place: str) -> LabeledQuestion:
    try:
        row: dict[str, Any] = json.loads(line)
        question = parse_question(row["question"], options=_listed_options(row))
        answer = row.get("answer", row.get("gold"))
        if isinstance(answer, list | dict):
            raise ValueError("the answer is no text")
        return LabeledQuestion(
            replace(question, id=str(row.get("id") or question.id)),
            "" if answer is None else str(answer).strip(),
            str(row.get("task") or "mine"),
            tuple(map(str, row.get("documents") or ())),
            place,
        )
    except (ValueError, TypeError, AttributeError, KeyError, BadQuestion) as error:
        raise BadQuestion(f"{place}: no question: {error}", fix=_LINE_FIX) from error


def read_posed(path: Path, *, marked: bool = False) -> list[LabeledQuestion]:
    """The questions of a file; `marked`: those with options, each with its right one.

    Raises `BadQuestion` naming file, line and fix.
    """
    questions = read_labeled(path)
    if not marked:
        return questions
    if not (closed := [one for one in questions if one.question.options]):
        raise BadQuestion(f"{path} has no question with options and their answer", fix=_LINE_FIX)
    for one in closed:
        one.require_gold()
    return closed
