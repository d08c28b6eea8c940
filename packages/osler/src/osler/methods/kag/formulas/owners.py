"""Which input of a formula each number of a text belongs to, by the names and units beside it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from osler.methods.kag.formulas.base import Formula, NumberInput
from osler.methods.kag.formulas.findings import find_ages, input_words, label_pattern
from osler.methods.kag.formulas.quantities import (
    Quantity,
    find_common_unit,
    find_pressures,
    find_quantities,
)

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
    for quantity in find_quantities(text):
        if any(quantity.start < end and start < quantity.end for start, end in ages):
            continue
        name = _owner_of(quantity, labels, used, wanted, text)
        if name in assigned:
            unit = common or _next_unit(quantity, text)
            takes = not quantity.unit and unit in input_words()[name].units
            assigned[name].append(replace(quantity, unit=unit) if takes else quantity)
    for pair in find_pressures(text):
        for name, number in (("systolic", pair.systolic), ("diastolic", pair.diastolic)):
            if name in assigned:
                assigned[name].append(Quantity(pair.start, pair.end, number, "mmHg", ""))
    return assigned


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
    """The inputs named in the text, longest names first; those of the formula before others."""
    labels: list[_Label] = []
    for label in sorted(_all_labels(text, wanted), key=lambda each: each.start - each.end):
        if not any(label.start < other.end and other.start < label.end for other in labels):
            labels.append(label)
    return sorted(labels, key=lambda label: label.start)


def _all_labels(text: str, wanted: Sequence[str]) -> Iterator[_Label]:
    others = [name for name in input_words() if name not in wanted]
    for name in (*wanted, *others):
        for label in input_words()[name].labels:
            for match in re.finditer(label_pattern(label), text):
                yield _Label(match.start(), match.end(), name)


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
