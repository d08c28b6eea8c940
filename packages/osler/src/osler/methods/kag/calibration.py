"""Fits tau to a model: the probability from which its own answers may be accepted (§3.2).

The model answers labelled questions without references, as the boundary would let it. Tau is the
lowest value at which the wanted share of the answers that reach it is right.
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
"""Tau when no lower value works: only answers of probability 1 are accepted."""
_ROUNDING = 1e-6
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A question with its correct answer."""

    question: Question
    answer: str


@dataclass(frozen=True, slots=True)
class CalibrationAttempt:
    """The model's own answer to a labelled question."""

    question: Question
    answer: str
    """Empty where it refused."""
    probability: float | None
    """Probability of the least likely token in the box; `None` without a box or
    log-probabilities."""
    right: bool


async def attempt_question(
    boundary: GenerateThenAssess, graded: GoldAnswer, run: Run
) -> CalibrationAttempt:
    """Asks one question as a run would."""
    question = graded.question
    answer, sure = await boundary.attempt_answer(question.text, question.language, run)
    right = bool(answer) and agrees_with_gold(answer, graded.answer, question.language)
    return CalibrationAttempt(question, answer, sure.value if answer and sure else None, right)


def agrees_with_gold(answer: str, gold: str, language: Language) -> bool:
    """Whether an answer has all words of content and all numbers of the correct one.

    A rough judge: inflected forms count as different words, and additional text is ignored.
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
    """The lowest probability from which on `share` (0 to 1) of the answers are right, rounded up to
    three decimals; `NEVER` when there is none."""
    told = sorted(
        ((point.probability, point.right) for point in points if point.probability is not None),
        reverse=True,
    )
    best, right = NEVER, 0
    for n, (probability, holds) in enumerate(told, 1):
        right += holds
        # Equal probabilities stand or fall together: tau must not split them.
        tied = n < len(told) and told[n][0] == probability
        if not tied and right / n >= share:
            best = probability
    # Rounded up, so that the printed tau accepts no answer that the exact one rejects.
    return min(NEVER, ceil(best * 1000 - _ROUNDING) / 1000)


def _strip_signs(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()
