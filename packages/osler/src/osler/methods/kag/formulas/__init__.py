"""Verified medical formulas, which a Math step tries before any code is run.

`formulas.toml` has the formulas' titles, inputs with units and ranges, and publications; their
functions are here, by id; `base` reads inputs, converts units and evaluates. A function takes the
inputs by name, in the units of `formulas.toml`, and returns the result in its unit. A finding of a
clinical score that is not given counts as absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from osler.methods.kag.formulas.base import (
    ChoiceInput,
    FlagInput,
    Formula,
    FormulaResult,
    Given,
    Input,
    NumberInput,
    evaluate_formula,
)
from osler.text import read_packaged_table

# Burns, fluids and electrolytes.


# ml of crystalloid and colloid per kg and per cent burned, first 24 hours.
_PER_PERCENT = {"adult": 1.5, "child": 1.8, "infant": 2.0}


_WATER = {"male": 0.6, "female": 0.5, "elderly male": 0.5, "elderly female": 0.45, "child": 0.6}


def _maintenance_fluid(weight: float) -> float:
    return 100 * min(weight, 10) + 50 * min(max(weight - 10, 0), 10) + 20 * max(weight - 20, 0)


def _hourly_maintenance(weight: float) -> float:
    return 4 * min(weight, 10) + 2 * min(max(weight - 10, 0), 10) + 1 * max(weight - 20, 0)


def _colloid_volume(weight: float, burned: float, group: str, ratio: str) -> float:
    share = {"1:1": 1 / 2, "1:2": 1 / 3}[ratio]
    return _PER_PERCENT[group] * weight * burned * share


# Kidney, liver, lungs and metabolism.


def _cockcroft_gault(age: float, weight: float, creatinine: float, sex: str) -> float:
    clearance = (140 - age) * weight / (72 * creatinine)
    return clearance * 0.85 if sex == "female" else clearance


def _ckd_epi(age: float, creatinine: float, sex: str) -> float:
    kappa, alpha, factor = (0.7, -0.241, 1.012) if sex == "female" else (0.9, -0.302, 1.0)
    ratio = creatinine / kappa
    low, high = min(ratio, 1) ** alpha, max(ratio, 1) ** -1.2
    return float(142 * low * high * 0.9938**age * factor)


def _mdrd(age: float, creatinine: float, sex: str) -> float:
    rate = 175 * math.pow(creatinine, -1.154) * math.pow(age, -0.203)
    return rate * 0.742 if sex == "female" else rate


def _meld(bilirubin: float, inr: float, creatinine: float) -> float:
    """Bounds as UNOS has them: nothing below 1, creatinine at most 4, the score at most 40."""
    creatinine = min(max(creatinine, 1), 4)
    bilirubin, inr = max(bilirubin, 1), max(inr, 1)
    points = 9.57 * math.log(creatinine) + 3.78 * math.log(bilirubin) + 11.2 * math.log(inr)
    return float(min(round(points + 6.43), 40))


def _meld_na(bilirubin: float, inr: float, creatinine: float, sodium: float) -> float:
    meld = _meld(bilirubin, inr, creatinine)
    if meld <= 11:
        return meld
    lacking = 137 - min(max(sodium, 125), 137)
    return float(min(round(meld + 1.32 * lacking - 0.033 * meld * lacking), 40))


def _child_pugh(
    bilirubin: float, albumin: float, inr: float, ascites: str, encephalopathy: str
) -> float:
    points = 1 + (bilirubin >= 2) + (bilirubin > 3)
    points += 1 + (albumin <= 3.5) + (albumin < 2.8)
    points += 1 + (inr >= 1.7) + (inr > 2.3)
    points += 1 + ("none", "slight", "moderate").index(ascites)
    return points + 1 + ("none", "grade 1-2", "grade 3-4").index(encephalopathy)


def _alveolar_gradient(pao2: float, paco2: float, fio2: float, pressure: float) -> float:
    return fio2 / 100 * (pressure - 47) - paco2 / 0.8 - pao2


# Heart, circulation, body measures and pregnancy.


def _ideal_weight(height: float, sex: str) -> float:
    return (50 if sex == "male" else 45.5) + 2.3 * (height / 2.54 - 60)


# Clinical scores: points for findings. A finding that is not given counts as absent.


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
    # Published as more than 7 mmol/L of urea, which is 19.61 mg/dL, or than 19 in whole mg/dL.
    return confusion + (urea_nitrogen > 19.62) + (respiratory_rate >= 30) + low + (age >= 65)


def _qsofa(respiratory_rate: float, systolic: float, altered_mentation: bool) -> float:
    return (respiratory_rate >= 22) + (systolic <= 100) + altered_mentation


COMPUTE: Mapping[str, Callable[..., float]] = {
    "parkland": lambda weight, burned: 4 * weight * burned,
    "parkland-first-8-hours": lambda weight, burned: 2 * weight * burned,
    "burn-fluid-zh": lambda weight, burned, group: _PER_PERCENT[group] * weight * burned,
    "burn-colloid-zh": _colloid_volume,
    "legs-surface-zh": lambda age: 46 - max(12 - age, 0),
    "head-surface-zh": lambda age: 9 + max(12 - age, 0),
    "maintenance-fluid-daily": _maintenance_fluid,
    "maintenance-fluid-hourly": _hourly_maintenance,
    "free-water-deficit": lambda weight, sodium, group: _WATER[group] * weight * (sodium / 140 - 1),
    "sodium-corrected-for-glucose": lambda sodium, glucose: sodium + 1.6 * (glucose - 100) / 100,
    "serum-osmolality": lambda sodium, glucose, urea_nitrogen: (
        2 * sodium + glucose / 18 + urea_nitrogen / 2.8
    ),
    "corrected-calcium": lambda calcium, albumin: calcium + 0.8 * (4 - albumin),
    "anion-gap": lambda sodium, chloride, bicarbonate: sodium - chloride - bicarbonate,
    "anion-gap-corrected": lambda sodium, chloride, bicarbonate, albumin: (
        sodium - chloride - bicarbonate + 2.5 * (4 - albumin)
    ),
    "winters": lambda bicarbonate: 1.5 * bicarbonate + 8,
    "cockcroft-gault": _cockcroft_gault,
    "ckd-epi-2021": _ckd_epi,
    "mdrd": _mdrd,
    "fena": lambda sodium, creatinine, urine_sodium, urine_creatinine: (
        100 * urine_sodium * creatinine / (sodium * urine_creatinine)
    ),
    "meld": _meld,
    "meld-na": _meld_na,
    "child-pugh": _child_pugh,
    "fib-4": lambda age, ast, alt, platelets: age * ast / (platelets * math.sqrt(alt)),
    "maddrey": lambda bilirubin, prothrombin_time, control_time: (
        4.6 * (prothrombin_time - control_time) + bilirubin
    ),
    "alveolar-arterial-gradient": _alveolar_gradient,
    "oxygenation-index": lambda pao2, fio2: pao2 / (fio2 / 100),
    "ldl-friedewald": lambda cholesterol, hdl, triglycerides: cholesterol - hdl - triglycerides / 5,
    "average-glucose": lambda hba1c: 28.7 * hba1c - 46.7,
    "homa-ir": lambda glucose, insulin: glucose * insulin / 405,
    "iron-deficit": lambda weight, haemoglobin, target, stores: (
        weight * (target - haemoglobin) * 2.4 + stores
    ),
    "qtc-bazett": lambda qt, heart_rate: qt / math.sqrt(60 / heart_rate),
    "qtc-fridericia": lambda qt, heart_rate: qt / math.cbrt(60 / heart_rate),
    "qtc-framingham": lambda qt, heart_rate: qt + 154 * (1 - 60 / heart_rate),
    "qtc-hodges": lambda qt, heart_rate: qt + 1.75 * (heart_rate - 60),
    "mean-arterial-pressure": lambda systolic, diastolic: diastolic + (systolic - diastolic) / 3,
    "shock-index": lambda heart_rate, systolic: heart_rate / systolic,
    "pulse-pressure": lambda systolic, diastolic: systolic - diastolic,
    "body-mass-index": lambda weight, height: weight / (height / 100) ** 2,
    "body-surface-mosteller": lambda weight, height: math.sqrt(weight * height / 3600),
    "body-surface-du-bois": lambda weight, height: (
        0.007184 * math.pow(weight, 0.425) * math.pow(height, 0.725)
    ),
    "ideal-body-weight": _ideal_weight,
    "gestational-age": lambda days, cycle: (days - (cycle - 28)) / 7,
    "cha2ds2-vasc": _cha2ds2_vasc,
    "has-bled": _has_bled,
    "wells-dvt": _wells_dvt,
    "wells-pe": _wells_pe,
    "glasgow-coma-scale": lambda eye, verbal, motor: eye + verbal + motor,
    "curb-65": _curb_65,
    "qsofa": _qsofa,
    "apgar": lambda **points: sum(points.values()),
}


__all__ = [
    "FORMULAS",
    "ChoiceInput",
    "FlagInput",
    "Formula",
    "FormulaResult",
    "Given",
    "NumberInput",
    "evaluate_formula",
]


def _read_input(entry: str | Mapping[str, Any]) -> Input:
    if isinstance(entry, str):
        return FlagInput(entry)
    if "choices" in entry:
        return ChoiceInput(**{**entry, "choices": tuple(entry["choices"])})
    return NumberInput(**entry)


def _load_formulas() -> dict[str, Formula]:
    entries = read_packaged_table(__package__, "formulas.toml")
    if entries.keys() != COMPUTE.keys():
        raise ValueError(f"formulas.toml and COMPUTE differ: {entries.keys() ^ COMPUTE.keys()}")
    return {
        id: Formula(
            **{
                **entry,
                "inputs": tuple(map(_read_input, entry["inputs"])),
                "aliases": tuple(entry["aliases"]),
                "wordings": tuple(entry.get("wordings", ())),
            },
            id=id,
            compute=COMPUTE[id],
        )
        for id, entry in entries.items()
    }


FORMULAS: dict[str, Formula] = _load_formulas()
"""By id."""
