"""Clinical scores: points for findings. A finding that is not given counts as absent."""

from __future__ import annotations

from osler.methods.kag.formulas.base import ChoiceInput, FlagInput, Formula, NumberInput

AGE = NumberInput("age", "year", 18, 120)
SEX = ChoiceInput("sex", ("female", "male"))


def _flag_inputs(*names: str) -> tuple[FlagInput, ...]:
    return tuple(FlagInput(name) for name in names)


def _cha2ds2_vasc(age: float, sex: str, **found: bool) -> float:
    points = 2 * found.pop("stroke") + sum(found.values())
    return points + (sex == "female") + (age >= 65) + (age >= 75)


def _has_bled(age: float, **found: bool) -> float:
    return sum(found.values()) + (age > 65)


def _wells_dvt(other_diagnosis_as_likely: bool, **found: bool) -> float:
    return sum(found.values()) - 2 * other_diagnosis_as_likely


def _wells_pe(**found: bool) -> float:
    points = {
        "signs_of_dvt": 3.0,
        "pe_most_likely": 3.0,
        "heart_rate_over_100": 1.5,
        "immobile_or_surgery": 1.5,
        "earlier_dvt_or_pe": 1.5,
        "haemoptysis": 1.0,
        "cancer": 1.0,
    }
    return sum(points[name] for name, there in found.items() if there)


def _curb_65(
    confusion: bool,
    urea_nitrogen: float,
    respiratory_rate: float,
    systolic: float,
    diastolic: float,
    age: float,
) -> float:
    low = systolic < 90 or diastolic <= 60
    return confusion + (urea_nitrogen > 19) + (respiratory_rate >= 30) + low + (age >= 65)


def _qsofa(respiratory_rate: float, systolic: float, altered_mentation: bool) -> float:
    return (respiratory_rate >= 22) + (systolic <= 100) + altered_mentation


FORMULAS = (
    Formula(
        "cha2ds2-vasc",
        "CHA2DS2-VASc score",
        "CHA2DS2-VASc 评分",
        (
            AGE,
            SEX,
            *_flag_inputs(
                "heart_failure", "hypertension", "diabetes", "stroke", "vascular_disease"
            ),
        ),
        "",
        _cha2ds2_vasc,
        "Lip GY et al. Chest 2010;137:263-72",
    ),
    Formula(
        "has-bled",
        "HAS-BLED score",
        "HAS-BLED 评分",
        (
            AGE,
            *_flag_inputs(
                "uncontrolled_hypertension",
                "abnormal_kidney",
                "abnormal_liver",
                "stroke",
                "bleeding",
                "labile_inr",
                "drugs",
                "alcohol",
            ),
        ),
        "",
        _has_bled,
        "Pisters R et al. Chest 2010;138:1093-100",
    ),
    Formula(
        "wells-dvt",
        "Wells score for deep vein thrombosis",
        "深静脉血栓 Wells 评分",
        _flag_inputs(
            "active_cancer",
            "paralysis_or_cast",
            "bedridden_or_surgery",
            "tenderness_along_veins",
            "whole_leg_swollen",
            "calf_swollen_3_cm",
            "pitting_oedema",
            "collateral_veins",
            "earlier_dvt",
            "other_diagnosis_as_likely",
        ),
        "",
        _wells_dvt,
        "Wells PS et al. N Engl J Med 2003;349:1227-35",
        "2 and above: likely.",
    ),
    Formula(
        "wells-pe",
        "Wells score for pulmonary embolism",
        "肺栓塞 Wells 评分",
        _flag_inputs(
            "signs_of_dvt",
            "pe_most_likely",
            "heart_rate_over_100",
            "immobile_or_surgery",
            "earlier_dvt_or_pe",
            "haemoptysis",
            "cancer",
        ),
        "",
        _wells_pe,
        "Wells PS et al. Thromb Haemost 2000;83:416-20",
        "Above 4: likely.",
    ),
    Formula(
        "glasgow-coma-scale",
        "Glasgow Coma Scale",
        "格拉斯哥昏迷评分",
        (
            NumberInput("eye", "", 1, 4),
            NumberInput("verbal", "", 1, 5),
            NumberInput("motor", "", 1, 6),
        ),
        "",
        lambda eye, verbal, motor: eye + verbal + motor,
        "Teasdale G, Jennett B. Lancet 1974;2:81-4",
    ),
    Formula(
        "curb-65",
        "CURB-65 score",
        "CURB-65 评分",
        (
            FlagInput("confusion"),
            NumberInput("urea_nitrogen", "mg/dL", 1, 300, "urea nitrogen"),
            NumberInput("respiratory_rate", "1/min", 4, 80),
            NumberInput("systolic", "mmHg", 30, 320),
            NumberInput("diastolic", "mmHg", 10, 220),
            AGE,
        ),
        "",
        _curb_65,
        "Lim WS et al. Thorax 2003;58:377-82",
    ),
    Formula(
        "qsofa",
        "Quick SOFA score",
        "快速 SOFA 评分",
        (
            NumberInput("respiratory_rate", "1/min", 4, 80),
            NumberInput("systolic", "mmHg", 30, 320),
            FlagInput("altered_mentation"),
        ),
        "",
        _qsofa,
        "Singer M et al. JAMA 2016;315:801-10",
    ),
    Formula(
        "apgar",
        "Apgar score",
        "Apgar 评分",
        tuple(
            NumberInput(name, "", 0, 2)
            for name in ("appearance", "pulse", "grimace", "activity", "respiration")
        ),
        "",
        lambda **points: sum(points.values()),
        "Apgar V. Curr Res Anesth Analg 1953;32:260-7",
    ),
)
