"""Whether an observation bears on the question, and what to ask next where it is not enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from osler.answer.gate import EvidenceGate
from osler.answer.quoting import QuoteJudge
from osler.answer.sentences import QuoteCandidate, quote_candidates
from osler.retrieve.entity_names import packaged_names
from osler.retrieve.experts.answering import LEAD, TextPair
from osler.retrieve.names import names_in
from osler.retrieve.naming import has_no_one_subject, telling_words
from osler.text import has_cjk, split_sentences, split_words
from osler.types import Hit, Question

READ = 8
"""Sentences of an observation that the expert reads: the nearest to the question."""
COSINE, ANSWERS, LEAST = 9.0, 0.67, 3.7
"""A logistic regression over 89 noise sets of BioASQ, gold snippets against the nearest passages of
other documents; below `LEAST` lay .06 of the gold and .74 of the others."""
_MOST_NAMES = 3


@dataclass(frozen=True)
class ObservationJudge:
    """Says which observations are noise: passages that do not bear on the question.

    Where the expert `answers` can judge the question, by the cosine of the best sentence and the
    probability that one answers; else by the gate, to which an observation without evidence is
    noise.
    """

    gate: EvidenceGate
    judge: QuoteJudge | None = None

    async def finds_evidence(
        self, question: Question, hits: Sequence[Hit], *, passages: int = 1
    ) -> bool:
        """Whether the gate finds evidence in so many passages."""
        found = await self.gate.find_evidence(question, hits)
        return len({quote.hit.passage.id for quote in found}) >= passages

    async def is_noise(self, question: Question, hits: Sequence[Hit]) -> bool:
        if self.judge is None or not self.judge.can_judge(question):
            return not await self.finds_evidence(question, hits)
        near = await quote_candidates(self.gate.relevance, question.text, hits)
        return not near or await self._bearing(self.judge, question, near[:READ]) < LEAST

    async def _bearing(
        self, judge: QuoteJudge, question: Question, near: Sequence[QuoteCandidate]
    ) -> float:
        pairs = [
            TextPair(one.text, one.hit.passage.heading, one.hit.passage.text[:LEAD]) for one in near
        ]
        shares = await judge.judge_texts(question.text, pairs)
        best = max(shares, default=0.0)
        return COSINE * near[0].relevance + ANSWERS * log((best + 0.01) / (1.01 - best))


def next_query(question: Question, hits: Sequence[Hit]) -> str:
    """A second query for a question that `hits` do not answer for sure; "" where there is none.

    Of a letter or a case the sentences that ask. Of any other question its telling words, other
    names of what it names, and the names in the best passage that it has not: the bridge to a
    second hop.
    """
    if has_no_one_subject(question.text):
        return _asking_sentences(question.text)
    words = telling_words(question.text)
    asked = set(split_words(question.text))
    others = [
        name
        for entity in packaged_names().find_entities(question.text)
        for name in entity.names
        if not asked.issuperset(split_words(name)) and has_cjk(name) == has_cjk(question.text)
    ]
    # Without names of its own the text gives runs of content words, which lead astray.
    bridge = [
        name
        for hit in hits[:1]
        for name in names_in(hit.passage.text)
        if name[:1].isupper() and asked.isdisjoint(split_words(name))
    ]
    query = " ".join((*words, *others[:_MOST_NAMES], *bridge[:_MOST_NAMES]))
    return "" if query == question.text else query


def _asking_sentences(text: str) -> str:
    sentences = [text[start:end].strip() for start, end in split_sentences(text)]
    asking = [one for one in sentences if one.endswith(("?", "？"))]
    return "" if len(asking) == len(sentences) else " ".join(asking)
