"""The words that the checks of an answer look for, from `checks.toml`, and what questions name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from osler.retrieve.naming import telling_words
from osler.text import read_packaged_table, split_sentences

_ARTICLE = re.compile(r"^(?:an?|the) ", re.IGNORECASE)
_IN_WHOM = re.compile(
    r" in (?:an? |the |my )?(?:child(?:ren)?|adults?|infants?|bab(?:y|ies)|newborns?|neonates?"
    r"|toddlers?|pregnancy|pregnant women|elderly|older (?:people|adults))$",
    re.IGNORECASE,
)


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
    matters: Sequence[tuple[re.Pattern[str], re.Pattern[str]]]
    """Matters of daily life: how a question asks about one, and what tells of it."""
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
    matters = [
        (compile_all([asked]), compile_all([told])) for asked, told in table.pop("matters").values()
    ]
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
        **words,
        kinds=kinds,
        conditions=conditions,
        matters=matters,
        frames=frames,
        patient_frames=patient_frames,
    )


def find_subjects(text: str) -> list[str]:
    """Names of what the sentences ask one thing of; none of what is asked in other ways.

    Where no sentence names what it asks about, it is what another says that somebody has.
    """
    words = read_words()
    sentences = [text[start:end].strip(" ?.!") for start, end in split_sentences(text)]
    if found := list(filter(None, (_name_in(words.frames, one) for one in sentences))):
        return found
    told = {one: _name_in(words.patient_frames, one) for one in sentences}
    others = [one for one, name in told.items() if not name]
    further = (word for other in others for word in telling_words(other))
    if not others or not all(map(words.asked_of.match, further)):
        return []
    return list(filter(None, told.values()))


def _name_in(frames: Sequence[re.Pattern[str]], sentence: str) -> str:
    """The name that a frame has in the sentence; "" where none fits, or what it has is no name."""
    match = next(filter(None, (frame.fullmatch(sentence) for frame in frames)), None)
    if match is None:
        return ""
    named = _ARTICLE.sub("", next(filter(None, match.groupdict().values())))
    bare = _IN_WHOM.sub("", named.strip())
    return bare if telling_words(bare) and not read_words().relates.search(bare) else ""
