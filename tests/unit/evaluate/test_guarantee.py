"""Abstention with a guarantee: Clopper–Pearson bounds and fixed sequence testing."""

from __future__ import annotations

from contextlib import suppress
from random import Random

import pytest

from osler.errors import BadConfig
from osler_lab.studies.calibrate_sureness import (
    answers_needed,
    draw_one_per_question,
    fit_threshold,
    wrong_bound,
)


@pytest.mark.parametrize(
    ("wrong", "answered", "bound"),
    # One-sided 95 % bounds: 1 - 0.05^(1/n) for none wrong; others by the beta quantile.
    [(0, 29, 0.09814), (0, 1, 0.95), (1, 46, 0.09903), (5, 100, 0.10225), (3, 3, 1.0), (0, 0, 1.0)],
)
def test_the_bound_is_clopper_and_pearsons(wrong: int, answered: int, bound: float) -> None:
    assert wrong_bound(wrong, answered, 0.95) == pytest.approx(bound, abs=2e-4)


def test_29_right_answers_show_a_risk_of_a_tenth() -> None:
    assert answers_needed(0.1, 0.95) == 29


def _graded(n: int, seed: int) -> tuple[list[float], list[bool]]:
    """Answers as right as they are confident."""
    chance = Random(seed)
    confidences = [chance.random() ** 0.3 for _ in range(n)]
    return confidences, [chance.random() < value for value in confidences]


def _share_wrong(threshold: float) -> float:
    """Share of wrong answers among those of `_graded` that are at least so confident: exact, since
    a confidence is a uniform number to the power of 0.3, and an answer as right as that."""
    least = threshold ** (1 / 0.3)
    return float(1 - (1 - least**1.3) / (1.3 * (1 - least)))


def test_at_most_one_fit_in_twenty_exceeds_the_risk() -> None:
    broken = 0
    for seed in range(200):
        confidences, rights = _graded(300, seed)
        try:
            fit = fit_threshold(confidences, rights, risk=0.1, confidence=0.95)
        except BadConfig:
            continue  # it abstains from all, which is never wrong
        broken += _share_wrong(fit.threshold) > 0.1
    # 10 are expected at most; 95 % of such counts lie below 16.
    assert broken <= 15


def test_answers_to_one_question_count_once() -> None:
    """Of each confidence 15 % are wrong, ten answers to a question all or none: whatever is fitted
    breaks a risk of 10 %. With all answers more than one fit in twenty does, with one each not."""
    chance, broken = Random(5), {"all": 0, "one each": 0}
    for _ in range(60):
        graded = [(chance.random(), chance.random() > 0.15) for _ in range(80)]
        asked = [(f"q{n}", pair) for n, pair in enumerate(graded) for _ in range(10)]
        given = {"all": [pair for _, pair in asked], "one each": draw_one_per_question(asked)}
        assert given["one each"] == graded
        for name, pairs in given.items():
            confidences, rights = zip(*pairs, strict=True)
            with suppress(BadConfig):
                fit_threshold(confidences, rights, risk=0.1, confidence=0.95)
                broken[name] += 1
    assert broken["all"] > 12
    assert broken["one each"] <= 3


def test_an_answer_without_its_question_stands_for_itself() -> None:
    assert draw_one_per_question([("", 1), ("", 2), ("q", 3), ("q", 3)]) == [1, 2, 3]


def test_the_threshold_is_the_least_that_passes() -> None:
    confidences = [1 - i / 200 for i in range(200)]
    rights = [i < 120 for i in range(200)]
    fit = fit_threshold(confidences, rights, risk=0.1, confidence=0.95)
    assert fit.bound <= 0.1
    assert wrong_bound(fit.wrong + 1, fit.answered + 1, 0.95) > 0.1
    assert fit.answered > 120
    assert fit.coverage == fit.answered / 200


def test_equal_confidences_are_answered_or_left_together() -> None:
    confidences, rights = [0.9] * 80 + [0.5] * 80, [True] * 80 + [False] * 80
    fit = fit_threshold(confidences, rights, risk=0.1, confidence=0.95)
    assert (fit.threshold, fit.answered, fit.wrong) == (0.9, 80, 0)


@pytest.mark.parametrize(
    ("rights", "said"),
    [
        ([True] * 28, "28 graded answers; 29 are needed"),
        ([True] * 60, "all 60 graded answers are right"),
        ([False] * 60, "all 60 graded answers are wrong"),
        ([True, False] * 40, "no threshold keeps wrong answers at 10%"),
    ],
)
def test_what_shows_nothing_is_refused_with_what_is_needed(rights: list[bool], said: str) -> None:
    confidences = [1 - i / 1000 for i in range(len(rights))]
    with pytest.raises(BadConfig, match=said) as refused:
        fit_threshold(confidences, rights, risk=0.1, confidence=0.95)
    assert refused.value.fix
