"""Questions that a verified formula answers, before any plan is made (KAG-Thinker §3.4, Math).

The formula is found by its names, its inputs are read from the question, and the answer cites the
formula with its publication. Where an input is missing, contradictory, without a unit or out of
range, the answer is a question back, never a number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from osler.errors import BadCalculation
from osler.kb.encoders.network import ReadTokens
from osler.methods.kag.formulas import (
    FORMULAS,
    FlagInput,
    Formula,
    FormulaResult,
    Given,
    NumberInput,
)
from osler.methods.kag.formulas.findings import evaluate_range, input_words
from osler.methods.kag.formulas.pieces import read_pieces
from osler.methods.kag.formulas.targets import choose_target, find_target, prepare_text
from osler.methods.kag.logical_forms import LogicalPlan, Math, Output, PlanStep, SubAnswer
from osler.methods.kag.output import nearest_option
from osler.methods.kag.planner import plan_event
from osler.retrieve import rank_hits
from osler.trace import Calculated, FormSolved, Run
from osler.types import (
    Answer,
    DecidedBy,
    Evidence,
    Halt,
    Language,
    Locator,
    Passage,
    Question,
    Solution,
    Statement,
)

if TYPE_CHECKING:
    from osler.methods.kag.formulas.slots import SlotProblem, SlotReading

# Least share of a formula, by the pieces, for its value to be computed.
_LIKELY = 0.6
# Inputs that a question must tell for that, and for a range.
_SEVERAL = 2
# Share of the inputs from which on a missing one is asked for.
_LEAST = 0.5
SOURCE = "formulas"
"""Source name of the formulas' passages."""
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
"""Of a formula's passages, in their order."""
_RESULT: dict[Language, str] = {
    "en": "{title}: {value}, from {inputs}.",
    "zh": "{title}：{value}（依据：{inputs}）。",
}
_ABSENT: dict[Language, str] = {
    "en": "Not mentioned and counted as absent: {names}.",
    "zh": "未提及、按无计算：{names}。",
}
_UNKNOWN: dict[Language, str] = {
    "en": "Unknown, so the value is told without and with it: {names}.",
    "zh": "不详、按无与有分别计算：{names}。",
}
_UNREAD: dict[Language, str] = {
    "en": "Not understood: {names}. Told whether each item is there, the score is one number.",
    "zh": "未能读懂：{names}。请逐项说明有无，即可得出单一分值。",
}
_DEFAULT: dict[Language, str] = {
    "en": "Not given, the usual value was taken: {names}.",
    "zh": "未给出、按常用值计算：{names}。",
}
_AGAIN: dict[Language, str] = {
    "en": "{asks} {title} needs it.",
    "zh": "{asks}{title}需要此项。",
}
_UNITS: dict[Language, dict[str, str]] = {
    "en": {"year": "years", "percent": "%", "day": "days", "1/min": "/min"},
    "zh": {"year": "岁", "percent": "%", "day": "天", "week": "周", "1/min": "次/分"},
}


@dataclass(frozen=True)
class QuestionCalculator:
    """Answers a question by a formula; `None` where the question asks for no formula's value."""

    read_tokens: ReadTokens | None = None
    """`None` = rules alone read the question."""

    async def solve(self, question: Question, run: Run) -> Solution | None:
        text = prepare_text(question.text)
        pieces = read_pieces(text, self.read_tokens)
        formula = named = choose_target(FORMULAS, text, pieces)
        if formula is None and pieces and pieces.likeliest[1] >= _LIKELY:
            formula = FORMULAS.get(pieces.likeliest[0])
        if formula is None:
            return None
        # Few questions ask for a formula's value.
        from osler.methods.kag.formulas.slots import read_slots

        try:
            reading = read_slots(formula, text, pieces)
        except BadCalculation as error:  # units need an extra that is not installed
            return _unanswered(str(error), question, run)
        # Little told: the question is about the formula, not for its value. With options an
        # input may have to be looked up first.
        if not reading.told or reading.share < _LEAST:
            return None
        if reading.problems and question.options:
            return None
        few = reading.told < _SEVERAL
        if named is None and (reading.problems or few):
            return None
        if reading.unknown and few and find_target(FORMULAS, text) is None:
            return None
        if reading.problems:
            return self._ask_back(formula, reading, question, run)
        return self._conclude(formula, reading, question, run)

    def _ask_back(
        self, formula: Formula, reading: SlotReading, question: Question, run: Run
    ) -> Solution:
        _emit_plan(formula, question, run)
        asks = " ".join(ask_back(formula, each, question.language) for each in reading.problems)
        run.emit(Calculated(1, "formula", formula.id, "", asks))
        run.emit(FormSolved(1, "failed", ""))
        title = formula.title_in(question.language)
        note = _AGAIN[question.language].format(asks=asks, title=title)
        return _unanswered(note, question, run)

    def _conclude(
        self, formula: Formula, reading: SlotReading, question: Question, run: Run
    ) -> Solution | None:
        result, most = evaluate_range(formula, reading.given, reading.unknown)
        if question.options and most.value != result.value:
            return None
        value = format_range(result, most, question.language)
        answer = computed_answer(result, reading, question, value)
        number = f"{result.value:.6g} {formula.unit}"
        if result.amount is not None and any("mol" in option for option in question.options):
            number = f"{result.amount:.6g} mmol/L"
        computed = SubAnswer(1, question.text, number)
        answer = nearest_option(answer, question, [computed])
        if question.options and answer.option is None:
            return None
        ids = tuple(each.passage.id for each in answer.evidence)
        _emit_plan(formula, question, run)
        run.emit(Calculated(1, "formula", f"{result.text()} ({formula.source})", value))
        run.emit(FormSolved(1, "done", value, passages=ids))
        run.emit(FormSolved(2, "done", value, passages=ids))
        why = f"computed: {formula.id}"
        return Solution(answer, Halt.CONVERGED, why, run.usage, DecidedBy.METHOD)


def _emit_plan(formula: Formula, question: Question, run: Run) -> None:
    title = formula.title_in(question.language)
    step = PlanStep(1, title, Math((question.text,), title, "math1"))
    run.emit(plan_event(LogicalPlan((step, PlanStep(2, title, Output(("math1",))))), "formula"))


def ask_back(formula: Formula, problem: SlotProblem, language: Language) -> str:
    """The question that an unreadable input leads to."""
    name = input_words()[problem.input].names[language]
    english = language == "en"
    choices = _choices_of(formula, problem.input, language)
    match problem.kind:
        case "missing":
            told = f": {_either(choices, language)}" if choices else ""
            return f"Which {name}{told}?" if english else f"哪个{name}{told}？"
        case "contradictory" if not any(problem.values):
            return f"Is there {name}, or not?" if english else f"有没有{name}？"
        case "contradictory":
            told = _either(problem.values, language)
            return f"Which {name}: {told}?" if english else f"哪个{name}：{told}？"
        case "unit":
            value, *units = problem.values
            either = _either(units, language)
            if english:
                return f"In which unit is {name} {value}: {either}?"
            return f"{name} {value} 的单位是什么：{either}？"
        case "range":
            value, low, high = problem.values
            if english:
                return f"Is {name} {value} right? The formula holds from {low} to {high}."
            return f"{name} {value} 是否正确？公式适用范围为 {low} 至 {high}。"


def computed_answer(
    result: FormulaResult, reading: SlotReading, question: Question, value: str
) -> Answer:
    """The result, worded as `value`, as a statement that cites the formula."""
    language, formula = question.language, result.formula
    passage = formula_passage(formula, language)
    (hit,) = rank_hits([(passage, 1.0)], question.text, SOURCE)
    title = formula.title_in(language)
    inputs = ("、" if language == "zh" else ", ").join(_list_inputs(result, reading, language))
    text = _RESULT[language].format(title=title, value=value, inputs=inputs)
    return Answer(
        (Statement(text, (1,)),),
        (Evidence(hit, 0, len(passage.text), "formula"),),
        note=" ".join(_list_assumed(result, reading, language)),
        language=language,
    )


def formula_passage(formula: Formula, language: Language) -> Passage:
    """The formula, its publication and its limits as a passage that can be cited."""
    title = formula.title_in(language)
    unit = f" ({formula.unit})" if formula.unit else ""
    parts = (f"{title} = {formula.expression}{unit}.", formula.note, f"{formula.source}.")
    return Passage(
        f"{SOURCE}:{formula.id}#{_LANGUAGES.index(language)}",
        " ".join(filter(None, parts)),
        SOURCE,
        title,
        Locator(code=formula.id),
        language=language,
    )


def find_formula_passage(id: str) -> Passage | None:
    """A formula's passage by its id: `formulas:NAME#0` in English, `#1` in Chinese."""
    source, _, place = id.partition(":")
    name, _, number = place.partition("#")
    if source != SOURCE or name not in FORMULAS or number not in ("0", "1"):
        return None
    return formula_passage(FORMULAS[name], _LANGUAGES[int(number)])


def format_range(least: FormulaResult, most: FormulaResult, language: Language) -> str:
    """The value, or the two that it lies between: "2 to 4", "2 至 4"."""
    if least.value == most.value:
        return format_result(least)
    to = "至" if language == "zh" else "to"
    return f"{least.value:.3g} {to} {format_result(most)}"


def format_result(result: FormulaResult) -> str:
    """The value with its unit, to three digits: "41.3 ml/min"; from 1,000 to the unit; what is in
    use in mmol/L too in both: "9.34 mg/dL (2.33 mmol/L)"."""
    value = result.value
    digits = f"{value:.0f}" if abs(value) >= 999.5 else f"{value:.3g}"
    unit = result.formula.unit.replace("percent", "%")
    amount = f" ({result.amount:.3g} mmol/L)" if result.amount is not None else ""
    return f"{digits} {unit}{amount}".rstrip()


def _list_inputs(result: FormulaResult, reading: SlotReading, language: Language) -> list[str]:
    """The inputs that were told, with the wording of converted ones in brackets."""
    units = result.formula.units
    listed = []
    for name, value in result.used.items():
        if name in result.assumed or name in reading.unknown:
            continue
        label = input_words()[name].names[language]
        if isinstance(value, bool):
            no = "无" if language == "zh" else "no "
            listed.append(label if value else f"{no}{label}")
            continue
        said = _say_value(name, value, units.get(name, ""), language)
        told = reading.said.get(name, "")
        other = f" ({told})" if name in units and _is_converted(value, told) else ""
        listed.append(f"{label} {said}{other}")
    return listed


def _say_value(name: str, value: Given, unit: str, language: Language) -> str:
    if isinstance(value, str):
        choices = input_words()[name].choices
        return choices[value].names[language] if value in choices else value
    digits = f"{value:.0f}" if abs(value) >= 9_999.5 else f"{value:.4g}"
    return f"{digits} {_UNITS[language].get(unit, unit)}".rstrip()


def _is_converted(value: Given, told: str) -> bool:
    number = told.partition(" ")[0]
    try:
        return isinstance(value, float) and abs(float(number) - value) > 1e-9
    except ValueError:
        return False


def _list_assumed(result: FormulaResult, reading: SlotReading, language: Language) -> list[str]:
    units, joint = result.formula.units, "、" if language == "zh" else ", "
    absent, usual = [], []
    for name in result.assumed:
        label, value = input_words()[name].names[language], result.used[name]
        if isinstance(value, bool):
            absent.append(label)
        else:
            usual.append(f"{label} {_say_value(name, value, units.get(name, ''), language)}")
    unknown = [input_words()[name].names[language] for name in reading.unknown]
    unread = [f"“{clause}”" for clause in reading.unread] if unknown else []
    notes = [(_UNREAD, unread), (_UNKNOWN, unknown), (_ABSENT, absent), (_DEFAULT, usual)]
    return [text[language].format(names=joint.join(names)) for text, names in notes if names]


def _choices_of(formula: Formula, name: str, language: Language) -> list[str]:
    wanted = next(each for each in formula.inputs if each.name == name)
    if isinstance(wanted, NumberInput | FlagInput) or name == "sex":
        return []
    words = input_words()[name].choices
    return [words[c].names[language] if c in words else c for c in wanted.choices]


def _either(values: list[str] | tuple[str, ...], language: Language) -> str:
    """A list with "or"."""
    joint, last = ("、", "还是") if language == "zh" else (", ", " or ")
    return joint.join(values[:-1]) + last + values[-1] if len(values) > 1 else "".join(values)


def _unanswered(note: str, question: Question, run: Run) -> Solution:
    answer = Answer(note=note, language=question.language)
    return Solution(answer, Halt.NO_EVIDENCE, note, run.usage, DecidedBy.METHOD)
