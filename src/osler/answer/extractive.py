"""An answer made of quotes, for models that must not word medicine.

Sentences of the evidence are ranked by relevance to the question and by the
model's likelihood of the sentence as its answer; the two orders are fused, so
neither scale matters. Below a relevance threshold nothing is quoted: the answer
then says that the evidence does not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from osler.answer.base import NOTHING_SAID
from osler.answer.options import LikeliestOption
from osler.answer.sentences import Candidate, candidates
from osler.llm.ask import score
from osler.llm.base import Likelihood, Message
from osler.prompts import render
from osler.retrieve.fuse import rrf
from osler.trace import Run
from osler.types import Answer, Authorship, Hit, Language, Question, Relevance, Statement

NOTE = {
    "en": "Quoted sentences, not a written answer: no model that may word medicine is configured.",
    "zh": "以下为原文摘句，并非撰写的答案：未配置可以撰写医学内容的模型。",
}
_CHOSEN = {
    "en": "The option was chosen by its likelihood under a small model; do not rely on it.",
    "zh": "选项由小模型按似然选出，不可依赖。",
}


@dataclass(frozen=True)
class Extractive:
    """DESIGN "Small models". `model` may be absent: then relevance alone ranks."""

    relevance: Relevance
    threshold: Mapping[Language, float]
    """Least relevance of a quotable sentence, by the question's language."""
    model: Likelihood | None = None
    statements: int = 3
    shortlist: int = 6
    """How many of the most relevant sentences are weighed by likelihood."""

    reasoned: bool = False
    """Whether the draft is reasoning that the option is weighed after (chain of thought)."""

    @property
    def drafts(self) -> bool:
        return self.reasoned

    async def conclude(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> Answer:
        chosen = await self._option(question, hits, draft, run)
        query = question.text if chosen is None else f"{question.text} {question.option(chosen)}"
        quotes = await self._quotes(query, question, hits, run)
        notes = [NOTE[question.language]] if quotes else [NOTHING_SAID[question.language]]
        if chosen is not None:
            notes.append(_CHOSEN[question.language])
        return Answer(
            statements=tuple(Statement(q.text, (n,)) for n, q in enumerate(quotes, 1)),
            evidence=tuple(q.evidence("answer") for q in quotes),
            option=chosen,
            authorship=Authorship.EXTRACTIVE,
            note=" ".join(notes),
            language=question.language,
        )

    async def _option(
        self, question: Question, hits: Sequence[Hit], draft: str, run: Run
    ) -> str | None:
        if not question.options or self.model is None:
            return None
        return await LikeliestOption(self.model).choose(
            question, hits, run, said=draft if self.reasoned else ""
        )

    async def _quotes(
        self, query: str, question: Question, hits: Sequence[Hit], run: Run
    ) -> list[Candidate]:
        found = await candidates(self.relevance, query, hits)
        least = self.threshold[question.language]
        short = [c for c in found if c.relevance >= least][: self.shortlist]
        if self.model is not None and len(short) > 1:
            short = await self._weighed(self.model, question, short, run)
        # Quotes of one passage read in its order.
        best = short[: self.statements]
        order = {c.hit.passage.id: i for i, c in reversed(list(enumerate(best)))}
        return sorted(best, key=lambda c: (order[c.hit.passage.id], c.start))

    async def _weighed(
        self, model: Likelihood, question: Question, short: list[Candidate], run: Run
    ) -> list[Candidate]:
        prompt = render("answer/documents", question.language, question=question.text, documents=[])
        context = [Message("user", prompt.text)]
        means = []
        for candidate in short:
            scored = await score(
                model, context, candidate.text, run, role="reader", prompt=prompt.identity
            )
            means.append(sum(t.logprob for t in scored.tokens) / len(scored.tokens))
        places = range(len(short))
        likely = sorted(places, key=lambda i: -means[i])
        fused = rrf([list(places), likely], weights=[1.0, 0.5], k=10)
        return [short[i] for i, _ in fused]
