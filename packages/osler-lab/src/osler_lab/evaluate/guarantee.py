"""Abstention with a guarantee: the threshold that answers most within a bound on wrong answers.

Learn then Test (Angelopoulos et al. 2021, arXiv:2110.01052): thresholds are tested one after the
other, each by the exact binomial bound of Clopper and Pearson (1934), from the strictest down, and
the last one before the first that fails is taken. Fixed sequence testing needs no correction for
the number of thresholds. The guarantee holds for questions like those it was fitted on, each of
which counts once (`draw_one_per_question`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, comb, log
from random import Random
from typing import TypeVar

from osler.errors import BadConfig

T = TypeVar("T")

_HALVINGS = 60
# Wrong answers that the first threshold must be able to bear: with none, one slip ends the test.
_BEARABLE = 2


@dataclass(frozen=True, slots=True)
class GuaranteedThreshold:
    """A threshold on the confidence, and what held for it where it was fitted."""

    threshold: float
    """Least confidence that is answered."""
    bound: float
    """Upper bound on the share of wrong answers among the answered."""
    answered: int
    wrong: int
    n: int

    @property
    def coverage(self) -> float:
        """Share of the questions that are answered."""
        return self.answered / self.n


def wrong_bound(wrong: int, answered: int, confidence: float) -> float:
    """Clopper and Pearson's one-sided upper bound on a share: exact, by bisection.

    1 where nothing was answered, or all of it wrongly.
    """
    if wrong >= answered:
        return 1.0
    low, high = wrong / answered, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if _at_most(wrong, answered, middle) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _at_most(wrong: int, n: int, share: float) -> float:
    """Probability of at most so many wrong answers, each wrong with probability `share`."""
    return sum(comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(wrong + 1))


def draw_one_per_question(graded: Iterable[tuple[str, T]]) -> list[T]:
    """One answer to each question, drawn by chance, and always the same one.

    The bound counts independent answers, and answers to one question are not. An answer whose
    question is unknown ("") stands for itself.
    """
    answers: dict[str | int, list[T]] = {}
    for number, (question, one) in enumerate(graded):
        answers.setdefault(question or number, []).append(one)
    chance = Random(0)
    return [chance.choice(each) for each in answers.values()]


def answers_needed(risk: float, confidence: float) -> int:
    """Least answers, none of them wrong, that show a risk: 29 for 0.1 at 95 % confidence."""
    return ceil(log(1 - confidence) / log(1 - risk))


def fit_threshold(
    confidences: Sequence[float], rights: Sequence[bool], *, risk: float, confidence: float
) -> GuaranteedThreshold:
    """The least threshold with at most `risk` wrong among the answered, at this confidence.

    `rights` says which answers are right. Raises `BadConfig` for too few answers, for answers
    that are all right or all wrong, and where no threshold passes.
    """
    needed = answers_needed(risk, confidence)
    if len(rights) < needed:
        raise BadConfig(
            f"{len(rights)} graded answers; {needed} are needed for a risk of {risk:g} at"
            f" {confidence:.0%} confidence",
            fix="grade more answers, or allow a greater --risk",
        )
    if len({*rights}) < 2:
        kind = "right" if rights[0] else "wrong"
        raise BadConfig(
            f"all {len(rights)} graded answers are {kind}: nothing tells good confidence from bad",
            fix="grade answers to questions that the knowledge base does not answer as well",
        )
    passed = _test_thresholds(confidences, rights, risk, confidence)
    if passed is None:
        raise BadConfig(
            f"no threshold keeps wrong answers at {risk:.0%} with {confidence:.0%} confidence"
            f" on these {len(rights)}",
            fix="allow a greater --risk, or grade more answers",
        )
    return passed


def _test_thresholds(
    confidences: Sequence[float], rights: Sequence[bool], risk: float, confidence: float
) -> GuaranteedThreshold | None:
    pairs = sorted(zip(confidences, rights, strict=True), key=lambda pair: -pair[0])
    first = _first_size(len(pairs), risk, confidence)
    passed: tuple[float, int, int] | None = None
    wrong = 0
    for answered, (value, right) in enumerate(pairs, 1):
        wrong += not right
        tied = answered < len(pairs) and pairs[answered][0] == value
        if answered < first or tied:
            continue
        if not _is_shown(wrong, answered, risk, confidence):
            break
        passed = value, answered, wrong
    if passed is None:
        return None
    value, answered, wrong = passed
    bound = wrong_bound(wrong, answered, confidence)
    return GuaranteedThreshold(value, bound, answered, wrong, len(pairs))


def _is_shown(wrong: int, answered: int, risk: float, confidence: float) -> bool:
    """Whether `wrong_bound` is at most the risk, without its bisection."""
    return _at_most(wrong, answered, risk) <= 1 - confidence


def _first_size(n: int, risk: float, confidence: float) -> int:
    """Answers above the strictest threshold. It follows from the numbers alone, never from the
    grades: else the sequence would not be fixed."""
    size = answers_needed(risk, confidence)
    while size < n and not _is_shown(_BEARABLE, size, risk, confidence):
        size += 1
    return size
