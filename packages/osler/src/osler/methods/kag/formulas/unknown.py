"""Findings that a question says are unknown: the score is computed with and without each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product

from osler.methods.kag.formulas.base import Formula, FormulaResult, Given, evaluate_formula

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
