"""Phrases of lay language, found in a text in linear time and with one typing mistake a word.

A phrase is written as it is said. `*` ends a word of which only the beginning counts ("vomit*"),
`#` is any number ("# year old"), `/` parts words of which one will do ("left/right arm"), and
`...` stands for at most `GAP` words or Chinese characters ("chest ... hurts"); none of them
crosses the end of a sentence. Two Chinese characters count as one word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

from osler.text import clean_text, has_cjk

GAP = 4
"""Words or Chinese characters that `...` stands for, at most."""
WORD = 2
"""Length of a word in the units of `Span`; a Chinese character is 1."""
LONGEST = 100_000
"""Characters of a text that are read; far above any question."""

_TOKEN = re.compile(
    r"(?P<han>[\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff])|(?P<number>\d+(?:[.,]\d+)*)|(?P<word>[^\W\d_]+)"
    r"|(?P<stop>[.!?。！？；\n])"
)
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼ`´](?=\w)")
_STOP = "."
_NUMBER = "#"
_NUMBERS = frozenset("一二三四五六七八九十百两半") | {
    *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "fifteen", "twenty", "thirty", "forty", "fifty", "sixty", "hundred"),
}
_PHRASE_TOKEN = re.compile(rf"#|{_TOKEN.pattern}")
_NOT_IN_PHRASE = re.compile(r"[^\w\-,&#]")
# Below it, nearly every slip is another word.
_LEAST_TYPO = 5


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """The place of a phrase in a text, in half words."""

    start: int
    end: int


class BadPhrase(ValueError):
    """A phrase that cannot be read; the message says why."""


@dataclass(slots=True)
class _Node:
    """A state of the automaton: the phrases that end here, and what may follow."""

    ends: set[str] = field(default_factory=set)
    next: dict[str, _Node] = field(default_factory=dict)
    gap: _Node | None = None


@dataclass(frozen=True)
class Spelling:
    """How people write, and how phrases are written; both are read through it."""

    words: Mapping[str, str] = field(default_factory=dict)
    """One or more words to those that take their place: "can not" to "cant"."""
    characters: Mapping[str, str] = field(default_factory=dict)
    """One to one: traditional to simplified characters."""
    real_words: frozenset[str] = frozenset()
    """Words that are never taken for a mistyped word of a phrase."""

    def apply(self, text: str) -> str:
        """Lower case, plain letters, no apostrophes, and each word as phrases have it."""
        folded = unicodedata.normalize("NFKC", clean_text(text)).lower()
        folded = _APOSTROPHE.sub("", folded).translate(self._table)
        return self._pattern.sub(self._replace_word, folded) if self.words else folded

    @cached_property
    def _table(self) -> dict[int, str]:
        return str.maketrans(dict(self.characters))

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.words, key=len, reverse=True)
        forms = (r"\s".join(map(re.escape, form.split())) for form in longest_first)
        return re.compile(rf"\b(?:{'|'.join(forms)})\b")

    def _replace_word(self, match: re.Match[str]) -> str:
        return self.words[" ".join(match[0].split())]


class PhraseFinder:
    """Named lists of phrases, compiled once."""

    def __init__(
        self, lists: Mapping[str, Sequence[str]], spelling: Spelling | None = None
    ) -> None:
        """Raises `BadPhrase`, which names the list, for a phrase that cannot be read."""
        self.spelling = spelling or Spelling()
        self._root = _Node()
        self._beginnings: set[str] = set()
        self._words: set[str] = set()
        for name, phrases in lists.items():
            for phrase in phrases:
                self._add_phrase(name, phrase)
        self._typos = _index_typos(self._words)
        self._real = self.spelling.real_words | self._words
        self._known: dict[str, tuple[str, ...]] = {}

    def find(self, text: str) -> dict[str, list[Span]]:
        """The places of each list's phrases, by their start; a list without any is absent."""
        tokens, places = self._read_tokens(text[:LONGEST])
        found: dict[str, set[Span]] = {}
        for first in range(len(tokens)):
            if not any(symbol in self._root.next for symbol in tokens[first]):
                continue
            for name, last in set(_walk(self._root, tokens, first)):
                found.setdefault(name, set()).add(Span(places[first], places[last]))
        return {name: sorted(spans) for name, spans in found.items()}

    def _add_phrase(self, name: str, phrase: str) -> None:
        try:
            for wording in _each_wording(phrase, self.spelling):
                self._add_symbols(name, wording)
        except BadPhrase as error:
            raise BadPhrase(f"{name}: {phrase!r} {error}") from None

    def _add_symbols(self, name: str, symbols: Sequence[str]) -> None:
        node = self._root
        for symbol in symbols:
            if symbol == "...":
                node.gap = node.gap or _Node()
                node = node.gap
                continue
            if symbol.endswith("*"):
                self._beginnings.add(symbol[:-1])
            elif symbol.isalpha() and not has_cjk(symbol):
                self._words.add(symbol)
            node = node.next.setdefault(symbol, _Node())
        node.ends.add(name)

    def _read_tokens(self, text: str) -> tuple[list[tuple[str, ...]], list[int]]:
        """Symbols of each token, and its place; one place more for the end."""
        tokens: list[tuple[str, ...]] = []
        places = [0]
        for match in _TOKEN.finditer(self.spelling.apply(text)):
            word = match[0]
            if match["stop"]:
                tokens.append((_STOP,))
                places.append(places[-1])
            elif match["word"]:
                tokens.append(self._symbols(word))
                places.append(places[-1] + WORD)
            else:
                counts = match["number"] or word in _NUMBERS
                # A temperature of 38.9 is one of 38.
                tokens.append((word, re.split("[.,]", word)[0], _NUMBER) if counts else (word,))
                places.append(places[-1] + (WORD if match["number"] else 1))
        return tokens, places

    def _symbols(self, word: str) -> tuple[str, ...]:
        """The word, the beginnings of it that are asked for, and what it is a typing mistake of."""
        if (known := self._known.get(word)) is not None:
            return known
        readings = {word, *self._correct(word)}
        if word in _NUMBERS:
            return (word, _NUMBER)
        begun = {one[:length] for one in readings for length in range(2, len(one) + 1)}
        begun &= self._beginnings
        found = tuple(sorted(readings | {f"{one}*" for one in begun}))
        if len(self._known) < 10_000:  # a bounded memory of the words that texts are made of
            self._known[word] = found
        return found

    def _correct(self, word: str) -> set[str]:
        if len(word) < _LEAST_TYPO - 1 or len(word) > 40 or word in self._real:
            return set()
        if any(word[:length] in self._beginnings for length in range(4, len(word) + 1)):
            return set()
        return {
            right
            for form in (word, *_shortened(word))
            for right in self._typos.get(form, ())
            if right[0] == word[0] and is_one_slip(word, right) and _is_likely(word, right)
        }


def _each_wording(phrase: str, spelling: Spelling) -> Iterator[list[str]]:
    """A phrase as lists of symbols, one for each way to say it. Raises `BadPhrase`."""
    parts = phrase.replace("...", " ... ").split()
    if not parts:
        raise BadPhrase("is empty")
    if "..." in (parts[0], parts[-1]):
        raise BadPhrase("begins or ends with ...")
    for choice in product(*(part.split("/") for part in parts)):
        yield [s for part in spelling.apply(" ".join(choice)).split() for s in _read_part(part)]


def _read_part(part: str) -> list[str]:
    if part == "...":
        return [part]
    stem = part.removesuffix("*")
    symbols = [match[0] for match in _PHRASE_TOKEN.finditer(stem) if not match["stop"]]
    if not symbols or _NOT_IN_PHRASE.search(stem):
        raise BadPhrase("has a sign that means nothing here")
    if part.endswith("*"):
        if len(stem) < 3 or has_cjk(symbols[-1]):
            raise BadPhrase("has * after less than three letters")
        symbols[-1] += "*"
    return symbols


def _walk(root: _Node, tokens: Sequence[tuple[str, ...]], first: int) -> Iterator[tuple[str, int]]:
    """Lists that have a phrase from token `first` on, each with the token after its end.

    Phrases bound their own length and `GAP` bounds theirs, so one start costs a bounded time.
    """
    reached = [(root, first)]
    seen = {(id(root), first)}
    while reached:
        node, at = reached.pop()
        for name in node.ends:
            yield name, at
        symbols = tokens[at] if at < len(tokens) else ()
        steps = [(node.next[s], at + 1) for s in symbols if s in node.next]
        if node.gap is not None:
            steps += [(node.gap, after) for after in _after_gap(tokens, at)]
        for step in steps:
            key = (id(step[0]), step[1])
            if key not in seen:
                seen.add(key)
                reached.append(step)


def _after_gap(tokens: Sequence[tuple[str, ...]], at: int) -> Iterator[int]:
    for after in range(at, min(at + GAP, len(tokens)) + 1):
        yield after
        if after < len(tokens) and tokens[after] == (_STOP,):
            return


def _index_typos(words: Iterable[str]) -> dict[str, list[str]]:
    """Words by themselves and by each form that lacks one letter."""
    index: dict[str, list[str]] = {}
    for word in sorted(words):
        if len(word) >= _LEAST_TYPO - 1:
            for form in {word, *_shortened(word)}:
                index.setdefault(form, []).append(word)
    return index


def _shortened(word: str) -> Iterator[str]:
    return (word[:i] + word[i + 1 :] for i in range(len(word)))


def _is_likely(typed: str, meant: str) -> bool:
    """Of five letters, one that is wrong mostly makes another word: "shake", "snake"."""
    if sorted(typed) == sorted(meant):
        return True
    longer = len(typed) >= _LEAST_TYPO
    return longer and (len(meant) > _LEAST_TYPO or len(typed) != len(meant))


def is_one_slip(typed: str, meant: str) -> bool:
    """Whether one letter is missing, too many, wrong, or changed places with its neighbour."""
    if typed == meant or abs(len(typed) - len(meant)) > 1:
        return False
    at = 0
    while at < min(len(typed), len(meant)) and typed[at] == meant[at]:
        at += 1
    a, b = typed[at:], meant[at:]
    if len(a) == len(b):
        return a[1:] == b[1:] or (a[:2] == b[:2][::-1] and a[2:] == b[2:])
    return a[1:] == b or a == b[1:]
