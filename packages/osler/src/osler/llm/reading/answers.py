"""Reads the words of an answer out of a reply: what the model says of the matter, once.

Citation marks are read in every style: [1], 【1】, [^1], (Reference 1), [1, 2], [1–3]. A number in
round brackets alone is none: "(2)" numbers a list, or is a dose.

Finds tags such as Thought and Conclusion in any dress.

    **Thought:** …      ### Conclusion      - **Tool_Use**: …      [Summary] …      结论：…

A tag stands at the beginning of a line. Those of two words ("Tool_Use:", "Final Answer:") are
known within one as well, since no prose has them.

Words that are about the reply itself are no part of an answer: "The answer:", "```", "$$", "Sure,
here is the answer.", "I hope this helps!"
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

from osler.llm.core.thinking import spoken_part
from osler.text import split_sentences
from osler.types import CITATION_MARK, citation_mark

WORDS = {
    "observation": r"(?:Tool[ _-]{0,2})?Observations?|观察(?:结果)?|工具(?:观察|结果|返回)",
    "tool_input": (
        r"(?:Tool|Action)[ _-]{0,2}Input|Input|Query|工具输入|(?:动作)?输入|查询(?:词|内容)?"
    ),
    "tool_use": (
        r"Tool[ _-]{0,2}(?:Use|Call)|Use[ _-]{1,2}Tool|Tool|Action|(?:使用|调用)?工具|行动|动作"
    ),
    "backtrack": r"Backtrack(?:ing)?|回溯|回退",
    "summary": r"Summary|摘要|总结|概括|小结",
    "conclusion": (
        r"Conclusions?|Final[ _-]{0,2}Answer|(?:The[ ])?Answer|最终(?:答案|结论)|结论|答案|回答"
    ),
    "thought": r"Thoughts?|Thinking|Reasoning|思考|想法|思路",
    "query": r"User[ _-]{0,2}Query|Question|用户(?:问题|查询)|问题",
}
"""A tag's name → what models write for it."""
_WORD = "|".join(f"(?P<{name}>{words})" for name, words in WORDS.items())
# What stands before a tag on its line: quotes, headings, bullets, numbers, an opened fence.
_LEAD = r"^[ \t]*(?:```\w*[ \t]*|[>#]+[ \t]*|[-*•·+][ \t]+|\d{1,2}[.)、][ \t]*)*"
_OPEN, _CLOSE = r"(?P<open>[*_`]{1,3}|[\[【「])?", r"(?:[*_`]{1,3}|[\]】」])?"
_NUMBER = r"(?:[ \t]*[#(（]?\d{1,2}[)）]?)?"
_TAG = re.compile(
    rf"(?P<lead>{_LEAD}){_OPEN}[ \t]*(?:{_WORD}){_NUMBER}[ \t]*{_CLOSE}[ \t]*"
    rf"(?:(?P<colon>[:：]|->|→|[-–—](?=[ \t]))[ \t]*{_CLOSE}|(?P<alone>$)|(?P<after>(?<=[\]】]))|"
    r"(?P<bold>(?<=\*\*)))",
    re.IGNORECASE | re.MULTILINE,
)
_WITHIN = re.compile(
    r"(?<=[\s.!?。！？;；])\*{0,2}"
    r"(?:(?P<tool_use>Tool_Use)|(?P<tool_input>(?:Tool|Action)[_ ]Input)"
    r"|(?P<observation>Tool_Observation)|(?P<conclusion>Final[_ ]Answer))\*{0,2}[:：]\*{0,2}[ \t]*",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^[ \t]*```\w*[ \t]*$", re.MULTILINE)
_EDGES = " \t\r\n*`"


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag in a reply: its name (a key of `WORDS`) and its place, dress included."""

    name: str
    start: int
    end: int
    """Where what it heads begins."""


def find_tags(text: str) -> list[Tag]:
    """The tags of a reply, in order."""
    # Markdown escapes the underscore of "Tool\_Use"; a mark of equal length keeps the places.
    plain = text.replace("\\_", " _")
    found = [_read_match(match) for match in _TAG.finditer(plain) if _is_tag(match)]
    within = (_read_match(match) for match in _WITHIN.finditer(plain))
    others = [
        tag for tag in within if all(tag.end <= one.start or one.end <= tag.start for one in found)
    ]
    return _drop_stray(sorted([*found, *others], key=attrgetter("start")))


def _read_match(match: re.Match[str]) -> Tag:
    named = next(name for name in WORDS if match.groupdict().get(name))
    return Tag(named, match.start(), match.end())


def _is_tag(match: re.Match[str]) -> bool:
    """Without a colon a word is a tag only where its dress says so."""
    is_heading = match["alone"] is not None and "#" in match["lead"]
    return bool(match["colon"] or match["open"] or is_heading)


def _drop_stray(tags: list[Tag]) -> list[Tag]:
    """Leaves out words that are tags only after another: "Query:" is no input without a tool."""
    kept: list[Tag] = []
    for tag in tags:
        if tag.name == "tool_input" and (not kept or kept[-1].name != "tool_use"):
            continue
        kept.append(tag)
    return kept


def content_span(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of what a tag heads, without fences, stars and white space around it."""
    part = text[start:end]
    # A fence is opened or closed around the tags, and belongs to none of them.
    blank = _FENCE.sub(lambda fence: " " * len(fence.group()), part)
    first = len(blank) - len(blank.lstrip(_EDGES))
    last = len(blank.rstrip(_EDGES))
    # Stars within the text that it begins or ends with are pairs: "**Iron** helps".
    opened = len(blank[:first]) - len(blank[:first].rstrip("*"))
    if opened and blank[first:last].count("**") % 2:
        first -= opened
    return start + first, max(start + first, start + last)


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
_INVITES = r"(?:feel free|(?:don't|do not) hesitate) to (?:ask|reach out|follow up|(?:\w+ )?me)"
_MATTERS = r"(?:questions?|concerns?|information|details?|clarifications?|assistance|help)"
# "If you have concerns, ask your doctor" is advice: who invites speaks of what it does itself.
_TO_ME = rf"(?:ask(?: me| away)?\W*$|{_INVITES}|let me\b|i(?:'m|'ll| am| will| can)\b)"
_COURTESY = re.compile(
    r"^\W*(?:"
    r"(?:sure|certainly|of course|absolutely|okay|ok|alright|great|great question|thank you"
    r"|thanks)(?:\W*$|[,!. ]+(?:here|let me|i(?:'ll| will| can|'d)|below|happy)\b.*)"
    r"|(?:here(?:'s| is| are)|below is)\b.*[:：]\W*$"
    r"|(?:i )?hope (?:this|that|it|my \w+) \w+.*"
    rf"|(?:please )?(?:{_INVITES})\b.*"
    r"|(?:please )?let me know (?:if|whether|when)\b.*"
    rf"|if you (?:have|need|want) [\w ]*?\b{_MATTERS}\b(?:.*\b{_TO_ME}.*|\W*$)"
    r"|(?:is there|do you have) anything else\b.*"
    r"|let me (?:think|answer|help|look)\b.*[:.!…]\W*$"
    r"|(?:好的|当然|没问题)(?:\W*$|[，,！!。]\s*(?:以下|下面|我).*)"
    r"|希望(?:这|以上|我的|能|可以|对[您你]).{0,20}?"
    r"(?:帮助?到?[您你]|有(?:所|些|一定)?帮助|有用|[解回]答[您你]).*"
    r"|[如若]果?[您你]?(?:还|仍)?(?:有|需要?)(?:任何|其[他它]|更多|进一步|的)*(?:疑问|问题|信息|帮助|需要)"
    r"(?:\W*$|.*(?:[诉知问系]我|随时(?:提|问|告|联系)|欢迎).*)|(?:还)?有什么.*帮.*"
    r")$",
    re.IGNORECASE,
)
_LED_IN = re.compile(
    r"^\W*(?:(?:so|thus|therefore|hence),? )?(?:the|my) "
    r"(?:(?:final|correct|right|best|most likely) )?(?:answer|option)"
    r"(?: to (?:the|your|this) question)? (?:is|would be)[ :]+"
    r"|^\W*(?:(?:因此|所以|故)[，,]?)?(?:最终|正确|最佳)?(?:答案|选项)应?[是为][:：]?\s*",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"^(?:[\s*_`#$=~\-–—.:：|>]|\d{1,2}[.)、]|```\w*|</?\w+>)*$")
_OPEN_FENCE = re.compile(r"^[ \t]*(?:```\w*|~~~\w*|\$\$)[ \t]*$\n?", re.MULTILINE)
_BOLD = re.compile(r"\*\*(?=\S)(.+?)(?<=\S)\*\*", re.DOTALL)
_LEADING_MARKS = re.compile(rf"(?:\s*{CITATION_MARK.pattern})+\s*")
_ANSWER = re.compile(r"<answer>.*?</answer>", re.IGNORECASE | re.DOTALL)


def is_debris(text: str) -> bool:
    """Whether a sentence says nothing but that an answer comes, or has come."""
    said = text.strip()
    if _ANSWER.search(said):
        return False
    # What cites a passage says something.
    courteous = _COURTESY.match(said) and not CITATION_MARK.search(said)
    if _SIGNS.match(said) or courteous or _HEADING.match(said):
        return True
    labelled = _LABELLED.match(said)
    return labelled is not None and not said[labelled.end() :].strip()


def without_debris(text: str) -> str:
    """The text without fences, labels, courtesies and stars; its lines stay lines."""
    plain = _BOLD.sub(r"\1", _OPEN_FENCE.sub("", text))
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
        if not is_debris(rest[said:end]):
            kept += rest[at:end]
        elif lead:  # only the mark stays
            kept += rest[at:said]
        at = end
    return kept.lstrip() if label else (kept or None)


# "I cannot recommend NSAIDs in pregnancy" answers.
_HELPS = (
    r"(?:(?:help|assist|comment|respond|discuss|engage|comply|do that"
    r"|(?:answer|provide|give)\b.{0,30}\b(?:medical|health|advice|diagnos|that|this))"
    r"|(?:recommend|advise|offer|continue)(?:\W*$| (?:th(?:is|at)\W*$|(?:to )?you\b|anything|with\b"
    r"|(?:any |an? )?(?:specific|particular|medical|health|personal|advice|diagnos))))"
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
"""Characters of sentences that may well come twice at once ("Yes. Yes.")."""
_LOOP = 60
"""Sentences of one round of a loop, at most."""
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
    """The lines of a text without what it says in a loop: sentences that come again at once.

    What comes again later may be a step of a procedure ("Repeat after five minutes.").
    """
    lines = text.splitlines()
    spans = [(n, slice(*span)) for n, line in enumerate(lines) for span in split_sentences(line)]
    said = [(n, span, bare_words(lines[n][span])) for n, span in spans]
    # A lone mark belongs to the sentence before it.
    said = [one for one in said if one[2]]
    looped = [said[at] for at in _find_loops([words for *_, words in said])]
    for n, span, _ in reversed(looped):
        lines[n] = lines[n][: span.start] + lines[n][span.stop :].lstrip()
    emptied = {n for n, *_ in looped if not lines[n].strip()}
    return [line.rstrip() for n, line in enumerate(lines) if n not in emptied]


def _find_loops(said: Sequence[str]) -> list[int]:
    """The places of sentences that only say again what stands just before them."""
    found, at = list[int](), 1
    while at < len(said):
        sizes = (n for n in range(1, min(at, _LOOP) + 1) if said[at] == said[at - n])
        blocks = (said[at - n : at] for n in sizes if said[at : at + n] == said[at - n : at])
        block = next((one for one in blocks if sum(map(len, one)) > _SHORT), None)
        while block and at < len(said) and said[at] == said[at - len(block)]:
            found.append(at)
            at += 1
        at += 1
    return found


def bare_words(sentence: str) -> str:
    """A sentence as it is compared: without marks, case and signs around it."""
    plain = CITATION_MARK.sub("", plain_marks(sentence))
    return " ".join(plain.casefold().split()).strip(" .。!！*_`\"'")


def without_lead(sentence: str) -> str:
    """A sentence without "The answer is": those words are of the reply, not of the matter."""
    return _LED_IN.sub("", sentence)


def declines(text: str) -> bool:
    """Whether a reply says nothing but that the model will not answer."""
    said = [text[start:end] for start, end in split_sentences(text)]
    said = [sentence for sentence in said if not is_debris(sentence)]
    if not said or _DECLINES.match(said[0].replace("’", "'")) is None:
        return False
    if CITATION_MARK.search(text):  # what cites a passage says something
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
# "95% CI [2, 5]" and "IQR [2-5]" are no marks; "in the normal range [1, 2]" has one.
_SPREAD = (
    r"(?:\bCI|\bCrI|\bIQR|(?:confidence|credible) intervals?|interquartile range|[(（]range"
    rf"|(?:置信|可信)区间)[ \t]*[:：为]?[ \t]*[\[［]{_N}{_JOIN}{_N}[\]］]"
)
_MARK = re.compile(rf"(?P<spread>{_SPREAD})|{_SQUARE}|{_ROUND}|{_RAISED}", re.IGNORECASE)
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
        if match["spread"] is None
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
