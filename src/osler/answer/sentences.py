"""Sentences of retrieved passages as candidate quotes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    spans = [
        (hit, start, end)
        for hit, start, end in _sentence_spans(hits)
        if end - start >= _least_length(hit, shortest)
        and states_something(hit.passage.text[start:end])
    ]
    texts = [f"{hit.passage.heading}. {hit.passage.text[start:end]}" for hit, start, end in spans]
    scores = await scorer.relevance(query, texts) if texts else ()
    found = [QuoteCandidate(*span, value) for span, value in zip(spans, scores, strict=True)]
    # Ties by rank and position keep the result deterministic.
    return sorted(found, key=lambda c: (-c.relevance, c.hit.rank, c.start))


def _sentence_spans(hits: Sequence[Hit]) -> Iterable[tuple[Hit, int, int]]:
    for hit in hits:
        for start, end in split_sentences(hit.passage.text):
            yield hit, start, end


def _least_length(hit: Hit, shortest: int) -> int:
    return 8 if hit.passage.language == "zh" else shortest
