"""Tau: from which least probability the model's own answers are right often enough."""

import pytest

from osler.llm.core.ask import Speaker
from osler.methods.kag.boundary import GenerateThenAssess
from osler.trace import Run
from osler.types import Question
from osler_lab.studies.calibrate import (
    CalibrationAttempt,
    GoldAnswer,
    agrees_with_gold,
    attempt_question,
    tau_of,
)
from osler_lab.testing.scripted import ScriptedModel

ASKED = Question("q", "Which vitamin is given with isoniazid?")


def points(*pairs: tuple[float | None, bool]) -> list[CalibrationAttempt]:
    return [CalibrationAttempt(ASKED, "x" if p is not None else "", p, right) for p, right in pairs]


@pytest.mark.parametrize(
    ("pairs", "share", "tau"),
    [
        # From 0.6 on three of three; with 0.5 three of four.
        ([(0.9, True), (0.8, True), (0.6, True), (0.5, False)], 0.9, 0.6),
        ([(0.9, True), (0.8, True), (0.6, True), (0.5, False)], 0.75, 0.5),
        # A wrong one above does not bar a lower value at which the share holds again.
        ([(0.95, False), (0.7, True), (0.6, True), (0.5, True)], 0.75, 0.5),
        # Equal values stand or fall together.
        ([(0.8, True), (0.8, False)], 0.9, 1.0),
        ([(0.9, False), (0.3, False)], 0.5, 1.0),
        ([(None, False), (0.4567, True)], 0.9, 0.457),
        ([], 0.9, 1.0),
    ],
)
def test_tau_is_the_least_value_at_which_the_share_is_right(
    pairs: list[tuple[float | None, bool]], share: float, tau: float
) -> None:
    assert tau_of(points(*pairs), share) == tau


@pytest.mark.parametrize(
    ("answer", "gold", "holds"),
    [
        ("Pyridoxine (vitamin B6)", "Pyridoxine", True),
        ("vitamin C", "Pyridoxine", False),
        ("about 36 hours", "36 hours", True),
        ("24 hours", "36 hours", False),
        ("36", "36 hours", False),
        ("no", "No", True),
        ("yes", "no", False),
    ],
)
def test_an_english_answer_is_right_when_it_holds_the_words_and_numbers(
    answer: str, gold: str, holds: bool
) -> None:
    assert agrees_with_gold(answer, gold, "en") is holds


def test_a_chinese_answer_is_right_when_it_holds_the_right_one() -> None:
    assert agrees_with_gold("首选胃镜检查", "胃镜", "zh")
    assert not agrees_with_gold("首选超声检查", "胃镜", "zh")
    assert not agrees_with_gold("疗程10天", "14天", "zh")


async def test_an_attempt_is_the_boundary_s_own_first_half() -> None:
    model = ScriptedModel([r"It is <answer>\boxed{pyridoxine}</answer>"], probability=0.7)
    boundary = GenerateThenAssess(Speaker(model, "reader"))
    found = await attempt_question(boundary, GoldAnswer(ASKED, "Pyridoxine"), Run())
    model.finish()
    assert (found.answer, found.right) == ("pyridoxine", True)
    assert found.probability == pytest.approx(0.7)


@pytest.mark.parametrize("box", ["your answer", "unknown", "你的答案"])
async def test_the_prompt_s_own_box_given_back_is_no_answer(box: str) -> None:
    model = ScriptedModel([rf"<answer>\boxed{{{box}}}</answer>"])
    boundary = GenerateThenAssess(Speaker(model, "reader"))
    found = await attempt_question(boundary, GoldAnswer(ASKED, "Pyridoxine"), Run())
    assert (found.answer, found.probability, found.right) == ("", None, False)
