"""An answer made of quotes, for models that must not word medicine.

The gate (`answer/gate.py`) says which sentences are evidence; where there are none, the answer
says that the evidence does not answer. The sentences quoted are those highest in relevance to the
question and in the model's likelihood of the sentence as its answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from statistics import fmean, pstdev

from osler.answer import NOTHING_SAID
from osler.answer.gate import EvidenceGate
from osler.answer.options import OptionChooser, OptionTexts
from osler.answer.sentences import QuoteCandidate
from osler.llm.core.ask import score_all
from osler.llm.core.base import Likelihood, Message
from osler.prompts import render_prompt
from osler.retrieve.pooled import PooledOrder, is_one_order
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Authorship, Hit, Question, Statement

NOTE = {
    "en": "Quoted sentences, not a written answer: no model that may word medicine is configured.",
    "zh": "以下为原文摘句，并非撰写的答案：未配置可以撰写医学内容的模型。",
}

_SPENT = {
    "en": "The run's budget was spent before everything was weighed ({}).",
    "zh": "运行预算已用尽，未能完成全部比较（{}）。",
}


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
    order: PooledOrder | None = None
    """One order over hits of several searches, of which an option chooser reads the first."""

    @property
    def uses_draft(self) -> bool:
        return self.reasoned

    @property
    def writes_answer(self) -> bool:
        return True

    async def conclude(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> Answer:
        if question.options and self.order is not None and not is_one_order(hits):
            hits = await self.order.order_hits(question.text, [hits])
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
