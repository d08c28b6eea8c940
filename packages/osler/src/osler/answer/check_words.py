"""The words that the checks of an answer look for, from `checks.toml`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from osler.text import read_packaged_table


@dataclass(frozen=True)
class CheckWords:
    """The patterns of `checks.toml`."""

    amount_asked: re.Pattern[str]
    amount: re.Pattern[str]
    dose_given: re.Pattern[str]
    dose_times: re.Pattern[str]
    dose_asked: re.Pattern[str]
    dose_wanted: re.Pattern[str]
    dose_changed: re.Pattern[str]
    background: re.Pattern[str]
    both: re.Pattern[str]
    relates: re.Pattern[str]
    asked_of: re.Pattern[str]
    time_asked: re.Pattern[str]
    kinds: Mapping[str, tuple[re.Pattern[str], re.Pattern[str]]]
    """Kinds of amounts: how a question asks for one, and the units of it."""
    conditions: Mapping[str, re.Pattern[str]]
    frames: Sequence[re.Pattern[str]]
    """Sentences that ask one thing of one subject, whose name is the group `name` or `before`."""
    patient_frames: Sequence[re.Pattern[str]]
    """Sentences that say what somebody has."""

    def tells_dose(self, sentence: str) -> bool:
        """Whether it has an amount of a drug, or how often it is taken."""
        return any(one.search(sentence) for one in (self.dose_given, self.dose_times))


@cache
def read_words() -> CheckWords:
    """The patterns, compiled once."""

    def compile_all(patterns: list[str]) -> re.Pattern[str]:
        return re.compile("|".join(patterns), re.IGNORECASE)

    table = read_packaged_table(__package__, "checks.toml")
    conditions = {name: compile_all(words) for name, words in table.pop("conditions").items()}
    aspect = f"(?:{'|'.join(table.pop('aspects'))})"
    frames = [
        re.compile(frame.replace("ASPECT", aspect), re.IGNORECASE)
        for frame in table.pop("subject_frames")
    ]
    patient_frames = [re.compile(frame, re.IGNORECASE) for frame in table.pop("patient_frames")]
    kinds = {
        name: (
            compile_all([one.replace("UNIT", "|".join(units)) for one in asked]),
            compile_all(units),
        )
        for asked in [table.pop("kind_asked")]
        for name, units in table.pop("amount_kinds").items()
    }
    words = {name: compile_all(patterns) for name, patterns in table.items()}
    return CheckWords(
        **words, kinds=kinds, conditions=conditions, frames=frames, patient_frames=patient_frames
    )
