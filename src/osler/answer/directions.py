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

from osler.kb.search.lexicon import stem_terms
from osler.retrieve.entity_names import fold_word
from osler.retrieve.words import STOP_CHARACTERS, STOP_WORDS
from osler.text import is_cjk, read_packaged_table, split_sentences, split_words


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NEGATES = word_set(
    "not no never neither nor cannot none without hardly unlikely unable lack lacks"
    " lacking fail fails failed 不 未 无 没 勿 禁"
)
_TURNS = word_set("but however although while whereas though because which")
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
            found.append((word, number, content, left > 0))
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
