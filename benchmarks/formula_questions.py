"""Generated questions for the value of a verified formula: 46 formulas, 20 questions each.

    python benchmarks/formula_questions.py [--seed 0] [--fresh] [--show 20]

Of ten questions a language, six give all inputs (numbers in the formula's unit or in another one,
converted here by hand-written factors), two lack an input, two tell one twice.
Right is the formula's value to half a per cent, or, where an input is missing or contradictory, a
question back. A number that is stated all the same is counted by itself. The opponent: the formula
nearest by name, its numbers taken in the order of the text, in the formula's units. With
`--fresh` in other sentences, and with other words between an input and its value.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from osler.build.hub import read_tokens
from osler.errors import BadCalculation
from osler.methods.kag.computed import QuestionCalculator
from osler.methods.kag.formulas import (
    FORMULAS,
    ChoiceInput,
    FlagInput,
    Formula,
    Given,
    NumberInput,
    evaluate_formula,
)
from osler.methods.kag.formulas.findings import input_words
from osler.methods.kag.formulas.targets import find_target
from osler.trace import Calculated, Run
from osler.types import Language, Question

FACTORS: Mapping[tuple[str, str], tuple[str, float]] = {
    ("creatinine", "mg/dL"): ("µmol/L", 88.40),
    ("bilirubin", "mg/dL"): ("µmol/L", 17.10),
    ("calcium", "mg/dL"): ("mmol/L", 0.24951),
    ("glucose", "mg/dL"): ("mmol/L", 0.055507),
    ("urea nitrogen", "mg/dL"): ("mmol/L", 0.35697),
    ("cholesterol", "mg/dL"): ("mmol/L", 0.025863),
    ("triglycerides", "mg/dL"): ("mmol/L", 0.011294),
    ("", "kg"): ("lb", 2.20462),
    ("", "cm"): ("m", 0.01),
    ("", "g/dL"): ("g/L", 10.0),
}
_UNITS: Mapping[Language, Mapping[str, str]] = {
    "en": {"year": "years", "percent": "%", "10^9/L": "x10^9/L"},
    "zh": {"year": "岁", "percent": "%", "1/min": "次/分", "day": "天", "week": "周", "kg": "公斤"},
}
_KINDS = (
    "whole",
    "whole",
    "whole",
    "whole",
    "whole",
    "whole",
    "lacking",
    "lacking",
    "twice",
    "twice",
)


_FRAMES: Mapping[Language, tuple[str, ...]] = {
    "en": (
        "Please calculate the {name} for someone with {told}.",
        "What would the {name} be? Findings: {told}.",
        "{told}: what {name} does that give?",
        "My patient: {told}. I need the {name}.",
    ),
    "zh": (
        "请帮忙计算{name}：{told}。",
        "已知{told}，求{name}。",
        "{name}等于多少？资料：{told}。",
        "有一位患者，{told}，{name}是多少？",
    ),
}
_LINKS: Mapping[Language, tuple[str, ...]] = {
    "en": (" ", " of ", ": ", " is "),
    "zh": ("", "为", "：", "是"),
}


@dataclass(frozen=True)
class FormulaCase:
    formula: Formula
    kind: str
    question: Question
    value: float | None
    """`None`: a question back is right."""


def make_cases(seed: int, *, fresh: bool = False) -> Iterator[FormulaCase]:
    languages: tuple[Language, ...] = ("en", "zh")
    for formula in FORMULAS.values():
        for language in languages:
            random = Random(f"{seed} {formula.id} {language}")
            for kind in _KINDS:
                yield _make_case(formula, kind, language, random, fresh=fresh)


def _make_case(
    formula: Formula, kind: str, language: Language, random: Random, *, fresh: bool
) -> FormulaCase:
    while True:
        given = {wanted.name: _draw(wanted, random) for wanted in formula.inputs}
        try:
            value = evaluate_formula(formula, given).value
            break
        except BadCalculation:
            continue  # inputs that do not go together: an output above the intake
    told = [
        text
        for wanted in formula.inputs
        if (text := _tell(wanted, given[wanted.name], language, random, fresh=fresh))
    ]
    required = [
        wanted
        for wanted in formula.inputs
        if isinstance(wanted, NumberInput) and wanted.default is None
    ]
    right: float | None = value
    if kind != "whole" and required:
        at = random.randrange(len(required))
        one = required[at]
        if kind == "lacking":
            gone = _tell_name(one, language)
            told = [text for text in told if not text.startswith(gone)]
        else:
            other = _draw(one, random)
            again = _tell(one, other, language, Random(0))
            first = next(text for text in told if text.startswith(_tell_name(one, language)))
            told.append(again)
            # In two units a hundredth is rounding; in one unit two numbers are two.
            in_two = first.split()[-1] != again.split()[-1]
            near = 0.01 * max(abs(float(other)), abs(float(given[one.name]))) if in_two else 1e-9
            same = abs(float(other) - float(given[one.name])) <= near
            right = value if same else None
        right = None if kind == "lacking" else right
    name = formula.title_zh if language == "zh" else formula.title
    # A name that several formulas bear stands for the first of them.
    own = [each for each in formula.aliases if find_target(FORMULAS, each) is formula]
    alias = next((each for each in own if each.isascii() == (language == "en")), name)
    random.shuffle(told)
    if fresh:
        joint = "，" if language == "zh" else ", "
        text = random.choice(_FRAMES[language]).format(name=alias, told=joint.join(told))
        return FormulaCase(formula, kind, Question(text, text, (), language), right)
    text = (
        f"患者{'，'.join(told)}。{alias}是多少？"
        if language == "zh"
        else f"A patient has {', '.join(told)}. What is the {alias}?"
    )
    return FormulaCase(formula, kind, Question(text, text, (), language), right)


def _draw(wanted: NumberInput | FlagInput | ChoiceInput, random: Random) -> Given:
    match wanted:
        case FlagInput():
            return random.random() < 0.4
        case ChoiceInput(choices=choices):
            return random.choice(choices)
        case NumberInput(low=low, high=high):
            words = input_words()[wanted.name]
            likely = words.likely or (low + (high - low) * 0.05, low + (high - low) * 0.4)
            first, last = max(low, likely[0]), min(high, likely[1])
            value = random.uniform(first, last)
            whole = wanted.unit in ("year", "mmHg", "1/min", "percent", "") or value > 20
            return float(round(value)) if whole else round(value, 1)


def _tell_name(wanted: NumberInput, language: Language) -> str:
    return input_words()[wanted.name].names[language]


def _tell(
    wanted: NumberInput | FlagInput | ChoiceInput,
    value: Given,
    language: Language,
    random: Random,
    *,
    fresh: bool = False,
) -> str:
    words = input_words()[wanted.name]
    match wanted:
        case FlagInput():
            return words.names[language] if value else ""
        case ChoiceInput():
            choice = (words.choices or {}).get(str(value))
            said = choice.names[language] if choice else str(value)
            return f"{words.names[language]} {said}"
        case NumberInput():
            unit, number = wanted.unit, float(value)
            other = FACTORS.get((wanted.substance, unit))
            if other and random.random() < 0.5:
                unit, number = other[0], number * other[1]
            shown = _UNITS[language].get(unit, unit)
            digits = f"{number:.0f}" if number >= 1000 else f"{number:.4g}"
            link = random.choice(_LINKS[language]) if fresh else " "
            # "INR2" is written now and then, "FiO240" by nobody.
            link = link or (" " if _tell_name(wanted, language)[-1:].isdigit() else "")
            return f"{_tell_name(wanted, language)}{link}{digits} {shown}".rstrip()


async def ask_calculator(case: FormulaCase) -> float | None:
    """The number that is stated; `None` for a question back, or none."""
    run = Run()
    solution = await QuestionCalculator(read_tokens=read_tokens).solve(case.question, run)
    if solution is None or not solution.answer.statements:
        return None
    told = [event for event in run.events if isinstance(event, Calculated)]
    return float(told[-1].value.split()[0]) if told else None


def guess_in_order(case: FormulaCase) -> float | None:
    formula = find_target(FORMULAS, case.question.text)
    if formula is None:
        return None
    numbers = iter(re.findall(r"(?<![\w^])\d+(?:\.\d+)?", case.question.text))
    given: dict[str, Given] = {}
    for wanted in formula.inputs:
        if isinstance(wanted, NumberInput) and (number := next(numbers, None)):
            given[wanted.name] = float(number)
        elif isinstance(wanted, ChoiceInput):
            given[wanted.name] = wanted.choices[0]
    try:
        return evaluate_formula(formula, given).value
    except BadCalculation:
        return None


def _agrees(got: float | None, gold: float | None) -> bool:
    if got is None or gold is None:
        return got is gold
    # Answers are stated to three digits.
    return abs(got - gold) <= max(0.006 * abs(gold), 0.006)


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="other wordings")
    parser.add_argument("--show", type=int, default=20)
    asked = parser.parse_args()
    count: Counter[tuple[str, str]] = Counter()
    shown = 0
    for case in make_cases(asked.seed, fresh=asked.fresh):
        got, guess = await ask_calculator(case), guess_in_order(case)
        for key in (f"{case.question.language} {case.kind}", "all"):
            count[key, "n"] += 1
            count[key, "right"] += _agrees(got, case.value)
            count[key, "wrong number"] += got is not None and not _agrees(got, case.value)
            count[key, "stated though lacking"] += got is not None and case.value is None
            count[key, "in order"] += _agrees(guess, case.value)
        if not _agrees(got, case.value) and shown < asked.show:
            shown += 1
            print(f"{case.formula.id} {case.kind}: {case.question.text}\n   {case.value} {got}")
    columns = ("n", "right", "wrong number", "stated though lacking", "in order")
    print(f"\n{'':12}" + "".join(f"{column:>23}" for column in columns))
    for key in dict.fromkeys(key for key, _ in count):
        print(f"{key:12}" + "".join(f"{count[key, column]:>23}" for column in columns))


if __name__ == "__main__":
    asyncio.run(main())
