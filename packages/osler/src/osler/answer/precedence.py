"""Which of sentences that are about as likely goes first, for reasons that nearness does not see.

A sentence whose range has the value that is asked about goes before those whose ranges leave it out
(`osler.answer.values`), one whose band has the age before others. One that
forbids a drug that is asked about goes before one that advises it, and is shown where its source is
untrusted, too: in a stroke, "Give aspirin 300 mg at once" is said of an attack that has passed. A
dose of adults goes before one of children, where these are not asked about, and a finding before
why its study was made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf, nan

from osler.answer.check_words import read_words
from osler.answer.checks import AskedFacts, ReadQuote
from osler.answer.sentences import QuoteCandidate, quotable_spans
from osler.answer.values import covers_age, measure_distance
from osler.retrieve.entity_names import ReadText
from osler.sources.catalogue import UNTRUSTED, trust_of
from osler.text import language_of
from osler.types import Hit

VALUE_SHARE = 0.3
"""Least probability of a sentence that goes first for its range or band, as a share of the first
one's. At .5 "INR 6.4" began with "an INR above 8.0"; of 2,065 seen questions none changes."""
OTHERS_SHARE = 0.4
"""The same for a dose of adults, where children are not asked about and the first is for them."""
WARNING_SHARE = 0.75
"""The same for one that forbids, and for a finding where the first says why a study was made."""
_ADULTS = re.compile(r"\badults?\b|成人|成年", re.IGNORECASE)
_FORBIDS = re.compile(
    r"^\W*(?:do not|don[’']t|never)\b|\b(?:is|are) not (?:for|suitable for)\b"
    r"|^\W*(?:不要|切勿|勿|禁止|不得|严禁)",
    re.IGNORECASE,
)


def forbids(facts: AskedFacts, text: str) -> bool:
    """Whether a sentence forbids a drug that is asked about, by its own name."""
    if not facts.drugs or _FORBIDS.search(text) is None:
        return False
    return any(drug.is_in(ReadText(text), itself=True) for drug in facts.drugs)


def may_warn(facts: AskedFacts, hits: Sequence[Hit]) -> bool:
    """Whether an untrusted source forbids a drug that is asked about."""
    doubted = (hit for hit in hits if trust_of(hit.passage.source) <= UNTRUSTED)
    spans = ((hit.passage.text, *span) for hit in doubted for span in quotable_spans(hit))
    return any(forbids(facts, text[start:end]) for text, start, end in spans)


def find_warnings(facts: AskedFacts, found: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The sentences of untrusted sources that forbid a drug that is asked about."""
    doubted = (one for one in found if trust_of(one.hit.passage.source) <= UNTRUSTED)
    return [one for one in doubted if forbids(facts, one.text)]


def may_answer(asked: str, first: QuoteCandidate, hits: Sequence[Hit]) -> bool:
    """Whether a quote may answer by its language: beside texts in that of the question one in the
    other is at most near. Names that have no word in it are lost ("naproxen with warfarin")."""
    own, first_in = language_of(asked), first.hit.passage.language
    return first_in == own or all(hit.passage.language != own for hit in hits)


def put_first(facts: AskedFacts, found: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The sentences, likeliest first but for what has reason to go before."""
    asked, ordered = facts.asked.written, list(found)
    if found and "background" in found[0].failed:
        ordered = _lead_with(found, WARNING_SHARE, lambda one: not one.failed)
    ordered = _lead_with_value(asked, ordered)
    if found and covers_age(asked, ordered[0].text) is not True:
        ordered = _lead_with(ordered, VALUE_SHARE, lambda one: _is_for_age(asked, one))
    wants_dose = facts.drugs and facts.wants_amount and not facts.conditions
    if wants_dose and found and _is_for_children(ordered[0]):
        ordered = _lead_with(ordered, OTHERS_SHARE, lambda one: _is_dose_of_adults(facts, one))
    return _lead_with(ordered, WARNING_SHARE, lambda one: forbids(facts, one.text))


def _lead_with_value(asked: str, found: list[QuoteCandidate]) -> list[QuoteCandidate]:
    """Where the range of the first leaves the value out, the likeliest whose range has it; where
    this is "above 1.5", one that is about as likely and whose end is twice as near."""

    def measure(one: QuoteCandidate) -> float:
        far = measure_distance(asked, one.text, ReadQuote.of_candidate(one).before)
        return nan if far is None else far

    far = measure(found[0]) if found else nan
    if far == inf:
        found = _lead_with(found, VALUE_SHARE, lambda one: measure(one) < inf)
        far = measure(found[0])
    return _lead_with(found, WARNING_SHARE, lambda one: measure(one) <= far / 2) if far else found


def _is_for_age(asked: str, one: QuoteCandidate) -> bool:
    return not one.failed and covers_age(asked, one.text) is True


def _is_for_children(one: QuoteCandidate) -> bool:
    children = read_words().conditions["children"].search(_under_heading(one))
    return children is not None and _ADULTS.search(one.text) is None


def _is_dose_of_adults(facts: AskedFacts, one: QuoteCandidate) -> bool:
    """Whether it has an amount, names the drug, and speaks of no children."""
    read = ReadText(_under_heading(one))
    names = any(drug.is_in(read) for drug in facts.drugs)
    return names and not _is_for_children(one) and read_words().tells_dose(one.text)


def _under_heading(one: QuoteCandidate) -> str:
    return f"{one.hit.passage.heading}. {one.text}"


def _lead_with(
    found: Sequence[QuoteCandidate], share: float, is_first: Callable[[QuoteCandidate], bool]
) -> list[QuoteCandidate]:
    """The best sentence that has reason to, if it is likely enough, before the others and as likely
    as the first of them."""
    near = (one for one in found if one.relevance >= share * found[0].relevance)
    first = next(filter(is_first, near), None)
    if first is None:
        return list(found)
    likely = max(first.relevance, found[0].relevance)
    return [replace(first, relevance=likely), *(one for one in found if one is not first)]
