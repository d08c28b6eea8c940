"""What questions say of the formulas' inputs: names, numbers with units, findings, choices.

English or Chinese: "5 ft 4 in", "120 x10^9/L", "70公斤"; a finding that is negated does not hold.
The words are in `inputs.toml` (numbers, choices) and `findings.toml` (clinical findings, graded
responses).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from osler.methods.kag.formulas.unknown import is_said_unknown
from osler.text import read_packaged_table
from osler.types import Language


@dataclass(frozen=True, slots=True)
class ChoiceWords:
    """A value of a choice: its name in answers, and what stands for it."""

    names: Mapping[Language, str]
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class InputWords:
    """An input as questions write it."""

    names: Mapping[Language, str]
    labels: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    """Units that a bare number may be in; empty = it has none."""
    likely: tuple[float, float] | None = None
    """Range in the formula's unit within which a bare number counts in a unit."""
    alone: tuple[str, ...] = ()
    """Units that name the input by themselves."""
    choices: Mapping[str, ChoiceWords] | None = None
    finding: re.Pattern[str] | None = None
    """What stands for a finding."""
    grades: Mapping[float, re.Pattern[str]] | None = None
    """Points of a graded response, with what stands for each."""


@cache
def input_words() -> Mapping[str, InputWords]:
    """All inputs by name; an input in both files has the words of both."""
    numbers = read_packaged_table(__package__, "inputs.toml")
    findings = read_packaged_table(__package__, "findings.toml")
    return {
        name: _read_entry(numbers.get(name, {}), findings.get(name, {}))
        for name in (*numbers, *(name for name in findings if name not in numbers))
    }


def label_pattern(label: str) -> str:
    """A label as a pattern: whole words; with its capitals where it has up to three letters."""
    letters = sum(map(str.isalpha, label))
    plain = re.escape(label).replace(r"\ ", r"\s+")
    if not label[:1].isascii():
        return plain
    cased = plain if letters <= 3 and not label.islower() else f"(?i:{plain})"
    return rf"(?<![A-Za-z]){cased}(?![A-Za-z])"


def _read_entry(number: Mapping[str, Any], finding: Mapping[str, Any]) -> InputWords:
    entry = number or finding
    names: dict[Language, str] = {"en": entry["en"], "zh": entry["zh"]}
    likely = number.get("likely")
    return InputWords(
        names,
        tuple(dict.fromkeys((*names.values(), *number.get("words", ())))) if number else (),
        tuple(number.get("units", ())),
        (likely[0], likely[1]) if likely else None,
        tuple(number.get("alone", ())),
        {value: _read_choice(each, names) for value, each in number.get("choices", {}).items()}
        or None,
        _any_of([*finding["words"], *map(re.escape, names.values())])
        if "words" in finding
        else None,
        {float(points): _any_of(words) for points, words in finding.get("grades", {}).items()}
        or None,
    )


def _read_choice(entry: Mapping[str, Any], labels: Mapping[Language, str]) -> ChoiceWords:
    """What stands for a choice, "ascites: slight" in the words of answers included."""
    names: dict[Language, str] = {"en": entry["en"], "zh": entry["zh"]}
    told = [rf"{re.escape(label)}[:：]?\s?{re.escape(names[at])}" for at, label in labels.items()]
    return ChoiceWords(names, _any_of([*entry["words"], *told]))


def _any_of(words: list[str]) -> re.Pattern[str]:
    """A pattern of any of the words, longest first, not inside a longer Latin word."""
    either = "|".join(sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z])(?:{either})(?![A-Za-z])", re.IGNORECASE)


_NUMBER = r"(?<![A-Za-z\d.\-–/^₂])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_LITRE = r"\s?/\s?(?:L|l|升)(?![A-Za-z])"
_WORD_END = r"(?![A-Za-z])"
# Pattern, spelling, factor; longer patterns first.
_UNITS: tuple[tuple[str, str, float], ...] = (
    (rf"(?:[x×*]\s?)?10\s?(?:\^|\*)?\s?[9⁹]{_LITRE}", "10^9/L", 1),
    (r"(?:[x×*]\s?)?10\s?(?:\^|\*)?\s?[3³]\s?/\s?(?:[µμu][Ll]|mm\^?[3³])", "10^9/L", 1),
    (r"(?:K|k)\s?/\s?[µμu][Ll]", "10^9/L", 1),
    (r"/\s?(?:[µμu][Ll]|mm\^?[3³])", "1/microliter", 1),
    (r"mg\s?/\s?d[Ll]|mg\s?%|毫克\s?/\s?分升", "mg/dL", 1),
    (rf"mmol{_LITRE}|毫摩尔?{_LITRE}", "mmol/L", 1),
    (rf"(?:[µμu]mol|微摩尔?){_LITRE}", "µmol/L", 1),
    (rf"mEq{_LITRE}", "mEq/L", 1),
    (r"mmol\s?/\s?mol", "mmol/mol", 1),
    (r"g\s?/\s?d[Ll]|克\s?/\s?分升", "g/dL", 1),
    (rf"g{_LITRE}|克{_LITRE}", "g/L", 1),
    (rf"[µμu]I?U\s?/\s?m[Ll]|mI?U{_LITRE}", "mU/L", 1),
    (rf"I?U{_LITRE}", "U/L", 1),
    (r"mm\s?Hg|毫米汞柱", "mmHg", 1),
    (rf"kPa{_WORD_END}|千帕", "kPa", 1),
    (r"breaths\s?(?:/|per|a)\s?min(?:ute)?", "breaths/min", 1),
    (r"beats?\s?(?:/|per|a)\s?min(?:ute)?(?![A-Za-z])", "bpm", 1),
    (r"(?:/|per |a )\s?min(?:ute)?(?![A-Za-z])", "1/min", 1),
    (rf"bpm{_WORD_END}", "bpm", 1),
    (r"次\s?/\s?(?:分钟?|min)", "1/min", 1),
    (rf"(?:kilograms?|kilos?|kgs?){_WORD_END}|公斤|千克", "kg", 1),
    (rf"(?:lbs?|pounds?){_WORD_END}|磅", "lb", 1),
    (r"斤", "kg", 0.5),
    (rf"(?:milligrams?|mg){_WORD_END}|毫克", "mg", 1),
    (rf"(?:centimet(?:re|er)s?|cm){_WORD_END}|厘米|公分", "cm", 1),
    (rf"(?:inch(?:es)?|in){_WORD_END}(?!\s+(?:a|the|an|his|her)\b)", "inch", 1),
    (rf"(?:feet|foot|ft){_WORD_END}", "foot", 1),
    (rf"(?:milliseconds?|msecs?|ms){_WORD_END}|毫秒", "ms", 1),
    (rf"(?:seconds?|secs?|s){_WORD_END}|秒", "s", 1),
    (rf"(?:metres?|meters?|m){_WORD_END}|米", "m", 1),
    (rf"(?:grams?|g){_WORD_END}|克", "g", 1),
    (r"%|％|per ?cent", "percent", 1),
    (rf"(?:ml|mL|millilit(?:re|er)s?){_WORD_END}|毫升", "ml", 1),
    (rf"[-\s]?(?:hours?|hrs?|h){_WORD_END}|小时", "hour", 1),
    (r"[-\s]?(?:years?|yrs?)(?![A-Za-z])|[周]?岁", "year", 1),
    (r"[-\s]?months?(?![A-Za-z])|个月", "month", 1),
    (r"[-\s]?weeks?(?![A-Za-z])|周|星期", "week", 1),
    (r"[-\s]?days?(?![A-Za-z])|天|日", "day", 1),
)
_UNIT = re.compile("|".join(f"(?P<u{i}>{pattern})" for i, (pattern, _, _) in enumerate(_UNITS)))
_QUANTITY = re.compile(_NUMBER)
_IN_ALL = re.compile(
    r"(?:单位)?(?:都|均|全部?)(?:是|为|以|按|用)\s?"
    r"|\b(?:all|both)(?: values)?(?: are)?(?: given)? in\s"
)
"""What stands before a unit that is told once, for all numbers without one."""
_FEET = re.compile(
    r"(?<![A-Za-z\d.])(\d)\s?(?:ft\.?|feet|foot|['′])\s?(\d{1,2})(?:\s?(?:inch(?:es)?|in\b|[\"″]|''))?"
)
_METRES = re.compile(r"(?<![A-Za-z\d.])([12])\s?[m米]\s?(\d{2})(?!\d)")
_PRESSURE = re.compile(
    r"(?<![A-Za-z\d./])(\d{2,3})\s?/\s?(\d{2,3})(?![\d/])(?:\s?(?:mm\s?Hg|毫米汞柱))?"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number of the text, `text[start:end]`, with its unit."""

    start: int
    end: int
    number: float
    unit: str
    """In common spelling; empty for a bare number."""
    text: str

    @property
    def said(self) -> str:
        return f"{self.number:g} {self.unit}".strip()


@dataclass(frozen=True, slots=True)
class PressurePair:
    """A blood pressure, systolic over diastolic."""

    start: int
    end: int
    systolic: float
    diastolic: float


def find_pressures(text: str) -> list[PressurePair]:
    """Blood pressures such as "120/75 mmHg", where the first number is the larger."""
    pairs = []
    for match in _PRESSURE.finditer(text):
        high, low = float(match[1]), float(match[2])
        if high > low >= 10:
            pairs.append(PressurePair(match.start(), match.end(), high, low))
    return pairs


def find_quantities(text: str) -> list[Quantity]:
    """The numbers of a text with their units, in order; blood pressures are left out."""
    taken = [(pair.start, pair.end) for pair in find_pressures(text)]
    found = []
    for quantity in (*_compound_heights(text), *_plain_quantities(text)):
        if not any(quantity.start < end and start < quantity.end for start, end in taken):
            found.append(quantity)
            taken.append((quantity.start, quantity.end))
    return sorted(found, key=lambda quantity: quantity.start)


def find_common_unit(text: str) -> str:
    """The unit that is told for all numbers that have none, "all in mmol/L"; "" for none."""
    found = (_UNIT.match(text, told.end()) for told in _IN_ALL.finditer(text))
    unit = next(filter(None, found), None)
    return _UNITS[int((unit.lastgroup or "u0")[1:])][1] if unit else ""


def _compound_heights(text: str) -> Iterator[Quantity]:
    for match in _FEET.finditer(text):
        inches = 12 * float(match[1]) + float(match[2])
        yield Quantity(match.start(), match.end(), inches, "inch", match[0])
    for match in _METRES.finditer(text):
        centimetres = 100 * float(match[1]) + float(match[2])
        yield Quantity(match.start(), match.end(), centimetres, "cm", match[0])


def _plain_quantities(text: str) -> Iterator[Quantity]:
    for match in _QUANTITY.finditer(text):
        number = float(match[1].replace(",", ""))
        spaces = re.compile(r"[ \u00a0]{0,2}-?").match(text, match.end())
        at = spaces.end() if spaces else match.end()
        unit = _UNIT.match(text, at) or _UNIT.match(text, match.end())
        if unit is None:
            # A letter right behind it: a name, such as "4-2-1" or "2D", and no number.
            if not re.match(r"[A-Za-z]|[-–]\d", text[match.end() : match.end() + 2]):
                yield Quantity(match.start(), match.end(), number, "", match[0])
            continue
        _, spelling, factor = _UNITS[int((unit.lastgroup or "u0")[1:])]
        yield Quantity(
            match.start(), unit.end(), number * factor, spelling, text[match.start() : unit.end()]
        )


_NEGATION = re.compile(
    r"\b(?:no|not|without|denies|denied|never|absent|negative for|rather than|neither)\b"
    r"|n't\b|(?<!有)[无没]|未(?!成年|来|控制)|否认|排除|不伴|并非|不是",
    re.IGNORECASE,
)
# What is only asked after.
_OPEN = ("有无", "有没有", "是否有", "是否")
# Somebody else's finding.
_RELATIVE = re.compile(
    r"\bfamily history of\b|\b(?:mother|father|brother|sister|parents?)\b|家族史|(?:父|母)亲",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[.;:?!。；：？！]|\bbut\b|\bwith\b|\bhas\b|\band has\b|但|(?<!不)伴|(?<!没)有(?!无|没)"
)
_CHILD = re.compile(r"\b(?:child(?:ren)?|boy|girl)\b|儿童|小儿|患儿|男孩|女孩", re.IGNORECASE)
_INFANT = re.compile(r"\b(?:infant|baby|toddler)\b|婴儿|婴幼儿", re.IGNORECASE)
_ADULT = re.compile(
    r"\b(?:adult|m[ae]n|wom[ae]n|gentleman|lady)\b|成年?人|男性|女性", re.IGNORECASE
)
_ELDERLY = re.compile(r"\belderly\b|老(?:年|太|奶奶|爷爷|爷子|大爷|头|人)", re.IGNORECASE)
_ADULT_FROM, _ELDERLY_FROM, _INFANT_UP_TO = 18, 65, 3
_DAYS = {"year": 1.0, "month": 1 / 12, "week": 7 / 365.25, "day": 1 / 365.25}


def find_finding(name: str, text: str) -> list[bool]:
    """Whether the text affirms a finding, or denies it, or both; empty when it says neither."""
    said = []
    for match in _named_in(name, text):
        clause = _clause_before(text, match.start())
        is_open = clause.endswith(_OPEN) or is_said_unknown(text, *match.span())
        if not _RELATIVE.search(clause) and not is_open:
            said.append(not is_negated(clause, text[match.end() :]))
    return list(dict.fromkeys(said))


def is_unknown_finding(name: str, text: str) -> bool:
    """Whether the text says that a finding is unknown."""
    return any(is_said_unknown(text, *match.span()) for match in _named_in(name, text))


def _named_in(name: str, text: str) -> Iterator[re.Match[str]]:
    pattern = input_words()[name].finding
    return iter(()) if pattern is None else pattern.finditer(text)


def is_negated(clause: str, rest: str = "") -> bool:
    """Whether the words before a finding, up to its clause's beginning, deny it.

    A denial holds up to the next comma, and along a list that ends in "or": "no fever, rash or
    cough". `rest`: the words behind the finding, where such a list may end.
    """
    denials = list(_NEGATION.finditer(clause))
    if not denials:
        return False
    scope = clause[denials[-1].end() :]
    if not re.search(r"[,，、]", scope):
        return True
    listed = scope + re.split(r"[.;。；]|\bbut\b|但", rest)[0]
    return bool(re.search(r"\b(?:or|nor)\b|或|、", listed))


def find_grades(name: str, text: str) -> list[float]:
    """The points of a graded response that the text describes, the longest description first."""
    grades = input_words()[name].grades or {}
    found: list[tuple[int, int, float]] = []
    for points, pattern in grades.items():
        found += [(*match.span(), points) for match in pattern.finditer(text)]
    kept: list[tuple[int, int, float]] = []
    for start, end, points in sorted(found, key=lambda each: each[0] - each[1]):
        if not any(start < other_end and other < end for other, other_end, _ in kept):
            kept.append((start, end, points))
    return list(dict.fromkeys(points for _, _, points in sorted(kept)))


def read_choice(name: str, text: str) -> list[str]:
    """The values of a choice that the text names; a longer wording wins over one inside it."""
    choices = input_words()[name].choices or {}
    found: list[tuple[int, int, str]] = []
    for value, words in choices.items():
        found += [(*match.span(), value) for match in words.pattern.finditer(text)]
    kept = [
        (start, end, value)
        for start, end, value in found
        if not any(
            other <= start and end <= other_end and (other, other_end) != (start, end)
            for other, other_end, _ in found
        )
    ]
    return list(dict.fromkeys(value for _, _, value in sorted(kept)))


def read_group(choices: Sequence[str], text: str) -> list[str]:
    """The group of people that the text is about, among a formula's groups."""
    years = [age.number * _DAYS[age.unit] for age in find_ages(text)]
    if "adult" in choices:
        return _burn_group(years, text)
    if _CHILD.search(text) or _INFANT.search(text) or any(age < _ADULT_FROM for age in years):
        return ["child"]
    elderly = _ELDERLY.search(text) or any(age >= _ELDERLY_FROM for age in years)
    return [f"elderly {sex}" if elderly else sex for sex in find_sexes(text)]


def _burn_group(years: Sequence[float], text: str) -> list[str]:
    """Adult, child or infant; a child's age alone does not say which of the last two."""
    if _INFANT.search(text) or any(age < 1 for age in years):
        return ["infant"]
    if any(age >= _ADULT_FROM for age in years):
        return ["adult"]
    # Textbooks draw the line between infant and child at different ages.
    if any(age <= _INFANT_UP_TO for age in years):
        return []
    if _CHILD.search(text):
        return ["child"]
    return ["adult"] if _ADULT.search(text) and not years else []


def _clause_before(text: str, at: int) -> str:
    starts = [match.end() for match in _CLAUSE.finditer(text, 0, at)]
    # The sign that opens a clause of its own negation ("without") stays in it.
    return text[starts[-1] if starts else 0 : at]


_N = r"(?<![\d.])(\d{1,3}(?:\.\d+)?)"
_AGES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(
            rf"{_N}\s?-?\s?months?[-\s]old|{_N}\s?个月(?:大|龄)?(?=[^内来前后]|$)", re.IGNORECASE
        ),
        "month",
    ),
    (re.compile(rf"{_N}\s?-?\s?weeks?[-\s]old|{_N}\s?周龄", re.IGNORECASE), "week"),
    (re.compile(rf"{_N}\s?-?\s?days?[-\s]old|{_N}\s?(?:日龄|天大)", re.IGNORECASE), "day"),
    (
        re.compile(
            rf"{_N}\s?-?\s?(?:years?|yrs?|y)\s?[-/]?\s?(?:old|of\s+age|o)\b"
            rf"|{_N}\s?yo\b|{_N}\s?周?岁"
            rf"|(?:\bage|\baged|\bage\s+(?:of|is)|年龄)\s?[:：为是]?\s?{_N}"
            r"(?!\s?(?:months?|weeks?|days?|个月|[天周]))",
            re.IGNORECASE,
        ),
        "year",
    ),
)
_PRONOUNS = {
    "female": re.compile(r"\b(?:she|her|hers)\b|她", re.IGNORECASE),
    "male": re.compile(r"\b(?:he|his|him)\b|他", re.IGNORECASE),
}


def find_ages(text: str) -> list[Quantity]:
    """The ages in a text, in order."""
    found = []
    for pattern, unit in _AGES:
        for match in pattern.finditer(text):
            number = next(part for part in match.groups() if part)
            found.append(Quantity(match.start(), match.end(), float(number), unit, match[0]))
    return sorted(found, key=lambda quantity: quantity.start)


def find_sexes(text: str) -> list[str]:
    """The sexes that the text's nouns name, else its pronouns; each once."""
    choices = input_words()["sex"].choices or {}
    named = [sex for sex, words in choices.items() if words.pattern.search(text)]
    return named or [sex for sex, pattern in _PRONOUNS.items() if pattern.search(text)]
