"""An answer made of quotes, for models that must not word medicine.

First passages are selected, then sentences. Passages compete by their coverage of the question's
rare words; when the best covers too little and no sentence is relevant, the answer says that the
evidence does not answer. From the passages kept, the sentences quoted are those highest in
relevance to the question and in the model's likelihood of the sentence as its answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean, pstdev

from osler.answer import NOTHING_SAID
from osler.answer.options import OptionChooser, OptionTexts
from osler.answer.sentences import QuoteCandidate, quote_candidates
from osler.llm.core.ask import score_all
from osler.llm.core.base import Likelihood, Message
from osler.prompts import render_prompt
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Authorship, Hit, Language, Question, Relevance, Statement

NOTE = {
    "en": "Quoted sentences, not a written answer: no model that may word medicine is configured.",
    "zh": "以下为原文摘句，并非撰写的答案：未配置可以撰写医学内容的模型。",
}

_SPENT = {
    "en": "The run's budget was spent before everything was weighed ({}).",
    "zh": "运行预算已用尽，未能完成全部比较（{}）。",
}


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

    async def find_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> list[QuoteCandidate]:
        """Sentences of the passages that cover the question best, most relevant first.

        Empty when the hits do not answer it. `query` replaces the question in scoring relevance.
        """
        texts = [f"{hit.passage.heading}. {hit.passage.text}" for hit in hits]
        covered = await self.coverage.relevance(question.text, texts) if texts else ()
        best = max(covered, default=0.0)
        kept = [h for h, v in zip(hits, covered, strict=True) if v >= self.margin * best]
        found = await quote_candidates(self.relevance, query or question.text, kept)
        least = self.least[question.language]
        # Either signal suffices: coverage fails on paraphrases, relevance on long passages.
        answers = best >= least.coverage or (found and found[0].relevance >= least.relevance)
        return found if answers else []


@dataclass(frozen=True)
class ExtractiveComposer:
    """Answers in quotes; without `model`, relevance alone ranks the sentences."""

    gate: EvidenceGate
    model: Likelihood | None = None
    statements: int = 3
    shortlist: int = 8
    """Number of most relevant sentences that are weighed by likelihood."""
    reasoned: bool = False
    """Whether the option is weighed after the draft's reasoning (chain of thought)."""
    options: OptionChooser | None = None
    """Chooser among options; `None` = `model`, by their texts."""

    @property
    def uses_draft(self) -> bool:
        return self.reasoned

    @property
    def writes_answer(self) -> bool:
        return True

    async def conclude(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> Answer:
        chosen = await self._choose_option(question, hits, draft, run)
        quotes = await self._choose_quotes(question, chosen, hits, run)
        notes = [NOTE[question.language]] if quotes else [NOTHING_SAID[question.language]]
        chooser = self._option_chooser
        if chosen is not None and chooser is not None:
            notes.append(chooser.selection_note(question.language))
        if run.spent:
            notes.append(_SPENT[question.language].format(run.spent))
        return Answer(
            statements=tuple(Statement(q.text, (n,)) for n, q in enumerate(quotes, 1)),
            evidence=tuple(q.as_evidence("answer") for q in quotes),
            option=chosen,
            authorship=Authorship.EXTRACTIVE,
            note=" ".join(notes),
            language=question.language,
        )

    async def _choose_option(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> str | None:
        if not question.options or self._option_chooser is None:
            return None
        said = draft if self.reasoned else ""
        try:
            return await self._option_chooser.choose_option(question, hits, run, said=said)
        except BudgetExceeded:
            return None

    @property
    def _option_chooser(self) -> OptionChooser | None:
        if self.options is None and self.model is not None:
            return OptionTexts(self.model)
        return self.options

    async def _choose_quotes(
        self, question: Question, chosen: str | None, hits: Sequence[Hit], run: Run
    ) -> list[QuoteCandidate]:
        query = (
            question.text if chosen is None else f"{question.text} {question.option_text(chosen)}"
        )
        found = await self.gate.find_evidence(question, hits, query=query)
        short = found[: self.shortlist]
        if self.model is not None and len(short) > self.statements:
            with suppress(BudgetExceeded):  # relevance alone ranks, as without a model
                short = await self._weigh_quotes(self.model, question, short, run)
        best = short[: self.statements]
        # Quotes of one passage read in its order.
        order = {c.hit.passage.id: i for i, c in reversed(list(enumerate(best)))}
        return sorted(best, key=lambda c: (order[c.hit.passage.id], c.start))

    async def _weigh_quotes(
        self, model: Likelihood, question: Question, short: list[QuoteCandidate], run: Run
    ) -> list[QuoteCandidate]:
        """Sorts by relevance plus likelihood, each in its own standard deviations."""
        prompt = render_prompt(
            "answer/documents", question.language, question=question.text, documents=[]
        )
        context = [Message("user", prompt.text)]
        texts = [candidate.text for candidate in short]
        scored = await score_all(model, context, texts, run, role="reader", prompt=prompt.identity)
        means = [fmean(token.logprob for token in one.tokens) for one in scored]
        relevant, likely = _standard_scores([c.relevance for c in short]), _standard_scores(means)
        return [
            short[i] for i in sorted(range(len(short)), key=lambda i: -(relevant[i] + likely[i]))
        ]


def _standard_scores(values: Sequence[float]) -> list[float]:
    """Standard scores of the values, which make two scales comparable."""
    mean, spread = fmean(values), pstdev(values)
    return [(value - mean) / spread if spread else 0.0 for value in values]
