"""A passage read once, so that any number of statements can be held against it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

from osler.answer.directions import PlacedWord, read_poles, read_words
from osler.answer.disagreement import Amount, read_amounts
from osler.retrieve.entity_names import ReadText, defined_abbreviations
from osler.retrieve.lexicon import packaged_lexicon
from osler.text import has_cjk, split_words

_LEAST_ALIKE, _ENDING = 6, 4
"""Letters that words of one stem share, and most that follow."""
_LEAST_INITIALS = 3
_JOINED = 4
"""Words that may be written as one: "SARS-CoV-2"."""
_NUMBER_WORDS = {
    word: str(number)
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )
} | {"ii": "2", "iii": "3"}
_DIGITS = "|".join([*_NUMBER_WORDS][2:11])
_ZH_DIGITS = {"两": "2"} | {sign: str(n) for n, sign in enumerate("二三四五六七八九十", 2)}
_EVERY = r"(?:[ -]?(?:a|per|each|every|in a))?[ -]?"
# How often and how many, each in one spelling: "twice daily", "bd" and "every 12 hours" are
# "2 times/day". "One" and 一 are as often no number.
_SPELLINGS: Sequence[tuple[str, Callable[[re.Match[str]], str]]] = (
    (
        rf"\b({_DIGITS})(?=[ -](?:times|divided|hours|hourly|days?|weeks?|months?|years?|minutes?"
        r"|tablets?|capsules?|pills?|drops|puffs|doses)\b)",
        lambda m: _NUMBER_WORDS[m[1].casefold()],
    ),
    (
        rf"\b(once|twice|thrice)(?={_EVERY}(?:day|daily|night|nightly|week|month|year))",
        lambda m: f"{('once', 'twice', 'thrice').index(m[1].casefold()) + 1} times",
    ),
    (
        r"\b(?-i:(bd|bid|b\.i\.d)|(tds|tid|t\.i\.d)|(qds|qid|q\.i\.d))\b",
        lambda m: f"{(m.lastindex or 0) + 1} times/day",
    ),
    (r"\bin (\d+) divided doses", lambda m: f"{m[1]} times/day"),
    (
        r"\b(?:every |q)([2-9]|12)(?: hours|h)\b|\b([2-9]|12)[ -]hourly\b",
        lambda m: f"{24 / int(m[1] or m[2]):g} times/day",
    ),
    (
        rf"\btimes{_EVERY}(dai|day|week|month|year)(?:ly)?\b",
        lambda m: f"times/{m[1].casefold().replace('dai', 'day')}",
    ),
    (r"(?<=[每一][日天周月年])一(?=次)", lambda _: "1"),
    (
        r"(?<![第一二三四五六七八九十])([二三四五六七八九十两])(?=[次天日周年片粒滴岁倍]|个[月小]|小时|分钟)",
        lambda m: _ZH_DIGITS[m[1]],
    ),
    (r"每隔?(\d{1,2})个?小时[1一]次", lambda m: f"每日{24 / max(1, int(m[1])):g}次"),
    (r"[每一]([周月年])(\d+)次", lambda m: f"{m[2]}次/{m[1]}"),
    (r"一[日天](?=\d+次)", lambda _: "每日"),
)
_DAILY = re.compile(
    r"\b(?:daily|(?:a|per|each|every) (?:day|night)|nightly|at night|at bedtime)\b"
    r"|每[日天晚](?!\D{0,4}\d+次)|睡前",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class ReadPassage:
    """A text with its heading, read once for any number of statements."""

    heading: str
    text: str

    @cached_property
    def whole(self) -> str:
        head = f"{self.heading.rstrip('.?! ')}.\n" if self.heading else ""
        return spell_amounts(head + self.text)

    @cached_property
    def words(self) -> tuple[PlacedWord, ...]:
        return read_words(self.whole)

    @cached_property
    def by_stem(self) -> dict[str, list[PlacedWord]]:
        found: dict[str, list[PlacedWord]] = defaultdict(list)
        for one in self.words:
            found[one.stem].append(one)
        return found

    @cached_property
    def pointing(self) -> dict[str, list[PlacedWord]]:
        """Axis → the words that point on it."""
        found: dict[str, list[PlacedWord]] = defaultdict(list)
        for one in self.words:
            for axis in read_poles().get(one.word, ()):
                found[axis].append(one)
        return found

    @cached_property
    def amounts(self) -> list[Amount]:
        daily = "1 times/day" if _DAILY.search(self.whole) else ""
        return read_amounts(f"{self.whole}\n{daily}")

    @cached_property
    def numbers(self) -> dict[str, list[PlacedWord]]:
        found: dict[str, list[PlacedWord]] = defaultdict(list)
        for one in self.words:
            if value := number_of(one.word):
                found[value].append(one)
        return found

    @cached_property
    def _beginnings(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for word in {one.word for one in self.words}:
            found[word[:_LEAST_ALIKE]].append(word)
        return found

    @cached_property
    def _joined(self) -> frozenset[str]:
        said = [one.word for one in self.words]
        return frozenset(
            "".join(said[at : at + size])
            for size in range(1, _JOINED + 1)
            for at in range(len(said) - size + 1)
        )

    @cached_property
    def _named(self) -> ReadText:
        """The text with other names of what it names."""
        others = packaged_lexicon().find_names(self.whole)
        return ReadText("; ".join([self.whole, *(name for one in others for name in one.names)]))

    @cached_property
    def _abbreviations(self) -> dict[str, str]:
        return defined_abbreviations([self.text, self.heading])

    @cached_property
    def stems_of(self) -> dict[int, frozenset[str]]:
        """Sentence → the stems of its words."""
        found: dict[int, set[str]] = defaultdict(set)
        for one in self.words:
            found[one.sentence].add(one.stem)
        return {number: frozenset(stems) for number, stems in found.items()}

    @cached_property
    def _line(self) -> str:
        return line_of(self.words)

    def has_sentences(self, words: Sequence[PlacedWord]) -> bool:
        """Whether the words are whole sentences of it, in a row."""
        return bool(words) and line_of(words) in self._line

    def has_word(self, one: PlacedWord) -> bool:
        """Whether it has the word's stem, or one with the same beginning."""
        if one.stem in self.by_stem or (len(one.word) > 4 and one.word in self._joined):
            return True
        if len(one.word) <= _LEAST_ALIKE:
            return False
        others = self._beginnings.get(one.word[:_LEAST_ALIKE], [])
        return any(_are_alike(one.word, other) for other in others)

    def has_name(self, name: str) -> bool:
        if self._named.has_name(name) or name in self._abbreviations:
            return True
        joined = "".join(split_words(name))
        return (not has_cjk(name) and len(joined) > 4 and joined in self._joined) or any(
            name.casefold() == long.casefold() for long in self._abbreviations.values()
        )

    def has_initials_of(self, name: str) -> bool:
        """Whether it has the initials of a name of several words, written in capitals."""
        initials = "".join(word[0] for word in split_words(name)).upper()
        is_name = len(initials) >= _LEAST_INITIALS and initials.isascii()
        return is_name and re.search(rf"\b{initials}\b", self.whole) is not None

    def has_code(self, code: str) -> bool:
        """Whether it has an abbreviation, or words in a row with its letters."""
        joined = "".join(split_words(code))
        forms = {joined, joined.removesuffix("s")}
        return not forms.isdisjoint(self._joined) or self._named.has_initials(code)


@lru_cache(maxsize=512)
def read_passage(heading: str, text: str) -> ReadPassage:
    return ReadPassage(heading, text)


def spell_amounts(text: str) -> str:
    """The text with how often and how many in one spelling."""
    for pattern, spell in _SPELLINGS:
        text = re.sub(pattern, spell, text, flags=re.IGNORECASE)
    return text


def number_of(word: str) -> str:
    """The number that a word is, in one spelling; "" where it is none."""
    plain = _NUMBER_WORDS.get(word, word)
    return f"{float(plain):g}" if plain.replace(".", "", 1).isdecimal() else ""


def line_of(words: Sequence[PlacedWord]) -> str:
    """The words in a line, each sentence between bars."""
    parts: list[str] = []
    for at, one in enumerate(words):
        if at == 0 or words[at - 1].sentence != one.sentence:
            parts.append("|")
        parts.append(one.word)
    return f" {' '.join(parts)} | "


def _are_alike(word: str, other: str) -> bool:
    """Whether two words differ in their endings alone."""
    longest = max(len(word), len(other))
    same = sum(
        1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False))
    )
    return same >= max(_LEAST_ALIKE, longest - _ENDING)
