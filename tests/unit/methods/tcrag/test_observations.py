"""Which observations are noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from osler.answer.gate import EvidenceGate, WeighedEvidence
from osler.methods.tcrag.moves import ObservationJudge
from osler.types import Hit, Passage, Question, Sureness

QUESTION = Question("q", "What does amiodarone do to warfarin?")
NEAR = Passage("book:inr#0", "Amiodarone slows the clearance of warfarin.", "book", "INR")
FAR = Passage("wiki:tea#0", "Tea is drunk in many countries of the world.", "wiki", "Tea")


class Cosine:
    """Near is what names warfarin."""

    def __init__(self, near: float) -> None:
        self.near = near

    async def relevance(self, query: str, texts: Sequence[str]) -> tuple[float, ...]:
        return tuple(self.near if "warfarin" in text else 0.1 for text in texts)


@dataclass(frozen=True)
class SureGate(EvidenceGate):
    """As sure of any evidence as the test says; whether it may be quoted is the rule's matter."""

    sure: float = 0.0

    async def weigh_evidence(
        self, question: Question, hits: Sequence[Hit], *, query: str = ""
    ) -> WeighedEvidence:
        quotes = (await EvidenceGate.weigh_evidence(self, question, hits)).quotes
        return WeighedEvidence(quotes, Sureness(self.sure, "test@0") if hits else None)


RULE = EvidenceGate(Cosine(0.9))


def hits(*passages: Passage) -> list[Hit]:
    return [Hit(passage, 1.0, n, "", passage.source) for n, passage in enumerate(passages, 1)]


@pytest.mark.parametrize(("sure", "noise"), [(0.1, False), (0.09, True)])
async def test_how_sure_an_observation_is_counts_whatever_the_rule_quotes(
    sure: float, noise: bool
) -> None:
    judge = ObservationJudge(SureGate(Cosine(0.9), sure=sure))
    assert await judge.is_noise(QUESTION, hits(NEAR, FAR)) is noise


async def test_nothing_found_is_noise() -> None:
    gate = SureGate(Cosine(0.9), sure=0.9)
    assert await ObservationJudge(gate).is_noise(QUESTION, [])


async def test_without_the_expert_the_rule_decides() -> None:
    assert await ObservationJudge(RULE).is_noise(QUESTION, hits(FAR))
    assert not await ObservationJudge(RULE).is_noise(QUESTION, hits(NEAR))
