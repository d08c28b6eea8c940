"""Names in a text: where they occur, and which phrases of the text may be copied as names.

`Anchors` finds names regardless of case, character width and punctuation. A model constrained to
`copyable_phrases` cannot write a name that does not occur (substring-constrained decoding; the
grammar of a chunk is made from the chunk). The rules look at form alone: a phrase has few words,
lies between two punctuation marks, and neither begins nor ends with a function word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from osler.graph.derive import split_units, unit_spans
from osler.text import is_cjk, split_sentences
from osler.types import Language

# Of the longest phrase in English.
_WORDS = 6
# Characters of the longest in Chinese.
_HAN = 12
_LONGEST = 60
# Words, and Chinese characters, of the longest opening of a sentence.
_OPENING = (6, 14)
_MARK = re.compile(
    r"[.,;:?!](?=\s|$)|[\n\r\t|\"“”‘’•·()\[\]{}<>=]|[，。；：？！、（）《》【】「」…—]"
)
_CELLS = re.compile(r"\s*(?:\||\t| {2,})\s*")
_UNIT = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\s\u3400-\u9fff\uf900-\ufaff]+")
# Words that may stand inside a name; no name begins or ends with one.
_LINKS = frozenset("a an and at by for from in of on the to with".split())  # noqa: SIM905
# Words that occur in no name.
_APART = frozenset(
    """about above across after again against all almost also although always am any are as be
    because been before being below between both but can cannot could did do does doing done
    down due during each either etc even ever every few further get had has have having he
    hence her here his how however i if into is it its itself just later less like many may
    me might more most much must my near neither no nor not now often once only or other
    others our out over own per perhaps rather same she should since so some soon still such
    than that their them themselves then there therefore these they this those though
    through thus too under until up upon us usually very via was we well were what when
    where whether which while who whom whose why will within without would yet you your
    include includes including called known used using occur occurs cause causes caused lead
    leads show shows shown""".split()  # noqa: SIM905
)
_APART_ZH = frozenset("的了是您你我他她它吗呢吧们这那")

Span = tuple[int, int]


class Anchors:
    """The units of one text, indexed for looking up names."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._units = unit_spans(text)
        self._starts: dict[str, list[int]] = {}
        for place, (unit, _, _) in enumerate(self._units):
            self._starts.setdefault(unit, []).append(place)

    def all_spans(self, name: str) -> list[Span]:
        """All spans of the name as whole words, in order; [] when it does not occur.

        A name of punctuation alone ("+") is never found.
        """
        wanted = split_units(name)
        if not wanted:
            return []
        size, found = len(wanted), list[Span]()
        for place in self._starts.get(wanted[0], ()):
            here = self._units[place : place + size]
            if [unit for unit, _, _ in here] == wanted:
                found.append((here[0][1], here[-1][2]))
        return found

    def first_span(self, name: str) -> Span | None:
        places = self.all_spans(name)
        return places[0] if places else None

    def covering_span(self, names: Sequence[str]) -> Span | None:
        """The shortest span that covers one occurrence of each name.

        `None` when one of them does not occur. Exact for two names; with more, the others are
        taken nearest to the first.
        """
        every = [self.all_spans(name) for name in names]
        if not every or not all(every):
            return None

        def span_from(anchor: Span) -> Span:
            near = (
                min(places, key=lambda span: _length_of(_joint_span([anchor, span])))
                for places in every[1:]
            )
            return _joint_span([anchor, *near])

        return min(map(span_from, every[0]), key=_length_of)


def _length_of(span: Span) -> int:
    return span[1] - span[0]


def _joint_span(spans: Iterable[Span]) -> Span:
    every = list(spans)
    return min(start for start, _ in every), max(end for _, end in every)


def copyable_phrases(text: str, language: Language) -> tuple[str, ...]:
    """Every phrase of the text that may be a name, in text order."""
    found: dict[str, None] = {}
    for start, end in _between_marks(text):
        found |= dict.fromkeys(_phrase_stretches(text[start:end], language))
    return _keep_anchored(found, text)


def sentence_openings(text: str) -> tuple[str, ...]:
    """The first words of each sentence and line, as many as an outline quotes."""
    found: dict[str, None] = {}
    for start, end in split_sentences(text):
        for line in text[start:end].splitlines():
            # Han characters are units of their own; other scripts are split at spaces.
            units = list(_UNIT.finditer(line))
            most = _OPENING[1] if units and is_cjk(units[0].group()) else _OPENING[0]
            if taken := units[:most]:
                found[line[taken[0].start() : taken[-1].end()]] = None
    return _keep_anchored(_writable_texts(found), text)


def table_cells(text: str) -> tuple[str, ...]:
    """The cells of all lines with two or more of them; () for a text without a table."""
    found: dict[str, None] = {}
    for line in text.splitlines():
        parts = [part for part in _CELLS.split(line.strip()) if part]
        if len(parts) > 1:
            found |= dict.fromkeys(parts)
    return _keep_anchored(_writable_texts(found), text)


def _between_marks(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for mark in _MARK.finditer(text):
        yield start, mark.start()
        start = mark.end()
    yield start, len(text)


def _phrase_stretches(clause: str, language: Language) -> Iterator[str]:
    units = [found.span() for found in _UNIT.finditer(clause)]
    words = [clause[start:end].casefold() for start, end in units]
    most = _HAN if language == "zh" else _WORDS
    for first, (start, _) in enumerate(units):
        if words[first] in _LINKS:
            continue
        for last in range(first, min(first + most, len(units))):
            # No longer phrase from here can be a name either.
            if words[last] in _APART or words[last] in _APART_ZH:
                break
            phrase = clause[start : units[last][1]]
            if words[last] not in _LINKS and _is_phrase(phrase):
                yield phrase


def _is_phrase(phrase: str) -> bool:
    """Whether it has at least two characters, a letter among them, and needs no escape in JSON."""
    return (
        1 < len(phrase) <= _LONGEST
        and any(map(str.isalpha, phrase))
        and bool(split_units(phrase))
        and _is_plain(phrase)
    )


def _writable_texts(texts: Iterable[str]) -> Iterator[str]:
    return (
        text for text in texts if len(text) <= _LONGEST and split_units(text) and _is_plain(text)
    )


def _keep_anchored(found: Iterable[str], text: str) -> tuple[str, ...]:
    """Those that `Anchors` finds again: not, for example, a combining accent without its letter."""
    at = Anchors(text)
    return tuple(one for one in found if at.first_span(one) is not None)


def _is_plain(text: str) -> bool:
    return text.isprintable() and '"' not in text and "\\" not in text
