"""The normal form in which names are compared, and its units.

Two names are the same when their words are: case, width, punctuation and white space
do not count. "COVID-19" and "covid 19" are one; "2型糖尿病" and "2 型糖尿病" are one.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise

from osler.text import is_cjk, one_line

_HAN = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00020000-\U0002a6df\U0002a700-\U0002fa1f\U00030000-\U000323af"
)
_ASCII = re.compile(r"[a-z0-9]+")
_UNIT = re.compile(rf"[{_HAN}]|(?:(?![{_HAN}])[^\W_])+")
LONGEST = 16
"""Units of the longest name that is found inside a text."""


def normalize_name(text: str) -> str:
    """The units joined by a space, Chinese characters without one; idempotent, "" for "".

    A name without letters and digits ("+") stands for itself.
    """
    units = split_units(text)
    if not units:
        return one_line(text).casefold()
    if text.isascii():
        return " ".join(units)
    joined = units[0]
    for before, unit in pairwise(units):
        joined += unit if is_cjk(before[-1]) and is_cjk(unit[0]) else f" {unit}"
    return joined


def split_units(text: str) -> list[str]:
    """Lower-cased words, and Chinese characters one by one."""
    if text.isascii():
        return _ASCII.findall(text.lower())
    return _UNIT.findall(fold_text(text))


def fold_text(text: str) -> str:
    # Twice: folding the case of a compatibility character can give one that NFKC changes again.
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def unit_spans(text: str) -> list[tuple[str, int, int]]:
    """The units of a text with their places in it; as `split_units`, but for one character a unit
    whose width or case changes its length, which is then left as it is."""
    if text.isascii():
        return [(match[0], *match.span()) for match in _ASCII.finditer(text.lower())]
    lowered = "".join(map(_folded_in_place, text))
    return [(match[0], *match.span()) for match in _UNIT.finditer(lowered)]


def _folded_in_place(char: str) -> str:
    other = fold_text(char)
    return other if len(other) == 1 else char
