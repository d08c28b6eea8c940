"""Verifies claims against evidence by words, amounts and directions, without inference.

A sentence **supports** a claim when

- it has, with its heading, every word of content of the claim (its stem, or another name of the
  packaged tables), two of them or more (three in Chinese), and every name and number, and where
  the claim compares, in the same order;
- both name the same groups of people, routes and kinds of dose;
- every amount of the claim lies within one of the sentence's;
- all words that point somewhere point the same way (`support`), and both or neither negate.

It **contradicts** the claim when one of the rules of `disagreement` fires. A claim that the
evidence states in other words counts as "not stated", and that is most true ones: of pairs of claim
and evidence the commonest class is right as often or more often (`benchmarks/citations.py`). What
can be relied on is the other side: a claim with a word swapped is hardly ever called supported.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from osler.answer.disagreement import (
    COMPARES,
    Claim,
    clinical_contexts,
    find_difference,
    other_numbers,
    read_amounts,
    read_claim,
    read_directions,
    shared_content,
)
from osler.answer.read_passages import ReadPassage, read_passage
from osler.answer.support import find_support
from osler.text import split_sentences
from osler.types import Evidence, Hit, Language

_BY_THE_WAY = frozenset(["daily", "day", "days", "per"])
"""Words of a rate, which is compared as an amount."""
Verdict = Literal["supported", "contradicted", "disputed", "not stated"]
"""disputed: one sentence supports the claim and another contradicts it."""
_NEGATES = re.compile(
    r"\b(?:not|no|never|without|neither|nor|cannot|hardly)\b|n't\b|不|未|无|没有|并非|勿",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class BearingSentence:
    """A sentence that supports or contradicts a claim."""

    evidence: Evidence
    supports: bool
    """False: it contradicts."""
    why: str
    """The words in common, or those that differ."""
    share: float
    """Share of the claim's content words in the sentence, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Verification:
    verdict: Verdict
    said: tuple[BearingSentence, ...]
    """The nearest sentence of each passage and side, in descending order of `share`."""


def weigh_claim(claim: str, hits: Sequence[Hit], language: Language) -> Verification:
    """Compares `claim` with every sentence of the hits in its `language`."""
    mine = read_claim(claim)
    best: dict[tuple[str, bool], BearingSentence] = {}
    for one in _bearing_sentences(mine, hits, language):
        place = (one.evidence.passage.id, one.supports)
        # One sentence per passage and side; a passage may be on both.
        if place not in best or one.share > best[place].share:
            best[place] = one
    said = tuple(sorted(best.values(), key=lambda one: -one.share))
    return Verification(_overall_verdict({one.supports for one in said}), said)


def _overall_verdict(sides: set[bool]) -> Verdict:
    if len(sides) == 2:
        return "disputed"
    if not sides:
        return "not stated"
    return "supported" if True in sides else "contradicted"


def _bearing_sentences(
    mine: Claim, hits: Sequence[Hit], language: Language
) -> Iterator[BearingSentence]:
    for hit in hits:
        if hit.passage.language != language:
            continue
        for start, end in split_sentences(hit.passage.text):
            theirs = read_claim(hit.passage.text[start:end])
            shared = [word for word in mine.content if word in theirs.content]
            share = len(shared) / max(1, len(mine.content))
            evidence = Evidence(hit, start, end, "claim")
            if supports_claim(mine, theirs, language, hit.passage.heading):
                yield BearingSentence(evidence, True, ", ".join(shared), share)
            elif seen := find_difference(mine, theirs, language):
                yield BearingSentence(evidence, False, f"{seen.mine} / {seen.theirs}", share)


def supports_claim(mine: Claim, theirs: Claim, language: Language, heading: str = "") -> bool:
    """Whether the sentence `theirs` under its heading supports the claim `mine`, by the rules
    above."""
    shared, _ = shared_content(mine, theirs)
    return (
        len(shared) >= (2 if language == "en" else 3)
        and clinical_contexts(mine.text) == clinical_contexts(theirs.text)
        and _same_order(mine, theirs, shared)
        and _same_amounts(mine.text, theirs.text)
        and _same_directions(mine.text, theirs.text)
        and bool(_NEGATES.search(mine.text)) == bool(_NEGATES.search(theirs.text))
        and _says_all(mine.text, read_passage(heading, theirs.text))
    )


def _says_all(claim: str, sentence: ReadPassage) -> bool:
    """Whether nothing of the claim is missing: no word, name, number, direction, negation."""
    support = find_support(claim, sentence)
    return not support.lacks and _BY_THE_WAY.issuperset(support.lost)


def _same_order(mine: Claim, theirs: Claim, shared: Sequence[str]) -> bool:
    """Whether comparisons name the shared words in one order: "A better than B" is not the
    reverse."""
    if not (COMPARES.search(mine.text) or COMPARES.search(theirs.text)):
        return True
    return [word for word in theirs.content if word in shared] == list(shared)


def _same_amounts(mine: str, theirs: str) -> bool:
    there = read_amounts(theirs)
    within = all(any(each.lies_within(other) for other in there) for each in read_amounts(mine))
    return within and other_numbers(mine) <= other_numbers(theirs)


def _same_directions(mine: str, theirs: str) -> bool:
    there = read_directions(theirs)
    return all(
        set(there.get(axis, ())) == set(ways) for axis, ways in read_directions(mine).items()
    )
