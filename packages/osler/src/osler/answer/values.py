"""Measured values: whether a sentence gives a range that has the value of a question.

"With an INR above 8.0 stop warfarin" is no answer for somebody whose INR is 6.4, where the sentence
after it speaks of 5.0 to 8.0. Ranges are read by how they are worded, behind the measure's name.
So are bands of age, by which doses are printed: "Under 2 years: 50 to 100 mL".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import inf

_NUMBER = r"((?<!\d)\d{1,9}+(?:\.\d{1,9}+)?)"
_NO_VALUE = (
    r"(?!\.?\d|\s*(?:-|to)?\s*(?:h|hours?|hrs?|days?|weeks?|months?|years?|yrs?|min\w*|times?|mg|mcg|g|kg"
    r"|ml|mmol(?!/)|micrograms?|grams?|units?)\b|\s*(?:小时|天|日|周|个?月|年|岁|分钟|次|片|毫克|微克|毫升|单位))"
)
"""Behind a number that is a time or a dose."""
_ASKED = re.compile(
    r"(?P<name>(?<![A-Za-z0-9-])[A-Za-z][A-Za-z0-9-]{1,30}|[\u4e00-\u9fff]{2,6})"
    r"(?:\s*(?:level|score|is|was|of|at|to|came|comes|back|now|about|around|only|today|has|gone|up|down|"
    r"reads?|=|:|：|是|为|到|只有|才|了|都|有)){0,6}+\s*" + _NUMBER + _NO_VALUE,
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    _NUMBER + r"\s*(?:-|–|~|～|to|and|至|到)\s*" + _NUMBER + _NO_VALUE, re.IGNORECASE
)
_ABOVE = re.compile(
    r"(?:\babove|\bover|\bmore than|\bgreater than|\bat least|\bexceed\w*|[>≥]"
    r"|(?<!不)(?:高于|超过|大于)|不低于|不小于|不少于|达到?)\s*" + _NUMBER + _NO_VALUE,
    re.IGNORECASE,
)
_BELOW = re.compile(
    r"(?:\bbelow|\bunder|\bless than|\blower than|[<≤]"
    r"|(?<!不)(?:低于|小于)|不足|不高于|不大于|不超过|不到)\s*" + _NUMBER + _NO_VALUE,
    re.IGNORECASE,
)
_UNIT = r"(?:\s*[A-Za-z%/μ][\w%/.^]*(?:\s\w+/\w+)?)?"
_OR_MORE = re.compile(
    _NUMBER + _NO_VALUE + _UNIT + r"\s*(?:or (?:more|above|higher|over)|及?以上)", re.IGNORECASE
)
_OR_LESS = re.compile(
    _NUMBER + _NO_VALUE + _UNIT + r"\s*(?:or (?:less|below|lower|under)|及?以下)", re.IGNORECASE
)
_NEAR = 24
"""Characters after a measure's name within which its first range begins."""
_FIRST = 4
"""Characters within which a clause begins with a range of the measure that is named before it."""
_SHORTEST = 2


def read_values(asked: str) -> Iterator[tuple[str, float]]:
    """The measures that a question names with a number, and the number."""
    for found in _ASKED.finditer(asked):
        yield found["name"].casefold(), float(found[2])


def read_ranges(text: str) -> list[tuple[int, float, float]]:
    """Ranges of a text: where each begins, least and most."""
    both = [(m.start(), float(m[1]), float(m[2])) for m in _BETWEEN.finditer(text)]
    above = [
        (m.start(), float(m[1]), inf) for one in (_ABOVE, _OR_MORE) for m in one.finditer(text)
    ]
    below = [
        (m.start(), -inf, float(m[1])) for one in (_BELOW, _OR_LESS) for m in one.finditer(text)
    ]
    return [*both, *above, *below]


def measure_distance(asked: str, sentence: str, before: str = "") -> float | None:
    """How far the value that a question names lies from the end of a range of one end that the
    sentence gives of its measure; 0 within a range of two ends, `inf` where no range has it, `None`
    where the sentence gives none. What stands `before` may name the measure of a clause that begins
    with its range: "4.5～10而无出血者"."""
    read = ((value, _ranges_of(name, sentence, before)) for name, value in read_values(asked))
    found = next(((value, ranges) for value, ranges in read if ranges), None)
    if found is None:
        return None
    value, ranges = found
    having = [one for one in ranges if one[0] <= value <= one[1]]
    if any(most - least < inf for least, most in having):
        return 0.0
    return min((abs(value - end) for one in having for end in one), default=inf)


def _ranges_of(name: str, sentence: str, before: str) -> list[tuple[float, float]]:
    """The ranges of a measure that begin behind its name; none where the first is far from it."""
    at, near = _find_name(name, sentence.casefold()), _NEAR
    if at < 0 <= _find_name(name, before.casefold()):
        at, near = 0, _FIRST
    ranges = [one for one in read_ranges(sentence) if one[0] >= at] if at >= 0 else []
    is_near = any(start - at <= near for start, _, _ in ranges)
    return [(least, most) for _, least, most in ranges] if is_near else []


def _find_name(name: str, sentence: str) -> int:
    """Where a measure's name ends in a sentence; -1 if absent. A Chinese name may have other
    words before it: "我的血钾"."""
    if name.isascii():
        found = re.search(rf"(?<![a-z]){re.escape(name)}(?![a-z])", sentence)
        return found.end() if found else -1
    tails = (name[at:] for at in range(len(name) - _SHORTEST + 1))
    ends = (sentence.find(tail) + len(tail) for tail in tails if tail in sentence)
    return next(ends, -1)


_ENGLISH = (
    *("one", "two", "three", "four", "five", "six"),
    *("seven", "eight", "nine", "ten", "eleven", "twelve"),
)
_CHINESE = "一二三四五六七八九十"
_WORDS = {word: n for n, word in enumerate(_ENGLISH, 1)} | {
    sign: n for n, sign in enumerate(_CHINESE, 1)
}
_N = rf"(?<![\d.])(\d{{1,3}}(?:\.\d)?|\b(?:{'|'.join(_ENGLISH)})\b|[{_CHINESE}两十]{{1,3}})"
_U = r"[\s-]*(years?|yrs?|y|months?|mo|weeks?|wks?|days?|周?岁|个?月)"
_OF_AGE = r"(?:[\s-]*(?:old|of age)\b)"
_ASKED_AGE = re.compile(
    rf"{_N}{_U}(?:{_OF_AGE}|/?o\b|(?<=岁)(半)?|(?<=月)(?:大|龄|的?(?:宝宝|娃|孩子|婴|小毛头)))"
    rf"|\baged?\s+(?:of\s+)?(\d{{1,3}})\b(?!\s*(?:months?|weeks?|days?))",
    re.IGNORECASE,
)
_AGED = r"(?:\bage[ds]?(?: (?:between|from|of|over|under))?[\s:]+)"
_WHO = (
    rf"(?:{_AGED}|\b(?:child|children|infants?|bab(?:y|ies)|toddlers?|adolescents?|teenagers?"
    r"|adults?|patients|people|girls?|boys?|wom[ae]n|m[ae]n|persons|those|anyone)"
    r"(?: (?:aged?|who are|of|from|between))*[\s(,]+)"
)
_IS_AGE = rf"(?:{_OF_AGE}|(?<=岁)|(?<=月)(?:大|龄|婴)|\s*[:：])"
_TO = r"\s*(?:-|–|—|~|～|to|and|through|至|到)\s*"
_AGES_BETWEEN = (
    rf"{_AGED}{_N}(?:{_U})?{_TO}{_N}{_U}?",
    rf"{_WHO}{_N}(?:{_U})?{_TO}{_N}{_U}\b",
    rf"{_N}(?:{_U})?{_TO}{_N}{_U}{_IS_AGE}",
)
_AGES_BELOW = (
    rf"\b(?:under|younger than)(?: the age of)?[\s-]+{_N}(?:{_U}\b|s\b)",
    rf"{_WHO}(?:less than|below|up to) {_N}{_U}\b",
    rf"\b(?:less than|below|up to) {_N}{_U}{_IS_AGE}",
    rf"\b(?:under|below) the age of {_N}()",
    rf"{_N}{_U}(?:{_OF_AGE})?(?:,? (?:and|or) (?:under|younger|below)\b|(?:及|或|和)?以[下内])",
    rf"(?:不满|未满|小于|不到|<){_N}(周?岁|个月)",
)
_AGES_ABOVE = (
    rf"\b(?:older than|over the age of|above the age of|from the age of) {_N}(?:{_U}\b)?",
    rf"{_WHO}(?:over|above|from|at least|more than) {_N}{_U}\b",
    rf"\b(?:over|above|from|at least|more than) {_N}{_U}{_IS_AGE}",
    rf"{_N}{_U}(?:{_OF_AGE})?(?:,? (?:and|or) (?:over|older|above|more)\b|(?:及|或|和)?以[上后])",
    rf"\baged? {_N}()(?: years?)? (?:and|or) (?:over|older|above|more)\b",
    rf"(?:大于|超过|(?<![不未])满|>|≥){_N}(周?岁|个月)",
)
_YEARS = {"m": 12.0, "w": 52.0, "d": 365.0, "个": 12.0, "月": 12.0}
"""How many of a unit, by its first letter, are a year."""


def _compile(patterns: tuple[str, ...]) -> list[re.Pattern[str]]:
    return [re.compile(one, re.IGNORECASE) for one in patterns]


_BANDS = ((_compile(_AGES_BETWEEN), 2), (_compile(_AGES_BELOW), -1), (_compile(_AGES_ABOVE), 1))


@lru_cache(maxsize=64)
def read_ages(asked: str) -> tuple[float, ...]:
    """The ages that a question names, in years."""
    found = []
    for match in _ASKED_AGE.finditer(asked):
        number, unit, half, alone = match.groups()
        found.append(_in_years(number or alone, unit or "") + (0.5 if half else 0.0))
    return tuple(found)


def covers_age(asked: str, sentence: str) -> bool | None:
    """Whether a band of the sentence has an age of the question; `None` where either has none."""
    ages = read_ages(asked)
    bands = list(_read_bands(sentence)) if ages else []
    if not bands:
        return None
    return any(least <= age < most for age in ages for least, most in bands)


def _read_bands(text: str) -> Iterator[tuple[float, float]]:
    """Least age of each band, and the age that is above it, in years."""
    for patterns, kind in _BANDS:
        for pattern in patterns:
            for match in pattern.finditer(text):
                parts = [part for part in match.groups() if part]
                yield _make_band(parts, kind, ends_within=" or " in match[0])
            text = pattern.sub(";", text)  # of "6 months to 5 years" no half is a band


def _make_band(parts: list[str], kind: int, *, ends_within: bool) -> tuple[float, float]:
    """A band of numbers and units in the order of the text; the last unit holds for all."""
    units = [part for part in parts if not _is_number(part)]
    numbers = [part for part in parts if _is_number(part)]
    last = units[-1] if units else ""
    ages = [
        _in_years(number, units[0] if len(units) > 1 and n == 0 else last)
        for n, number in enumerate(numbers)
    ]
    one_more = _in_years("1", last)
    if kind == 2:
        return ages[0], ages[-1] + one_more
    return (ages[0], inf) if kind > 0 else (0.0, ages[0] + (one_more if ends_within else 0.0))


def _is_number(part: str) -> bool:
    return (
        part[0].isdigit()
        or part.casefold() in _WORDS
        or all(one in _CHINESE + "两" for one in part)
    )


def _in_years(number: str, unit: str) -> float:
    return _read_number(number) / _YEARS.get(unit[:1].casefold(), 1.0)


def _read_number(number: str) -> float:
    plain = number.casefold().replace("两", "二")
    if plain[0].isdigit():
        return float(plain)
    if plain in _WORDS:
        return float(_WORDS[plain])
    tens, _, ones = plain.partition("十")
    return _WORDS.get(tens, 1) * 10.0 + _WORDS.get(ones, 0)
