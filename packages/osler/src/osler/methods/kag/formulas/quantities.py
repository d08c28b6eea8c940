"""Numbers of a text with their units, as questions write them: "5 ft 4 in", "120 x10^9/L"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

_NUMBER = r"(?<![A-Za-z\d.\-–/^₂])(\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?)"
_LITRE = r"\s?/\s?(?:L|l|litre|liter|升)(?![A-Za-z])"
_WORD_END = r"(?![A-Za-z])"
# Pattern, spelling, factor; longer patterns first.
_UNITS: tuple[tuple[str, str, float], ...] = (
    (rf"(?:[x×*]\s?)?10\s?(?:\^|\*)?\s?[9⁹]{_LITRE}", "10^9/L", 1),
    (r"(?:[x×*]\s?)?10\s?(?:\^|\*)?\s?[3³]\s?/\s?(?:[µμu][Ll]|mm\^?[3³])", "10^9/L", 1),
    (r"(?:K|k)\s?/\s?[µμu][Ll]", "10^9/L", 1),
    (r"/\s?(?:[µμu][Ll]|mm\^?[3³])", "1/microliter", 1),
    (r"mg\s?/\s?d[Ll]|mg\s?%|毫克\s?/\s?分升", "mg/dL", 1),
    (rf"(?:mmol|毫摩尔?)(?:{_LITRE}|\s?(?:per|每)\s?(?:lit(?:re|er)|升))", "mmol/L", 1),
    (
        rf"(?:[µμu]mol|micromol(?:es)?|微摩尔?)(?:{_LITRE}|\s?(?:per|每)\s?(?:lit(?:re|er)|升))",
        "µmol/L",
        1,
    ),
    (rf"mEq{_LITRE}", "mEq/L", 1),
    (r"mmol\s?/\s?mol", "mmol/mol", 1),
    (r"g\s?/\s?d[Ll]|克\s?/\s?分升", "g/dL", 1),
    (rf"g{_LITRE}|克{_LITRE}", "g/L", 1),
    (rf"(?:[µμu]I?U|micro-?units)\s?/\s?m[Ll]|mI?U{_LITRE}", "mU/L", 1),
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
    (rf"(?:stones?|st){_WORD_END}", "lb", 14),
    (rf"(?:milligrams?|mg){_WORD_END}|毫克", "mg", 1),
    (rf"(?:centimet(?:re|er)s?|cm){_WORD_END}|厘米|公分", "cm", 1),
    (rf"英寸|(?:inch(?:es)?|in){_WORD_END}(?!\s+(?:a|the|an|his|her)\b)", "inch", 1),
    (rf"英尺|(?:feet|foot|ft){_WORD_END}", "foot", 1),
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
    r"(?:单位)?(?:都|均|全部?)(?:是|为|以|按|用)?\s?"
    r"|\b(?:all|both|everything|values|units?)(?: values)?(?: are| is)?(?: given|"
    r" measured)?(?: in)?:?\s"
)
"""What stands before a unit that is told once, for all numbers without one."""
# Measures in two units: the first in the second, whose name stands behind.
_COMPOUND = (
    (
        re.compile(
            r"(?<![A-Za-z\d.])(\d)\s?(?:ft\.?|feet|foot|英尺|['′])\s?(\d{1,2})(?:\s?(?:inch(?:es)?|"
            r"in\b|[\"″]|''))?"
        ),
        12,
        "inch",
    ),
    (
        re.compile(
            r"(?<![A-Za-z\d.])(\d{1,2})\s?(?:stones?|"
            r"st)(?:\s(?:and\s)?(\d{1,2})(?!\d)(?:\s?(?:lbs?|pounds?)\b)?)?(?![A-Za-z])"
        ),
        14,
        "lb",
    ),
    (re.compile(r"(?<![A-Za-z\d.])([12])\s?[m米]\s?(\d{2})(?!\d)"), 100, "cm"),
)
_PRESSURE = re.compile(
    r"(?<![A-Za-z\d./])(\d{2,3})(?:\s?/\s?|\sover\s)(\d{2,3})(?![\d/])(?:\s?(?:mm\s?Hg|毫米汞柱))?"
)


_GLUED = re.compile(r"\d+(?:\.\d+)?")
_PARTS = {("year", "month"): 12, ("week", "day"): 7}
_PART_GAP = re.compile(r"[\s,零又和+加]{0,3}(?:and)?[\s+]{0,2}")


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
    found = ((match, float(match[1]), float(match[2])) for match in _PRESSURE.finditer(text))
    return [
        PressurePair(*match.span(), high, low) for match, high, low in found if high > low >= 10
    ]


class Spanned(Protocol):
    """A part of a text."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...


Part = TypeVar("Part", bound=Spanned)


def longest_apart(found: Iterable[Part]) -> list[Part]:
    """Of parts that overlap the longest, of equals the first; in the order of the text."""
    kept: list[Part] = []
    for one in sorted(found, key=lambda each: each.start - each.end):
        if not any(one.start < other.end and other.start < one.end for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda each: each.start)


def find_quantities(text: str) -> list[Quantity]:
    """The numbers of a text with their units, in order; blood pressures are left out."""
    taken = [(pair.start, pair.end) for pair in find_pressures(text)]
    found = []
    for quantity in (*_compound_measures(text), *_plain_quantities(text)):
        if not any(quantity.start < end and start < quantity.end for start, end in taken):
            found.append(quantity)
            taken.append((quantity.start, quantity.end))
    return sorted(found, key=lambda quantity: quantity.start)


def find_numbers(text: str) -> list[Quantity]:
    """Each number of a text, in order: as `find_quantities`, the two of a blood pressure, and those
    glued to letters ("plt150", "72F"); "3 years 2 months" and "12 weeks 3 days" are one."""
    found = [*_pressure_numbers(text), *find_quantities(text)]
    for match in _GLUED.finditer(text):
        if not any(match.start() < one.end and one.start < match.end() for one in found):
            first = next(iter(find_quantities(text[match.start() :])), None)
            glued = Quantity(*match.span(), float(match[0]), "", match[0])
            if first is not None and first.start == 0:
                end = match.start() + first.end
                glued = Quantity(match.start(), end, first.number, first.unit, first.text)
            found.append(glued)
    return list(_join_parts(sorted(found, key=lambda one: one.start), text))


def _pressure_numbers(text: str) -> Iterator[Quantity]:
    for pair in find_pressures(text):
        for match in re.finditer(r"\d{2,3}", text[pair.start : pair.end]):
            start, end = pair.start + match.start(), pair.start + match.end()
            yield Quantity(start, end, float(match[0]), "mmHg", match[0])


def _join_parts(numbers: Sequence[Quantity], text: str) -> Iterator[Quantity]:
    """Years and months in months, weeks and days in days."""
    left = list(numbers)
    while left:
        first = left.pop(0)
        parts = _PARTS.get((first.unit, left[0].unit if left else ""))
        if parts and _PART_GAP.fullmatch(text, first.end, left[0].start):
            second = left.pop(0)
            number = parts * first.number + second.number
            said = text[first.start : second.end]
            yield Quantity(first.start, second.end, number, second.unit, said)
        else:
            yield first


def find_common_unit(text: str) -> str:
    """The unit that is told for all numbers that have none, "all in mmol/L"; "" for none."""
    found = (_UNIT.match(text, told.end()) for told in _IN_ALL.finditer(text))
    unit = next(filter(None, found), None)
    return _UNITS[int((unit.lastgroup or "u0")[1:])][1] if unit else ""


def _compound_measures(text: str) -> Iterator[Quantity]:
    for pattern, parts, unit in _COMPOUND:
        for match in pattern.finditer(text):
            number = parts * float(match[1]) + float(match[2] or 0)
            yield Quantity(*match.span(), number, unit, match[0])


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


_DIGITS = {sign: number for number, sign in enumerate("零一二三四五六七八九")} | {"两": 2}
_SPOKEN = re.compile(
    r"(?P<share>百分之)?(?<![一二两三四五六七八九十百几])"
    r"(?P<hundreds>[一二两三四五六七八九]百)?零?(?P<tens>[一二三四五六七八九]?十)?"
    r"(?P<ones>[一二两三四五六七八九])?(?:点(?P<decimals>[零一二三四五六七八九]{1,2}))?"
    r"(?P<unit>岁|周岁|斤|公斤|千克|厘米|公分|米(?P<part>[一二三四五六七八九]{1,2})?|分钟|个?小时|次)?"
)


_ROUND_TENS = re.compile(r"([一二两三四五六七八九])百([一二三四五六七八九])(?![十百点\d])")
"""一百三 is 130, as 一百零三 is 103."""
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"
    " sixteen seventeen eighteen nineteen"
)
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_ENGLISH = {word: number for number, word in enumerate(_ONES.split())} | {
    word: 10 * number for number, word in enumerate(_TENS.split(), start=2)
}
_ONE, _TEEN, _TEN = (
    "|".join(word for word, number in _ENGLISH.items() if number in numbers)
    for numbers in (range(1, 10), range(10, 20), range(20, 100))
)
_TWO_DIGITS = rf"(?:(?:{_TEN})(?:[\s-](?:{_ONE}))?|{_TEEN})"
_WORDED = re.compile(
    rf"\b(?:(?:a|{_ONE})\shundred(?:\s(?:and\s)?(?:{_TWO_DIGITS}|{_ONE}))?"
    rf"|(?:(?:{_ONE})\s)?{_TWO_DIGITS}|{_ONE}|zero)(?:\spoint(?:\s(?:zero|{_ONE}))+)?\b",
    re.IGNORECASE,
)
_PER = re.compile(
    r"(?<=[gl])\s(?:per|a)\s(?=(?:dL|dl|litre|liter|L|l)\b)|(?<=units)\s?per\s(?=m[lL]\b)|(?<=[克尔])每(?=升|分升)"
)


_DECIMAL_COMMA = re.compile(r"(?<![\d.,])(\d(?=,\d\d)|\d{1,3}(?=,\d(?!\d))),(\d{1,2})(?!,?\d|\.\d)")
"""In "1,2 mg/dL" and "1,75 m"; "70,60 kg" may be two numbers."""


def write_figures(text: str) -> str:
    """The text with figures for numbers in English words, for Chinese ones before a unit, and for
    shares: "eighty one" → "81", "百分之四十" → "40%"; with a point for a decimal comma."""
    text = _DECIMAL_COMMA.sub(r"\1.\2", text)
    tens = _ROUND_TENS.sub(lambda found: f"{found[1]}百{found[2]}十", text)
    return _PER.sub("/", _SPOKEN.sub(_write_figure, _WORDED.sub(_write_english, tens)))


def _write_english(found: re.Match[str]) -> str:
    """The number in figures; "one" alone is rarely a number; "one thirty" is 130."""
    whole, _, decimals = found[0].lower().partition(" point")
    numbers = [_ENGLISH.get(word, 0) for word in re.findall("[a-z]+", whole.replace("and", ""))]
    if "hundred" in whole:
        number = 100 * (numbers[0] or 1) + sum(numbers[1:])
    elif len(numbers) > 1 and numbers[0] < 10:
        number = 100 * numbers[0] + sum(numbers[1:])
    else:
        number = sum(numbers)
    if number == 1 and not decimals:
        return found[0]
    told = "".join(str(_ENGLISH[word]) for word in decimals.split())
    return f"{number}.{told}" if told else str(number)


def _write_figure(found: re.Match[str]) -> str:
    said = found["hundreds"] or found["tens"] or found["ones"]
    # 十 alone may be "very" (十分) or "full" (十足).
    is_number = (
        found["hundreds"] or len(found["tens"] or "") > 1 or (found["tens"] and found["ones"])
    )
    if not said or not (found["share"] or found["unit"] or found["decimals"] or is_number):
        return found[0]
    hundreds = 100 * _DIGITS[found["hundreds"][0]] if found["hundreds"] else 0
    tens = found["tens"] or ""
    tenfold = 10 * (_DIGITS[tens[0]] if len(tens) > 1 else 1) if tens else 0
    number = str(hundreds + tenfold + (_DIGITS[found["ones"]] if found["ones"] else 0))
    if found["decimals"]:
        number += "." + "".join(str(_DIGITS[sign]) for sign in found["decimals"])
    if found["share"]:
        return f"{number}%{found['unit'] or ''}"
    if part := found["part"]:
        return f"{number}米{''.join(str(_DIGITS[sign]) for sign in part).ljust(2, '0')}"
    return f"{number}{found['unit'] or ''}"
