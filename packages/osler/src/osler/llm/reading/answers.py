"""Reads the words of an answer out of a reply: what the model says of the matter, once.

Citation marks are read in every style: [1], 【1】, [^1], (Reference 1), [1, 2], [1–3]. A number in
round brackets alone is none: "(2)" numbers a list, or is a dose.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from osler.llm.core.thinking import spoken_part
from osler.llm.reading.tags import is_debris, without_debris
from osler.text import split_sentences
from osler.types import CITATION_MARK, citation_mark

_HELPS = (
    r"(?:help|assist|advise|comment|respond|discuss|offer|engage|comply|continue|do that|recommend"
    r"|(?:answer|provide|give)\b.{0,30}\b(?:medical|health|advice|diagnos|that|this))"
)
_DECLINES = re.compile(
    r"\W*(?:(?:i'm|i am|we're|we are)\s+(?:really\s+|very\s+|so\s+)?sorry\b[,.]?\s*(?:but\s+)?"
    r"|sorry\b[,.]?\s*(?:but\s+)?|i apologi[sz]e\b[^.]*?(?:,|but)\s*|unfortunately,?\s*"
    r"|as an ai\b[^,.]*,\s*|我?(?:很|非常)?(?:抱歉|对不起)[，,。]?\s*)*"
    rf"(?:(?:i|we)\s*(?:can(?:no|')t|can not|'m (?:unable|not able) to|am (?:unable|not able) to"
    rf"|won't|will not|must decline to)\s*{_HELPS}|我(?:无法|不能)(?:帮助|协助|提供|回答))",
    re.IGNORECASE,
)
DECLINED = "the model declined to answer"
"""What a run notes of it."""
_SHORT = 12
"""Characters of a sentence that may well come twice."""
_AGAIN = re.compile(r"(\[\d+\])(?:\s*\1)+")
_INSTEAD = re.compile(
    r"\W*(?:please |you should |it is best to |i (?:recommend|suggest|advise) )"
    r"|\W*(?:consult|see|talk to|speak (?:to|with)|contact)\b.*"
    r"\b(?:professional|doctor|physician|provider)"
    r"|\W*(?:i'm|i am) (?:not a doctor|an ai)\b|\W*请(?:咨询|联系)",
    re.IGNORECASE,
)


def answer_words(reply: str) -> str:
    """The reply's answer: no thinking, labels or courtesies, marks as the house's, no repeats."""
    said = without_debris(plain_marks(spoken_part(reply)))
    return _AGAIN.sub(r"\1", "\n".join(_without_repeats(said))).strip()


def _without_repeats(text: str) -> list[str]:
    """The lines of a text without sentences that stood before in it."""
    known, lines = set[str](), list[str]()
    for line in text.splitlines():
        kept, at = "", 0
        for start, end in split_sentences(line):
            words = bare_words(line[start:end])
            # A lone mark after its sentence, and short sentences ("Yes."), may come again.
            kept += "" if words in known else line[at:end]
            known |= {words} if len(words) > _SHORT else set()
            at = end
        if kept.strip() or not line.strip():
            lines.append(kept.strip() if not kept.startswith((" ", "\t")) else kept.rstrip())
    return lines


def bare_words(sentence: str) -> str:
    """A sentence as it is compared: without marks, case and signs around it."""
    plain = CITATION_MARK.sub("", plain_marks(sentence))
    return " ".join(plain.casefold().split()).strip(" .。!！*_`\"'")


def declines(text: str) -> bool:
    """Whether a reply says nothing but that the model will not answer."""
    said = [text[start:end] for start, end in split_sentences(text)]
    said = [sentence for sentence in said if not is_debris(sentence)]
    if not said or _DECLINES.match(said[0].replace("’", "'")) is None:
        return False
    return all(_DECLINES.match(one) or _INSTEAD.match(one) for one in said[1:])


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
