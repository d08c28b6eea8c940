"""Reads the words of an answer out of a reply: what the model says of the matter, once."""

from __future__ import annotations

import re

from osler.llm.reading.debris import is_debris, without_debris
from osler.llm.reading.marks import plain_marks
from osler.llm.reading.thinking import spoken_part
from osler.text import split_sentences
from osler.types import CITATION_MARK

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
