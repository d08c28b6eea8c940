"""Kidney, liver, lungs and metabolism."""

from __future__ import annotations

import math

from osler.methods.kag.formulas.base import ChoiceInput, Formula, NumberInput
from osler.methods.kag.formulas.fluids import SODIUM

SEX = ChoiceInput("sex", ("female", "male"))
ADULT = NumberInput("age", "year", 18, 120)
CREATININE = NumberInput("creatinine", "mg/dL", 0.1, 30, "creatinine")
BILIRUBIN = NumberInput("bilirubin", "mg/dL", 0.05, 80, "bilirubin")
INR = NumberInput("inr", "", 0.5, 20)


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
    """Bounds as UNOS has them: nothing below 1, creatinine at most 4."""
    creatinine = min(max(creatinine, 1), 4)
    bilirubin, inr = max(bilirubin, 1), max(inr, 1)
    points = 9.57 * math.log(creatinine) + 3.78 * math.log(bilirubin) + 11.2 * math.log(inr)
    return float(round(points + 6.43))


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


FORMULAS = (
    Formula(
        "cockcroft-gault",
        "Creatinine clearance (Cockcroft-Gault)",
        "肌酐清除率（Cockcroft-Gault）",
        (ADULT, NumberInput("weight", "kg", 20, 400), CREATININE, SEX),
        "ml/min",
        _cockcroft_gault,
        "Cockcroft DW, Gault MH. Nephron 1976;16:31-41",
        "Stable creatinine only.",
    ),
    Formula(
        "ckd-epi-2021",
        "Glomerular filtration rate (CKD-EPI creatinine, 2021)",
        "估算肾小球滤过率（CKD-EPI 2021 肌酐）",
        (ADULT, CREATININE, SEX),
        "ml/min/1.73m^2",
        _ckd_epi,
        "Inker LA et al. N Engl J Med 2021;385:1737-49",
    ),
    Formula(
        "mdrd",
        "Glomerular filtration rate (MDRD, four variables, without race)",
        "估算肾小球滤过率（MDRD）",
        (ADULT, CREATININE, SEX),
        "ml/min/1.73m^2",
        _mdrd,
        "Levey AS et al. Ann Intern Med 2006;145:247-54",
        "Too low above 60.",
    ),
    Formula(
        "fena",
        "Fractional excretion of sodium",
        "钠排泄分数",
        (
            SODIUM,
            CREATININE,
            NumberInput("urine_sodium", "mmol/L", 1, 400),
            NumberInput("urine_creatinine", "mg/dL", 1, 1000, "creatinine"),
        ),
        "percent",
        lambda sodium, creatinine, urine_sodium, urine_creatinine: (
            100 * urine_sodium * creatinine / (sodium * urine_creatinine)
        ),
        "Espinel CH. JAMA 1976;236:579-81",
        "Not under diuretics.",
    ),
    Formula(
        "meld",
        "MELD score",
        "终末期肝病模型评分（MELD）",
        (BILIRUBIN, INR, CREATININE),
        "",
        _meld,
        "Kamath PS et al. Hepatology 2001;33:464-70, bounds of UNOS",
        "Creatinine counts as 4 mg/dL under dialysis.",
    ),
    Formula(
        "meld-na",
        "MELD-Na score",
        "MELD-Na 评分",
        (BILIRUBIN, INR, CREATININE, SODIUM),
        "",
        _meld_na,
        "Kim WR et al. N Engl J Med 2008;359:1018-26, as OPTN has it since 2016",
    ),
    Formula(
        "child-pugh",
        "Child-Pugh score",
        "Child-Pugh 评分",
        (
            BILIRUBIN,
            NumberInput("albumin", "g/dL", 0.5, 7),
            INR,
            ChoiceInput("ascites", ("none", "slight", "moderate")),
            ChoiceInput("encephalopathy", ("none", "grade 1-2", "grade 3-4")),
        ),
        "",
        _child_pugh,
        "Pugh RN et al. Br J Surg 1973;60:646-9",
        "A: 5-6, B: 7-9, C: 10-15.",
    ),
    Formula(
        "fib-4",
        "FIB-4 index",
        "FIB-4 指数",
        (
            ADULT,
            NumberInput("ast", "U/L", 1, 20000),
            NumberInput("alt", "U/L", 1, 20000),
            NumberInput("platelets", "10^9/L", 1, 3000),
        ),
        "",
        lambda age, ast, alt, platelets: age * ast / (platelets * math.sqrt(alt)),
        "Sterling RK et al. Hepatology 2006;43:1317-25",
    ),
    Formula(
        "maddrey",
        "Maddrey's discriminant function",
        "Maddrey 判别函数",
        (
            BILIRUBIN,
            NumberInput("prothrombin_time", "s", 5, 150),
            NumberInput("control_time", "s", 8, 20),
        ),
        "",
        lambda bilirubin, prothrombin_time, control_time: (
            4.6 * (prothrombin_time - control_time) + bilirubin
        ),
        "Carithers RL et al. Ann Intern Med 1989;110:685-90",
        "32 and above is severe alcoholic hepatitis.",
    ),
    Formula(
        "alveolar-arterial-gradient",
        "Alveolar-arterial oxygen gradient",
        "肺泡-动脉血氧分压差",
        (
            NumberInput("pao2", "mmHg", 10, 700),
            NumberInput("paco2", "mmHg", 5, 150),
            NumberInput("fio2", "percent", 21, 100, default=21),
            NumberInput("pressure", "mmHg", 400, 800, default=760),
        ),
        "mmHg",
        _alveolar_gradient,
        "Kanber GJ et al. Am Rev Respir Dis 1968;97:376-81; respiratory quotient 0.8",
    ),
    Formula(
        "oxygenation-index",
        "PaO2/FiO2 ratio",
        "氧合指数（PaO2/FiO2）",
        (NumberInput("pao2", "mmHg", 10, 700), NumberInput("fio2", "percent", 21, 100)),
        "mmHg",
        lambda pao2, fio2: pao2 / (fio2 / 100),
        "ARDS Definition Task Force. JAMA 2012;307:2526-33",
    ),
    Formula(
        "ldl-friedewald",
        "LDL cholesterol (Friedewald)",
        "低密度脂蛋白胆固醇（Friedewald）",
        (
            NumberInput("cholesterol", "mg/dL", 50, 1000, "cholesterol"),
            NumberInput("hdl", "mg/dL", 5, 200, "cholesterol"),
            NumberInput("triglycerides", "mg/dL", 10, 400, "triglycerides"),
        ),
        "mg/dL",
        lambda cholesterol, hdl, triglycerides: cholesterol - hdl - triglycerides / 5,
        "Friedewald WT et al. Clin Chem 1972;18:499-502",
        "Fasting; not above 400 mg/dL of triglycerides.",
    ),
    Formula(
        "average-glucose",
        "Estimated average glucose from HbA1c",
        "由糖化血红蛋白估算平均血糖",
        (NumberInput("hba1c", "percent", 3, 20),),
        "mg/dL",
        lambda hba1c: 28.7 * hba1c - 46.7,
        "Nathan DM et al. Diabetes Care 2008;31:1473-8",
    ),
    Formula(
        "iron-deficit",
        "Total iron deficit (Ganzoni)",
        "铁缺乏总量（Ganzoni）",
        (
            NumberInput("weight", "kg", 35, 200),
            NumberInput("haemoglobin", "g/dL", 2, 15),
            NumberInput("target", "g/dL", 10, 18, default=15),
            NumberInput("stores", "mg", 0, 1000, default=500),
        ),
        "mg",
        lambda weight, haemoglobin, target, stores: weight * (target - haemoglobin) * 2.4 + stores,
        "Ganzoni AM. Schweiz Med Wochenschr 1970;100:301-3",
    ),
)
