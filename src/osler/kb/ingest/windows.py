"""Overlapping windows over a text, counted in tokens or characters.

The text is first cut into atoms that stay whole: a word or number, a Han character, a
mark, each with the combining marks and the white space behind it. A window is a run of
atoms; it ends after the last sentence in its second half, else after the last atom that
fits.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from osler.text import is_cjk, split_sentences

_CJK = "\u2e80-\u9fff\uf900-\ufaff\U00020000-\U000323af"
# Possessive quantifiers: without backtracking the work is linear in the text.
_ATOM = re.compile(rf"(?:\d+(?:[.,]\d+)*+|(?:(?![{_CJK}])[^\W_])++|[\s\S])\s*+")
_JOINER = "\u200d"


def cut_windows(text: str, size: int, overlap: int, unit: str) -> Iterator[tuple[int, int]]:
    """Yields spans of at most `size` units; each begins `overlap` units before the last one's end.

    Counted in tokens the overlap is exact; counted in characters it is the most that
    fits without cutting a word. A word longer than a window is cut between characters,
    a character with its marks only where it alone is longer. `2 * overlap < size`.
    """
    starts, weights = _text_atoms(text, size, unit)
    total = [0, *accumulate(weights)]
    ends = _sentence_ends(text, starts)
    first, last = 0, len(weights)
    while first < last:
        end = bisect_right(total, total[first] + size) - 1
        if end < last:
            end = _at_sentence(ends, end, bisect_left(total, total[first] + size // 2 + 1))
        yield starts[first], starts[end]
        if end == last:
            return
        repeated = bisect_left(total, total[end] - overlap)
        # With so much repeated that what follows does not fit, a window would stand still.
        first = max(first + 1, repeated, bisect_left(total, total[end + 1] - size))


def _text_atoms(text: str, size: int, unit: str) -> tuple[list[int], list[int]]:
    """Returns where each atom begins, with the text's end last, and the weight of each."""
    in_characters = unit == "characters"
    starts: list[int] = []
    for start, end in _atom_spans(text):
        if in_characters and end - start > size:
            starts += _split_atom(text, start, end, size)
        else:
            starts.append(start)
    starts.append(len(text))
    spans = pairwise(starts)
    # White space before the first word is no token.
    weights = [
        end - start if in_characters else int(bool(text[start:end].strip())) for start, end in spans
    ]
    return starts, weights


def _atom_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields words, Han characters and marks; a combining mark holds together what is around it."""
    begun, ended = 0, 0
    for atom in _ATOM.finditer(text):
        if ended and not _is_joined(text, atom.start()):
            yield begun, ended
            begun = atom.start()
        ended = atom.end()
    if ended:
        yield begun, ended


def _is_joined(text: str, place: int) -> bool:
    """Returns whether the character at `place` must not be parted from the one before it."""
    here, before = text[place], text[place - 1]
    if unicodedata.category(here)[0] == "M" or _JOINER in (here, before):
        return True
    # "é" as two characters within a word: the letters after the mark go on with the word.
    return unicodedata.category(before)[0] == "M" and here.isalnum() and not is_cjk(here)


def _split_atom(text: str, start: int, end: int, size: int) -> Iterator[int]:
    """Yields cuts in an atom that is too long: between letters, not before their marks."""
    while start < end:
        yield start
        place = min(start + size, end)
        if place < end:
            place = next((p for p in range(place, start, -1) if not _is_mark(text[p])), place)
        start = place


def _is_mark(char: str) -> bool:
    return unicodedata.category(char)[0] == "M" or char == _JOINER


def _sentence_ends(text: str, starts: Sequence[int]) -> list[int]:
    """Lists numbers of the atoms before which a sentence has just ended, in order."""
    places = (bisect_left(starts, end) for _, end in split_sentences(text))
    return [place for place in places if place < len(starts)]


def _at_sentence(ends: Sequence[int], end: int, earliest: int) -> int:
    """Returns the last sentence end from `earliest` to `end`; `end` where there is none."""
    place = bisect_right(ends, end) - 1
    return ends[place] if place >= 0 and ends[place] >= earliest else end


def token_count(text: str) -> int:
    """Counts tokens as `cut_windows` does."""
    return sum(1 for start, end in _atom_spans(text) if text[start:end].strip())
