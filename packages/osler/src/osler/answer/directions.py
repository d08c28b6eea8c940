"""Words of a text in order, with what they negate and which way they point.

`opposites.toml` has pairs of opposites by axis. A word points up, down or nowhere on each; a
negation reaches over the next few words of content, to the end of the clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from osler.kb.search.sparse import stem_terms
from osler.retrieve import STOP_CHARACTERS, STOP_WORDS
from osler.retrieve.entity_names import fold_word
from osler.text import is_cjk, read_packaged_table, split_sentences, split_words, word_set

_NEGATES = word_set(
    "not no never neither nor cannot none without hardly unlikely unable lack lacks"
    " lacking fail fails failed 不 未 无 没 勿 禁"
)
_TURNS = word_set(
    "but however although while whereas though because which when if where unless until since"
)
"""Words behind which a negation no longer holds."""
_REACH, _REACH_ZH = 5, 8
"""Words of content that a negation reaches over; in Chinese characters and pairs count."""
_PIECE = re.compile(r"[^\W_]+(?:\.\d+)?|[,;:()\[\]，；：、（）]")
_SHORT_NOT = re.compile(r"\b(\w+)n['’]t\b", re.IGNORECASE)
_CANT = {"ca": "can", "wo": "will", "sha": "shall"}


class Pole(NamedTuple):
    """Which way a word points on an axis."""

    way: int
    """1 or -1."""
    opposes: bool
    """Whether it contradicts words of the other way."""


@dataclass(frozen=True, slots=True)
class PlacedWord:
    """A word where it stands."""

    word: str
    stem: str
    sentence: int
    at: int
    """Its place in the text."""
    is_content: bool
    negated: bool


AXES = ("advice", "change", "effect", "better", "benefit", "safety")
"""Those on which sentences are compared: on the others words of both ways may well be true."""
_SHOULD = word_set("should must 应 应当 应该 宜")
"""Advice too, but only without plainer words: "should be avoided" advises against."""


@cache
def read_poles() -> Mapping[str, Mapping[str, Pole]]:
    """Word → axis → the way that it points."""
    poles: dict[str, dict[str, Pole]] = {}
    for axis, sides in read_packaged_table(__package__, "opposites.toml").items():
        for side, words in sides.items():
            pole = Pole(1 if side.endswith("up") else -1, not side.startswith("like"))
            for word in words.split():
                poles.setdefault(word, {}).setdefault(axis, pole)
    return poles


def is_negation(word: str) -> bool:
    return word in _NEGATES


@lru_cache(maxsize=4_096)  # the statements of an answer are held against the same passages
def read_words(text: str) -> tuple[PlacedWord, ...]:
    """The text's words in order."""
    plain = _SHORT_NOT.sub(lambda m: f"{_CANT.get(m[1].lower(), m[1])} not", text)
    found: list[tuple[str, int, bool, bool]] = []
    for number, (start, end) in enumerate(split_sentences(plain)):
        found += _read_sentence(plain[start:end], number)
    stems = stem_words(word for word, *_ in found)
    return tuple(
        PlacedWord(word, stems[word], sentence, at, content, negated)
        for at, (word, sentence, content, negated) in enumerate(found)
    )


def _read_sentence(sentence: str, number: int) -> list[tuple[str, int, bool, bool]]:
    """Each word with its sentence, and whether it is of content, and negated."""
    found, left = [], 0
    # "Not only … but also" affirms both.
    for piece in _PIECE.findall(re.sub(r"\bnot only\b", "also", sentence.casefold())):
        if len(piece) == 1 and not piece.isalnum():
            left = 0
            continue
        for word in split_words(piece):
            content = word not in STOP_WORDS and not STOP_CHARACTERS.issuperset(word)
            left = 0 if word in _TURNS else left
            # "禁用" is no use that is forbidden once more.
            itself = word in read_poles() and is_negation(word[0])
            found.append((word, number, content, left > 0 and not itself))
            if is_negation(word):
                left = _REACH_ZH if is_cjk(word[0]) else _REACH
            elif content and left:
                left -= 1
    return found


def stem_words(words: Iterable[str]) -> dict[str, str]:
    """Each word's stem, in one spelling."""
    folded = {word: fold_word(word) for word in words}
    stems = stem_terms(list(dict.fromkeys(folded.values())))
    return {word: stems.get(one, one) for word, one in folded.items()}


def words_near(
    words: Sequence[PlacedWord], one: PlacedWord, reach: int, *, ahead: bool = False
) -> frozenset[str]:
    """Stems of content within `reach` words of content of one, in its sentence; `ahead`: behind
    it alone."""
    found = set()
    for step in (1,) if ahead else (-1, 1):
        at, left = one.at + step, reach
        while 0 <= at < len(words) and words[at].sentence == one.sentence and left:
            if words[at].is_content:
                found.add(words[at].stem)
                left -= 1
            at += step
    return frozenset(found)


@cache
def pointing_words() -> re.Pattern[str]:
    """The words that `read_directions` reads."""
    words = [
        word
        for word, axes in read_poles().items()
        if any(_is_compared(*one) for one in axes.items())
    ]
    words.sort(key=lambda word: (-len(word), word))
    latin, han = (
        "|".join(word for word in words if is_cjk(word[0]) is wanted) for wanted in (False, True)
    )
    return re.compile(rf"\b(?:{latin})\b|{han}", re.IGNORECASE)


def _is_compared(axis: str, pole: Pole) -> bool:
    return axis in AXES and pole.opposes


def read_directions(sentence: str) -> dict[str, dict[int, str]]:
    """Axis → direction (1 or -1) → the first word that points there, with its negation."""
    told: dict[str, dict[int, str]] = {}
    words = read_words(sentence)
    for one in words:
        for axis, pole in read_poles().get(one.word, {}).items():
            if _is_compared(axis, pole):
                not_ = ("不" if is_cjk(one.word[0]) else "not ") if one.negated else ""
                way = -pole.way if one.negated else pole.way
                told.setdefault(axis, {}).setdefault(way, not_ + one.word)
    should = next((one for one in words if one.word in _SHOULD), None)
    if should is not None and "advice" not in told:
        follows = words[should.at + 1 : should.at + 2]
        denied = should.negated or any(is_negation(one.word) for one in follows)
        told["advice"] = {-1 if denied else 1: f"{should.word} not" if denied else should.word}
    return told
