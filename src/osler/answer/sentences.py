"""Sentences of retrieved passages as candidate quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer.statements import states_something
from osler.text import split_sentences
from osler.types import Evidence, Hit

_LEANS = {
    "en": re.compile(
        r"(?:its?|they|their|them|he|his|she|this|these|those|such|both|neither|either|otherwise|"
        r"the (?:others?|rest|"
        r"former|latter|same)|"
        r"(?:half|part|most|all|some|each|none|many|much) of (?:it|them|this|these|that|those)|"
        r"(?:in|if|for|with|unless|until|after|before|when|where) "
        r"(?:it|they|this|these|those|such|so|not|both|neither))\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"(?:其|此|这|那|该|它|两(?:者|类|种|药)|二者|三者|前者|后者|上述|以上|同样|否则|反之|"
        r"若(?:用|仍|无|不|未|有)|如(?:仍|无|不|未)|但|而)|[^，。]{2,30}者，"
    ),
}
"""How sentences begin that cannot be understood, or are misunderstood, without the one before."""
_MOST_BEFORE = 3
"""Sentences that are brought with one."""
_LONGEST_LIST = 400
"""Characters of a list that is brought with its lead-in."""


@dataclass(frozen=True, slots=True)
class QuoteCandidate:
    hit: Hit
    start: int
    end: int
    relevance: float

    @property
    def text(self) -> str:
        return self.hit.passage.text[self.start : self.end]

    def as_evidence(self, use: str) -> Evidence:
        return Evidence(self.hit, self.start, self.end, use)


def quotable_spans(hit: Hit, shortest: int = 30) -> list[tuple[int, int]]:
    """Start and end of the sentences that are long enough and state something, in order."""
    text = hit.passage.text
    least = 8 if hit.passage.language == "zh" else shortest
    return [
        (start, end)
        for start, end in split_sentences(text)
        if end - start >= least and states_something(text[start:end])
    ]


def add_neighbours(quotes: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The quotes; one that leans on the sentence before begins with that one, and one that leads in
    a list ends with it.

    "The others should take …" says who only with what stands before it. Nothing is brought before
    over a line break, nor what is quoted above; what was brought is not quoted again below.
    """
    found: list[QuoteCandidate] = []
    for one in quotes:
        if any(_holds(other, one) for other in found):
            continue
        quoted = {(other.hit.passage.id, other.end) for other in found}
        found.append(replace(one, start=_find_start(one, quoted), end=_find_end(one)))
    return found


def _holds(whole: QuoteCandidate, part: QuoteCandidate) -> bool:
    same = whole.hit.passage.id == part.hit.passage.id
    return same and whole.start <= part.start and part.end <= whole.end


def _find_end(quote: QuoteCandidate) -> int:
    """Where the list ends that the quote leads in; else the quote's own end."""
    text, end = quote.hit.passage.text, quote.end
    if not text[quote.start : end].rstrip().endswith((":", "：")):
        return end
    for start, stop in split_sentences(text):
        if start >= quote.end:
            if stop - quote.end > _LONGEST_LIST or "\n\n" in text[end:start]:
                break
            end = stop
    return end


def _find_start(quote: QuoteCandidate, quoted: set[tuple[str, int]]) -> int:
    passage, start = quote.hit.passage, quote.start
    before = [span for span in split_sentences(passage.text) if span[1] <= start]
    for begin, end in reversed(before[-_MOST_BEFORE:]):
        is_clause = passage.text[end - 1] in "；;"
        leans = is_clause or _LEANS[passage.language].match(passage.text, start)
        if not leans or "\n" in passage.text[end:start] or (passage.id, end) in quoted:
            break
        start = begin
    return start
