"""Detects disagreement between two sentences by two rules over words, amounts and directions.

Both compare a quoted sentence with one of another document. They fire only when the sentences share
`LEAST_SHARED` of the shorter one's content words, at least two of them, and name the same groups of
people, routes and kinds of dose.

| Rule | Fires when |
|---|---|
| `read_amounts` | both give exactly one amount of a kind (milligrams, hours, percent, …), the two do not meet, ranges and "up to" included, and no other kind differs |
| `read_directions` | on one axis (advice, change, effect, …) all words of one point one way and all of the other the other way, a negation before a word turning it round |

A sentence with several amounts of a kind, with words both ways or with a comparison is left alone.
**Twins** share nearly all their words, so that there is less to be mistaken about: what differs,
a number, a negation or a word that points the other way, is what somebody changed.
"""  # noqa: E501  a table's row is one line

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from osler.answer.directions import pointing_words, read_directions
from osler.retrieve import content_terms
from osler.text import is_cjk, word_set
from osler.types import Language

LEAST_SHARED = 0.7
"""With only two of three words shared the subject may differ: the pressure falls, the pulse
rises."""
_NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
_TO = r"\s*(?:-|–|—|~|～|to|至|到)\s*"
_MASS = {"mg": 1.0, "milligrams": 1.0, "milligram": 1.0, "g": 1000.0, "grams": 1000.0}
_MASS |= {"gram": 1000.0, "mcg": 0.001, "micrograms": 0.001, "microgram": 0.001, "µg": 0.001}
_MASS |= {"μg": 0.001, "毫克": 1.0, "克": 1000.0, "微克": 0.001}
# Kind → unit → its size in the first unit of the kind. "L" is left out: too short to be sure.
_KINDS: Mapping[str, Mapping[str, float]] = {
    "mg/kg": {f"{unit}/kg": factor for unit, factor in _MASS.items()}
    | {"mg per kg": 1.0, "毫克/公斤": 1.0, "毫克/千克": 1.0},
    "mg": _MASS,
    "ml": {"ml": 1.0, "millilitres": 1.0, "milliliters": 1.0, "毫升": 1.0}
    | {"litres": 1000.0, "liters": 1000.0, "litre": 1000.0, "liter": 1000.0, "升": 1000.0},
    "hours": {"hours": 1.0, "hour": 1.0, "h": 1.0, "小时": 1.0, "days": 24.0, "day": 24.0}
    | {"天": 24.0, "日": 24.0, "weeks": 168.0, "week": 168.0, "周": 168.0, "minutes": 1 / 60}
    | {"minute": 1 / 60, "min": 1 / 60, "分钟": 1 / 60},
    "months": {"months": 1.0, "month": 1.0, "个月": 1.0, "years": 12.0, "year": 12.0}
    | {"年": 12.0},
    "years of age": {"years of age": 1.0, "years old": 1.0, "岁": 1.0},
    "%": {"%": 1.0, "percent": 1.0, "per cent": 1.0, "％": 1.0},
    "mmHg": {"mmhg": 1.0, "mm hg": 1.0, "毫米汞柱": 1.0},
    "mmol/l": {"mmol/l": 1.0, "毫摩尔/升": 1.0},
    "units": {"units": 1.0, "unit": 1.0, "iu": 1.0, "国际单位": 1.0, "单位": 1.0},
    "times": {"times": 1.0, "次": 1.0},
}
_UNITS = {unit: (kind, size) for kind, units in _KINDS.items() for unit, size in units.items()}
_AMOUNT = re.compile(
    rf"(?<![A-Za-z0-9_.])(?P<low>{_NUMBER})(?:{_TO}(?P<high>{_NUMBER}))?\s*-?\s*(?P<unit>"
    + "|".join(re.escape(unit) for unit in sorted(_UNITS, key=len, reverse=True))
    + r")(?P<per>\s*/\s*(?!\d)[\w²]+)?(?![a-z0-9])",
    re.IGNORECASE,
)
_UP_TO = re.compile(
    r"(?:up to|at most|no more than|not more than|below|under|(?:less|younger|shorter) than"
    r"|不超过|最多|小于|低于|<|≤)\s*$",
    re.IGNORECASE,
)
_FROM = re.compile(
    r"(?:at least|over|above|(?:more|older|longer) than|no less than|至少|大于|高于|超过|>|≥)\s*$",
    re.IGNORECASE,
)
_OR_LESS = re.compile(
    r"\s*(?:or (?:less|under|below|younger|fewer|shorter)\b|及?以下|以内)", re.IGNORECASE
)
_OR_MORE = re.compile(
    r"\s*(?:or (?:more|over|above|older|longer)\b|and (?:over|above|older)\b|及?以上)",
    re.IGNORECASE,
)

TWIN_SHARE, LEAST_WORDS = 0.8, 4
"""Share of the longer one's words of content, and how many at least, that twins share."""
_PLAIN_NUMBER = re.compile(_NUMBER)
_NEGATION = re.compile(
    r"\b(?:not|no|never|without|neither|nor|cannot)\b|n't\b|不|未|无|没有|并非|勿", re.IGNORECASE
)
_MOST_NUMBERS = 2
"""Numbers in which twins may differ: more, and they are two studies in the same form."""
_COMPARES = re.compile(
    r"\bthan\b|\bversus\b|\bvs\b|\bunless\b|\bexcept\b|比|除非|相较", re.IGNORECASE
)
_CONTEXTS = (
    r"child(?:ren)?|infants?|neonat\w*|newborns?|adults?|elderly|older|pregnan\w*|breast-?feeding"
    r"|lactat\w*|renal|kidney|hepatic|liver|oral(?:ly)?|intravenous(?:ly)?|intramuscular(?:ly)?"
    r"|subcutaneous(?:ly)?|inhaled|topical(?:ly)?|loading|maintenance|maximum|minimum|initial(?:ly)?"
    r"|starting|mild|moderate|severe|acute|chronic|men|women|type [12]"
    r"|儿童|小儿|婴儿|新生儿|成人|老年|老人|孕妇|妊娠|哺乳|肾功能|肝功能|口服|静脉|肌内|肌注|皮下"
    r"|吸入|外用|负荷|维持|最大|最小|起始|初始|轻度|中度|重度|急性|慢性|男性|女性"
)


@dataclass(frozen=True, slots=True)
class Amount:
    """A quantity, or a range of it, in the first unit of its kind."""

    kind: str
    low: float
    high: float
    words: str
    """The sentence's own words."""

    def overlaps_with(self, other: Amount) -> bool:
        """Whether the ranges overlap, with a tolerance of one percent for rounding."""
        return self.low <= other.high * 1.01 and other.low <= self.high * 1.01

    def lies_within(self, other: Amount) -> bool:
        """Whether this range lies within the other, with a tolerance of one percent; "over 900" is
        not said by "over 90"."""
        low, high = other.low * 0.99, other.high * 1.01
        most = other.low * 1.01 if high == inf else inf
        return self.kind == other.kind and low <= self.low <= most and self.high <= high


@dataclass(frozen=True, slots=True)
class Difference:
    """A disagreement that one of the rules found between two sentences."""

    mine: str
    theirs: str
    """The words that differ."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, parsed once for any number of comparisons."""

    text: str
    content: tuple[str, ...]
    """Content words without the compared ones: numbers, units and words of the axes."""


@lru_cache(maxsize=8_192)  # the same passages are found for question after question
def read_claim(sentence: str) -> Claim:
    return Claim(sentence, _content_words(sentence))


def find_difference(mine: Claim, theirs: Claim, language: Language) -> Difference | None:
    """The disagreement of two sentences by the rules above; `None` when no rule fires."""
    shared, share = shared_content(mine, theirs)
    if share < LEAST_SHARED or len(shared) < (2 if language == "en" else 3):
        return None
    if clinical_contexts(mine.text) != clinical_contexts(theirs.text):
        return None
    return _by_amount(mine.text, theirs.text) or _by_direction(mine.text, theirs.text)


def shared_content(mine: Claim, theirs: Claim) -> tuple[tuple[str, ...], float]:
    """The content words that both have, and their share of the shorter sentence's."""
    shared = tuple(word for word in mine.content if word in theirs.content)
    return shared, len(shared) / max(1, min(len(mine.content), len(theirs.content)))


def clinical_contexts(sentence: str) -> frozenset[str]:
    """The patient groups, routes and kinds of dose that a sentence names."""
    found = re.finditer(_whole_words(_CONTEXTS), sentence, re.IGNORECASE)
    return frozenset(each[0].casefold() for each in found)


def read_amounts(sentence: str) -> list[Amount]:
    """Every quantity with a known unit; "mg/day" counts as an amount in mg."""
    found = []
    for match in _AMOUNT.finditer(sentence):
        kind, size = _UNITS[match["unit"].casefold()]
        low = float(match["low"].replace(",", "")) * size
        high = float((match["high"] or match["low"]).replace(",", "")) * size
        before = sentence[: match.start()]
        if _UP_TO.search(before) or _OR_LESS.match(sentence, match.end()):
            low = 0.0
        elif _FROM.search(before) or _OR_MORE.match(sentence, match.end()):
            high = inf
        found.append(
            Amount(kind + _rate_unit(match), min(low, high), max(low, high), match[0].strip())
        )
    return found


def other_numbers(sentence: str) -> frozenset[str]:
    """The numbers without a known unit, as written."""
    return frozenset(re.findall(r"\d+(?:\.\d+)?", _AMOUNT.sub(" ", sentence)))


def _by_amount(mine: str, theirs: str) -> Difference | None:
    ours, others = read_amounts(mine), read_amounts(theirs)
    apart = []
    for kind in dict.fromkeys(amount.kind for amount in ours):
        one = [amount for amount in ours if amount.kind == kind]
        other = [amount for amount in others if amount.kind == kind]
        if len(one) == len(other) == 1 and not one[0].overlaps_with(other[0]):
            apart.append((one[0], other[0]))
    if len(apart) != 1:  # two that differ may hang together: another dose, another effect
        return None
    said, against = apart[0]
    return Difference(said.words, against.words)


def _by_direction(mine: str, theirs: str) -> Difference | None:
    # "A lowers X more than B" has no direction of its own.
    if _COMPARES.search(mine) or _COMPARES.search(theirs):
        return None
    ours, others = read_directions(mine), read_directions(theirs)
    for axis, ways in ours.items():
        against = others.get(axis, {})
        if len(ways) == len(against) == 1 and set(ways) != set(against):
            (said,), (denied,) = ways.values(), against.values()
            return Difference(said, denied)
    return None


_NOT_CONTENT = word_set("not no never without do does used given patients 不 未 无")


def _content_words(sentence: str) -> tuple[str, ...]:
    """Content words without the compared ones; in Chinese, pairs of characters."""
    bare = pointing_words().sub(" ", _AMOUNT.sub(" ", sentence))
    kept = (word for word in content_terms(bare) if len(word) > 1 or not is_cjk(word))
    return tuple(word for word in kept if word not in _NOT_CONTENT and not word.isdigit())


def _rate_unit(match: re.Match[str]) -> str:
    """Suffix of an amount's kind for rates; "per day" has none, since it is worded in many ways."""
    per = (match["per"] or "").replace("/", "").strip().casefold()
    return "" if per in ("", "day", "d", "日", "天") else f"/{per}"


def _whole_words(pattern: str) -> str:
    """Restricts a pattern to whole words in English; Chinese has no spaces between words."""
    return rf"(?<![a-z])(?:{pattern})(?![a-z])"


def is_checkable(sentence: str) -> bool:
    """Whether there is something in it to differ in."""
    return bool(
        _PLAIN_NUMBER.search(sentence)
        or _NEGATION.search(sentence)
        or read_amounts(sentence)
        or read_directions(sentence)
    )


def are_twins(mine: Claim, theirs: Claim) -> bool:
    """Whether the two share nearly all words of content."""
    one, other = {*mine.content}, {*theirs.content}
    shared = len(one & other)
    return shared >= LEAST_WORDS and shared >= TWIN_SHARE * max(len(one), len(other))


def find_twin_difference(mine: Claim, theirs: Claim) -> Difference | None:
    """In what two twins differ; `None` where they are none, or say the same."""
    if not are_twins(mine, theirs):
        return None
    ours, others = (Counter(_PLAIN_NUMBER.findall(one.text)) for one in (mine, theirs))
    ours_alone, denied = list((ours - others).elements()), list((others - ours).elements())
    if ours_alone and denied and max(len(ours_alone), len(denied)) <= _MOST_NUMBERS:
        return Difference(", ".join(ours_alone), ", ".join(denied))
    if ours_alone or denied:
        return None
    one, other = _pointers(mine.text), _pointers(theirs.text)
    if one.keys() == other.keys():
        return None
    words = [" ".join(sorted(side.values())) or "-" for side in (one, other)]
    return Difference(words[0], words[1])


def _pointers(sentence: str) -> dict[tuple[str, int], str]:
    """Axis and way of its words that point; of a sentence without any, whether it denies."""
    directions = read_directions(sentence)
    found = {(axis, way): words for axis, ways in directions.items() for way, words in ways.items()}
    if found:
        return found
    denied = _NEGATION.findall(sentence)
    return {("denial", 1): denied[0]} if len(denied) % 2 else {}
