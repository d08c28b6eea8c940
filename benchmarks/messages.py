"""Long questions to train a planner on: what patients wrote, about a page that MedQuAD has.

LiveQA's training part has messages of patients, but few of their answers are in MedQuAD. Where a
message names the subject of a page, that page's answers are taken for its gold documents. There are
few such messages; so each is used again with the subjects of other pages in the place of its own
(`SWAPS` times): an illustrative text, whose gold documents are the other page's.

Subjects that a question of the test names, or whose page it is about, are left out.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from planning import Asked, Entry

from osler.types import Question

SWAPS = 3
LONGEST = 150
"""Words of a message; a longer one has its subject anywhere, and a small model loses it."""
_SHORTEST = 8
"""Characters of a subject of one word: "pain" and "cancer" are no subject of one page."""
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class _Named:
    """A message, and where it names a subject."""

    text: str
    subject: str
    start: int
    end: int


def messages(
    data: Path, pages: Mapping[str, list[Entry]], tested: Iterable[str], chance: random.Random
) -> list[Asked]:
    """Messages about these pages (subject → its answers), the real ones before the swapped."""
    texts = [_folded(text) for text in tested]
    usable = {
        _folded(subject): subject
        for subject in pages
        if _tells(subject) and not any(_within(_folded(subject), text) for text in texts)
    }
    found = [named for text in _written(data) if (named := _named(text, usable))]
    real = [_asked(f"message-{n}", one.text, pages[one.subject]) for n, one in enumerate(found)]
    return [*real, *_swapped(found, pages, sorted(usable.values()), chance)]


def _swapped(
    found: list[_Named],
    pages: Mapping[str, list[Entry]],
    subjects: list[str],
    chance: random.Random,
) -> Iterator[Asked]:
    for n, one in enumerate(found):
        others = [subject for subject in subjects if subject != one.subject]
        for swap, subject in enumerate(chance.sample(others, min(SWAPS, len(others)))):
            text = f"{one.text[: one.start]}{subject}{one.text[one.end :]}"
            yield _asked(f"message-{n}-{swap}", text, pages[subject])


def _asked(id: str, text: str, answers: list[Entry]) -> Asked:
    return Asked("liveqa", Question(id, text), frozenset(entry.id for entry in answers))


def _written(data: Path) -> Iterator[str]:
    """The messages of the training and development parts."""
    for part in ("train", "dev"):
        file = data / f"A_questions/omnirag_long/{part}_long.json"
        for one in json.loads(file.read_text("utf-8")):
            text = " ".join(one["question"].split())
            if one["name"] == "liveqa" and len(text.split()) <= LONGEST:
                yield text


def _named(text: str, usable: Mapping[str, str]) -> _Named | None:
    """The longest subject that the message names; the first of equally long ones."""
    spans = [match.span() for match in _WORD.finditer(text)]
    for length in range(min(8, len(spans)), 0, -1):
        for first in range(len(spans) - length + 1):
            start, end = spans[first][0], spans[first + length - 1][1]
            if subject := usable.get(_folded(text[start:end])):
                return _Named(text, subject, start, end)
    return None


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(text.casefold()))


def _within(subject: str, text: str) -> bool:
    return f" {subject} " in f" {text} "


def _tells(subject: str) -> bool:
    words = _WORD.findall(subject)
    return len(words) > 1 or len(subject) >= _SHORTEST
