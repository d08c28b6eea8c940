"""Reads a formula's inputs from a question: numbers with units, age, sex, findings.

Nothing is assumed: an input that is missing, told twice with different values, without a unit that
its size or its neighbours would settle, or out of range is a problem, and the question goes back to
who asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler.errors import BadCalculation
from osler.methods.kag.formulas.base import (
    ChoiceInput,
    FlagInput,
    Formula,
    Given,
    Input,
    NumberInput,
    convert_number,
)
from osler.methods.kag.formulas.findings import (
    InputWords,
    find_ages,
    find_finding,
    find_grades,
    find_sexes,
    input_words,
    is_unknown_finding,
    label_pattern,
    read_choice,
    read_group,
)
from osler.methods.kag.formulas.owners import BOUNDS, assign_quantities, find_unread, read_topic
from osler.methods.kag.formulas.pieces import TELLS, ReadPieces
from osler.methods.kag.formulas.quantities import Quantity, find_common_unit, find_quantities
from osler.methods.kag.formulas.targets import prepare_text
from osler.text import has_cjk

ProblemKind = Literal["missing", "contradictory", "unit", "range"]
# Values of one input that differ by less than this share are the same measurement, rounded.
_SAME = 0.01
# Share by which a converted value may miss a bound by rounding.
_ROUND = 0.0005
# Shares of a number in an input: from which on it speaks against the one that a rule read, below
# which that one may have; and how much as sure a second number of an input is.
_SURE, _UNSURE, _AS_SURE = 0.7, 0.2, 0.8
# What most questions say of a patient, whatever they ask.
_PERSON = frozenset({"age", "sex", "group"})
_BARE = re.compile(r"\s*\d+(?:\.\d+)?\s*")
# Units of one laboratory: who tells a creatinine of 1.9 has the bilirubin of 6 in mg/dL too.
_CONVENTIONAL = frozenset({"mg/dL", "g/dL"})
_SI = frozenset({"mmol/L", "µmol/L", "g/L"})
_CHINESE = _SI | {"mmHg"}
_NITROGEN = re.compile(r"\bBUN\b")


@dataclass(frozen=True, slots=True)
class SlotProblem:
    """An input that could not be read."""

    kind: ProblemKind
    input: str
    values: tuple[str, ...] = ()
    """The values told; of "unit" the number first and the units that it may be in after it."""


@dataclass(frozen=True, slots=True)
class SlotReading:
    """The inputs of a formula, in its own units, and what keeps it from being computed."""

    given: dict[str, Given]
    said: dict[str, str]
    """The wording of values that were converted: "150 µmol/L"."""
    problems: tuple[SlotProblem, ...]
    told: int
    """Number of measurements, findings and grades that the text tells; age and sex are none."""
    share: float
    """Share of the required inputs that the text mentions."""
    unknown: tuple[str, ...] = ()
    """Findings that the text says are unknown, or whose words were not understood."""
    unread: tuple[str, ...] = ()
    """Clauses that were not understood."""


@dataclass(frozen=True, slots=True)
class _Value:
    value: Given
    said: str
    problem: SlotProblem | None = None


class AmbiguousUnit(BadCalculation):
    """A number without a unit whose size fits several units, or none."""


def settle_bare_numbers(
    formula: Formula, inputs: Mapping[str, Given], known: Sequence[str] = ()
) -> dict[str, Given]:
    """The inputs with numbers that have no unit brought into the formula's unit.

    A number that `known` tells with a unit is in that unit. One that stands nowhere in it was
    converted by the model, into the unit that its prompt showed. Raises `AmbiguousUnit` for a
    number that is told without a unit, and whose size does not say which it is in.
    """
    settled = dict(inputs)
    quantities = find_quantities("\n".join(known))
    for wanted in formula.inputs:
        number = inputs.get(wanted.name)
        if isinstance(wanted, NumberInput) and isinstance(number, str):
            number = float(number) if _BARE.fullmatch(number) else number
        if isinstance(number, bool | str | None) or not isinstance(wanted, NumberInput):
            continue
        same = [each for each in quantities if each.number == float(number)]
        if quantities and not same:
            settled[wanted.name] = float(number)
            continue
        unit = _told_unit(wanted, same)
        value = _convert_quantity(wanted, Quantity(0, 0, float(number), unit, f"{number:g}"))
        if value.problem is not None and value.problem.kind == "unit":
            units = " or ".join(value.problem.values[1:])
            raise AmbiguousUnit(f"{formula.id}: is {wanted.name} {number:g} in {units}?")
        settled[wanted.name] = value.value
    return settled


def _told_unit(wanted: NumberInput, same: Sequence[Quantity]) -> str:
    """The unit in which a number is told, of those that the input may be in; "" for none, and for
    two."""
    units = {each.unit for each in same if each.unit and _in_unit(wanted, each.number, each.unit)}
    if wanted.unit in units:
        return wanted.unit
    return units.pop() if len(units) == 1 else ""


def read_slots(formula: Formula, text: str, pieces: ReadPieces | None = None) -> SlotReading:
    """The inputs of `formula` that `text` gives, by rules, and where they find none by its pieces:
    those of `prepare_text`."""
    text = prepare_text(text)
    findings = _blank_names(formula, text)
    assigned = assign_quantities(formula, text)
    units = _find_units(formula, text, assigned)
    told = _tell_by_pieces(formula, text, assigned, units, pieces) if pieces else {}
    inputs: dict[str, Given] = {}
    quotes: dict[str, str] = {}
    problems: list[SlotProblem] = []
    stated: list[Input] = []
    for wanted in formula.inputs:
        said = findings if isinstance(wanted, FlagInput) else text
        read = _read_values(wanted, said, assigned, units)
        if pieces and not read and isinstance(wanted, ChoiceInput):
            choice = pieces.choose_value(formula, wanted)
            read = [_Value(choice, choice)] if choice else []
        values = _distinct_values([*read, *told.get(wanted.name, ())])
        stated += [wanted] if values else []
        if len(values) == 1 and values[0].problem is None:
            inputs[wanted.name], quotes[wanted.name] = values[0].value, values[0].said
        elif problem := _find_problem(wanted, values) or _find_untaken(wanted, text, assigned):
            problems.append(problem)
    flags = [each for each in formula.inputs if isinstance(each, FlagInput) and each not in stated]
    unread = find_unread(formula, findings) if flags else []
    unknown = [
        each
        for each in flags
        if unread
        or is_unknown_finding(each.name, findings)
        or read_topic(each.name, findings) == "open"
    ]
    stated += [each for each in unknown if is_unknown_finding(each.name, text)]
    needed = [each for each in formula.inputs if not _may_be_absent(each)]
    share = len([each for each in needed if each in stated]) / len(needed) if needed else 1.0
    about_the_case = [each for each in stated if each.name not in _PERSON or len(needed) == 1]
    names = tuple(each.name for each in unknown)
    return SlotReading(
        inputs, quotes, tuple(problems), len(about_the_case), share, names, tuple(unread)
    )


def _find_units(
    formula: Formula, text: str, assigned: Mapping[str, Sequence[Quantity]]
) -> frozenset[str]:
    """The units of the laboratory that the numbers are from, where those that have a unit, or
    could have but one, agree; Chinese ones report in SI."""
    numbers = [each for each in formula.inputs if isinstance(each, NumberInput)]
    known: set[frozenset[str]] = set()
    for wanted in numbers:
        words = input_words()[wanted.name]
        if not all(system & {*words.units} for system in (_CONVENTIONAL, _SI)):
            continue
        for one in assigned.get(wanted.name, ()):
            may = {one.unit} if one.unit else set(_plausible_values(wanted, words, one.number))
            known |= {each for each in (_CONVENTIONAL, _SI) if may and may <= each}
    if not known and has_cjk(text):
        return _CHINESE
    if not known and _NITROGEN.search(text):  # no laboratory tells nitrogen in mmol/L by this name
        return _CONVENTIONAL
    return known.pop() if len(known) == 1 else frozenset()


def _tell_by_pieces(
    formula: Formula,
    text: str,
    assigned: dict[str, list[Quantity]],
    units: frozenset[str],
    pieces: ReadPieces,
) -> dict[str, list[_Value]]:
    """Numbers for inputs of which the rules read none, and where they read one, another that tells
    the input far more surely."""
    numbers = {each.name: each for each in formula.inputs if isinstance(each, NumberInput)}
    ruled = {name for name, each in numbers.items() if _read_numbers(each, text, assigned, units)}
    used = [(one.start, one.end) for owned in assigned.values() for one in owned]
    used += [(age.start, age.end) for age in find_ages(text) if "age" in numbers]
    common = find_common_unit(text)
    told: dict[str, list[_Value]] = {}
    surest: dict[str, float] = {}
    for share, name, number in pieces.find_owners(formula, used):
        wanted = numbers[name]
        least = TELLS if wanted.default is None else TELLS / 2
        if name in ruled:
            own = (pieces.share_number(formula, name, one) for one in assigned.get(name, ()))
            least = _SURE if max(own, default=1.0) < _UNSURE else 1.0
        if share < max(least, _AS_SURE * surest.get(name, 0.0)):
            continue
        if any(start < number.end and number.start < end for start, end in used):
            continue
        takes = not number.unit and common in input_words()[name].units
        value = _convert_quantity(wanted, replace(number, unit=common) if takes else number, units)
        if value.problem is None or (value.problem.kind == "unit" and not number.unit):
            told.setdefault(name, []).append(value)
            surest.setdefault(name, share)
            used.append((number.start, number.end))
    return told


def _blank_names(formula: Formula, text: str) -> str:
    """The text without the formula's names, whose words are no findings: "stroke risk score"."""
    names = sorted((formula.title, formula.title_zh, *formula.aliases), key=len, reverse=True)
    pattern = "|".join(map(label_pattern, names))
    return re.sub(pattern, lambda found: " " * len(found[0]), text)


def _may_be_absent(wanted: Input) -> bool:
    return isinstance(wanted, FlagInput) or wanted.default is not None


def _find_problem(wanted: Input, values: Sequence[_Value]) -> SlotProblem | None:
    """Why an input has no single value; `None` for one that may be absent."""
    if not values:
        return None if _may_be_absent(wanted) else SlotProblem("missing", wanted.name)
    if len(values) == 1:
        return values[0].problem
    return SlotProblem("contradictory", wanted.name, tuple(value.said for value in values))


def _find_untaken(
    wanted: Input, text: str, assigned: dict[str, list[Quantity]]
) -> SlotProblem | None:
    """A number that no input took and that may be this one's: its usual value is then no answer."""
    if not isinstance(wanted, NumberInput) or wanted.default is None:
        return None
    taken = {each.start for owned in assigned.values() for each in owned}
    taken |= {age.start for age in find_ages(text)}
    free = (each for each in find_quantities(text) if each.start not in taken and each.unit)
    units = input_words()[wanted.name].units
    may = any(each.unit in units and each.number != wanted.default for each in free)
    return SlotProblem("missing", wanted.name) if may else None


def _distinct_values(values: Sequence[_Value]) -> list[_Value]:
    """Values that differ; numbers in two units within `_SAME` of each other count once."""
    kept: list[_Value] = []
    for value in values:
        if not any(_is_same(value, other) for other in kept):
            kept.append(value)
    return kept


def _is_same(one: _Value, other: _Value) -> bool:
    if isinstance(one.value, float) and isinstance(other.value, float):
        if one.problem or other.problem:
            return one.said == other.said
        if one.said.partition(" ")[2] == other.said.partition(" ")[2]:
            return one.value == other.value  # only a conversion rounds
        return abs(one.value - other.value) <= _SAME * max(abs(one.value), abs(other.value))
    return one.value == other.value


def _read_values(
    wanted: Input, text: str, assigned: dict[str, list[Quantity]], units: frozenset[str]
) -> list[_Value]:
    match wanted:
        case FlagInput(name=name):
            values = [_Value(there, "") for there in find_finding(name, text)]
            values += _read_bound(name, text, assigned)
            if values or is_unknown_finding(name, text) or read_topic(name, text) != "denied":
                return values
            return [_Value(False, "")]
        case ChoiceInput(name="sex"):
            return [_Value(sex, sex) for sex in find_sexes(text)]
        case ChoiceInput(name="group", choices=choices):
            return [_Value(group, group) for group in read_group(choices, text)]
        case ChoiceInput(name=name):
            return [_Value(value, value) for value in read_choice(name, text)]
        case NumberInput():
            return _read_numbers(wanted, text, assigned, units)


def _read_bound(name: str, text: str, assigned: dict[str, list[Quantity]]) -> list[_Value]:
    """Whether a measured value is over a finding's bound; the 100 of "heart rate over 100" is no
    measurement."""
    measured, bound = BOUNDS.get(name, ("", 0.0))
    pattern = input_words()[name].finding
    spans = [match.span() for match in pattern.finditer(text)] if pattern else []
    return [
        _Value(each.number > bound, each.said)
        for each in assigned.get(measured, ())
        if not any(start <= each.start < end for start, end in spans)
    ]


def _read_numbers(
    wanted: NumberInput, text: str, assigned: dict[str, list[Quantity]], units: frozenset[str]
) -> list[_Value]:
    quantities = list(assigned.get(wanted.name, ()))
    if wanted.name == "age":
        quantities = find_ages(text) or quantities
    values = [_convert_quantity(wanted, quantity, units) for quantity in quantities]
    if not values and input_words()[wanted.name].grades:
        values = [_Value(points, f"{points:g}") for points in find_grades(wanted.name, text)]
    if not values and wanted.name == "fio2" and re.search(r"room air|空气", text, re.IGNORECASE):
        return [_Value(21.0, "21 %")]
    return values


def _convert_quantity(
    wanted: NumberInput, quantity: Quantity, units: frozenset[str] = frozenset()
) -> _Value:
    """The number in the input's own unit; one without a unit is in the one in which its size is
    plausible, of several in that of `units`."""
    words = input_words()[wanted.name]
    if quantity.unit or not words.units:
        told = _in_unit(wanted, quantity.number, quantity.unit)
        fits = {} if told is None else {quantity.unit: told}
    else:
        fits = _plausible_values(wanted, words, quantity.number)
        fits = {one: fits[one] for one in fits.keys() & units} or fits
    if len(set(fits.values())) != 1:
        spoken = ("%" if unit == "percent" else unit for unit in words.units)
        problem = SlotProblem("unit", wanted.name, (quantity.said, *spoken))
        return _Value(quantity.number, quantity.said, problem)
    unit, value = next(iter(fits.items()))
    said = replace(quantity, unit=unit).said
    # 77.16 lb are 35 kg: what was rounded to a bound is not beyond it.
    value = next(
        (end for end in (wanted.low, wanted.high) if abs(value - end) <= _ROUND * end), value
    )
    if wanted.low <= value <= wanted.high:
        return _Value(value, said)
    bounds = (f"{wanted.low:g}", f"{wanted.high:g} {wanted.unit}".strip())
    return _Value(value, said, SlotProblem("range", wanted.name, (said, *bounds)))


def _plausible_values(wanted: NumberInput, words: InputWords, number: float) -> dict[str, float]:
    low, high = words.likely or (wanted.low, wanted.high)
    values = {unit: _in_unit(wanted, number, unit) for unit in words.units}
    return {
        unit: round(value, 9)
        for unit, value in values.items()
        if value is not None and low <= value <= high
    }


def _in_unit(wanted: NumberInput, number: float, unit: str) -> float | None:
    """The number in the input's own unit; `None` for a unit of another dimension."""
    if unit == "fraction":
        return 100 * number if number <= 1 else None
    if unit == "breaths/min":
        unit = "1/min"
    try:
        return convert_number(wanted, number, unit) if unit else number
    except ValueError:
        return None
