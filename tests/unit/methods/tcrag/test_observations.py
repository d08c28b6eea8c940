"""Which observations are noise, and what is asked next."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from osler.answer.gate import EvidenceGate, QuoteThresholds
from osler.answer.quoting import QuoteJudge
from osler.methods.tcrag.observations import ObservationJudge, next_query
from osler.retrieve.experts.answering import TextPair
from osler.types import Hit, Passage, Question

QUESTION = Question("q", "What does amiodarone do to warfarin?")
NEAR = Passage("book:inr#0", "Amiodarone slows the clearance of warfarin.", "book", "INR")
FAR = Passage("wiki:tea#0", "Tea is drunk in many countries of the world.", "wiki", "Tea")


class Cosine:
    """Near is what names warfarin."""

    def __init__(self, near: float) -> None:
        self.near = near

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(self.near if "warfarin" in text else 0.1 for text in texts)


class Judge:
    def __init__(self, share: float) -> None:
        self.share = share
        self.read: list[str] = []

    def can_judge(self, question: str) -> bool:
        return True

    def judge_texts(self, question: str, texts: Sequence[TextPair]) -> list[float]:
        self.read += [one.text for one in texts]
        return [self.share for _ in texts]


def judge(near: float, share: float) -> ObservationJudge:
    gate = EvidenceGate(Cosine(near), Cosine(near), {"en": QuoteThresholds(0.5, 0.5)})
    return ObservationJudge(gate, QuoteJudge(Judge(share)))


def hits(*passages: Passage) -> list[Hit]:
    return [Hit(passage, 1.0, n, "", passage.source) for n, passage in enumerate(passages, 1)]


@pytest.mark.parametrize(
    ("near", "share", "noise"),
    [(0.9, 0.5, False), (0.5, 0.5, False), (0.5, 0.05, True), (0.3, 0.3, True), (0.3, 0.9, False)],
)
async def test_cosine_and_expert_weigh_together(near: float, share: float, noise: bool) -> None:
    assert await judge(near, share).is_noise(QUESTION, hits(NEAR, FAR)) is noise


async def test_nothing_found_is_noise() -> None:
    assert await judge(0.9, 0.9).is_noise(QUESTION, [])


async def test_without_the_expert_the_gate_decides() -> None:
    gate = judge(0.9, 0.9).gate
    assert await ObservationJudge(gate).is_noise(QUESTION, hits(FAR))
    assert not await ObservationJudge(gate).is_noise(QUESTION, hits(NEAR))


def test_the_next_query_has_names_that_the_question_has_not() -> None:
    asked = Question("q", "When did Lothair II's mother die?")
    found = hits(Passage("w#0", "Lothair II was a son of Ermengarde of Tours.", "wiki", "Lothair"))
    assert "Ermengarde of Tours" in next_query(asked, found)
    assert "son" not in next_query(asked, found)
    assert "paracetamol" in next_query(Question("q", "Is acetaminophen safe?"), []).casefold()


def test_of_a_letter_the_sentences_that_ask_are_sought() -> None:
    letter = Question("q", "I am 54. My feet burn at night. Can metformin cause this? Thank you.")
    assert next_query(letter, []) == "Can metformin cause this?"
    assert next_query(Question("q", "Is it safe? Is it cheap?"), []) == ""
