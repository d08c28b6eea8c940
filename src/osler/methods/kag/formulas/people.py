"""Ages and sexes in a question, English or Chinese."""

from __future__ import annotations

import re

from osler.methods.kag.formulas.lexicon import input_words
from osler.methods.kag.formulas.quantities import Quantity

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
