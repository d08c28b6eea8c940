"""Which input of a formula each number of a text belongs to, by the names and units beside it.

What a question says of a score's findings in words that no table has as the finding itself.

"Kidneys and liver are fine" denies two findings by their topics; "something with his valves" is in
no table. What speaks of a finding without saying whether it is there, and whatever could speak of
one and is not understood, make the score a range: no point value stands on what was not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from osler.methods.kag.formulas.base import Formula, NumberInput
from osler.methods.kag.formulas.findings import RELATIVE, find_ages, input_words, label_pattern
from osler.methods.kag.formulas.quantities import (
    Quantity,
    find_common_unit,
    find_pressures,
    find_quantities,
    longest_apart,
)
from osler.retrieve import STOP_WORDS
from osler.text import read_packaged_table

# Words that may stand between an input's name and its value.
_BETWEEN = re.compile(
    r"(?:[\s,，:：=＝(（)）]|(?:is|was|are|were|of|at|to|with|a|an|the|over|covering|involving|about|"
    r"around|level|levels|value|concentration|count|equals|measured|score|now|currently|response|"
    r"only|just|reads|reading|says|rate|rises? to|falls? to|came back|comes back|back|total|"
    r"ago|for|interval|由|为|是|约|达|值|水平|浓度|占|有|积分|得分|评分|只有|仅|了|按|一共|共|大约|"
    r"大概|每分钟|测得|都是|[开调升降给]?到|在|才|查出来|测出来)(?![A-Za-z]))*",
    re.IGNORECASE,
)
_BEHIND = re.compile(
    r"[\s,]*(?:(?:of|in|for|on|的|his|her|the|total|and|to|partial|full|deep|second|third|degree|"
    r"thickness|-)\s*)*",
    re.IGNORECASE,
)
# A change of weight or height is no weight.
_CHANGE = re.compile(
    r"(?:lost|gained|loss of|gain of|los(?:es|ing)|gain(?:s|ing)|dropped|减轻|下降|增加|减少)"
    r"[^,.;，。；]{0,12}$",
    re.IGNORECASE,
)
_OTHER_WEIGHT = re.compile(
    r"(?:ideal|target|birth|理想|目标|出生)(?:\s*(?:body)?\s*)?$", re.IGNORECASE
)

# What stands between two values of one input: "1.0 mg/dL last year and 2.0 mg/dL today".
_AGAIN = re.compile(
    r"(?:[\s,，;；(（→]|(?:and|then|but|to|from|rose|fell|last|this|next|a|one|two|three|yesterday|today"
    r"|ago|now|later|before|previously|earlier|was|is|were|in|on|at|years?|months?|weeks?|days?"
    r"|admission|discharge|baseline|currently)(?![A-Za-z])|(?:19|20)\d\d(?!\d)"
    r"|[升降]?[到至]|[今昨去前]天|[今去前]年|上[周月次]|现在?|目前|之?[前后]|入院|出院|又|为|是|时|变)*",
    re.IGNORECASE,
)

BOUNDS = {
    "heart_rate_over_100": ("heart_rate", 100.0),
    "uncontrolled_hypertension": ("systolic", 160.0),
}
"""Findings that a measured value over a bound tells, by the value's input."""


def assign_quantities(formula: Formula, text: str) -> dict[str, list[Quantity]]:
    """The quantities that belong to each input, by the name before or behind them, or by a unit
    that only it has."""
    wanted = [each.name for each in formula.inputs if isinstance(each, NumberInput)]
    wanted += [BOUNDS[each.name][0] for each in formula.inputs if each.name in BOUNDS]
    labels = _find_labels(text, wanted)
    common = find_common_unit(text)
    assigned: dict[str, list[Quantity]] = {name: [] for name in wanted}
    used: set[int] = set()
    ages = {(age.start, age.end) for age in find_ages(text)}
    before: tuple[str, Quantity] | None = None
    for quantity in find_quantities(text):
        if any(quantity.start < end and start < quantity.end for start, end in ages):
            continue
        name = _owner_of(quantity, labels, used, wanted, text)
        if not name and before and _tells_again(*before, quantity, text):
            name = before[0]
        if name in assigned:
            unit = common or _next_unit(quantity, text)
            takes = not quantity.unit and unit in input_words()[name].units
            before = name, replace(quantity, unit=unit) if takes else quantity
            assigned[name].append(before[1])
    for pair in find_pressures(text):
        for name, number in (("systolic", pair.systolic), ("diastolic", pair.diastolic)):
            if name in assigned:
                assigned[name].append(Quantity(pair.start, pair.end, number, "mmHg", ""))
    return assigned


def _tells_again(name: str, first: Quantity, other: Quantity, text: str) -> bool:
    """Whether it may be another value of the input that had the number before it."""
    same = other.unit and other.unit == first.unit and other.unit in input_words()[name].units
    apart = text[first.end : other.start].strip()  # "155 1/min" is one number
    return bool(same and apart and _AGAIN.fullmatch(text, first.end, other.start))


def _next_unit(quantity: Quantity, text: str) -> str:
    """The unit of the next number of the sentence: "PaO2 62 and PaCO2 34 mmHg"; "" for none."""
    end = re.compile(r"[;；。!?！？]|\.\s|$").search(text, quantity.end)
    rest = [each for each in find_quantities(text) if each.start >= quantity.end]
    return rest[0].unit if rest and end and rest[0].start < end.start() else ""


@dataclass(frozen=True, slots=True)
class _Label:
    start: int
    end: int
    name: str


def _find_labels(text: str, wanted: Sequence[str]) -> list[_Label]:
    """The inputs named in the text, those of the formula before others of the same name."""
    return longest_apart(
        _Label(*match.span(), name)
        for name in dict.fromkeys((*wanted, *input_words()))
        for label in input_words()[name].labels
        for match in re.finditer(label_pattern(label), text)
    )


def _owner_of(
    quantity: Quantity, labels: Sequence[_Label], used: set[int], wanted: Sequence[str], text: str
) -> str:
    """The input that a quantity belongs to; "" for none."""
    before = [i for i, label in enumerate(labels) if label.end <= quantity.start]
    if before and _BETWEEN.fullmatch(text, labels[before[-1]].end, quantity.start):
        i, name = before[-1], labels[before[-1]].name
        # "sodium, 140 kg": behind a comma only a fitting unit makes it the input's own.
        apart = name not in wanted or re.search(r"[,，]", text[labels[i].end : quantity.start])
        if i not in used and (not apart or _unit_fits(name, quantity)):
            used.add(i)
            return name
    behind = next((i for i, label in enumerate(labels) if label.start >= quantity.end), None)
    if (
        behind is not None
        and behind not in used
        and "," not in text[quantity.end : quantity.end + 1]
    ):
        name = labels[behind].name
        if _BEHIND.fullmatch(text, quantity.end, labels[behind].start) and _unit_fits(
            name, quantity
        ):
            used.add(behind)
            return name
    return _owner_by_unit(quantity, wanted, text)


def _owner_by_unit(quantity: Quantity, wanted: Sequence[str], text: str) -> str:
    for name in wanted:
        if quantity.unit in input_words()[name].alone:
            before = text[: quantity.start]
            changed = _CHANGE.search(before) or _OTHER_WEIGHT.search(before)
            return "" if changed else name
    return ""


def _unit_fits(name: str, quantity: Quantity) -> bool:
    """Whether the unit is one that questions give for the input."""
    words = input_words()[name]
    if not quantity.unit:
        low, high = words.likely or (0, 0)
        return not words.units or low <= quantity.number <= high
    common = {*words.units, *words.alone}
    if common & {"mmol/L"}:
        common.add("mEq/L")
    if "1/min" in common:
        common |= {"bpm", "breaths/min"}
    return quantity.unit in common


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


def read_topic(name: str, text: str) -> Literal["denied", "open", ""]:
    """What the text says of a finding by its topic: that it is absent, or neither that nor that it
    is there; "" where the topic does not occur."""
    topic = input_words()[name].topic
    if topic is None:
        return ""
    clauses = [clause for clause in _CLAUSE.split(text) if clause.strip()]
    said = [
        clause + _end_of_list(clauses, i, topic)
        for i, clause in enumerate(clauses)
        if topic.search(clause) and not RELATIVE.search(clause)
    ]
    if not said:
        return ""
    return "denied" if all(_denies(each, topic) for each in said) else "open"


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
        for choice in words.choices.values():
            yield from (match.span() for match in choice.pattern.finditer(text))
        for label in words.labels:
            yield from (match.span() for match in re.finditer(label_pattern(label), text))
    for found in (find_ages(text), find_quantities(text), find_pressures(text)):
        yield from ((each.start, each.end) for each in found)
    for pattern in (_DENIAL, _NORMAL):
        yield from (match.span() for match in pattern.finditer(text))
