"""Branches of the verified formulas, each worked by hand, and the words of refused inputs."""

import pytest

from osler.errors import BadCalculation
from osler.methods.kag.computed import format_result
from osler.methods.kag.formulas import FORMULAS, Given, evaluate_formula
from osler.methods.kag.formulas.findings import find_finding, input_words, read_choice
from osler.methods.kag.formulas.slots import read_slots
from osler.methods.kag.formulas.targets import find_target
from osler.types import Language


@pytest.mark.parametrize(
    ("creatinine", "age", "sex", "value"),
    [
        # 142 · (0.6/0.9)^-0.302 · 0.9938^40 = 142 · 1.13026 · 0.77978
        (0.6, 40, "male", 125.15),
        # 142 · (1.4/0.7)^-1.2 · 0.9938^60 · 1.012 = 142 · 0.43528 · 0.68857 · 1.012
        (1.4, 60, "female", 43.07),
    ],
)
def test_ckd_epi_has_an_exponent_of_its_own_below_and_above_kappa(
    creatinine: float, age: float, sex: str, value: float
) -> None:
    given: dict[str, Given] = {"creatinine": creatinine, "age": age, "sex": sex}
    result = evaluate_formula(FORMULAS["ckd-epi-2021"], given)
    assert result.value == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize(
    ("ascites", "encephalopathy", "points"),
    [
        ("none", "none", 9),
        ("slight", "none", 10),
        ("moderate", "none", 11),
        ("none", "grade 1-2", 10),
        ("none", "grade 3-4", 11),
        ("moderate", "grade 3-4", 13),
    ],
)
def test_child_pugh_counts_each_grade(ascites: str, encephalopathy: str, points: int) -> None:
    """Bilirubin 4 (3), albumin 3.0 (2) and INR 1.8 (2) make 7; each grade adds 1, 2 or 3."""
    given: dict[str, Given] = {"bilirubin": 4, "albumin": 3.0, "inr": 1.8}
    given |= {"ascites": ascites, "encephalopathy": encephalopathy}
    assert evaluate_formula(FORMULAS["child-pugh"], given).value == points


@pytest.mark.parametrize(
    ("formula", "given", "words"),
    [
        ("meld", {"bilirubin": 1, "creatinine": 1}, "inr should be a number of its kind, nothing"),
        ("meld", {"inr": 1, "creatinine": 1}, "bilirubin should be a number of mg/dL, nothing"),
        ("curb-65", {"confusion": "perhaps"}, "confusion should be yes or no, got 'perhaps'"),
    ],
)
def test_a_refused_input_says_what_was_wanted(
    formula: str, given: dict[str, Given], words: str
) -> None:
    with pytest.raises(BadCalculation) as refused:
        evaluate_formula(FORMULAS[formula], given)
    assert words in refused.value.message


LANGUAGES: tuple[Language, ...] = ("en", "zh")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_finding_and_a_choice_are_read_by_the_names_that_answers_give_them(
    language: Language,
) -> None:
    for name, words in input_words().items():
        label = words.names[language]
        if words.finding is not None:
            assert find_finding(name, f"Age 50, {label}, wheeze.") == [True], name
        for value, choice in (words.choices or {}).items():
            assert read_choice(name, f"{label} {choice.names[language]}") == [value], (name, value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("heart rate over 100", [True]),
        ("a pulse above 100/min", [True]),
        ("心率大于100次/分", [True]),
        ("no tachycardia", [False]),
        ("heart rate over 90", []),
    ],
)
def test_a_fast_heart_is_read_in_numbers_and_in_words(text: str, said: list[bool]) -> None:
    assert find_finding("heart_rate_over_100", text) == said


@pytest.mark.parametrize(
    ("formula", "text", "kinds"),
    [
        ("wells-pe", "heart rate over 100, cancer", []),  # its 100 is no measured rate
        ("wells-pe", "heart rate over 100, but pulse 80/min", ["contradictory"]),
        ("qtc-bazett", "QT 360 ms, QT 361 ms, heart rate 120/min", ["contradictory"]),
        ("cockcroft-gault", "age 70, woman, weight 60 kg, creatinine 1.2 mg/dL (106 µmol/L)", []),
        ("cockcroft-gault", "age 70, woman, weight 60 kg, creatinine 1.2 mg/dL, creatinine"
         " 140 µmol/L",
         ["contradictory"]),
        ("iron-deficit", "haemoglobin 9 g/dL, target haemoglobin 15 g/dL, weight 77.16 lb, iron"
         " stores 500 mg", []),  # 35 kg, the least, rounded down
        ("cockcroft-gault", "age 70, woman, weight 60 mmol/L, creatinine 1.2 mg/dL", ["unit"]),
        ("cockcroft-gault", "age 70, woman, weight 900 kg, creatinine 1.2 mg/dL", ["range"]),
    ],
)  # fmt: skip
def test_what_keeps_a_formula_from_being_computed(
    formula: str, text: str, kinds: list[str]
) -> None:
    assert [each.kind for each in read_slots(FORMULAS[formula], text).problems] == kinds


@pytest.mark.parametrize(
    ("finding", "text", "said"),
    [
        ("heart_failure", "房颤，女，76岁，没有心衰", [False]),
        ("heart_failure", "没有高血压，有心衰", [True]),
        ("heart_failure", "有糖尿病，不伴心衰", [False]),
        ("heart_failure", "没心衰", [False]),
        ("stroke", "没得过中风", [False]),
        ("stroke", "没中过风", [False]),
        ("stroke", "以前得过中风", [True]),
        ("stroke", "未曾中风", [False]),
        ("heart_failure", "不知有无心衰", []),
        ("heart_failure", "有没有心衰", []),
        ("vascular_disease", "没有血管病", [False]),
    ],
)
def test_a_chinese_denial_with_a_word_that_also_affirms_denies(
    finding: str, text: str, said: list[bool]
) -> None:
    assert find_finding(finding, text) == said


@pytest.mark.parametrize(
    ("question", "formula"),
    [
        ("怀疑肺栓塞，没有DVT征象，心率110次/分，Wells评分几分？", "wells-pe"),
        (
            "Suspected pulmonary embolism, no signs of DVT, pulse 110: what is the Wells score?",
            "wells-pe",
        ),
        ("怀疑深静脉血栓，以前没得过肺栓塞，Wells评分几分？", "wells-dvt"),
        ("小腿压痛，Wells评分几分？", "wells-dvt"),
    ],
)
def test_a_score_of_two_diseases_is_the_one_of_the_disease_named_first(
    question: str, formula: str
) -> None:
    target = find_target(FORMULAS, question)
    assert target is not None
    assert target.id == formula


def test_an_old_woman_without_an_age_is_elderly() -> None:
    text = "老太太，50公斤，血钠155 mmol/L，缺多少水？"
    reading = read_slots(FORMULAS["free-water-deficit"], text)
    assert reading.given["group"] == "elderly female"


@pytest.mark.parametrize(("urea", "points"), [(19, 0), (7 * 2.8014, 0), (7.1 * 2.8014, 1), (20, 1)])
def test_curb_65_counts_urea_above_7_mmol_per_litre(urea: float, points: int) -> None:
    """Seven are 19.6 mg/dL, of which whole ones are published as more than 19."""
    given: dict[str, Given] = {
        "confusion": False,
        "urea_nitrogen": urea,
        "respiratory_rate": 20,
        "systolic": 120,
        "diastolic": 80,
        "age": 50,
    }
    assert evaluate_formula(FORMULAS["curb-65"], given).value == points


def test_a_value_of_nearly_a_thousand_is_told_in_digits() -> None:
    given: dict[str, Given] = {"weight": 59.5, "haemoglobin": 11.5, "target": 15.0, "stores": 500}
    assert format_result(evaluate_formula(FORMULAS["iron-deficit"], given)) == "1000 mg"
