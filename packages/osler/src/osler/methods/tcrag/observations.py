"""Whether an observation bears on the question, and what to ask next where it is not enough."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from osler.answer.disagreement import find_difference, read_claim
from osler.answer.gate import EvidenceGate
from osler.retrieve.entity_names import packaged_names
from osler.retrieve.naming import has_no_one_subject, telling_words
from osler.text import has_cjk, split_sentences, split_words
from osler.types import Hit, Language, Question

LEAST, SURE = 0.1, 0.5
"""Least sureness of passages that bear on the question, and of those that need no second search.
Chosen on development questions of PubMedQA and BioASQ, gold snippets against the nearest ones of
other documents (`research/log/tc-rag.md`)."""
Bearing = Literal["noise", "unsure", "sure"]
"""Whether an observation bears on the question."""
_MOST_NAMES = 3


@dataclass(frozen=True)
class ObservationJudge:
    """Says which observations are noise: passages that do not bear on the question.

    By the sureness of the gate's expert; where it cannot judge, an observation without evidence is
    noise, and any other is sure.
    """

    gate: EvidenceGate

    async def finds_evidence(
        self, question: Question, hits: Sequence[Hit], *, passages: int = 1
    ) -> bool:
        """Whether the gate finds evidence in so many passages."""
        found = await self.gate.find_evidence(question, hits)
        return len({quote.hit.passage.id for quote in found}) >= passages

    async def is_noise(self, question: Question, hits: Sequence[Hit]) -> bool:
        return await self.judge_bearing(question, hits) == "noise"

    async def judge_bearing(self, question: Question, hits: Sequence[Hit]) -> Bearing:
        weighed = await self.gate.weigh_evidence(question, hits)
        if weighed.sureness is None:
            return "sure" if weighed.quotes else "noise"
        sureness = weighed.sureness.probability
        return "noise" if sureness < LEAST else "unsure" if sureness < SURE else "sure"


def is_contradicted(thought: str, hits: Sequence[Hit], language: Language) -> bool:
    """Whether a passage gives another amount or direction than a sentence of the Thought, by the
    rules of `answer.disagreement`."""
    mine = [read_claim(thought[start:end]) for start, end in split_sentences(thought)]
    theirs = [
        read_claim(hit.passage.text[start:end])
        for hit in hits
        for start, end in split_sentences(hit.passage.text)
    ]
    pairs = ((own, other) for own in mine for other in theirs)
    return any(find_difference(own, other, language) for own, other in pairs)


def next_query(question: Question) -> str:
    """A second query for a question whose first one found noise; "" if absent.

    Of a letter or a case the sentences that ask. Of any other question its telling words, and other
    names of what it names.
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
    query = " ".join((*words, *others[:_MOST_NAMES]))
    return "" if query == question.text else query


def _asking_sentences(text: str) -> str:
    sentences = [text[start:end].strip() for start, end in split_sentences(text)]
    asking = [one for one in sentences if one.endswith(("?", "？"))]
    return "" if len(asking) == len(sentences) else " ".join(asking)
