"""Finds words that are about the reply itself, and no part of an answer.

"The answer:", "```", "$$", "Sure, here is the answer.", "I hope this helps!"
"""

from __future__ import annotations

import re

from osler.text import split_sentences
from osler.types import CITATION_MARK

_LABEL = (
    r"(?:(?:so[ ,]+|thus[ ,]+)?(?:here(?:'s| is| are)|below is)[ ]+)?(?:the |my |your )?"
    r"(?:final |short |brief |direct |correct )?"
    r"(?:answer|response|conclusion|explanation|reasoning|summary|output|result)"
    r"(?: to (?:the|your) question)?(?: is)?"
    r"|(?:以下|下面)是?(?:我的|最终)?(?:答案|回答|结论)|(?:最终)?(?:答案|回答|结论)(?:如下|是)?|解释|说明"
)
_LABELLED = re.compile(rf"^\W*(?:{_LABEL})\W*?[:：]\W*?(?=[^\W_]|\(|（|\[|<|\\|$)", re.IGNORECASE)
_HEADING = re.compile(rf"^\s*#{{1,6}}\s*\**(?:{_LABEL})\**\s*$", re.IGNORECASE)
"""A heading without a colon, which in a sentence would be one ("The answer")."""
_COURTESY = re.compile(
    r"^\W*(?:"
    r"(?:sure|certainly|of course|absolutely|okay|ok|alright|great|great question|thank you"
    r"|thanks)(?:\W*$|[,!. ]+(?:here|let me|i(?:'ll| will| can|'d)|below|happy)\b.*)"
    r"|(?:here(?:'s| is| are)|below is)\b.*[:：]\W*$"
    r"|(?:i )?hope (?:this|that|it|my \w+) \w+.*"
    r"|(?:please )?(?:feel free|don't hesitate|do not hesitate) to\b.*"
    r"|(?:please )?let me know (?:if|whether|when)\b.*"
    r"|if you (?:have|need) (?:any )?(?:more|further|other|additional)?\b.*"
    r"\b(?:ask|know|help|questions?)\b.*"
    r"|(?:is there|do you have) anything else\b.*"
    r"|let me (?:think|answer|help|look)\b.*[:.!…]\W*$"
    r"|(?:好的|当然|没问题)(?:\W*$|[，,！!。]\s*(?:以下|下面|我).*)"
    r"|希望(?:这|以上|对您|对你|能).*|如(?:有|果您?还?有)(?:其他|任何|更多|疑问|问题).*|(?:还)?有什么.*帮.*"
    r")$",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"^(?:[\s*_`#$=~\-–—.:：|>]|\d{1,2}[.)、]|```\w*|</?\w+>)*$")
_FENCE = re.compile(r"^[ \t]*(?:```\w*|~~~\w*|\$\$)[ \t]*$\n?", re.MULTILINE)
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL)
_LEADING_MARKS = re.compile(rf"(?:\s*{CITATION_MARK.pattern})+\s*")
_ANSWER = re.compile(r"<answer>.*?</answer>", re.IGNORECASE | re.DOTALL)


def is_debris(text: str) -> bool:
    """Whether a sentence says nothing but that an answer comes, or has come."""
    said = text.strip()
    if _ANSWER.search(said):
        return False
    if _SIGNS.match(said) or _COURTESY.match(said) or _HEADING.match(said):
        return True
    labelled = _LABELLED.match(said)
    return labelled is not None and not said[labelled.end() :].strip()


def without_debris(text: str) -> str:
    """The text without fences, labels, courtesies and stars; its lines stay lines."""
    plain = _BOLD.sub(r"\1", _FENCE.sub("", text))
    lines = (_clean_line(line) for line in plain.splitlines())
    return "\n".join(line for line in lines if line is not None).strip()


def _clean_line(line: str) -> str | None:
    """The line's sentences that say something; `None` for a line that had none of them."""
    if not line.strip():
        return line
    label = _LABELLED.match(line)
    rest = line[label.end() :] if label else line
    kept = ""
    at = 0
    for start, end in split_sentences(rest):
        # A mark after the full stop belongs to the sentence before.
        lead = _LEADING_MARKS.match(rest, start)
        said = lead.end() if lead else start
        kept += rest[at : end if not is_debris(rest[said:end]) else said if lead else at]
        at = end
    return kept.lstrip() if label else (kept or None)
