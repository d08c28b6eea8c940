"""What the studies behind an answer did and found, as they state it: a table in which each number
is a quote.

A cell is a span of its passage, so a number that is not in the text cannot be built. Nothing is
computed, converted or weighed; what a text does not state is left empty. No model is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from osler.retrieve.effects import Span, StatedEffect, read_effects
from osler.retrieve.study_design import StudyDesign, design_of, read_sample_size
from osler.text import split_sentences
from osler.types import Evidence, Hit, Passage

USE = "table"
"""`Evidence.use` of a cell."""
# What a text says of itself that bears on how far it can be trusted; no judgement is made of it.
_HINTS = re.compile(
    r"double[- ]blind(?:ed)?|single[- ]blind(?:ed)?|open[- ]label|unblinded|placebo"
    r"|intention[- ]to[- ]treat|allocation conceal\w+|lost to follow[- ]?up|retrospective(?:ly)?"
    r"|self-report(?:ed)?|not randomi[sz]ed|no control group|single[- ]cent(?:er|re)|small sample"
    r"|双盲|单盲|安慰剂|失访|意向性分析",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class QuotedEffect:
    """An effect and its parts, each a quote; a part that is not stated is `None`."""

    value: Evidence
    measure: Evidence | None
    unit: Evidence | None
    low: Evidence | None
    high: Evidence | None
    sentence: Evidence
    """The sentence or sentences that hold all of them."""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A passage of a study: its design, how many took part, what was found."""

    passage: Passage
    design: StudyDesign | None
    sample: Evidence | None
    people: Evidence | None
    """The sentence that states the sample."""
    effects: tuple[QuotedEffect, ...]
    hints: tuple[Evidence, ...]


def tabulate_studies(hits: Iterable[Hit]) -> list[StudyRow]:
    """A row for each passage, in order; passages that state no number have one too."""
    unique: dict[str, Hit] = {}
    for hit in hits:
        if hit.passage.text.strip():
            unique.setdefault(hit.passage.id, hit)
    return [_read_study(hit) for hit in unique.values()]


def _read_study(hit: Hit) -> StudyRow:
    text = hit.passage.text
    size = read_sample_size(text)
    hints = {match[0].casefold(): match.span() for match in reversed([*_HINTS.finditer(text)])}
    return StudyRow(
        hit.passage,
        design_of(hit.passage),
        _quote(hit, (size.start, size.end)) if size else None,
        _quote(hit, _enclosing_sentences(text, (size.start, size.end))) if size else None,
        tuple(_quote_effect(hit, effect) for effect in read_effects(text)),
        tuple(_quote(hit, span) for span in sorted(hints.values())),
    )


def _quote(hit: Hit, span: Span) -> Evidence:
    return Evidence(hit, *span, USE)


def _quote_effect(hit: Hit, effect: StatedEffect) -> QuotedEffect:
    parts = (effect.measure, effect.unit, effect.low, effect.high)
    measure, unit, low, high = (_quote(hit, part) if part else None for part in parts)
    sentence = _quote(hit, _enclosing_sentences(hit.passage.text, effect.whole))
    return QuotedEffect(_quote(hit, effect.value), measure, unit, low, high, sentence)


def _enclosing_sentences(text: str, span: Span) -> Span:
    touched = [each for each in split_sentences(text) if each[0] < span[1] and span[0] < each[1]]
    return min([span[0], *(a for a, _ in touched)]), max([span[1], *(b for _, b in touched)])


def flat_rows(rows: Iterable[StudyRow]) -> Iterator[dict[str, Any]]:
    """A flat row for each effect, and one for a study that states none, for files and the API."""
    for row in rows:
        place = row.passage.locator
        shared = {
            "title": row.passage.title,
            "year": place.year,
            "design": row.design.design if row.design else "",
            "design_by": row.design.by if row.design else "",
            "design_said": row.design.said if row.design else "",
            "n": row.sample.quote if row.sample else "",
            "people": row.people.quote if row.people else "",
            "hints": "; ".join(hint.quote for hint in row.hints),
        }
        for effect in row.effects or (None,):
            yield {**shared, **_effect_cells(effect), "passage": row.passage.id}


def _effect_cells(effect: QuotedEffect | None) -> dict[str, Any]:
    names = ("measure", "value", "unit", "low", "high")
    parts = {name: getattr(effect, name, None) for name in names}
    cells: dict[str, Any] = {name: part.quote if part else "" for name, part in parts.items()}
    quote = effect.sentence if effect else None
    return {
        **cells,
        "quote": quote.quote if quote else "",
        "start": quote.start if quote else None,
        "end": quote.end if quote else None,
    }
