"""Sentences of retrieved passages as candidate quotes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from osler.answer.statements import states_something
from osler.text import split_sentences
from osler.types import Evidence, Hit, Relevance

_LEANS = {
    "en": re.compile(
        r"(?:it|they|them|this|these|those|such|both|neither|either|otherwise|the (?:others?|rest|"
        r"former|latter|same)|(?:in|if|for|with|unless|until|after|before|when|where) "
        r"(?:it|they|this|these|those|such|so|not|both|neither))\b",
        re.IGNORECASE,
    ),
    "zh": re.compile(
        r"(?:其|此|这|那|该|它|两(?:者|类|种|药)|二者|三者|前者|后者|上述|以上|同样|否则|反之|"
        r"若(?:用|仍|无|不|未|有)|如(?:仍|无|不|未)|但|而)|[^，。]{2,30}者，"
    ),
}
"""How sentences begin that cannot be understood, or are misunderstood, without the one before."""
_MOST_BEFORE = 2
"""Sentences that are brought with one."""


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


async def quote_candidates(
    scorer: Relevance, query: str, hits: Sequence[Hit], *, shortest: int = 30
) -> list[QuoteCandidate]:
    """All sentences of the hits with their relevance, most relevant first.

    A sentence is scored together with its heading ("It is given intramuscularly" says little
    alone). Sentences shorter than `shortest` characters (8 in Chinese) are headings and
    fragments, and are left out; so is what states nothing (`answer.statements`).
    """
    spans = [(hit, *span) for hit in hits for span in quotable_spans(hit, shortest)]
    texts = [f"{hit.passage.heading}. {hit.passage.text[start:end]}" for hit, start, end in spans]
    scores = await scorer.relevance(query, texts) if texts else ()
    found = [QuoteCandidate(*span, value) for span, value in zip(spans, scores, strict=True)]
    # Ties by rank and position keep the result deterministic.
    return sorted(found, key=lambda c: (-c.relevance, c.hit.rank, c.start))


def quotable_spans(hit: Hit, shortest: int = 30) -> list[tuple[int, int]]:
    """Start and end of the sentences that are long enough and state something, in order."""
    text = hit.passage.text
    least = 8 if hit.passage.language == "zh" else shortest
    return [
        (start, end)
        for start, end in split_sentences(text)
        if end - start >= least and states_something(text[start:end])
    ]


def add_sentences_before(quotes: Sequence[QuoteCandidate]) -> list[QuoteCandidate]:
    """The quotes; one that leans on the sentence before begins with that one.

    "The others should take …" says who only with what stands before it. Nothing is brought over a
    line break, nor what is quoted already.
    """
    quoted = {(one.hit.passage.id, one.end) for one in quotes}
    return [replace(one, start=_find_start(one, quoted)) for one in quotes]


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
