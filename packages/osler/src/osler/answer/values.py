"""Measured values: whether a sentence gives a range that has the value of a question.

"With an INR above 8.0 stop warfarin" is no answer for somebody whose INR is 6.4, where the sentence
after it speaks of 5.0 to 8.0. Ranges are read by how they are worded, behind the measure's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
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
