"""Findings, graded responses and choices in a question; what is negated does not hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from osler.methods.kag.formulas.lexicon import input_words
from osler.methods.kag.formulas.quantities import Quantity

_NEGATION = re.compile(
    r"\b(?:no|not|without|denies|denied|never|absent|negative for|rather than|neither)\b"
    r"|n't\b|(?<!有)无|没有|否认|未见|排除",
    re.IGNORECASE,
)
# Somebody else's finding.
_RELATIVE = re.compile(
    r"\bfamily history of\b|\b(?:mother|father|brother|sister|parents?)\b|家族史|(?:父|母)亲",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[.;:?!。；：？！]|\bbut\b|\bwith\b|\bhas\b|\band has\b|但|伴|有(?!无)")
_CHILD = re.compile(r"\b(?:child(?:ren)?|boy|girl)\b|儿童|小儿|患儿|男孩|女孩", re.IGNORECASE)
_INFANT = re.compile(r"\b(?:infant|baby|toddler)\b|婴儿|婴幼儿", re.IGNORECASE)
_ADULT = re.compile(
    r"\b(?:adult|m[ae]n|wom[ae]n|gentleman|lady)\b|成年?人|男性|女性", re.IGNORECASE
)
_ELDERLY = re.compile(r"\belderly\b|老年", re.IGNORECASE)
_ADULT_FROM, _ELDERLY_FROM, _INFANT_UP_TO = 18, 65, 3
_DAYS = {"year": 1.0, "month": 1 / 12, "week": 7 / 365.25, "day": 1 / 365.25}


def find_finding(name: str, text: str) -> list[bool]:
    """Whether the text affirms a finding, or denies it, or both; empty when it says neither."""
    pattern = input_words()[name].finding
    if pattern is None:
        return []
    said = []
    for match in pattern.finditer(text):
        clause = _clause_before(text, match.start())
        if not _RELATIVE.search(clause):
            said.append(not is_negated(clause, text[match.end() :]))
    return list(dict.fromkeys(said))


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
