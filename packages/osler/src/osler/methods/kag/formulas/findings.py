"""What questions say of the formulas' inputs: names, numbers with units, findings, choices.

English or Chinese: "5 ft 4 in", "120 x10^9/L", "70公斤"; a finding that is negated does not hold.
The words are in `inputs.toml` (numbers, choices) and `findings.toml` (clinical findings, graded
responses).

A finding that is said to be unknown makes the score a range, computed with and without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

from osler.methods.kag.formulas.base import Formula, FormulaResult, Given, evaluate_formula
from osler.methods.kag.formulas.quantities import Quantity, longest_apart
from osler.text import read_packaged_table
from osler.types import Language

# Behind one of these, up to the next comma, whatever is named is not known. "Not known to have" is
# a denial, and of an "unknown cause" only the cause is unknown.
_BEFORE = re.compile(
    r"(?:\bunknown\s+(?:whether|if|history|status)\b|\bunknown[:\s]*(?=$)|\bunknown:"
    r"|\b(?:unclear|uncertain|unsure|not\s+(?:clear|known|sure|certain|documented|recorded))\s+"
    r"(?:whether|if|about|as to)\b|\bno\s+(?:information|data|record|records)\s+(?:on|about|of)\b"
    r"|(?:n't|\bnot|\bcannot)\s+(?:know|say|tell|recall|remember)\s+(?:whether|if|about|of)\b"
    r"|(?:不清楚|不知道?|不确定|未知|无法确定|说不清|记不清|不明确|不详[：:]))"
    r"(?:(?!\bbut\b|但)[^.;,:?!。；，：？！])*$",
    re.IGNORECASE,
)
_LISTED = (
    r"(?:\s*(?:\band\b|\bor\b|/|、|和|及|或|与)\s*(?!his\b|her\b|the\b|a\b)[^\W\d][\w -]{1,28}?)"
)
_AFTER = re.compile(
    rf"{_LISTED}{{0,3}}?\s*(?:history|status|病史|史|情况|与否)?\s*"
    r"(?:\b(?:is|are|was|were|remains?)\b|[:：(（])?"
    r"\s*(?:currently\s+|still\s+|also\s+|both\s+)?"
    r"(?:\bunknown\b|\bunclear\b|\buncertain\b|\bunavailable\b|\bnot\s+(?:known|clear|documented|"
    r"recorded|available|reported|stated|certain)\b(?!\s+to\b)|不详|未知|不清楚?|不确定|不明确?|待查|未记录)",
    re.IGNORECASE,
)
_STOPS = ".;?!。；？！"


def is_said_unknown(text: str, start: int, end: int) -> bool:
    """Whether `text[start:end]`, which names a finding, is said to be unknown."""
    begins = 1 + max(text.rfind(stop, 0, start) for stop in _STOPS)
    return bool(_BEFORE.search(text[begins:start]) or _AFTER.match(text, end))


def evaluate_range(
    formula: Formula, given: Mapping[str, Given], unknown: Sequence[str]
) -> tuple[FormulaResult, FormulaResult]:
    """The least and the greatest result, with each unknown finding there and absent.

    Raises what `evaluate_formula` raises.
    """
    results = [
        evaluate_formula(formula, {**given, **dict(zip(unknown, values, strict=True))})
        for values in product((False, True), repeat=len(unknown))
    ]
    return min(results, key=lambda one: one.value), max(results, key=lambda one: one.value)


@dataclass(frozen=True, slots=True)
class ChoiceWords:
    """A value of a choice: its name in answers, and what stands for it."""

    names: Mapping[Language, str]
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class InputWords:
    """An input as questions write it."""

    names: Mapping[Language, str]
    labels: tuple[str, ...]
    units: tuple[str, ...]
    """Units that a bare number may be in; empty = it has none."""
    likely: tuple[float, float] | None
    """Range in the formula's unit within which a bare number counts in a unit."""
    alone: tuple[str, ...]
    """Units that name the input by themselves."""
    choices: Mapping[str, ChoiceWords]
    finding: re.Pattern[str] | None
    """What stands for a finding."""
    absent: re.Pattern[str] | None
    """What stands for its absence."""
    topic: re.Pattern[str] | None
    """What speaks of a finding without saying whether it is there."""
    grades: Mapping[float, re.Pattern[str]]
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
        {value: _read_choice(each, names) for value, each in number.get("choices", {}).items()},
        _any_of([*finding["words"], *map(re.escape, names.values())])
        if "words" in finding
        else None,
        _any_of(finding["absent"]) if "absent" in finding else None,
        _any_of(finding["topic"]) if "topic" in finding else None,
        {float(points): _any_of(words) for points, words in finding.get("grades", {}).items()},
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


_NEGATION = re.compile(
    r"\b(?:no|not|non|nor|none|without|denies|denied|never|free of|absent|negative for|rather than"
    r"|neither)\b"
    r"|n't\b|(?<!有)[无没]|未(?!成年|来|控制)|否认|排除|不伴|并非|不是|不[用吃服]|不$",
    re.IGNORECASE,
)
# A denial behind what it denies, up to the clause's end: "labile INR not applicable", "卒中（-）".
_DENIED_BEHIND = re.compile(
    r"\s*(?:disease|history|病史|史)?\s*[:：=]?\s*(?:(?:is |was )?(?:no|none|nil|absent|"
    r"negative|not applicable|n/?a|"
    r"denied|ruled out)(?=\s*(?:[,，.;；。!?]|and\b|$))|[(（][-－—][)）]|(?:无|没有|否|阴性|"
    r"未见)(?=\s*(?:[,，.;；。、]|$)))",
    re.IGNORECASE,
)
# What opens a sentence of its own behind a comma, where no denial before it holds.
_SUBJECT = re.compile(
    r"\b(?:i|he|she|we|they|it|is|are|was|were|has|have|had|takes?|think|but|though)\b|[有是]|但",
    re.IGNORECASE,
)
# What is only asked after.
_OPEN = ("有无", "有没有", "是否有", "是否")
RELATIVE = re.compile(
    r"\bfamily history of\b|\b(?:his|her|their|whose)\s(?:mum|mom|dad|mother|father|"
    r"brother|sister|parents?|wife|husband|son|daughter)\b"
    r"|\b(?:mother|father|brother|sister|parents?)\s(?:had|died)\b|家族史|[他她](?:父|母)亲|[他她][爸妈]",
    re.IGNORECASE,
)
"""Somebody else than the patient, whose findings count for nothing."""
_CLAUSE = re.compile(
    r"[.;:?!。；：？！]|\s[-–—]\s|\bbut\b|\bwith\b|\bhas\b|\band has\b|但|(?<!不)伴"
    r"|(?<!没)有(?!无|没)"
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
        rest = text[match.end() :]
        if not RELATIVE.search(clause) and not is_open and not _is_doubtful(clause, rest):
            said.append(not is_negated(clause, rest))
    absent = input_words()[name].absent
    said += [False] if absent is not None and absent.search(text) else []
    return list(dict.fromkeys(said))


def is_unknown_finding(name: str, text: str) -> bool:
    """Whether the text says that a finding is unknown, or leaves open whether it is denied."""
    return any(
        is_said_unknown(text, *match.span())
        or _is_doubtful(_clause_before(text, match.start()), text[match.end() :])
        for match in _named_in(name, text)
    )


def _named_in(name: str, text: str) -> Iterator[re.Match[str]]:
    pattern = input_words()[name].finding
    return iter(()) if pattern is None else pattern.finditer(text)


def is_negated(clause: str, rest: str = "") -> bool:
    """Whether the words before a finding, up to its clause's beginning, deny it.

    A denial holds up to the next comma, and along a list that ends in "or": "no fever, rash or
    cough". `rest`: the words behind the finding, where such a list may end.
    """
    if _DENIED_BEHIND.match(rest):
        return True
    scope = _denied_scope(clause)
    if scope is None or not re.search(r"[,，、]", scope):
        return scope is not None
    if _SUBJECT.search(re.split(r"[,，]", scope, maxsplit=1)[-1]):
        return False
    # Of "no A or B, C" the list ends before the comma, as a Chinese one does before any.
    listed = re.split(r"[,，]", scope)[-1] + re.split(r"[.;。；，]|\bbut\b|但", rest)[0]
    return bool(re.search(r"\b(?:or|nor)\b|或|、", listed))


def _denied_scope(clause: str) -> str | None:
    """What stands behind the last denial of a clause; `None` without one."""
    denials = list(_NEGATION.finditer(clause))
    return clause[denials[-1].end() :] if denials else None


def _is_doubtful(clause: str, rest: str) -> bool:
    """Whether a denial before a comma may hold for a name alone behind it: "no HTN, diabetes"."""
    scope = _denied_scope(clause)
    if scope is None or not re.search(r"[,，]", scope) or is_negated(clause, rest):
        return False
    alone = re.split(r"[,，]", scope)[-1] + re.split(r"[,，.;。；:：?？]", rest)[0]
    items = re.split(r"[,，]", scope)
    return (
        not _SUBJECT.search(scope)
        and not re.search(r"[^\W_]", alone)
        and all(
            len(item) <= 6 or (len(item.split()) in (1, 2, 3) and item.isascii()) for item in items
        )
    )


def find_grades(name: str, text: str) -> list[float]:
    """The points of a graded response that the text describes, the longest description first."""
    grades = input_words()[name].grades
    found = longest_apart(
        Quantity(*match.span(), points, "", match[0])
        for points, pattern in grades.items()
        for match in pattern.finditer(text)
    )
    return list(dict.fromkeys(one.number for one in found))


def read_choice(name: str, text: str) -> list[str]:
    """The values of a choice that the text names; a longer wording wins over one inside it."""
    choices = input_words()[name].choices
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


_PEOPLE = (
    r"husband|wife|mother|mum|mom|father|dad|gran(?:ny|dad|dma|dpa|dmother|dfather)?|"
    r"aunt(?:ie)?|uncle|gent"
    r"(?:leman)?|lady|m[ae]n|wom[ae]n|male|female|patient|pt|s?he|son|daughter|brother|sister|who"
)
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
            rf"|{_N}\s?yo[fm]?\b|{_N}\s?周?岁|(?<![\d.])(\d{{2}})(?-i:[FM])\b|"
            rf"[男女]性?\s?{_N}(?=[,，、;；。\s]|$)"
            rf"|\b(?:{_PEOPLE})(?:,|\s(?:is|was|of|aged?)|\s?\(|"
            rf")\s(?<![\d.])(\d{{2,3}})(?=[,;)]|\.(?!\d)|\s|$)"
            r"(?!\s?(?:kg|kilos?|lbs?|pounds?|c?m|f(?:ee|oo)?t|in|months?|weeks?|days?|mg|"
            r"ml|s|secs?|seconds?|per ?cent)\b|\s?%)"
            rf"|(?:\bage|\baged|\bage\s+(?:of|is)|年龄)\s?[:：为是]?\s?{_N}"
            r"(?!\s?(?:months?|weeks?|days?|个月|[天周]))",
            re.IGNORECASE,
        ),
        "year",
    ),
)
# A number of two digits alone between commas, or behind who the patient is: "63, fatty liver".
_LONE_AGE = re.compile(
    r"(?:(?:^|[,，:：;；。.]\s?|\b(?:turned|turns|am|i'm)\s|今年|已经?|[爷奶公婆爸妈伯子太头])\s?)"
    r"(?<![\d.])(\d{2})(?=\s?(?:[,，;；。]\D))",
    re.IGNORECASE,
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
            found.append(Quantity(*match.span(), float(number), unit, match[0]))
    if not found:
        found = [
            Quantity(*match.span(1), float(match[1]), "year", match[1])
            for match in _LONE_AGE.finditer(text)
        ]
    return sorted(found, key=lambda quantity: quantity.start)


def find_sexes(text: str) -> list[str]:
    """The sexes that the text's nouns name, else its pronouns; each once."""
    choices, text = input_words()["sex"].choices, RELATIVE.sub("", text)
    named = [sex for sex, words in choices.items() if words.pattern.search(text)]
    return named or [sex for sex, pattern in _PRONOUNS.items() if pattern.search(text)]
