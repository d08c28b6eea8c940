"""What a reply may copy from a text: its phrases, the openings of its sentences, its cells.

A model that is held to these cannot write a name that is not there (substring-constrained
decoding; the grammar of a chunk is made from the chunk). The rules are of form alone: a
phrase has few words, lies between two marks, and neither begins nor ends with a word that
only joins others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from osler.extract.anchor import Anchors
from osler.graph.normal import split_units
from osler.text import is_cjk, split_sentences
from osler.types import Language

_WORDS = 6
"""Of the longest phrase in English."""
_HAN = 12
"""Characters of the longest in Chinese."""
_LONGEST = 60
_OPENING = (6, 14)
"""Words, and Chinese characters, of the longest opening of a sentence."""
_MARK = re.compile(
    r"[.,;:?!](?=\s|$)|[\n\r\t|\"“”‘’•·()\[\]{}<>=]|[，。；：？！、（）《》【】「」…—]"
)
_CELLS = re.compile(r"\s*(?:\||\t| {2,})\s*")
_UNIT = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\s\u3400-\u9fff\uf900-\ufaff]+")
_LINKS = frozenset("a an and at by for from in of on the to with".split())  # noqa: SIM905
"""Words that may stand inside a name; no name begins or ends with one."""
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
"""Words that stand in no name."""
_APART_ZH = frozenset("的了是您你我他她它吗呢吧们这那")


def copyable_phrases(text: str, language: Language) -> tuple[str, ...]:
    """Every stretch of the text that may be a name, in the order of the text."""
    found: dict[str, None] = {}
    for start, end in _between_marks(text):
        found |= dict.fromkeys(_phrase_stretches(text[start:end], language))
    return _keep_anchored(found, text)


def sentence_openings(text: str) -> tuple[str, ...]:
    """The first words of each sentence and of each line, as many as an outline quotes."""
    found: dict[str, None] = {}
    for start, end in split_sentences(text):
        for line in text[start:end].splitlines():
            units = list(_UNIT.finditer(line))
            most = _OPENING[1] if units and is_cjk(units[0].group()) else _OPENING[0]
            if taken := units[:most]:
                found[line[taken[0].start() : taken[-1].end()]] = None
    return _keep_anchored(_writable_texts(found), text)


def table_cells(text: str) -> tuple[str, ...]:
    """What stands in the lines that have two cells or more; () for a text without a table."""
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
            if words[last] in _APART or words[last] in _APART_ZH:
                break
            phrase = clause[start : units[last][1]]
            if words[last] not in _LINKS and _is_phrase(phrase):
                yield phrase


def _is_phrase(phrase: str) -> bool:
    """Whether it has letters, more than one, and can stand in JSON as it is."""
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
    """Those that `Anchors` finds again: not an accent that stands apart from its letter."""
    at = Anchors(text)
    return tuple(one for one in found if at.first_span(one) is not None)


def _is_plain(text: str) -> bool:
    return text.isprintable() and '"' not in text and "\\" not in text
