"""Parses user input into a `Question`, with a clear error for unusable input."""

from __future__ import annotations

import hashlib
import re
import unicodedata

from osler.errors import BadQuestion
from osler.text import language_of
from osler.types import Language, Question

LIMIT = 8_000
"""Upper bound on characters; three times a long case report with its options."""

QUERY_LIMIT = 4_000
"""Upper bound on characters of a query for one source."""

_OPTION = re.compile(r"^\s*\(?([A-H])\s*[.)、:：．]\s*(\S.*)$")
_HINT = 'ask in words, as in: osler ask "What is the first-line treatment of anaphylaxis?"'


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
