"""The gate: which sentences of the hits are evidence for a question, or none at all.

By the rule, passages that do not speak of the question's subject are left out. The others compete
by their coverage of the question's rare words, and when the best passage covers too little and no
sentence is relevant, nothing is evidence. The expert `answerable` says of each passage whether it
answers, and how likely the evidence answers at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from osler.answer.quoting import QuoteJudge
from osler.answer.sentences import QuoteCandidate, quote_candidates
from osler.retrieve.experts.answerable import AnswerableExpert, PassageSigns
from osler.retrieve.naming import NAMED, has_no_one_subject, share_of_pairs
from osler.retrieve.rerank import reranker_text
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
    near: Sequence[QuoteCandidate] = ()
    """Where nothing is evidence for a letter: sentences of passages that may answer it."""


@dataclass(frozen=True, slots=True)
class MeasuredPassage:
    """A passage that may be evidence."""

    hit: Hit
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
    search: Relevance | None = None
    """How likely a passage supports an answer, by the expert `retrieve`."""
    judge: QuoteJudge | None = None
    """Judges the sentences of the passages, where it can."""
    expert: AnswerableExpert | None = None
    """Needs `subject` and `search`; `None` = nobody says how sure the evidence is."""
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
        """Sentences of the passages that are evidence, most relevant first.

        None when the hits do not answer it. `query` replaces the question in scoring relevance.
        """
        expert = self._expert_for(question)
        if expert is None or not hits:
            return WeighedEvidence(await self._find_by_rule(question, hits, query))
        # Where the rule decides, sentences are judged only to be quoted: it would double the cost.
        seen = self if self.decides else replace(self, judge=None)
        measured = await seen.measure_passages(question, hits)
        logits = expert.weigh_passages(question.text, [one.signs for one in measured])
        sureness = Sureness(expert.judge_evidence(logits), expert.identity)
        if sureness.probability < (self.least_sureness or 0.0):
            return WeighedEvidence([], sureness)
        by_rule = [] if self.decides else await self._find_by_rule(question, hits, query)
        if by_rule or (not self.decides and not has_no_one_subject(question.text)):
            return WeighedEvidence(by_rule, sureness)
        good = [
            one.hit
            for one, logit in zip(measured, logits, strict=True)
            if expert.is_evidence(question.text, logit)
        ]
        found = await quote_candidates(self.relevance, query or question.text, good)
        if self.decides:
            return WeighedEvidence(found, sureness)
        return WeighedEvidence([], sureness, near=found)

    async def measure_passages(
        self, question: Question, hits: Sequence[Hit]
    ) -> list[MeasuredPassage]:
        """What the expert knows of each passage; what it learns from.

        Raises `ValueError` without `subject` or `search`.
        """
        if self.subject is None or self.search is None:
            raise ValueError("nothing measures the share of the subject, or nothing searches")
        texts = _read_texts(hits)
        covered = await self.coverage.relevance(question.text, texts)
        shares = await self.subject.relevance(question.text, texts)
        searched = await self.search.relevance(
            question.text, [reranker_text(hit.passage) for hit in hits]
        )
        judged: Mapping[str, float] = {}
        if self.judge is not None and self.judge.can_judge(question):
            judged = await self.judge.judge_passages(question.text, hits)
        pairs = share_of_pairs(question.text, texts)
        return [
            MeasuredPassage(
                hit,
                PassageSigns(
                    covered[at],
                    shares[at],
                    searched[at],
                    pairs[at],
                    judged.get(hit.passage.id, 0.0) if judged else None,
                ),
            )
            for at, hit in enumerate(hits)
        ]

    def _expert_for(self, question: Question) -> AnswerableExpert | None:
        known = self.expert is not None and question.language in self.expert.languages
        return self.expert if known and self.subject is not None and self.search else None

    async def _find_by_rule(
        self, question: Question, hits: Sequence[Hit], query: str
    ) -> list[QuoteCandidate]:
        kept, best = await self._choose_passages(question, hits)
        found = await quote_candidates(self.relevance, query or question.text, kept)
        return found if self._passes_rule(question, best, found) else []

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


def _read_texts(hits: Sequence[Hit]) -> list[str]:
    return [f"{hit.passage.heading}. {hit.passage.text}" for hit in hits]
