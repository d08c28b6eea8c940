"""What a question says of a score's findings in words that no table has as the finding itself.

"Kidneys and liver are fine" denies two findings by their topics; "something with his valves" is in
no table. What speaks of a finding without saying whether it is there, and whatever could speak of
one and is not understood, make the score a range: no point value stands on what was not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from osler.methods.kag.formulas.base import Formula
from osler.methods.kag.formulas.findings import RELATIVE, find_ages, input_words, label_pattern
from osler.methods.kag.formulas.quantities import find_pressures, find_quantities
from osler.retrieve import STOP_WORDS
from osler.text import read_packaged_table

_CLAUSE = re.compile(r"[,，.;；。:：!！?？()（）]|\s[-–—]\s|\bbut\b|但是?|不过")
_WORDS = read_packaged_table(__package__, "asking.toml")
_DENIAL, _NORMAL, _TURNED = (
    re.compile(_WORDS[kind], re.IGNORECASE) for kind in ("denied", "normal", "turned")
)
_PLAIN_WORDS = STOP_WORDS | set(_WORDS["plain"].split())
_PLAIN_CHINESE = re.compile(_WORDS["plain_zh"])
_PART = re.compile(rf"{_CLAUSE.pattern}|\band\b|\bwith\b|、")
# Words beside a finding that was read which are taken for its details ("a hip replaced").
_BESIDE = 2


def settle_topic(name: str, text: str) -> bool | None:
    """Whether the text denies a finding by its topic: `False` where it does, `None` where it speaks
    of the topic and says neither.

    Raises `LookupError` where the topic does not occur.
    """
    topic = input_words()[name].topic
    clauses = [] if topic is None else list(_clauses(text))
    spoken = [
        i
        for i, clause in enumerate(clauses)
        if topic and topic.search(clause) and not RELATIVE.search(clause)
    ]
    if not spoken:
        raise LookupError(name)
    said = (clauses[i] + _end_of_list(clauses, i, topic) for i in spoken if topic)
    return False if all(_denies(each, topic) for each in said if topic) else None


def _denies(clause: str, topic: re.Pattern[str]) -> bool:
    if _TURNED.search(clause):
        return False
    if _NORMAL.search(clause):
        return True
    found = [match.span() for match in topic.finditer(clause)]
    denials = [match.span() for match in _DENIAL.finditer(clause)]
    return any(
        (end <= first and _near(clause[end:first]))
        or (last <= start and _near(clause[last:start], 2))
        for first, last in found
        for start, end in denials
    )


def _near(between: str, most: int = 3) -> bool:
    """Whether at most so many words, or so many Chinese characters, stand between."""
    return len(re.findall(r"[\u4e00-\u9fff]|[A-Za-z'’-]+", between)) <= most


def _clauses(text: str) -> Iterator[str]:
    return (clause for clause in _CLAUSE.split(text) if clause.strip())


def _end_of_list(clauses: list[str], i: int, topic: re.Pattern[str]) -> str:
    """What is said at the end of a list of names, "creat, LFTs and BP all fine", of all of them."""
    if _is_name(topic.sub("", clauses[i]), 0):
        rest = (clause for clause in clauses[i + 1 :] if not _is_name(clause, 2))
        return " " + next(rest, "")
    return ""


def _is_name(clause: str, most: int) -> bool:
    """Whether a clause has at most `most` words, or twice as many Chinese characters."""
    chinese, words = (len(re.findall(each, clause)) for each in (r"[\u4e00-\u9fff]", r"[A-Za-z]+"))
    said = _DENIAL.search(clause) or _NORMAL.search(clause)
    return not said and words + chinese / 2 <= most


def find_unread(formula: Formula, text: str) -> list[str]:
    """The clauses that could tell of a finding of the formula and were not read."""
    left, findings = list(text), list(_find_findings(formula, text))
    for start, end in (*findings, *_read_spans(text)):
        left[start:end] = " " * (end - start)
    unread, at = [], 0
    for clause in re.split(f"({_PART.pattern})", "".join(left)):
        end = at + len(clause)
        is_read = any(at <= start and stop <= end for start, stop in findings)
        if _count_content(clause) > (_BESIDE if is_read else 0):
            unread.append(text[at:end].strip())
        at = end
    return unread


def _count_content(clause: str) -> int:
    """Words that may tell of something; of Chinese, pairs of characters."""
    words = re.findall(r"[a-z][a-z'’-]+", clause.lower())
    chinese = "".join(re.findall(r"[\u4e00-\u9fff]", _PLAIN_CHINESE.sub("", clause)))
    told = [word for word in words if word not in _PLAIN_WORDS]
    return len(told) + len(chinese) // 2


def _find_findings(formula: Formula, text: str) -> Iterator[tuple[int, int]]:
    """Findings, any score's, and what speaks of the formula's own."""
    wanted = {each.name for each in formula.inputs}
    for name, words in input_words().items():
        own = (words.topic, words.absent) if name in wanted else ()
        for pattern in filter(None, (words.finding, *own)):
            yield from (match.span() for match in pattern.finditer(text))


def _read_spans(text: str) -> Iterator[tuple[int, int]]:
    """What was read beside findings: names, numbers, ages, sexes, and the words of denial."""
    for words in input_words().values():
        for choice in (words.choices or {}).values():
            yield from (match.span() for match in choice.pattern.finditer(text))
        for label in words.labels:
            yield from (match.span() for match in re.finditer(label_pattern(label), text))
    for found in (find_ages(text), find_quantities(text), find_pressures(text)):
        yield from ((each.start, each.end) for each in found)
    for pattern in (_DENIAL, _NORMAL):
        yield from (match.span() for match in pattern.finditer(text))
