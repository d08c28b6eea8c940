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


async def test_a_denied_list_ends_where_its_or_stands() -> None:
    told = "50岁女，房颤，血压控制良好，肾功能异常，肝功能正常，无卒中史，没有出血史，无INR波动"
    assert "：2" in await ask(f"{told}，没用抗血小板药或NSAID，酗酒。HAS-BLED评分？")
    assert "：1" in await ask(f"{told}，不用NSAID，也不酗酒。HAS-BLED评分？")
    bled = told.replace("没有出血史", "去年消化道大出血一次").replace("无INR", "没用华法林、无INR")
    assert "：2" in await ask(f"{bled}，不用NSAID，也不酗酒。HAS-BLED评分？")


async def test_a_first_stage_of_hepatic_coma_is_no_deep_one() -> None:
    told = "肝硬化，胆红素1.4mg/dL，白蛋白2.5g/dL，INR 1.9，中度腹水，肝昏迷一期，Child-Pugh几分"
    assert "：11" in await ask(told)


async def test_a_ph_is_no_bicarbonate() -> None:
    said = await ask("pH 7.18 and bicarb 9.5 in a metabolic acidosis. What PaCO2 by Winters?")
    assert ": 22.2" in said


async def test_what_is_not_controlled_is_there() -> None:
    asked = "未控制的高血压，肝功能异常，卒中或 TIA，79岁，HAS-BLED评分是多少？"
    assert "：4" in await ask(asked)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("my BMI: 5 ft 4 in and 150 lb?", ": 25.7 kg"),
        ("BMI: 64 inches, 150 lbs?", ": 25.7 kg"),
        ("BMI: 11 stone 4, 5ft 6?", ": 25.5 kg"),
        ("BMI: 150 lb, 5'4\"?", ": 25.7 kg"),
        ("Mosteller BSA: 5 ft 4, 150 lb?", ": 1.75 m"),
        ("Parkland: 154 lb, 30%?", ": 8382 ml"),
        ("4-2-1: 40 lb?", ": 56.3 ml"),
        ("Ideal body weight: 180 cm man?", ": 75"),
        ("MAP: 120/80?", ": 93.3 mmHg"),
        ("pulse pressure: 150/90?", ": 60 mmHg"),
        ("BMI 27 kg/m2, 80 kg: what is the height?", ""),
        ("MAP 65 mmHg with BP 85/55: is that all right?", ""),
    ],
)
async def test_what_stands_behind_a_name_in_a_patient_s_units_is_no_value(
    text: str, said: str
) -> None:
    told = await ask(text)
    assert said in told if said else not told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("高压一百三十五，低压七十八，平均动脉压多少？", "：97"),
        ("血钠一百五十一、血糖二十九、尿素十六点五，单位都是mmol/L，血浆渗透压多少？", "：348"),
        ("PaO2 62 and PaCO2 34 mmHg on room air at 760 mmHg: A-a gradient?", ": 45.2"),
        ("Na 142, urea 13.8, glucose 9.4, everything in mmol/L. Osmolality?", ": 307"),
        ("QT 400 ms, RR interval 0.64 s: QTc by Bazett?", ": 500 ms"),
        ("Her calcium is 7.6 mg/dL, albumin 2.1 g/dL. What is it corrected for albumin?", ": 9.12"),
        ("Her BSA by Mosteller is wanted: 98 cm, 15 kg. What is it?", ": 0.639"),
        ("59M, confused, urea 5 mmol/L, RR 32, BP 120/80. curb65 pls", ": 2"),
        ("HR 130, BP 100 systolic. Shock index?", ": 1.3,"),
    ],
)
async def test_units_and_names_are_read_as_they_are_told(text: str, said: str) -> None:
    assert said in await ask(text)


PATIENT = "72-year-old man with AF and heart failure, CHA2DS2-VASc score? "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        # No table has it: each item that is not told may be in it.
        (PATIENT + "He had his carotid scraped out.", ": 2 to 7"),
        ("72岁男，房颤，有糖尿病，脑子里长过一个血块，CHA2DS2-VASc评分？", "：2 至 7"),
        # Of a topic alone it is not said whether it is there.
        (PATIENT + "His sugars are another matter.", ": 2 to"),
        ("HAS-BLED of a 60-year-old man: his kidneys are discussed at the clinic?", ": 0 to 1"),
        # A denial that may hold for a name behind a comma.
        (PATIENT + "No diabetes, hypertension.", ": 2 to 3"),
        ("72岁男，房颤，无糖尿病，高血压，CHA2DS2-VASc评分？", "：1 至 2"),
    ],
)
async def test_what_is_not_understood_makes_a_score_a_range(text: str, said: str) -> None:
    assert said in await ask(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("HAS-BLED of a 60-year-old man: liver and kidneys are fine, doesn't drink?", ": 0,"),
        ("HAS-BLED of a 60-year-old man, labile INR not applicable, BP 128/76?", ": 0,"),
        ("HAS-BLED, 60-year-old man, BP 182/76, creat, LFTs and INRs all normal?", ": 1,"),
        ("60岁男，肝肾功能都好，没出过血，烟酒不沾，HAS-BLED评分？", "：0（"),
        ("66岁女，房颤，心脏功能好，血糖一直正常，没中过风，血压不高，CHA2DS2-VASc评分？", "：2（"),
        ("My mother, 77, has AF and hypertension. CHA2DS2-VASc?", ": 4,"),
        ("77-year-old man, AF, diabetes; his mother had a stroke. CHA2DS2-VASc?", ": 3,"),
        ("Wells for PE: HR 88, no surgery or bed rest, and I think PE is most likely", ": 3,"),
        ("心率88，不咯血，没手术，考虑肺炎的可能比肺栓塞更大，肺栓塞Wells评分？", "：0（"),
        ("怎么叫都不睁眼，一点声音也没有，掐他时胳膊异常屈曲，GCS几分？", "：5（"),
        ("腿沿深静脉不压痛，小腿只粗1公分，没肿瘤，深静脉血栓Wells评分？", "：0（"),
    ],
)
async def test_a_finding_is_denied_in_everyday_words(text: str, said: str) -> None:
    assert said in await ask(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Na 137, Cl 99, HCO3 15, alb 2.1 g/dL: the gap put right for albumin?", ": 27.8 mmol/L"),
        ("AG按白蛋白校正后是几？钠135，氯104，碳酸氢根19，白蛋白22 g/L", "：16.5 mmol/L"),
        ("A 70 kg man, 22% burned. How many ml by the eighth hour, Parkland?", "8 hours: 3080 ml"),
        # A number that may be the input's is not replaced by the usual value.
        ("Ganzoni iron deficit: 70 kg, haemoglobin 8 g/dL, hoping to see 13 g/dL?", "Which target"),
        ("63, fatty liver. AST 74, ALT 52, platelets 118 x10^9/L. FIB-4?", ": 5.48"),
        ("今年69，谷草96，谷丙70，血小板87，FIB-4是多少？", "：9.1"),
        ("外国老爷子5英尺9英寸、198磅，体重指数是多少？", "：29.2"),
        ("肌酐78微摩尔每升，我是女的，46岁，CKD-EPI的eGFR是多少？", "：81.8"),
        ("PT 27 seconds against a control of 13, bilirubin 12.5 mg/dL. Maddrey?", ": 76.9"),
    ],
)
async def test_what_else_a_question_tells_is_not_passed_over(text: str, said: str) -> None:
    assert said in await ask(text)
