"""A question word by word in the other language, so that texts of that language can be searched.

Names come from the table of names, other words from `glossary.tsv`; what neither has is left out,
and Latin words in a Chinese question stay. It is no translation: order and grammar are lost. Still
words of names alone find more than the cosines of a multilingual encoder: of 431 Chinese questions
of other hands the reciprocal rank of the English chapter is .49 in place of .33, of 329 English
ones that of the Chinese chapter .59 in place of .51 (`research/log/natural-questions.md`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from osler.retrieve import STOP_CHARACTERS, STOP_WORDS
from osler.retrieve.asked import QuestionReader
from osler.retrieve.entity_names import fold_words, packaged_names
from osler.text import has_cjk, language_of, read_packaged
from osler.types import Language

_LATIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9.%/+-]*")
_NAMES = 2
"""Chinese names that are put for an English one: texts differ in which they use."""
_LONGEST = 6
"""Words of the longest English entry."""


@dataclass(frozen=True, slots=True)
class Gloss:
    """A question's words in the other language."""

    words: tuple[str, ...]
    covered: float
    """Share of the question's content that has such words, in [0, 1]."""

    @property
    def text(self) -> str:
        return " ".join(self.words)


def other_language(language: Language) -> Language:
    """The one of the two that a question is not in."""
    return "en" if language == "zh" else "zh"


@lru_cache(maxsize=512)
def gloss_question(text: str) -> Gloss:
    """The words of a Chinese question in English, or the reverse; none where none is known."""
    is_chinese = language_of(text) == "zh"
    read = [*(_read_chinese(text) if is_chinese else _read_english(text))]
    content = {word: bool(meant) for word, meant in read if _is_content(word)}
    whole = sum(map(len, content)) or 1
    covered = sum(len(word) for word, is_known in content.items() if is_known) / whole
    words = dict.fromkeys(one for _, meant in read for one in meant)
    return Gloss(tuple(words), covered)


def _is_content(word: str) -> bool:
    words = STOP_CHARACTERS if has_cjk(word) else STOP_WORDS
    return word[:1].isalnum() and not words.issuperset(word if has_cjk(word) else word.split())


def _read_chinese(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each word, or character of an unknown one, and its English."""
    words, left = _english_words(), unicodedata.normalize("NFKC", text).casefold()
    longest, at = max(map(len, words)), 0
    while at < len(left):
        latin = _LATIN.match(left, at)
        sizes = range(min(longest, len(left) - at), 0, -1)
        known = next((left[at : at + n] for n in sizes if left[at : at + n] in words), "")
        said = latin[0] if latin else known or left[at]
        yield said, (said,) if latin else words.get(said, ())
        at += len(said)


def _read_english(text: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each word, or name of several, and its Chinese."""
    said, at = fold_words(QuestionReader().read(text).full), 0
    words = _chinese_words()
    while at < len(said):
        sizes = range(min(_LONGEST, len(said) - at), 0, -1)
        size = next((n for n in sizes if " ".join(said[at : at + n]) in words), 1)
        word = " ".join(said[at : at + size])
        yield word, words.get(word, ())
        at += size


@cache
def _glossary() -> list[tuple[str, list[str]]]:
    """Chinese words, each with its English ones."""
    lines = read_packaged(__package__, "glossary.tsv").splitlines()
    rows = (line.split("\t") for line in lines if not line.startswith("#"))
    return [(chinese, english.split("; ")) for chinese, english in rows]


@cache
def _english_words() -> Mapping[str, tuple[str, ...]]:
    """For each Chinese word or name the English one that stands first."""
    found = {chinese: tuple(english[:1]) for chinese, english in _glossary()}
    for group in packaged_names().groups:
        english = tuple(name for name in group.names if not has_cjk(name))[:1]
        if english:
            named = (unicodedata.normalize("NFKC", name).casefold() for name in group.names)
            found |= {name: english for name in named if has_cjk(name)}
    return found


@cache
def _chinese_words() -> Mapping[str, tuple[str, ...]]:
    """For each English word of content or name, folded, the Chinese ones that stand first."""
    found: dict[str, tuple[str, ...]] = {}
    for group in packaged_names().groups:
        chinese = tuple(name for name in group.names if has_cjk(name))[:_NAMES]
        named = (" ".join(fold_words(name)) for name in group.names if not has_cjk(name))
        found |= {name: chinese for name in named if chinese}
    for chinese_word, english in _glossary():
        for words in map(fold_words, english):
            if not STOP_WORDS.issuperset(words):
                found.setdefault(" ".join(words), (chinese_word,))
    return found
