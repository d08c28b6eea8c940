"""Mentions of concepts in a text: the longest names in it, English and Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from osler.graph.derive import LONGEST, bit_of, hash_powers, normalize_name, unit_hash, unit_spans
from osler.graph.files import Array
from osler.graph.store import Graph
from osler.text import has_cjk

# Where a name cannot go on. A stop after one or two letters may be a name's ("E. coli").
_BREAK = re.compile(r"[。！？；!?;\n]|(?<=\w\w\w)\.(?=\s)")
# Letters of a name in Latin script; a shorter one is mostly a word of the language.
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class ConceptMention:
    """`text[start:end]` is a name of each of `concepts`."""

    start: int
    end: int
    concepts: tuple[str, ...]
    """Identifiers; several when the name is ambiguous. Never empty."""


class Recogniser(Protocol):
    """A finder of concept names in texts: a dictionary, a model."""

    def find_mentions(self, text: str) -> list[ConceptMention]:
        """Mentions in order, none overlapping. Blocks: an async caller puts it in a thread."""


@dataclass(frozen=True)
class Dictionary:
    """Finder of a graph's names of up to 16 words or characters; of two that overlap the first
    counts, of two that begin together the longer.

    The text's stretches are hashed all at once and looked for among the names' hashes;
    what is found is compared with the name itself, so a mention is never a collision.
    """

    graph: Graph
    ignored: frozenset[str] = frozenset()
    """Normal forms that are no mention: words that are also names ("all", "was")."""

    def find_mentions(self, text: str) -> list[ConceptMention]:
        units = unit_spans(text)
        arrays = self.graph.load_arrays()
        if not units or not len(arrays["hash"]):
            return []
        lengths, concepts = _longest_names(units, text, arrays)
        return self._verify_mentions(text, list(_choose_mentions(units, lengths)), concepts, arrays)

    def _verify_mentions(
        self,
        text: str,
        chosen: list[tuple[int, int, int]],
        concepts: dict[int, tuple[int, int]],
        arrays: dict[str, Array],
    ) -> list[ConceptMention]:
        """The mentions whose words are those of a name; others are collisions of hashes."""
        candidates = {
            (start, end): arrays["hashed"][slice(*concepts[place])].tolist()
            for place, start, end in chosen
        }
        wanted = {number for numbers in candidates.values() for number in numbers}
        norms = {
            n: set(map(normalize_name, names)) for n, names in self.graph.names_of(wanted).items()
        }
        heads = {n: int(arrays["heads"][n]) for n in wanted}
        ids = self.graph.ids_of(heads.values())
        mentions = []
        for (start, end), numbers in candidates.items():
            norm = normalize_name(text[start:end])
            if norm in self.ignored or is_too_short(norm):
                continue
            named = [ids[heads[n]] for n in numbers if norm in norms.get(n, ())]
            if named:
                mentions.append(ConceptMention(start, end, tuple(dict.fromkeys(named))))
        return mentions


def is_too_short(norm: str) -> bool:
    """Whether a normal form is a number, or as short as the words of the language."""
    return (len(norm) < _SHORTEST and not has_cjk(norm)) or norm.isdigit()


Units = list[tuple[str, int, int]]
Lengths = NDArray[np.int64]


def _longest_names(
    units: Units, text: str, arrays: dict[str, Array]
) -> tuple[Lengths, dict[int, tuple[int, int]]]:
    """For each unit how many units the longest name has that begins there (0 = none), and
    where its concepts stand among `hashed`."""
    cache: dict[str, int] = {unit: unit_hash(unit) for unit in {unit for unit, _, _ in units}}
    each = np.array([cache[unit] for unit, _, _ in units], dtype=np.uint64)
    starts = np.array([start for _, start, _ in units])
    breaks = np.array([match.start() for match in _BREAK.finditer(text)], dtype=np.int64)
    segment = np.searchsorted(breaks, starts)
    table, known = arrays["bits"], arrays["hash"]
    factors = hash_powers(LONGEST)
    hashes = np.zeros(len(each), dtype=np.uint64)
    lengths = np.zeros(len(each), dtype=np.int64)
    places: dict[int, tuple[int, int]] = {}
    for n in range(1, min(LONGEST, len(each)) + 1):
        count = len(each) - n + 1
        # The hash of n units is that of n - 1 plus one product: all lengths cost the same.
        hashes = hashes[:count] + each[n - 1 :] * factors[n - 1]
        bit = bit_of(hashes, len(table) * 8)
        set_ = (table[bit >> 3] >> (bit & 7).astype(np.uint8)) & 1
        likely = np.flatnonzero(set_.astype(bool) & (segment[:count] == segment[n - 1 :]))
        begin = np.searchsorted(known, hashes[likely])
        end = np.searchsorted(known, hashes[likely], side="right")
        hit = end > begin
        lengths[likely[hit]] = n
        spans = zip(begin[hit].tolist(), end[hit].tolist(), strict=True)
        places.update(zip(likely[hit].tolist(), spans, strict=True))
    return lengths, places


def _choose_mentions(units: Units, lengths: Lengths) -> Iterator[tuple[int, int, int]]:
    """Unit, start and end of the mentions, from left to right, none over another."""
    place = 0
    counts = lengths.tolist()
    while place < len(counts):
        if n := counts[place]:
            yield place, units[place][1], units[place + n - 1][2]
        place += n or 1
