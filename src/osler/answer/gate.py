"""The gate: which sentences of the hits are evidence for a question, or none at all.

Passages that do not speak of the question's subject are left out. The others compete by their
coverage of the question's rare words. A rule decides: when the best passage covers too little and
no sentence is relevant, nothing is evidence. The expert `answerable` says how likely the evidence
answers; where it decides, it says of each passage whether it answers, but for letters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.answer.sentences import QuoteCandidate, quote_candidates
from osler.retrieve.experts.answerable import AnswerableExpert, PassageSigns
from osler.retrieve.experts.answering import sigmoid
from osler.retrieve.naming import NAMED, has_no_one_subject
from osler.types import Hit, Language, Question, Relevance, Sureness


@dataclass(frozen=True, slots=True)
class QuoteThresholds:
    """Thresholds below both of which the evidence does not answer; on the scorers' own scales."""

    coverage: float
    """Least coverage of the question by the best passage."""
    relevance: float
    """Least relevance of the best sentence to the question."""


@dataclass(frozen=True, slots=True)
class WeighedEvidence:
    """Sentences that are evidence, and how likely they answer the question."""

    quotes: list[QuoteCandidate]
    """Most relevant first; empty when the hits do not answer."""
    sureness: Sureness | None = None
    """How likely the evidence answers; `None` where nothing can say."""


@dataclass(frozen=True, slots=True)
class MeasuredPassage:
    """A passage that may be evidence."""

    quotes: list[QuoteCandidate]
    """Its sentences, most relevant first; not empty."""
    signs: PassageSigns


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
    subject: Relevance | None = None
    """Share of the question's subject that a text has (`naming.SubjectRelevance`)."""
    expert: AnswerableExpert | None = None
    """Needs `subject`; `None` = nobody says how sure the evidence is."""
    decides: bool = True
    """Whether the expert decides; else it only says how sure, and the rule decides."""
    least_sureness: float | None = None
    """Least probability of an answer, as `osler calibrate` fitted it; `None` = none."""
    faults: tuple[str, ...] = ()
    """Why an expert that is set does not decide; for the reader."""

    async def find_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> list[QuoteCandidate]:
        """The sentences of `weigh_evidence`."""
        return (await self.weigh_evidence(question, hits, query=query)).quotes

    async def weigh_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> WeighedEvidence:
        """Sentences of the passages that cover the question best, most relevant first.

        None when the hits do not answer it. `query` replaces the question in scoring relevance.
        """
        kept, best = await self._choose_passages(question, hits)
        found = await quote_candidates(self.relevance, query or question.text, kept)
        expert = self._expert_for(question)
        if expert is None or not found:
            return WeighedEvidence(found if self._passes_rule(question, best, found) else [])
        measured = await self._measure(question, found)
        logits = expert.weigh_passages(question.text, [one.signs for one in measured])
        probability = expert.judge_evidence(logits)
        if not self.decides or has_no_one_subject(question.text):
            passes = self._passes_rule(question, best, found)
        else:
            good = {
                one.quotes[0].hit.passage.id
                for one, logit in zip(measured, logits, strict=True)
                if sigmoid(logit) >= expert.threshold
            }
            found = [quote for quote in found if quote.hit.passage.id in good]
            passes = True
        passes = passes and probability >= (self.least_sureness or 0.0)
        return WeighedEvidence(found if passes else [], Sureness(probability, expert.identity))

    async def measure_passages(
        self, question: Question, hits: Sequence[Hit]
    ) -> list[MeasuredPassage]:
        """What the expert knows of each passage that may be evidence; what it learns from.

        Raises `ValueError` without `subject`.
        """
        kept, _ = await self._choose_passages(question, hits)
        return await self._measure(
            question, await quote_candidates(self.relevance, question.text, kept)
        )

    def _expert_for(self, question: Question) -> AnswerableExpert | None:
        known = self.expert is not None and question.language in self.expert.languages
        return self.expert if known and self.subject is not None else None

    def _passes_rule(
        self, question: Question, best: float, found: Sequence[QuoteCandidate]
    ) -> bool:
        least = self.least[question.language]
        # Either signal suffices: coverage fails on paraphrases, relevance on long passages.
        near = bool(found) and found[0].relevance >= least.relevance
        return best >= least.coverage or near

    async def _choose_passages(
        self, question: Question, hits: Sequence[Hit]
    ) -> tuple[list[Hit], float]:
        """Hits about the subject that cover nearly as much as the best, and its coverage."""
        hits = await self._about_subject(question, hits)
        covered = await self.coverage.relevance(question.text, _read_texts(hits)) if hits else ()
        best = max(covered, default=0.0)
        kept = [h for h, v in zip(hits, covered, strict=True) if v >= self.margin * best]
        return kept, best

    async def _about_subject(self, question: Question, hits: Sequence[Hit]) -> Sequence[Hit]:
        if self.naming is None or not hits:
            return hits
        named = await self.naming.relevance(question.text, _read_texts(hits))
        return [hit for hit, value in zip(hits, named, strict=True) if value >= NAMED]

    async def _measure(
        self, question: Question, found: Sequence[QuoteCandidate]
    ) -> list[MeasuredPassage]:
        if self.subject is None:
            raise ValueError("nothing measures the share of the subject")
        quotes: dict[str, list[QuoteCandidate]] = {}
        for quote in found:
            quotes.setdefault(quote.hit.passage.id, []).append(quote)
        hits = [own[0].hit for own in quotes.values()]
        texts, headings = _read_texts(hits), [hit.passage.heading for hit in hits]
        if not hits:
            return []
        covered = await self.coverage.relevance(question.text, texts)
        shares = await self.subject.relevance(question.text, [*texts, *headings])
        asked = {one: await self._asked_share(question, one) for one in dict.fromkeys(headings)}
        return [
            MeasuredPassage(
                own,
                PassageSigns(
                    covered[at],
                    shares[at],
                    shares[len(hits) + at],
                    asked[headings[at]],
                    tuple(quote.relevance for quote in own),
                ),
            )
            for at, own in enumerate(quotes.values())
        ]

    async def _asked_share(self, question: Question, heading: str) -> float:
        """Share of a heading's own subject that the question has, by the best part of its path:
        "Cardiology > Heart failure" is about heart failure."""
        assert self.subject is not None  # noqa: S101  `_measure` has looked
        parts = heading.split(" > ")
        return max([(await self.subject.relevance(one, [question.text]))[0] for one in parts])


def _read_texts(hits: Sequence[Hit]) -> list[str]:
    return [f"{hit.passage.heading}. {hit.passage.text}" for hit in hits]
