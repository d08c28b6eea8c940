"""Tau fitted to a model: from which least probability its own answers may be believed (§3.2).

The model answers questions whose answers are known, out of its own head, as the boundary lets it.
Tau is the least value at which the wanted share of the answers that reach it is right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from osler.methods.kag.boundary import GenerateThenAssess
from osler.retrieve.words import content_terms
from osler.trace import Run
from osler.types import Language, Question

NEVER = 1.0
"""Where no value does, only what is certain to the last digit is believed."""
_ROUNDING = 1e-6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A question with the answer that is right."""

    question: Question
    answer: str


@dataclass(frozen=True, slots=True)
class CalibrationAttempt:
    """What the model said by itself."""

    question: Question
    answer: str
    """Empty where it refused."""
    probability: float | None
    """Least of the tokens in the box; `None` where nothing was boxed or told."""
    right: bool


async def attempt_question(
    boundary: GenerateThenAssess, graded: GoldAnswer, run: Run
) -> CalibrationAttempt:
    """One answer, as in a run."""
    question = graded.question
    answer, sure = await boundary.attempt_answer(question.text, question.language, run)
    right = bool(answer) and agrees_with_gold(answer, graded.answer, question.language)
    return CalibrationAttempt(question, answer, sure.value if answer and sure else None, right)


def agrees_with_gold(answer: str, gold: str, language: Language) -> bool:
    """Whether an answer holds all words of content and all numbers of the right one.

    A rough judge: word forms count as different, and what else the answer says does not matter.
    """
    if not set(_NUMBER.findall(gold)) <= set(_NUMBER.findall(answer)):
        return False
    if language == "zh":
        return _strip_signs(gold) in _strip_signs(answer)
    wanted = set(content_terms(gold))
    return (
        wanted <= set(content_terms(answer))
        if wanted
        else _strip_signs(gold) == _strip_signs(answer)
    )


def tau_of(points: Sequence[CalibrationAttempt], share: float) -> float:
    """The least probability from which on `share` of the answers are right, rounded up to three
    decimals; `NEVER` where there is none."""
    told = sorted(
        ((point.probability, point.right) for point in points if point.probability is not None),
        reverse=True,
    )
    best, right = NEVER, 0
    for n, (probability, holds) in enumerate(told, 1):
        right += holds
        tied = n < len(told) and told[n][0] == probability
        if not tied and right / n >= share:
            best = probability
    return min(NEVER, ceil(best * 1000 - _ROUNDING) / 1000)


def _strip_signs(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()
