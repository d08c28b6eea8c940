"""Takes the value of a relation from a passage by the patterns of the relation (the span rule)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from osler.methods.kag.text_route.relations import TextRelation
from osler.text import split_sentences

_YEAR = re.compile(r"\d{3,4}")


@dataclass(frozen=True, slots=True)
class TextSpan:
    """A value as a passage states it."""

    value: str
    start: int
    """Place of the sentence in the passage."""
    end: int
    looseness: int = 0
    """Number of the pattern that found it; the patterns of a relation stand best first."""


def find_span(relation: TextRelation, subject: str, text: str, *, own: bool) -> TextSpan | None:
    """The value of a relation of `subject` in a text; `own`: the text is about the subject.

    In another text the subject must stand by name in what states the relation.
    """
    for n, found, value in _matches(relation, subject, _lower_openings(text), own=own):
        if value and not plain_name(subject).startswith(plain_name(value)):
            start, end = _sentence_at(text, found.start(), found.end())
            return TextSpan(value, start, end, n)
    return None


def _matches(
    relation: TextRelation, subject: str, text: str, *, own: bool
) -> Iterator[tuple[int, re.Match[str], str]]:
    patterns = relation.own_patterns() if own else relation.about_patterns(subject)
    for n, pattern in enumerate(patterns):
        for found in pattern.finditer(text):
            if "start" in found.re.groupindex:
                yield n, found, _years_between(found["start"], found["until"])
            else:
                yield n, found, clean_value(found["answer"])


_OPENING = re.compile(r"(?:^|(?<=[.!?\"] ))(?:His|Her|Their|Born|[A-Z][a-z]+ed)\b")


def _lower_openings(text: str) -> str:
    """The text with sentences that open with "His" or a participle in small letters, as long."""
    return _OPENING.sub(lambda match: match[0][0].lower() + match[0][1:], text)


def clean_value(text: str) -> str:
    """A value without what tokenisers and sentences leave at its ends."""
    return re.sub(r"(?<=\w)- (?=\w)", "-", " ".join(text.split())).strip(" ,.;:–-’'")


def plain_name(text: str) -> str:
    """A name for comparison: letters and digits alone, in small letters."""
    return re.sub(r"[\W_]+", "", text).casefold()


def _years_between(start: str, until: str) -> str:
    """The years from one date to another, to the day where both tell it."""
    first, last = read_date(start), read_date(until)
    if first is None or last is None or last < first:
        return ""
    return f"{last - first:.3f} years"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_date(text: str) -> float | None:
    """A date as years with their fraction; `None` for none."""
    year = _YEAR.findall(text)
    if not year:
        return None
    month = next((n for n, m in enumerate(_MONTHS) if re.search(rf"\b{m}", text.casefold())), 0)
    day = next((int(each) for each in re.findall(r"\b\d{1,2}(?!\d)", text)), 1)
    return int(year[-1]) + month / 12 + (day - 1) / 372


def _sentence_at(text: str, start: int, end: int) -> tuple[int, int]:
    """The sentences that a match touches."""
    spans = [span for span in split_sentences(text) if span[0] < end and start < span[1]]
    return (spans[0][0], spans[-1][1]) if spans else (start, end)
