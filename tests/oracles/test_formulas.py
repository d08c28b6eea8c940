"""Every verified formula against a case worked by hand from its publication."""

import pytest

from osler.errors import BadCalculation
from osler.methods.kag.formulas import FORMULAS, FlagInput, Given, NumberInput, evaluate_formula

CASES: list[tuple[str, dict[str, Given], float, float]] = [
    # id, inputs, value, tolerance
    ("parkland", {"weight": 70, "burned": 30}, 8400, 0),
    ("burn-fluid-zh", {"weight": 50, "burned": 40, "group": "adult"}, 3000, 0),
    # KAG-Thinker, Table 9: 16 kg, 37 % burned, half of 2 ml as colloid
    (
        "burn-colloid-zh",
        {"weight": "16kg", "burned": "37 %", "group": "infant", "ratio": "1:1"},
        592,
        1e-9,
    ),
    ("burn-colloid-zh", {"weight": 50, "burned": 40, "group": "adult"}, 1000, 1e-9),
    ("legs-surface-zh", {"age": 3}, 37, 0),
    ("legs-surface-zh", {"age": 40}, 46, 0),
    ("head-surface-zh", {"age": 3}, 18, 0),
    ("head-surface-zh", {"age": "40 years"}, 9, 0),
    ("maintenance-fluid-daily", {"weight": 16}, 1300, 0),
    ("maintenance-fluid-daily", {"weight": 25}, 1600, 0),
    ("maintenance-fluid-hourly", {"weight": 25}, 65, 0),
    ("free-water-deficit", {"weight": 70, "sodium": 160, "group": "male"}, 6.0, 1e-9),
    ("sodium-corrected-for-glucose", {"sodium": 130, "glucose": 600}, 138, 1e-9),
    ("serum-osmolality", {"sodium": 140, "glucose": 90, "urea_nitrogen": 14}, 290, 1e-9),
    ("corrected-calcium", {"calcium": 8.0, "albumin": 2.0}, 9.6, 1e-9),
    ("anion-gap", {"sodium": 140, "chloride": 104, "bicarbonate": 24}, 12, 0),
    (
        "anion-gap-corrected",
        {"sodium": 140, "chloride": 104, "bicarbonate": 24, "albumin": 2.0},
        17,
        0,
    ),
    ("winters", {"bicarbonate": 12}, 26, 0),
    ("cockcroft-gault", {"age": 60, "weight": 72, "creatinine": 1.0, "sex": "male"}, 80, 1e-9),
    ("cockcroft-gault", {"age": 60, "weight": 72, "creatinine": 1.0, "sex": "female"}, 68, 1e-9),
    # 142 · (1.0/0.9)^-1.2 · 0.9938^50 = 142 · 0.88123 · 0.73274
    ("ckd-epi-2021", {"age": 50, "creatinine": 1.0, "sex": "male"}, 91.7, 0.05),
    # 142 · (0.6/0.7)^-0.241 · 0.9938^40 · 1.012 = 142 · 1.03785 · 0.77978 · 1.012
    ("ckd-epi-2021", {"age": 40, "creatinine": 0.6, "sex": "female"}, 116.3, 0.05),
    # 175 · 1.2^-1.154 · 60^-0.203 = 175 · 0.81024 · 0.43554
    ("mdrd", {"age": 60, "creatinine": 1.2, "sex": "male"}, 61.76, 0.05),
    (
        "fena",
        {"sodium": 140, "creatinine": 2.0, "urine_sodium": 20, "urine_creatinine": 100},
        0.2857,
        1e-4,
    ),
    # 9.57 ln 1.9 + 3.78 ln 4.2 + 11.2 ln 1.2 + 6.43 = 20.04
    ("meld", {"bilirubin": 4.2, "inr": 1.2, "creatinine": 1.9}, 20, 0),
    ("meld", {"bilirubin": 0.5, "inr": 0.9, "creatinine": 0.5}, 6, 0),
    # 20 + 1.32 · 7 - 0.033 · 20 · 7 = 24.62
    ("meld-na", {"bilirubin": 4.2, "inr": 1.2, "creatinine": 1.9, "sodium": 130}, 25, 0),
    ("meld-na", {"bilirubin": 0.5, "inr": 0.9, "creatinine": 0.5, "sodium": 120}, 6, 0),
    (
        "child-pugh",
        {
            "bilirubin": 2.5,
            "albumin": 3.0,
            "inr": 1.8,
            "ascites": "slight",
            "encephalopathy": "none",
        },
        9,
        0,
    ),
    ("fib-4", {"age": 50, "ast": 80, "alt": 64, "platelets": 100}, 5.0, 1e-9),
    (
        "maddrey",
        {"bilirubin": 10, "prothrombin_time": 20, "control_time": 12},
        46.8,
        1e-9,
    ),
    ("alveolar-arterial-gradient", {"pao2": 90, "paco2": 40}, 9.73, 0.01),
    ("oxygenation-index", {"pao2": 80, "fio2": 40}, 200, 1e-9),
    ("ldl-friedewald", {"cholesterol": 200, "hdl": 50, "triglycerides": 150}, 120, 1e-9),
    ("average-glucose", {"hba1c": 7}, 154.2, 1e-9),
    ("iron-deficit", {"weight": 60, "haemoglobin": 8}, 1508, 1e-9),
    ("qtc-bazett", {"qt": 400, "heart_rate": 75}, 447.2, 0.05),
    ("qtc-fridericia", {"qt": 400, "heart_rate": 75}, 430.9, 0.05),
    ("qtc-framingham", {"qt": 400, "heart_rate": 75}, 430.8, 1e-9),
    ("qtc-hodges", {"qt": 400, "heart_rate": "75 bpm"}, 426.25, 1e-9),
    ("mean-arterial-pressure", {"systolic": 120, "diastolic": 90}, 100, 1e-9),
    ("body-mass-index", {"weight": 81, "height": "1.8 m"}, 25, 1e-9),
    ("body-surface-mosteller", {"weight": 80, "height": 180}, 2.0, 1e-9),
    ("body-surface-du-bois", {"weight": 70, "height": 170}, 1.81, 0.005),
    ("ideal-body-weight", {"height": 177.8, "sex": "male"}, 73.0, 1e-9),
    ("gestational-age", {"days": 280}, 40, 0),
    ("gestational-age", {"days": 280, "cycle": 35}, 39, 0),
    (
        "cha2ds2-vasc",
        {"age": 76, "sex": "female", "hypertension": True, "stroke": True},
        6,
        0,
    ),
    ("has-bled", {"age": 70, "bleeding": True, "drugs": True}, 3, 0),
    ("wells-dvt", {"active_cancer": True, "calf_swollen_3_cm": True}, 2, 0),
    ("wells-dvt", {"other_diagnosis_as_likely": True}, -2, 0),
    ("wells-pe", {"signs_of_dvt": True, "heart_rate_over_100": True}, 4.5, 0),
    ("glasgow-coma-scale", {"eye": 3, "verbal": 4, "motor": 5}, 12, 0),
    # 2 ml × 70 kg × 30 %; half of the 8,400 ml of the first day.
    ("parkland-first-8-hours", {"weight": 70, "burned": 30}, 4200, 0),
    ("shock-index", {"heart_rate": 120, "systolic": 80}, 1.5, 0),
    ("pulse-pressure", {"systolic": 120, "diastolic": 80}, 40, 0),
    # Matthews 1985: a normal subject has 4.5 mmol/L (81 mg/dL) and 5 mU/L, and so 1.
    ("homa-ir", {"glucose": 81, "insulin": 5}, 1, 1e-9),
    (
        "curb-65",
        {
            "confusion": True,
            "urea_nitrogen": 25,
            "respiratory_rate": 32,
            "systolic": 110,
            "diastolic": 70,
            "age": 70,
        },
        4,
        0,
    ),
    ("qsofa", {"respiratory_rate": 24, "systolic": 95, "altered_mentation": False}, 2, 0),
    (
        "apgar",
        {"appearance": 1, "pulse": 2, "grimace": 1, "activity": 2, "respiration": 2},
        8,
        0,
    ),
]


@pytest.mark.parametrize(("id", "given", "value", "tolerance"), CASES)
def test_a_formula_gives_what_was_worked_by_hand(
    id: str, given: dict[str, Given], value: float, tolerance: float
) -> None:
    assert evaluate_formula(FORMULAS[id], given).value == pytest.approx(
        value, abs=max(tolerance, 1e-9)
    )


def test_every_formula_has_a_worked_case_a_source_and_a_chinese_title() -> None:
    assert {id for id, *_ in CASES} == set(FORMULAS)
    assert len(FORMULAS) >= 25
    for formula in FORMULAS.values():
        assert len(formula.source) > 20
        assert any("一" <= char <= "鿿" for char in formula.title_zh)


@pytest.mark.parametrize(
    ("id", "name", "other", "own"),
    [
        ("ckd-epi-2021", "creatinine", "88.4 µmol/L", 1.0),
        ("meld", "bilirubin", "17.1 µmol/L", 1.0),
        ("corrected-calcium", "calcium", "2.5 mmol/L", 10.02),
        ("average-glucose", "hba1c", "7 %", 7.0),
        ("serum-osmolality", "glucose", "5 mmol/L", 90.08),
        ("serum-osmolality", "sodium", "140 mEq/L", 140.0),
        ("corrected-calcium", "albumin", "40 g/L", 4.0),
        ("fib-4", "platelets", "250×10⁹/L", 250.0),
        ("maintenance-fluid-daily", "weight", "16000 g", 16.0),
        ("qsofa", "systolic", "12 kPa", 90.0),
    ],
)
def test_a_quantity_in_another_unit_is_brought_into_the_formula_s_own(
    id: str, name: str, other: str, own: float
) -> None:
    given: dict[str, Given] = {
        i.name: (i.low + i.high) / 4 + i.low * 3 / 4
        for i in FORMULAS[id].inputs
        if isinstance(i, NumberInput)
    }
    given |= {i.name: i.choices[0] for i in FORMULAS[id].inputs if hasattr(i, "choices")}
    given |= {i.name: False for i in FORMULAS[id].inputs if isinstance(i, FlagInput)}
    used = evaluate_formula(FORMULAS[id], given | {name: other}).used[name]
    assert used == pytest.approx(own, rel=2e-3)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"weight": 70}, "burned should be a number of percent, nothing was given"),
        ({"weight": 70, "burned": 130}, "burned should be a value from 0 to 100 percent"),
        ({"weight": "70 mmHg", "burned": 3}, "weight should be in kg"),
        ({"weight": "9**9**9", "burned": 3}, "weight should be a quantity in kg"),
        ({"weight": "__import__('os')", "burned": 3}, "weight should be a quantity in kg"),
        ({"weight": "70 horses", "burned": 3}, "weight should be in kg"),
        ({"weight": True, "burned": 3}, "weight should be a number"),
        ({"weight": float("nan"), "burned": 3}, "weight should be a value from"),
        ({"weight": 70, "burned": 3, "height": 1}, "parkland has no input 'height'"),
    ],
)
def test_a_wrong_input_is_named_with_what_was_wanted(
    given: dict[str, Given], complaint: str
) -> None:
    with pytest.raises(BadCalculation, match=complaint.replace("**", r"\*\*")):
        evaluate_formula(FORMULAS["parkland"], given)


def test_a_result_says_what_it_was_computed_from_and_what_was_assumed() -> None:
    result = evaluate_formula(FORMULAS["cha2ds2-vasc"], {"age": 76, "sex": "male", "stroke": True})
    assert result.value == 4
    assert result.assumed == ("heart_failure", "hypertension", "diabetes", "vascular_disease")
    assert result.text() == (
        "CHA2DS2-VASc score: age 76 year, sex male, heart failure no, hypertension no,"
        " diabetes no, stroke yes, vascular disease no: 4"
    )
