"""Questions that a formula answers: 46 of our own, worked by hand, and what is asked back."""

import json
from pathlib import Path
from typing import Any

import pytest

from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.formulas import FORMULAS
from osler.methods.kag.formulas.findings import input_words
from osler.methods.kag.logical_forms import SubAnswer
from osler.methods.kag.output import nearest_option
from osler.trace import Calculated, FormsPlanned, Run
from osler.types import Answer, Grounding, Halt, Question, Solution

FIXTURES = Path(__file__).parents[3] / "fixtures" / "formulas"


def fixtures(name: str) -> list[dict[str, Any]]:
    lines = (FIXTURES / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


async def solve(text: str, language: str = "en", options: tuple[str, ...] = ()) -> Solution | None:
    question = Question("q", text, options, "zh" if language == "zh" else "en")
    return await QuestionCalculator().solve(question, Run())


@pytest.mark.parametrize("case", fixtures("questions.jsonl"), ids=lambda case: case["formula"])
async def test_a_question_is_computed_as_by_hand(case: dict[str, Any]) -> None:
    run = Run()
    question = Question("q", case["question"], (), case["language"])
    solution = await QuestionCalculator().solve(question, run)
    assert solution is not None
    assert solution.halt is Halt.CONVERGED, solution.answer.note
    (calculated,) = [event for event in run.events if isinstance(event, Calculated)]
    assert solution.why == f"computed: {case['formula']}"
    number = float(calculated.value.split()[0])
    digits = ".0f" if case["value"] >= 1000 else ".3g"
    assert number == float(f"{case['value']:{digits}}")
    unit = calculated.value.partition(" ")[2].partition(" (")[0]
    assert unit == case["unit"].replace("percent", "%")
    assert calculated.value in solution.answer.text
    assert FORMULAS[case["formula"]].source in solution.answer.evidence[0].quote
    assert solution.answer.grounding is Grounding.GROUNDED


@pytest.mark.parametrize("case", fixtures("questions_back.jsonl"), ids=lambda case: case["asks"])
async def test_what_cannot_be_computed_is_asked_back(case: dict[str, Any]) -> None:
    solution = await solve(case["question"], case["language"])
    assert solution is not None
    assert solution.answer.grounding is Grounding.ABSTAINED
    assert case["asks"] in solution.answer.note
    assert solution.halt is Halt.NO_EVIDENCE


@pytest.mark.parametrize(
    "text",
    [
        "At what creatinine clearance is metformin contraindicated in a 70-year-old 60 kg woman?",
        "What is the normal anion gap?",
        "Does the waist tell more of diabetes than the body mass index?",
        "Which dose of enoxaparin for a 70-year-old 60 kg woman at a creatinine clearance of 25?",
        "What causes a high anion gap in a man with a bicarbonate of 10 mmol/L?",
        "What is the effect of age on creatinine clearance in women?",
        "How much does diabetes add to the CHA2DS2-VASc score?",
        "A 50-year-old man has a BMI of 32 and weighs 100 kg. What should he eat?",
        "What is the treatment of hyponatraemia with a serum osmolality of 250 mmol/kg?",
        "二甲双胍的常见不良反应是什么？",
        "体重60kg的患者肌酐清除率低于多少时禁用二甲双胍？",
    ],
)
async def test_a_question_for_something_else_is_left_to_the_plan(text: str) -> None:
    assert await solve(text, "zh" if "的" in text else "en") is None


async def test_numbers_as_options_are_chosen_by_the_nearest_and_words_are_left_to_the_plan() -> (
    None
):
    text = (
        "What is the creatinine clearance of a 70-year-old 60 kg woman with creatinine 1.2 mg/dL?"
    )
    solution = await solve(text, options=("25 ml/min", "41 ml/min", "60 ml/min"))
    assert solution is not None
    assert solution.answer.option == "B"
    assert await solve(text, options=("normal", "low")) is None


@pytest.mark.parametrize(
    ("text", "options", "chosen"),
    [
        ("Parkland, 24 hours: 70 kg, burns 30 %", ("4.2 L", "8.4 L", "16.8 L"), "B"),
        ("Parkland公式：体重70 kg、烧伤面积30%，24小时补液量是多少？", ("4.2升", "8.4升"), "B"),
        ("Parkland, 24 hours: 70 kg, burns 30 %", ("4,200 ml", "8,400 ml"), "B"),
        ("Parkland, 24 hours: 70 kg, burns 30 %", ("4.2 kg", "8.4 kg"), None),
        ("Parkland, 24 hours: 70 kg, burns 30 %", ("4 L", "16 L"), None),
        ("What is the BMI of a man of 70 kg and 1.75 m?", ("22,9", "25,1", "18,5", "30"), "A"),
        ("BMI of 70 kg and 1.75 m?", ("22.9 kg/m2", "30 kg/m2"), "A"),
        ("eGFR (CKD-EPI) of a man of 50, creatinine 1 mg/dL?", ("91.7 ml/min", "60 ml/min"), "A"),
        ("What is the average glucose at an HbA1c of 7 %?", ("8.6 mmol/L", "15 mmol/L"), "A"),
    ],
)
async def test_options_are_compared_in_the_unit_of_the_result(
    text: str, options: tuple[str, ...], chosen: str | None
) -> None:
    solution = await solve(text, "zh" if "，" in text else "en", options)
    assert (solution.answer.option if solution else None) == chosen


async def test_a_missing_input_of_a_question_with_options_is_looked_up_not_asked() -> None:
    text = "What is the creatinine clearance of a 70-year-old woman with creatinine 1.2 mg/dL?"
    assert await solve(text, options=("25", "41")) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # Found on paper: units that look alike and are not.
        ("What is the average glucose at an HbA1c of 64 mmol/mol?", 183.1),
        ("What is the corrected calcium at calcium 5 mEq/L and albumin 4 g/dL?", 10.02),
        ("What is the BMI of a man of 1.75 m who lost 5 kg and now weighs 70 kg?", 22.86),
        ("What is the BMI of a man 5 feet 11 inches tall, 180 pounds?", 25.1),
        ("My patient weighs 70 kg and is 1.75 m tall. I need the BMI.", 22.86),
        ("BMI of 70 kg and 1.75 m?", 22.86),
        ("BMI with 70,5 kg and 1,75 m?", 23.02),
        ("CrCl of a woman of 70 years, 60 kg, creatinine 1,2 mg/dL?", 41.32),
        ("What is the MELD score with bilirubin 40 mg/dL, INR 8 and creatinine 4 mg/dL?", 40.0),
        ("Weight 70 kg, height 1.75 m: BMI?", 22.86),
        ("已知INR2，肌酐3.1 mg/dL，胆红素25 mg/dL，求MELD。", 37.0),
        ("CrCl of a 70 yo man: 60 kg, creatinine 106 umol/L?", 48.64),
        ("身高1米75，体重140斤，体重指数是多少？", 22.86),
        # One laboratory: what its other numbers say settles a number without a unit.
        ("MELD please: bili 3, inr 1.8, creatinine 1.4", 20.0),
        ("HHS, Na 148, glucose 900 mg/dl, BUN 56. Calculated serum osmolality?", 366.0),
        ("osmolality calculated: Na 140, glucose 5.5 mmol/L, urea 6", 291.5),
        ("高渗昏迷，钠152，血糖41，尿素18，血浆渗透压是多少", 363.0),
        ("Parkland, 1st 8 hours: 68 kg, burns 25 %", 3400.0),
        ("head injury, E3 V4 M6, pupils 3 mm: total Glasgow Coma Scale?", 13.0),
    ],
)
async def test_units_are_converted_as_laboratories_do(text: str, value: float) -> None:
    run = Run()
    question = Question("q", text, language="zh" if "，" in text else "en")
    solution = await QuestionCalculator().solve(question, run)
    assert solution is not None, text
    assert solution.halt is Halt.CONVERGED, solution.answer.note
    (calculated,) = [event for event in run.events if isinstance(event, Calculated)]
    assert float(calculated.value.split()[0]) == pytest.approx(value, rel=5e-3)


async def test_a_finding_that_is_denied_or_a_relatives_does_not_count() -> None:
    text = (
        "What is the CHA2DS2-VASc score of a 60-year-old man without diabetes, hypertension or"
        " stroke? His father had a stroke."
    )
    solution = await solve(text)
    assert solution is not None
    assert "score: 0," in solution.answer.text


async def test_the_plan_of_a_computed_answer_is_told() -> None:
    run = Run()
    text = "What is the mean arterial pressure at 120/75 mmHg?"
    await QuestionCalculator().solve(Question("q", text), run)
    (plan,) = [event for event in run.events if isinstance(event, FormsPlanned)]
    assert plan.origin == "formula"
    assert [node.fn for node in plan.nodes] == ["Math", "Output"]
    assert run.usage.calls == 0


def test_every_input_of_every_formula_has_its_words() -> None:
    known = input_words()
    assert {i.name for f in FORMULAS.values() for i in f.inputs} <= set(known)
    assert all(f.aliases and f.expression for f in FORMULAS.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("Stage 1", "Stage 2", "Stage 3"), "the tumour is 2 cm"),
        (("1型糖尿病", "2型糖尿病", "3型糖尿病"), "空腹血糖2次升高"),
        (("Vitamin B1", "Vitamin B6", "Vitamin B12"), "the patient drank for 6 years"),
    ],
)
def test_options_that_are_names_with_a_figure_are_no_numbers(
    options: tuple[str, ...], said: str
) -> None:
    question = Question("q", "Which?", options=options)
    chosen = Answer(option="C")
    assert nearest_option(chosen, question, [SubAnswer(1, "?", said)]) is chosen
    of_numbers = Question("q", "How much?", options=("400 ml", "600 ml"))
    found = nearest_option(Answer(option="A"), of_numbers, [SubAnswer(1, "?", "592 ml")])
    assert found.option == "B"
