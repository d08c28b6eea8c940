"""Identifiers as spans of a text: rules that find them, and what is kept of those that overlap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["NAME", "DATE", "PHONE", "EMAIL", "ID", "ADDRESS", "PLACE", "AGE", "URL"]
"""PLACE is a named hospital, school, employer, ward or street; AGE one over 89, as Safe Harbor has
it; URL an address on the web."""


@dataclass(frozen=True, slots=True)
class Identifier:
    """`text[start:end]` identifies somebody."""

    kind: Kind
    start: int
    end: int


Patterns = Mapping[Kind, Sequence[str]]
"""Regular expressions by what they find: their group `x`, or all that they match without one."""
Rule = tuple[Kind, re.Pattern[str]]


def compile_rules(*each: Patterns) -> tuple[Rule, ...]:
    """The rules of several tables, compiled."""
    return tuple(
        (kind, re.compile(pattern))
        for patterns in each
        for kind, found in patterns.items()
        for pattern in found
    )


def match_rules(rules: Iterable[Rule], text: str) -> Iterator[Identifier]:
    """What the rules find: their group `x`, or all that they match where they have none."""
    for kind, pattern in rules:
        group = "x" if "x" in pattern.groupindex else 0
        for match in pattern.finditer(text):
            start, end = match.span(group)
            if end > start:
                yield Identifier(kind, start, end)


def _join_overlaps(found: Iterable[Identifier]) -> list[Identifier]:
    joined: list[Identifier] = []
    for one in sorted(found, key=lambda each: (each.kind, each.start)):
        last = joined[-1] if joined else None
        if last is not None and last.kind == one.kind and one.start < last.end:
            joined[-1] = Identifier(one.kind, last.start, max(last.end, one.end))
        else:
            joined.append(one)
    return joined


def settle_overlaps(found: Iterable[Identifier]) -> list[Identifier]:
    """Those of a kind that overlap as one; of other overlaps the longest, and what the other one
    covers besides. In the text's order."""
    kept: list[Identifier] = []
    found = _join_overlaps(found)
    for one in sorted(found, key=lambda each: (each.start - each.end, each.start)):
        kept += _cut_away(one, kept)
    return sorted(kept, key=lambda each: each.start)


def _cut_away(one: Identifier, kept: Iterable[Identifier]) -> list[Identifier]:
    """What `one` covers and none of `kept`."""
    pieces = [one]
    for other in kept:
        pieces = [
            Identifier(piece.kind, start, end)
            for piece in pieces
            for start, end in (
                (piece.start, min(piece.end, other.start)),
                (max(piece.start, other.end), piece.end),
            )
            if start < end
        ]
    return pieces
