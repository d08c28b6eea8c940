"""The words of the formulas' inputs: names, units and findings as questions write them.

`inputs.toml` has numbers and choices, `findings.toml` clinical findings and graded responses.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from osler.text import read_packaged_table
from osler.types import Language


@dataclass(frozen=True, slots=True)
class ChoiceWords:
    """A value of a choice: its name in answers, and what stands for it."""

    names: Mapping[Language, str]
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class InputWords:
    """An input as questions write it."""

    names: Mapping[Language, str]
    labels: tuple[str, ...] = ()
    units: tuple[str, ...] = ()
    """Units that a bare number may be in; empty = it has none."""
    likely: tuple[float, float] | None = None
    """Range in the formula's unit within which a bare number counts in a unit."""
    alone: tuple[str, ...] = ()
    """Units that name the input by themselves."""
    choices: Mapping[str, ChoiceWords] | None = None
    finding: re.Pattern[str] | None = None
    """What stands for a finding."""
    grades: Mapping[float, re.Pattern[str]] | None = None
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
        {value: _read_choice(each, names) for value, each in number.get("choices", {}).items()}
        or None,
        _any_of([*finding["words"], *map(re.escape, names.values())])
        if "words" in finding
        else None,
        {float(points): _any_of(words) for points, words in finding.get("grades", {}).items()}
        or None,
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
