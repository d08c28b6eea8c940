"""Heart, circulation, body measures and pregnancy."""

from __future__ import annotations

import math

from osler.methods.kag.formulas.base import ChoiceInput, Formula, NumberInput

WEIGHT = NumberInput("weight", "kg", 0.4, 400)
HEIGHT = NumberInput("height", "cm", 25, 250)
QT = NumberInput("qt", "ms", 200, 800)
RATE = NumberInput("heart_rate", "1/min", 25, 250)


def _ideal_weight(height: float, sex: str) -> float:
    return (50 if sex == "male" else 45.5) + 2.3 * (height / 2.54 - 60)


FORMULAS = (
    Formula(
        "qtc-bazett",
        "Corrected QT (Bazett)",
        "校正 QT 间期（Bazett）",
        (QT, RATE),
        "ms",
        lambda qt, heart_rate: qt / math.sqrt(60 / heart_rate),
        "Bazett HC. Heart 1920;7:353-70",
        "Too long at fast, too short at slow rates.",
    ),
    Formula(
        "qtc-fridericia",
        "Corrected QT (Fridericia)",
        "校正 QT 间期（Fridericia）",
        (QT, RATE),
        "ms",
        lambda qt, heart_rate: qt / math.cbrt(60 / heart_rate),
        "Fridericia LS. Acta Med Scand 1920;53:469-86",
    ),
    Formula(
        "qtc-framingham",
        "Corrected QT (Framingham)",
        "校正 QT 间期（Framingham）",
        (QT, RATE),
        "ms",
        lambda qt, heart_rate: qt + 154 * (1 - 60 / heart_rate),
        "Sagie A et al. Am J Cardiol 1992;70:797-801",
    ),
    Formula(
        "qtc-hodges",
        "Corrected QT (Hodges)",
        "校正 QT 间期（Hodges）",
        (QT, RATE),
        "ms",
        lambda qt, heart_rate: qt + 1.75 * (heart_rate - 60),
        "Hodges M et al. J Am Coll Cardiol 1983;1:694",
    ),
    Formula(
        "mean-arterial-pressure",
        "Mean arterial pressure",
        "平均动脉压",
        (NumberInput("systolic", "mmHg", 30, 320), NumberInput("diastolic", "mmHg", 10, 220)),
        "mmHg",
        lambda systolic, diastolic: diastolic + (systolic - diastolic) / 3,
        "Common definition at resting heart rates",
    ),
    Formula(
        "body-mass-index",
        "Body mass index",
        "体重指数",
        (WEIGHT, HEIGHT),
        "kg/m^2",
        lambda weight, height: weight / (height / 100) ** 2,
        "Keys A et al. J Chronic Dis 1972;25:329-43",
    ),
    Formula(
        "body-surface-mosteller",
        "Body surface area (Mosteller)",
        "体表面积（Mosteller）",
        (WEIGHT, HEIGHT),
        "m^2",
        lambda weight, height: math.sqrt(weight * height / 3600),
        "Mosteller RD. N Engl J Med 1987;317:1098",
    ),
    Formula(
        "body-surface-du-bois",
        "Body surface area (Du Bois)",
        "体表面积（Du Bois）",
        (WEIGHT, HEIGHT),
        "m^2",
        lambda weight, height: 0.007184 * math.pow(weight, 0.425) * math.pow(height, 0.725),
        "Du Bois D, Du Bois EF. Arch Intern Med 1916;17:863-71",
    ),
    Formula(
        "ideal-body-weight",
        "Ideal body weight (Devine)",
        "理想体重（Devine）",
        (NumberInput("height", "cm", 152.4, 230), ChoiceInput("sex", ("female", "male"))),
        "kg",
        _ideal_weight,
        "Devine BJ. Drug Intell Clin Pharm 1974;8:650-5",
        "Adults of at least 5 feet.",
    ),
    Formula(
        "gestational-age",
        "Gestational age since the last menstrual period",
        "孕周（自末次月经第一天起）",
        (NumberInput("days", "day", 0, 308), NumberInput("cycle", "day", 21, 45, default=28)),
        "week",
        lambda days, cycle: (days - (cycle - 28)) / 7,
        "Naegele's rule for a cycle of 28 days, shifted by its length",
        "Ultrasound of the first trimester is better.",
    ),
)
