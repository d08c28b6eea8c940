"""What kind of evidence a text is: its design and sample size, and what says so.

A design is taken from the record's own type where the publisher gives one, then from the source,
and then from the words of title and text. What none of them says is `None`: nothing is guessed.
No model is asked.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from osler.sources.catalogue import BOOK, GUIDELINE, WEB, WIKI
from osler.text import read_packaged
from osler.types import Passage

Design = Literal[
    "guideline",
    "systematic-review",
    "randomised-trial",
    "trial",
    "cohort",
    "case-control",
    "cross-sectional",
    "book",
    "narrative",
    "case-report",
    "encyclopaedia",
    "laboratory",
    "web",
]
DESIGNS: tuple[Design, ...] = get_args(Design)
"""Those on which more rests stand first."""
_OF_SOURCE: dict[str, Design] = {
    BOOK: "book",
    GUIDELINE: "guideline",
    WIKI: "encyclopaedia",
    WEB: "web",
}
_WORDS = tomllib.loads(read_packaged("osler.retrieve", "designs.toml"))


def _read_rules(place: str) -> tuple[tuple[re.Pattern[str], Design], ...]:
    return tuple(
        (re.compile("|".join(rule["words"]), re.IGNORECASE), rule["design"])
        for rule in _WORDS[place]
    )


_OF_RECORD, _OF_TITLE, _OF_TEXT = map(_read_rules, ("record", "title", "text"))
# What others did stands in the background; it says nothing of the study's own design.
_BACKGROUND = re.compile(
    r"(?:^|\n|(?<=[.?!] ))(?:BACKGROUND|INTRODUCTION|SUMMARY OF BACKGROUND DATA|CONTEXT)\b"
    r"[^:\n]{0,30}:"
    r".*?(?=(?:\n|(?<=[.?!])\s)[A-Z][A-Z ,/&]{3,60}:|\Z)",
    re.DOTALL,
)
_SMALL, _TENS = (_WORDS["numbers"][place].split() for place in ("small", "tens"))
_NUMBERS = dict(zip(_SMALL, range(1, 20), strict=True)) | dict(
    zip(_TENS, range(20, 100, 10), strict=True)
)
_COUNT = r"\d{1,3}(?:,\d{3}){1,3}|\d{1,9}"
_WORDED = rf"(?:(?:{'|'.join(_NUMBERS)}|hundred|thousand|and)[- ]?){{1,8}}"
_BETWEEN = r"(?:[ -](?!(?:of|and|the|to|were|years?|months?)\b)[\w/()-]+){0,5}?"
_SAMPLE = re.compile(
    rf"\bN\s*=\s*(?P<stated>{_COUNT})"
    rf"|(?<![\w.,=<>≤≥-])(?P<count>{_COUNT}|{_WORDED})(?!\s*%){_BETWEEN}"
    rf"[ -](?:{'|'.join(_WORDS['numbers']['people'].split())})\b"
    rf"|(?<!\d)(?P<zh>\d{{1,9}})\s*(?:例|名)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StudyDesign:
    """A design with what says so."""

    design: Design
    by: Literal["record", "source", "text"]
    said: str
    """The record's type, the source's name, or the words."""


@dataclass(frozen=True, slots=True)
class SampleSize:
    """How many were studied, with the place of the number: `text[start:end]`."""

    count: int
    start: int
    end: int


def design_of(passage: Passage) -> StudyDesign | None:
    """The design of what the passage is from; `None` where nothing says it."""
    for pattern, design in _OF_RECORD:
        if found := pattern.search(passage.locator.kind):
            # PubMed files systematic reviews under "Review" too.
            own = read_design(passage.title, "") if design == "narrative" else None
            return own or StudyDesign(design, "record", found.string)
    if own_source := _OF_SOURCE.get(passage.source):
        return StudyDesign(own_source, "source", passage.source)
    return read_design(passage.title, passage.text)


def read_design(title: str, text: str) -> StudyDesign | None:
    """The design that the words of title and abstract say; `None` where they do not."""
    own = _BACKGROUND.sub(" ", text)
    for rules, words in ((_OF_TITLE, title), (_OF_TEXT, own if own.strip() else text)):
        for pattern, design in rules:
            if found := pattern.search(words):
                return StudyDesign(design, "text", found[0])
    return None


def read_sample_size(text: str) -> SampleSize | None:
    """The number of those studied, where the text states one."""
    background = [found.span() for found in _BACKGROUND.finditer(text)]
    found = [
        size
        for size in _find_counts(text)
        if not any(start <= size.start < end for start, end in background)
    ]
    return found[0] if found else None


def _find_counts(text: str) -> Iterator[SampleSize]:
    for match in _SAMPLE.finditer(text):
        group = next(name for name in ("stated", "count", "zh") if match[name])
        count = _read_count(match[group])
        if count > 1:
            start = match.start(group)
            yield SampleSize(count, start, start + len(match[group].rstrip(" -")))


def _read_count(words: str) -> int:
    if words[0].isdigit():
        return int(words.replace(",", "").rstrip())
    total = current = 0
    for word in re.findall(r"[a-z]+", words.casefold()):
        if word == "thousand":
            total, current = total + (current or 1) * 1000, 0
        elif word == "hundred":
            current = (current or 1) * 100
        else:
            current += _NUMBERS.get(word, 0)
    return total + current
