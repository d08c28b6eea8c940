"""The gate: which sentences of the hits are evidence for a question, or none at all.

Passages that do not speak of the question's subject are left out. The others compete by their
coverage of the question's rare words; when the best covers too little and no sentence is relevant,
nothing is evidence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.answer.sentences import QuoteCandidate, quote_candidates
from osler.retrieve.naming import NAMED
from osler.types import Hit, Language, Question, Relevance


@dataclass(frozen=True, slots=True)
class QuoteThresholds:
    """Thresholds below both of which the evidence does not answer; on the scorers' own scales."""

    coverage: float
    """Least coverage of the question by the best passage."""
    relevance: float
    """Least relevance of the best sentence to the question."""


@dataclass(frozen=True)
class EvidenceGate:
    """Decides which sentences are evidence for a question."""

    coverage: Relevance
    """Coverage of the question by a passage, in [0, 1]."""
    relevance: Relevance
    """Relevance of a sentence to the question."""
    least: Mapping[Language, QuoteThresholds]
    margin: float = 0.85
    """Least share of the best passage's coverage: excludes passages about other subjects."""
    naming: Relevance | None = None
    """Whether a passage names the question's drug, disease or test (`retrieve.naming`), from
    `NAMED` on; `None` = every passage may be evidence."""

    async def find_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> list[QuoteCandidate]:
        """Sentences of the passages that cover the question best, most relevant first.

        Empty when the hits do not answer it. `query` replaces the question in scoring relevance.
        """
        hits = await self._about_subject(question, hits)
        covered = await self.coverage.relevance(question.text, _read_texts(hits)) if hits else ()
        best = max(covered, default=0.0)
        kept = [h for h, v in zip(hits, covered, strict=True) if v >= self.margin * best]
        found = await quote_candidates(self.relevance, query or question.text, kept)
        least = self.least[question.language]
        # Either signal suffices: coverage fails on paraphrases, relevance on long passages.
        answers = best >= least.coverage or (found and found[0].relevance >= least.relevance)
        return found if answers else []

    async def _about_subject(self, question: Question, hits: Sequence[Hit]) -> Sequence[Hit]:
        if self.naming is None or not hits:
            return hits
        named = await self.naming.relevance(question.text, _read_texts(hits))
        return [hit for hit, value in zip(hits, named, strict=True) if value >= NAMED]


def _read_texts(hits: Sequence[Hit]) -> list[str]:
    return [f"{hit.passage.heading}. {hit.passage.text}" for hit in hits]
