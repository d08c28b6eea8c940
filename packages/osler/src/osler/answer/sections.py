"""Questions that ask for a section of a text, as "treatment of gout" does: its sentences answer in
their order, not the one that is nearest to the question.

Nearness tells nothing among sentences under one heading: of a migraine's treatment the nearest is
its definition. So the section of the hits that is headed by the subject and by what is asked is
quoted from where sentences of the kind begin (`osler.retrieve.experts.kinds`): under "Treatment"
the first may still say what the disease is, under "Features and treatment" many do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from osler.answer.checks import other_names, read_name
from osler.answer.sentences import QuoteCandidate, quotable_spans
from osler.retrieve.entity_names import fold_words
from osler.retrieve.experts.kinds import Kind
from osler.sources.catalogue import UNTRUSTED, trust_of
from osler.text import language_of, read_packaged_table
from osler.types import Hit, Relevance

SURE = 0.5
"""Least probability of a section that is headed by the subject and by what is asked."""
_LONGEST = 6
"""Words of a subject's name."""
_TELLING = 0.5
"""Mean share of its best sentences from which a section is of what is asked by itself."""
_BEST = 3
"""Sentences by which sections are compared."""
_BEGINS = 0.15
"""Share from which a sentence may be the first of the kind that is asked for."""
_MIXED = re.compile(r" and |[与和及、]|\b(?:attack|crisis|hours?)\b|发作", re.IGNORECASE)
_BRACKETS = re.compile(r"\s*[(（][^)）]*[)）]")


@dataclass(frozen=True, slots=True)
class AskedSection:
    """What a question asks for: of which subject, and what."""

    kind: Kind
    subject: str


@dataclass(frozen=True)
class SectionWords:
    """The patterns of `sections.toml`."""

    frames: Sequence[tuple[Kind, re.Pattern[str]]]
    headed: Mapping[Kind, re.Pattern[str]]


@cache
def read_words() -> SectionWords:
    """The patterns, compiled once."""
    table = read_packaged_table(__package__, "sections.toml")
    leading = f"(?:{'|'.join(table['leading'])})*"
    common = table["frames"].pop("any")
    frames = [
        (kind, frame.replace("KIND", words).replace("LEADING", leading))
        for kind, words in table["asked"].items()
        for frame in (*common, *table["frames"][kind])
    ]
    return SectionWords(
        [(kind, re.compile(frame, re.IGNORECASE)) for kind, frame in frames],
        {kind: re.compile(words, re.IGNORECASE) for kind, words in table["headed"].items()},
    )


def find_asked_section(text: str) -> AskedSection | None:
    """The section that a question asks for; `None` where it asks for anything else beside."""
    bare = " ".join(text.strip(" ?.!？。！").split())
    for kind, frame in read_words().frames:
        if match := frame.fullmatch(bare):
            name = read_name(match)
            if name and len(name.split()) <= _LONGEST:
                return AskedSection(kind, name)
    return None


async def quote_section(
    asked: str, hits: Sequence[Hit], kinds: Relevance | None
) -> list[QuoteCandidate]:
    """The sentences of the section that is asked for, in their order; `relevance` is `SURE` where
    its heading says so, else 0. Empty where the question asks for none, or no hit has it."""
    section = find_asked_section(asked)
    if section is None:
        return []
    names = [fold_words(name) for name in (section.subject, *other_names(section.subject))]
    named = [
        hit
        for hit in hits
        if hit.passage.language == language_of(asked)
        and any(_fold_part(part) in names for part in hit.passage.heading.split(" > "))
    ]
    read = [await _read_section(section, hit, kinds) for hit in named]
    found = [one for one in read if one.is_headed or one.worth >= _TELLING]
    return max(found, key=lambda one: one.rank).quotes if found else []


@dataclass(frozen=True, slots=True)
class _ReadSection:
    """A passage under the subject's name."""

    hit: Hit
    shares: Mapping[tuple[int, int], float]
    """Of each sentence, by its place: how much it is of what is asked (`SentenceKinds`)."""
    is_headed: bool
    is_mixed: bool
    """Whether its heading names more than one thing."""

    @property
    def worth(self) -> float:
        best = sorted(self.shares.values(), reverse=True)[:_BEST]
        return sum(best) / len(best) if best else 0.0

    @property
    def rank(self) -> tuple[bool, float]:
        worth = self.is_headed + self.worth - self.hit.rank / 50
        return trust_of(self.hit.passage.source) > UNTRUSTED, worth

    @property
    def quotes(self) -> list[QuoteCandidate]:
        sure = SURE if self.is_headed else 0.0
        spans, shares = list(self.shares), list(self.shares.values())
        begun = [at for at, share in enumerate(shares) if share >= _BEGINS]
        first = min(begun[0] if begun else 0, len(spans) if self.is_mixed else 1)
        return [QuoteCandidate(self.hit, *span, sure) for span in spans[first:]]


def _fold_part(part: str) -> list[str]:
    """The words of a part of a heading, without what stands in brackets."""
    return fold_words(_BRACKETS.sub("", part))


async def _read_section(section: AskedSection, hit: Hit, kinds: Relevance | None) -> _ReadSection:
    spans = quotable_spans(hit)
    texts = [hit.passage.text[start:end] for start, end in spans]
    is_known = kinds is not None and hit.passage.language == "en"
    shares = (
        await kinds.relevance(section.kind, texts) if kinds and is_known else [0.0] * len(spans)
    )
    last = hit.passage.heading.split(" > ")[-1]
    return _ReadSection(
        hit,
        dict(zip(spans, shares, strict=True)),
        read_words().headed[section.kind].search(last) is not None,
        _MIXED.search(last) is not None,
    )


def lead_with_section(
    section: Sequence[QuoteCandidate], found: Sequence[QuoteCandidate]
) -> list[QuoteCandidate]:
    """The section's sentences, then what else was found; as sure as the best of both."""
    if not section or not found:
        return list(found)
    sure = max(found[0].relevance, section[0].relevance)
    quoted = {(one.hit.passage.id, one.start) for one in section}
    rest = [one for one in found if (one.hit.passage.id, one.start) not in quoted]
    return [*(replace(one, relevance=sure) for one in section), *rest]
