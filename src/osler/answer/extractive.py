"""An answer made of quotes, for models that must not word medicine.

The gate (`answer/gate.py`) says which sentences are evidence; where there are none, the answer
says that the evidence does not answer. The sentences quoted are those highest in relevance to the
question, in the model's likelihood of the sentence as its answer, and in relevance to the words
of a method that decided by itself; or those that the expert `answers` holds to answer. A method's
words are never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import ClassVar

from osler.answer import NOTHING_SAID, UNDECIDED, Decision
from osler.answer.gate import EvidenceGate, WeighedEvidence
from osler.answer.options import OptionChooser, OptionTexts
from osler.answer.quoting import QuoteJudge
from osler.answer.sentences import QuoteCandidate, add_sentences_before
from osler.answer.sureness import describe_sureness
from osler.answer.verdicts import ChosenVerdict, VerdictChooser
from osler.llm.core.ask import score_all
from osler.llm.core.base import Likelihood, Message
from osler.prompts import render_prompt
from osler.retrieve.pooled import PooledOrder, is_one_order
from osler.trace import BudgetExceeded, Run
from osler.types import Answer, Authorship, Hit, Language, Question, Statement

NOTE = {
    "en": "Quoted sentences, not a written answer: no model that may word medicine is configured.",
    "zh": "以下为原文摘句，并非撰写的答案：未配置可以撰写医学内容的模型。",
}

_DECIDED_NOTE = {
    "en": "The option is the method's own choice, by a model that must not word medicine; do not"
    " rely on it.",
    "zh": "选项由方法自身选出，所用模型不得撰写医学内容，不可依赖。",
}
_FAULT = {
    "en": "A simpler rule decided in an expert's place: {}.",
    "zh": "某专家模型无法使用，改由简单规则判定：{}。",
}
_NEAREST = {
    "en": "What was found does not say this directly; nearest to it, under “{}”:",
    "zh": "检索到的内容没有直接回答这个问题；最接近的内容见“{}”：",
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
    options: OptionChooser | None = None
    """Chooser among options; `None` = `model`, by their texts."""
    judge: QuoteJudge | None = None
    """Chooses the sentences of questions that it can judge, without `model`."""
    order: PooledOrder | None = None
    """One order over hits of several searches, of which an option chooser reads the first."""
    nearest: bool = True
    """Whether the nearest sentence on the subject is quoted, and called so, where none answers."""
    verdicts: VerdictChooser | None = None
    """Chooses among yes, no and maybe, where it can, before `options`."""

    uses_draft: ClassVar[bool] = False
    writes_answer: ClassVar[bool] = True

    async def conclude(
        self,
        question: Question,
        hits: Sequence[Hit],
        draft: str,
        run: Run,
        *,
        decision: Decision = UNDECIDED,
    ) -> Answer:
        nothing = NOTHING_SAID[question.language]
        if decision.option is None and decision.words == nothing:
            return Answer(note=nothing, language=question.language)
        hits = decision.select_hits(hits)
        if question.options and self.order is not None and not is_one_order(hits):
            hits = await self.order.order_hits(question.text, [hits])
        verdict = None
        if decision.option is None and self.verdicts is not None:
            verdict = await self.verdicts.choose_verdict(question, hits)
        chosen = decision.option or (verdict.letter if verdict else None)
        chosen = chosen or await self._choose_option(question, hits, decision.words, run)
        query = (
            question.text if chosen is None else f"{question.text} {question.option_text(chosen)}"
        )
        weighed = await self.gate.weigh_evidence(question, hits, query=query)
        sureness = weighed.sureness
        # What was decided without a language model is quoted without one.
        quoting = self if verdict is None else replace(self, model=None)
        quotes = await quoting._choose_quotes(question, query, decision.words, weighed, hits, run)
        notes = [NOTE[question.language]] if quotes else [nothing]
        near: list[QuoteCandidate] = []
        if self.nearest and chosen is None and not quotes:
            near = await self._choose_nearest(question, weighed, hits)
        notes += self._describe_choice(question, decision, verdict, chosen)
        if verdict is not None:
            sureness = verdict.sureness
        elif sureness is not None and quotes:
            notes.append(describe_sureness(sureness, question.language))
        faults = self.verdicts.find_fault(question) if self.verdicts else ()
        faults = (*self.gate.faults, *faults)
        notes += [_FAULT[question.language].format(fault) for fault in faults]
        if run.spent:
            notes.append(_SPENT[question.language].format(run.spent))
        return Answer(
            statements=(
                *_introduce_nearest(near, question.language),
                *(Statement(q.text, (n,)) for n, q in enumerate(quotes or near, 1)),
            ),
            evidence=tuple(q.as_evidence("nearest" if near else "answer") for q in quotes or near),
            option=chosen,
            authorship=Authorship.EXTRACTIVE,
            note=" ".join(notes),
            language=question.language,
            sureness=None if near else sureness,
        )

    def _describe_choice(
        self,
        question: Question,
        decision: Decision,
        verdict: ChosenVerdict | None,
        chosen: str | None,
    ) -> list[str]:
        """How an option was chosen, for the reader; nothing where none was."""
        chooser = self._option_chooser
        if decision.option is not None:
            return [_DECIDED_NOTE[question.language]]
        if verdict is not None:
            return [verdict.describe(question.language)]
        if chosen is not None and chooser is not None:
            return [chooser.selection_note(question.language)]
        return []

    async def _choose_option(
        self, question: Question, hits: Sequence[Hit], said: str, run: Run
    ) -> str | None:
        if not question.options or self._option_chooser is None:
            return None
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
        self,
        question: Question,
        query: str,
        words: str,
        weighed: WeighedEvidence,
        hits: Sequence[Hit],
        run: Run,
    ) -> list[QuoteCandidate]:
        best = await self._rank_quotes(question, query, words, weighed.quotes, hits, run)
        return add_sentences_before(best)

    async def _choose_nearest(
        self, question: Question, weighed: WeighedEvidence, hits: Sequence[Hit]
    ) -> list[QuoteCandidate]:
        """The sentence nearest to an answer, of passages on the question's subject, if any."""
        quotes = weighed.quotes or weighed.near
        if weighed.quotes and self.judge is not None and self.judge.can_judge(question):
            least = replace(self.judge, first=0.0, most=1)
            quotes = await least.choose_quotes(question, question.text, quotes, hits) or quotes
        return add_sentences_before(quotes[:1])

    async def _rank_quotes(
        self,
        question: Question,
        query: str,
        words: str,
        found: list[QuoteCandidate],
        hits: Sequence[Hit],
        run: Run,
    ) -> list[QuoteCandidate]:
        judge = self.judge if self.judge is not None and self.judge.can_judge(question) else None
        if found and judge:
            quotes = await judge.choose_quotes(question, query, found, hits)
            if quotes is not None:
                return quotes
        short = found[: self.shortlist]
        if len(short) > self.statements:
            short = await self._weigh_quotes(question, words, short, run)
        best = short[: self.statements]
        # Quotes of one passage read in its order.
        order = {c.hit.passage.id: i for i, c in reversed(list(enumerate(best)))}
        return sorted(best, key=lambda c: (order[c.hit.passage.id], c.start))

    async def _weigh_quotes(
        self, question: Question, words: str, short: list[QuoteCandidate], run: Run
    ) -> list[QuoteCandidate]:
        """Sorts by relevance, likelihood and nearness to the method's words, each in its own
        standard deviations."""
        signals = [[candidate.relevance for candidate in short]]
        if words.strip():
            texts = [candidate.text for candidate in short]
            signals.append(list(await self.gate.relevance.relevance(words, texts)))
        if self.model is not None:
            with suppress(BudgetExceeded):  # the others rank, as without a model
                signals.append(await _mean_likelihoods(self.model, question, short, run))
        weights = [sum(one) for one in zip(*map(_standard_scores, signals), strict=True)]
        return [short[i] for i in sorted(range(len(short)), key=lambda i: -weights[i])]


def _introduce_nearest(near: Sequence[QuoteCandidate], language: Language) -> list[Statement]:
    """What stands before a quote that does not say what was asked; it has no citation."""
    passages = [one.hit.passage for one in near]
    return [Statement(_NEAREST[language].format(one.heading or one.id)) for one in passages]


async def _mean_likelihoods(
    model: Likelihood, question: Question, short: Sequence[QuoteCandidate], run: Run
) -> list[float]:
    """Mean log-probability per token of each sentence as the answer to the question."""
    prompt = render_prompt(
        "answer/documents", question.language, question=question.text, documents=[]
    )
    context = [Message("user", prompt.text)]
    texts = [candidate.text for candidate in short]
    scored = await score_all(model, context, texts, run, role="reader", prompt=prompt.identity)
    return [fmean(token.logprob for token in one.tokens) for one in scored]


def _standard_scores(values: Sequence[float]) -> list[float]:
    """Standard scores of the values, which make two scales comparable."""
    mean, spread = fmean(values), pstdev(values)
    return [(value - mean) / spread if spread else 0.0 for value in values]
