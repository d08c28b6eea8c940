"""A text or a document without what identifies a person: marks in their place, dates moved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from functools import cache

from osler.sources.patients.identifiers import chinese, english, shared
from osler.sources.patients.identifiers.chinese_names import find_chinese_names
from osler.sources.patients.identifiers.english_names import (
    find_english_names,
    is_heading,
    is_person,
)
from osler.sources.patients.identifiers.found import (
    Identifier,
    Rule,
    compile_rules,
    match_rules,
    settle_overlaps,
)
from osler.sources.patients.secret import hash_keyed
from osler.sources.records import Document

_YEAR_FIRST = re.compile(r"(\d{4})(年|[-/.])(\d{1,2})(月|[-/.])(\d{1,2})(日|号)?")
_PART = re.compile(r"\b[A-Z][a-zà-ÿ'’-]{2,}\b|[\u4e00-\u9fff]{2,}")
_FARTHEST = 365
"""Days by which dates are moved, at most, always back."""


@cache
def _rules() -> tuple[Rule, ...]:
    """Compiled when first used: it takes a seventh of the time in which a process starts."""
    return compile_rules(shared.PATTERNS, english.PATTERNS, chinese.PATTERNS)


@cache
def _guesses() -> tuple[Rule, ...]:
    return compile_rules(english.GUESSES)


def find_identifiers(text: str) -> list[Identifier]:
    """All that the rules of both languages find, in order."""
    found: list[Identifier] = []
    at = 0
    for line in text.splitlines(keepends=True):  # an identifier does not go over a line
        found += [
            Identifier(one.kind, at + one.start, at + one.end)
            for one in settle_overlaps(_find_in_line(line))
        ]
        at += len(line)
    return settle_overlaps((*found, *_find_again(text, found)))


def _find_in_line(line: str) -> Iterator[Identifier]:
    for one in match_rules(_rules(), line):
        if one.kind != "NAME" or not is_heading(line[one.start : one.end]):
            yield one
    for one in match_rules(_guesses(), line):
        if is_person(line[one.start : one.end]):
            yield one
    yield from find_english_names(line)
    yield from find_chinese_names(line)


def _find_again(text: str, found: list[Identifier]) -> Iterator[Identifier]:
    """Names, and the parts of English ones, where they stand again without what gave them away."""
    names = {text[one.start : one.end] for one in found if one.kind == "NAME"}
    words = {word for name in names for word in _PART.findall(name)}
    again = "|".join(sorted(map(re.escape, words), key=len, reverse=True))
    for match in re.finditer(rf"(?<![A-Za-z])(?:{again})(?![A-Za-z])", text) if again else ():
        yield Identifier("NAME", match.start(), match.end())


def remove_identifiers(text: str, shift: int = 0) -> str:
    """The text with `[NAME]`, `[PHONE]`, … in their place.

    Whole dates that are written year first are moved by `shift` days, so that the time between
    two of one patient stays; other dates become `[DATE]`, and a year alone stays.
    """
    pieces, at = [], 0
    for one in find_identifiers(text):
        pieces += [text[at : one.start], _replace_one(one, text[one.start : one.end], shift)]
        at = one.end
    return "".join((*pieces, text[at:]))


def _replace_one(one: Identifier, words: str, shift: int) -> str:
    if one.kind != "DATE":
        return f"[{one.kind}]"
    if re.fullmatch(r"\d{4}年?", words):
        return words
    if shift and (match := _YEAR_FIRST.fullmatch(words)):
        year, first, month, second, day, last = match.groups()
        try:
            moved = date(int(year), int(month), int(day)) + timedelta(days=shift)
        except (ValueError, OverflowError):  # no such day
            return "[DATE]"
        wide = len(month) == 2 or first in "-/."
        numbers = (f"{moved:%m}", f"{moved:%d}") if wide else (str(moved.month), str(moved.day))
        return f"{moved.year}{first}{numbers[0]}{second}{numbers[1]}{last or ''}"
    return "[DATE]"


def remove_from_document(document: Document) -> Document:
    """The document without identifiers, also in its id and title, which files often name."""
    shift = -1 - int(hash_keyed(f"shift {document.id}"), 16) % _FARTHEST

    def clean(text: str) -> str:
        return remove_identifiers(text, shift)

    return replace(
        document,
        id=f"text-{hash_keyed(document.id)}",
        title=clean(document.title),
        sections=tuple(
            replace(one, text=clean(one.text), path=tuple(map(clean, one.path)))
            for one in document.sections
        ),
        url="",
        origin="",
        checksum="",
    )
