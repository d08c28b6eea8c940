"""How people word what a formula takes: findings, units told once, names that are no findings."""

from __future__ import annotations

import pytest

from osler.methods.kag.computed import QuestionCalculator
from osler.text import language_of
from osler.trace import Run
from osler.types import Question


async def ask(text: str) -> str:
    language = language_of(text)
    solution = await QuestionCalculator().solve(Question("q", text, (), language), Run())
    return f"{solution.answer.text} {solution.answer.note}".strip() if solution else ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Glucose 20, sodium 140, urea 8, all in mmol/L. What is the osmolality?", ": 308 mmol/kg"),
        ("血糖20，钠140，尿素氮8，单位都是mmol/L，血浆渗透压是多少？", "：308 mmol/kg"),
        ("总胆固醇5.6，高密度1.2，甘油三酯1.8，都是mmol/L，Friedewald低密度多少？", "3.58 mmol/L"),
        ("Calcium 8.2, albumin 2.6, corrected calcium?", ": 9.32 mg/dL (2.33 mmol/L)"),
        ("Parkland for the first 8 hours: 70 kg, 30% burned?", "first 8 hours: 4200 ml"),
        ("体重60公斤，烧伤45%，按Parkland头8小时输多少毫升？", "：5400 ml"),
        ("Parkland: 70 kg, 30% burned?", "24 hours: 8400 ml"),
        ("吸氧浓度开到40%，动脉血氧分压68 mmHg，氧合指数多少？", "：170"),
        ("HOMA-IR with glucose 100 mg/dL and insulin 12?", ": 2.96"),
        ("叫他才睁眼，答非所问，让他抬手能抬手，GCS几分？", "：13"),
        ("Opens her eyes when I speak, is muddled, does what she is told: GCS?", ": 13"),
    ],
)
async def test_a_value_is_computed_from_everyday_words(text: str, said: str) -> None:
    assert said in await ask(text)


async def test_the_words_of_a_score_s_name_are_no_finding() -> None:
    asked = "66岁男，高血压，前年脑梗过一次，没有糖尿病，没有心衰，没得过心梗，房颤卒中评分是多少？"
    assert "：4" in await ask(asked)


async def test_a_finding_told_both_ways_is_asked_back_in_words() -> None:
    asked = "66岁男，有糖尿病，没有糖尿病，没有心衰，CHA2DS2-VASc几分？"
    assert "有没有糖尿病？" in await ask(asked)


async def test_what_is_not_controlled_is_there() -> None:
    asked = "未控制的高血压，肝功能异常，卒中或 TIA，79岁，HAS-BLED评分是多少？"
    assert "：4" in await ask(asked)
