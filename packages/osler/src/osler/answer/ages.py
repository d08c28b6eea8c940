"""Ages: whether the bands of age that a sentence gives have the age that a question names.

Doses are printed by bands, "Under 2 years: 50 to 100 mL", and that of another band is no answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from math import inf

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
_ASKED = re.compile(
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
_BETWEEN = (
    rf"{_AGED}{_N}(?:{_U})?{_TO}{_N}{_U}?",
    rf"{_WHO}{_N}(?:{_U})?{_TO}{_N}{_U}\b",
    rf"{_N}(?:{_U})?{_TO}{_N}{_U}{_IS_AGE}",
)
_BELOW = (
    rf"\b(?:under|younger than)(?: the age of)?[\s-]+{_N}(?:{_U}\b|s\b)",
    rf"{_WHO}(?:less than|below|up to) {_N}{_U}\b",
    rf"\b(?:less than|below|up to) {_N}{_U}{_IS_AGE}",
    rf"\b(?:under|below) the age of {_N}()",
    rf"{_N}{_U}(?:{_OF_AGE})?(?:,? (?:and|or) (?:under|younger|below)\b|(?:及|或|和)?以[下内])",
    rf"(?:不满|未满|小于|不到|<){_N}(周?岁|个月)",
)
_ABOVE = (
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


_BANDS = ((_compile(_BETWEEN), 2), (_compile(_BELOW), -1), (_compile(_ABOVE), 1))


@lru_cache(maxsize=64)
def read_ages(asked: str) -> tuple[float, ...]:
    """The ages that a question names, in years."""
    found = []
    for match in _ASKED.finditer(asked):
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
