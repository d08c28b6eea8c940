"""Sentences of retrieved passages as candidate quotes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osler.answer.statements import states_something
from osler.text import split_sentences
from osler.types import Evidence, Hit, Relevance


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
