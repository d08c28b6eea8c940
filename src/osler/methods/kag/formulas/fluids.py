"""Burns, fluids and electrolytes."""

from __future__ import annotations

from osler.methods.kag.formulas.base import ChoiceInput, Formula, NumberInput

WEIGHT = NumberInput("weight", "kg", 0.4, 400)
BURNED = NumberInput("burned", "percent", 0, 100)
SODIUM = NumberInput("sodium", "mmol/L", 90, 200)
GLUCOSE = NumberInput("glucose", "mg/dL", 10, 2000, "glucose")

_PER_PERCENT = {"adult": 1.5, "child": 1.8, "infant": 2.0}
"""ml of crystalloid and colloid per kg and per cent burned, first 24 hours."""
_WATER = {"male": 0.6, "female": 0.5, "elderly male": 0.5, "elderly female": 0.45, "child": 0.6}


def _maintenance_fluid(weight: float) -> float:
    return 100 * min(weight, 10) + 50 * min(max(weight - 10, 0), 10) + 20 * max(weight - 20, 0)


def _hourly_maintenance(weight: float) -> float:
    return 4 * min(weight, 10) + 2 * min(max(weight - 10, 0), 10) + 1 * max(weight - 20, 0)


def _colloid_volume(weight: float, burned: float, group: str, ratio: str) -> float:
    share = {"1:1": 1 / 2, "1:2": 1 / 3}[ratio]
    return _PER_PERCENT[group] * weight * burned * share


FORMULAS = (
    Formula(
        "parkland",
        "Parkland formula, crystalloid in the first 24 hours",
        "Parkland 公式（第一个 24 小时晶体液量）",
        (WEIGHT, BURNED),
        "ml",
        lambda weight, burned: 4 * weight * burned,
        "Baxter CR, Shires T. Ann N Y Acad Sci 1968;150:874-94",
        "Half of it in the first 8 hours after the burn; second- and third-degree burns only.",
    ),
    Formula(
        "burn-fluid-zh",
        "Burn fluid, crystalloid and colloid in the first 24 hours (Chinese rule)",
        "烧伤第一个 24 小时晶体液与胶体液总量（国内公式）",
        (WEIGHT, BURNED, ChoiceInput("group", tuple(_PER_PERCENT))),
        "ml",
        lambda weight, burned, group: _PER_PERCENT[group] * weight * burned,
        "外科学, 人民卫生出版社: 烧伤补液 (1.5 ml adult, 1.8 ml child, 2.0 ml infant per kg and %)",
        "Basic water (2,000 ml for an adult) comes on top.",
    ),
    Formula(
        "burn-colloid-zh",
        "Burn fluid, colloid in the first 24 hours (Chinese rule)",
        "烧伤第一个 24 小时胶体液量（国内公式）",
        (
            WEIGHT,
            BURNED,
            ChoiceInput("group", tuple(_PER_PERCENT)),
            ChoiceInput("ratio", ("1:2", "1:1"), "1:2"),
        ),
        "ml",
        _colloid_volume,
        "外科学, 人民卫生出版社: 烧伤补液 (colloid to crystalloid 1:2; 1:1 in the severest burns)",
    ),
    Formula(
        "legs-surface-zh",
        "Body surface of both lower limbs with buttocks, by age (Chinese rule of nines)",
        "双下肢（含臀部）体表面积（中国九分法，按年龄）",
        (NumberInput("age", "year", 0, 120),),
        "percent",
        lambda age: 46 - max(12 - age, 0),
        "外科学, 人民卫生出版社: 中国新九分法, 46 - (12 - age) up to 12 years",
    ),
    Formula(
        "head-surface-zh",
        "Body surface of head and neck, by age (Chinese rule of nines)",
        "头颈部体表面积（中国九分法，按年龄）",
        (NumberInput("age", "year", 0, 120),),
        "percent",
        lambda age: 9 + max(12 - age, 0),
        "外科学, 人民卫生出版社: 中国新九分法, 9 + (12 - age) up to 12 years",
    ),
    Formula(
        "maintenance-fluid-daily",
        "Maintenance fluid a day (Holliday-Segar)",
        "儿童每日生理维持液量（Holliday-Segar）",
        (NumberInput("weight", "kg", 3, 100),),
        "ml/day",
        _maintenance_fluid,
        "Holliday MA, Segar WE. Pediatrics 1957;19:823-32",
        "Not for newborns; not with heart or kidney failure.",
    ),
    Formula(
        "maintenance-fluid-hourly",
        "Maintenance fluid an hour (4-2-1 rule)",
        "儿童每小时生理维持液量（4-2-1 法则）",
        (NumberInput("weight", "kg", 3, 100),),
        "ml/hour",
        _hourly_maintenance,
        "Holliday MA, Segar WE. Pediatrics 1957;19:823-32, in its hourly form",
    ),
    Formula(
        "free-water-deficit",
        "Free water deficit in hypernatraemia",
        "高钠血症的自由水缺失量",
        (WEIGHT, SODIUM, ChoiceInput("group", tuple(_WATER))),
        "L",
        lambda weight, sodium, group: _WATER[group] * weight * (sodium / 140 - 1),
        "Adrogué HJ, Madias NE. N Engl J Med 2000;342:1493-9",
    ),
    Formula(
        "sodium-corrected-for-glucose",
        "Sodium corrected for hyperglycaemia",
        "高血糖时校正血钠",
        (SODIUM, GLUCOSE),
        "mmol/L",
        lambda sodium, glucose: sodium + 1.6 * (glucose - 100) / 100,
        "Katz MA. N Engl J Med 1973;289:843-4",
        "Above 400 mg/dL a factor of 2.4 fits better (Hillier 1999).",
    ),
    Formula(
        "serum-osmolality",
        "Serum osmolality, calculated",
        "血浆渗透压计算值",
        (SODIUM, GLUCOSE, NumberInput("urea_nitrogen", "mg/dL", 1, 300, "urea nitrogen")),
        "mmol/kg",
        lambda sodium, glucose, urea_nitrogen: 2 * sodium + glucose / 18 + urea_nitrogen / 2.8,
        "Dorwart WV, Chalmers L. Clin Chem 1975;21:190-4, in its common form",
    ),
    Formula(
        "corrected-calcium",
        "Calcium corrected for albumin",
        "白蛋白校正血钙",
        (NumberInput("calcium", "mg/dL", 2, 25, "calcium"), NumberInput("albumin", "g/dL", 0.5, 7)),
        "mg/dL",
        lambda calcium, albumin: calcium + 0.8 * (4 - albumin),
        "Payne RB et al. Br Med J 1973;4:643-6",
        "Ionised calcium is better where it can be measured.",
    ),
    Formula(
        "anion-gap",
        "Anion gap",
        "阴离子间隙",
        (
            SODIUM,
            NumberInput("chloride", "mmol/L", 50, 160),
            NumberInput("bicarbonate", "mmol/L", 1, 60),
        ),
        "mmol/L",
        lambda sodium, chloride, bicarbonate: sodium - chloride - bicarbonate,
        "Emmett M, Narins RG. Medicine 1977;56:38-54",
    ),
    Formula(
        "anion-gap-corrected",
        "Anion gap corrected for albumin",
        "白蛋白校正阴离子间隙",
        (
            SODIUM,
            NumberInput("chloride", "mmol/L", 50, 160),
            NumberInput("bicarbonate", "mmol/L", 1, 60),
            NumberInput("albumin", "g/dL", 0.5, 7),
        ),
        "mmol/L",
        lambda sodium, chloride, bicarbonate, albumin: (
            sodium - chloride - bicarbonate + 2.5 * (4 - albumin)
        ),
        "Figge J et al. Crit Care Med 1998;26:1807-10",
    ),
    Formula(
        "winters",
        "Expected PaCO2 in metabolic acidosis (Winters)",
        "代谢性酸中毒预期 PaCO2（Winters 公式）",
        (NumberInput("bicarbonate", "mmol/L", 1, 30),),
        "mmHg",
        lambda bicarbonate: 1.5 * bicarbonate + 8,
        "Albert MS, Dell RB, Winters RW. Ann Intern Med 1967;66:312-22",
        "Plus or minus 2 mmHg.",
    ),
)
