"""A finding that is said to be unknown is neither there nor absent: the score is a range."""

from __future__ import annotations

import pytest

from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.formulas.findings import find_finding, is_unknown_finding
from osler.trace import Run
from osler.types import Halt, Question, Solution

MAN = "What is the CHA2DS2-VASc score of a 68-year-old man with hypertension"


async def solve(text: str, language: str = "en", options: tuple[str, ...] = ()) -> Solution:
    question = Question("q", text, options, "zh" if language == "zh" else "en")
    solution = await QuestionCalculator().solve(question, Run())
    assert solution is not None
    return solution


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"{MAN} and a history of stroke unknown?", "2 to 4"),
        (f"{MAN}, history of stroke or TIA unknown?", "2 to 4"),
        (f"{MAN}? Stroke: unknown.", "2 to 4"),
        (f"{MAN}? It is not known whether he has had a stroke.", "2 to 4"),
        (f"{MAN}? We don't know if he has had a stroke or has diabetes.", "2 to 5"),
        (f"{MAN}, no diabetes; whether he has vascular disease is unclear?", "2 to 3"),
        (f"{MAN}, unknown stroke history?", "2 to 4"),
        (f"{MAN} and a stroke of unknown cause?", "4"),
        (f"{MAN}, not known to have diabetes?", "2"),
        (f"{MAN}? He had a stroke in May and his INR is unknown.", "4"),
        (f"{MAN}? A stroke is unclear from the old notes, but he had a TIA in May.", "4"),
    ],
)
async def test_a_score_with_what_is_unknown_is_a_range(text: str, value: str) -> None:
    solution = await solve(text)
    assert solution.halt is Halt.CONVERGED, solution.answer.note
    assert f": {value}, from" in solution.answer.text
    unknown, _, absent = solution.answer.note.partition("Not mentioned and counted as absent")
    assert ("Unknown" in unknown) is (" to " in value)
    assert "stroke" not in unknown or "stroke" not in absent


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("68岁男性房颤，高血压，卒中史不详，CHA2DS2-VASc评分是多少？", "2 至 4"),
        ("68岁男性房颤，高血压，不清楚是否有过卒中，CHA2DS2-VASc评分是多少？", "2 至 4"),
        ("68岁男性房颤，高血压，糖尿病情况未知，CHA2DS2-VASc评分是多少？", "2 至 3"),
        ("68岁男性房颤，高血压，是否有卒中不清楚，CHA2DS2-VASc评分是多少？", "2 至 4"),
        ("68岁男性房颤，高血压，既往有不明原因卒中，CHA2DS2-VASc评分是多少？", "4"),
        ("68岁男性房颤，高血压，无卒中，CHA2DS2-VASc评分是多少？", "2"),
    ],
)
async def test_so_it_is_in_chinese(text: str, value: str) -> None:
    solution = await solve(text, "zh")
    assert solution.halt is Halt.CONVERGED, solution.answer.note
    assert f"：{value}（" in solution.answer.text
    assert ("不详" in solution.answer.note) is ("至" in value)


async def test_a_finding_that_takes_points_away_widens_the_range_below() -> None:
    text = (
        "Wells score for DVT of a woman with active cancer and calf swelling over 3 cm;"
        " it is unclear whether an alternative diagnosis is as likely?"
    )
    solution = await solve(text)
    assert ": 0 to 2, from" in solution.answer.text


async def test_an_option_is_not_chosen_from_a_range() -> None:
    question = Question("q", f"{MAN}, history of stroke unknown?", ("2", "4", "6"), "en")
    assert await QuestionCalculator().solve(question, Run()) is None


def test_what_is_unknown_is_neither_affirmed_nor_denied() -> None:
    text = "History of stroke is unknown; she has diabetes."
    assert find_finding("stroke", text) == []
    assert is_unknown_finding("stroke", text)
    assert find_finding("diabetes", text) == [True]
    assert not is_unknown_finding("diabetes", text)
