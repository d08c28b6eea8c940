"""Reads citation marks in every style: [1], 【1】, [^1], (Reference 1), [1, 2], [1–3].

A number in round brackets alone is none: "(2)" numbers a list, or is a dose.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from osler.types import citation_mark

_LONGEST_RANGE = 12
"""Passages that a range names, at most: "[10-60]" is no range of passages."""
_NOUN = (
    r"(?:citations?|cite|references?|refs?\.?|documents?|docs?\.?|passages?|sources?|参考(?:文献|资料)?"
    r"|文献|文档|段落|来源|引文)"
)
_N = r"[0-9０-９]{1,3}"
_JOIN = r"[ \t]*(?:[,，、;；&+]|and|和|与|[-–—~～至])[ \t]*"
_ONE = rf"(?:\^|#|{_NOUN}[ \t]*[:：#]?[ \t]*)?{_N}"
_LIST = rf"{_ONE}(?:{_JOIN}{_ONE})*"
_SQUARE = (
    rf"[\[［【〔]{{1,2}}[ \t]*{_LIST}(?:†[^\]】]*)?[ \t]*[\]］】〕]{{1,2}}(?:\(https?://[^)\s]*\))?"
)
_ROUND = rf"[(（][ \t]*(?:see[ \t]+|from[ \t]+|见)?{_NOUN}[ \t]*[:：#]?[ \t]*{_LIST}[ \t]*[)）]"
_RAISED = rf"<sup>[ \t]*\[?{_LIST}\]?[ \t]*</sup>"
_MARK = re.compile(rf"{_SQUARE}|{_ROUND}|{_RAISED}", re.IGNORECASE)
_URL = re.compile(r"\(https?://[^)\s]*\)|†[^\]】]*")
_PART = re.compile(rf"(?P<first>{_N})(?:[ \t]*[-–—~～至][ \t]*(?:\^|#)?(?P<last>{_N}))?")


@dataclass(frozen=True, slots=True)
class Mark:
    """A citation mark: the passages that it names, each once and in order, and its place."""

    numbers: tuple[int, ...]
    start: int
    end: int


def find_marks(text: str) -> list[Mark]:
    """The citation marks of a text, in order."""
    found = (
        Mark(_read_numbers(match.group()), match.start(), match.end())
        for match in _MARK.finditer(text)
    )
    return [mark for mark in found if mark.numbers]


def plain_marks(text: str) -> str:
    """The text with each mark as the house writes it: `[1][2]` for "(References 1 and 2)"."""
    written, at = "", 0
    for mark in find_marks(text):
        written += text[at : mark.start] + "".join(map(citation_mark, mark.numbers))
        at = mark.end
    return written + text[at:]


def _read_numbers(mark: str) -> tuple[int, ...]:
    """The numbers of a mark; none where a range cannot be one of passages."""
    numbers: list[int] = []
    for part in _PART.finditer(_URL.sub("", mark)):
        first = _to_number(part["first"])
        last = _to_number(part["last"]) if part["last"] else first
        if not first <= last < first + _LONGEST_RANGE:
            return ()
        numbers += range(first, last + 1)
    return tuple(dict.fromkeys(numbers))


def _to_number(digits: str) -> int:
    return int(unicodedata.normalize("NFKC", digits))
